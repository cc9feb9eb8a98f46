/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time series of metrics(): one for each kind and name of records and each combination of the
 * values of chosen keys. Beyond a limit all new combinations share one series, which is marked.
 */
#ifndef WAFFLE_EXPORT_PROCESS_SERIES_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_SERIES_INTERNAL_H

#include "export/process/exp_histogram_internal.h"
#include "export/process/full_record.h"
#include "util/error.h"
#include "util/keymap.h"

#define SERIES_LABELS_MAX 8
#define SERIES_HISTOGRAMS_MAX 4
/* Bytes of a label's value; the rest is cut off. */
#define SERIES_VALUE_MAX 128

enum series_field {
	SERIES_CATEGORY,
	SERIES_SEVERITY,
	SERIES_COMM,
	SERIES_PID,
	SERIES_TID,
	SERIES_FUNC,
	SERIES_FILE,
	SERIES_DUR, /* only of a histogram */
	SERIES_KV,
	SERIES_FIELD_COUNT
};

/* A field by which records are told apart, or whose values are counted in a histogram. */
struct series_choice {
	enum series_field field;
	char key[64];   /* of SERIES_KV */
	char label[72]; /* its name in the output: letters, digits and _ */
};

struct series {
	/* The values of labels: kind, name, then those of the choices. NULL: the record had no such
	 * value. */
	const char *values[2 + SERIES_LABELS_MAX];
	bool overflow;
	uint64_t count; /* of records; 0: of a counter of the program */
	bool is_counter;
	double last; /* of a counter: its last value */
	uint64_t last_unix_ns;
	struct exp_histogram *histograms[SERIES_HISTOGRAMS_MAX]; /* NULL: no value yet */
};

struct series_table {
	struct series_choice labels[SERIES_LABELS_MAX], histograms[SERIES_HISTOGRAMS_MAX];
	size_t label_count, histogram_count;
	struct keymap index; /* values of labels → series */
	VEC(struct series *) series;
	size_t limit;
	uint64_t overflowed; /* records in the series that is shared */
	uint64_t skipped;    /* values of histograms that are negative or no numbers */
	uint64_t start_unix_ns;
	bool simulated; /* a stand-in made some records, no GPU */
};

/* A state of the table, for exporters. */
struct metrics_snapshot {
	const struct series_table *table;
	uint64_t unix_ns;
};

/* Parses "kv.status+comm" for labels or "dur+kv.bytes" for histograms. -EINVAL with a message. */
int series_choices_parse(struct series_choice *choices, size_t *count, size_t max, bool histograms,
			 const char *origin, const char *text, struct error *err);
/* Counts a record. */
void series_take(struct series_table *table, const struct full_record *full);
void series_free(struct series_table *table);

#endif
