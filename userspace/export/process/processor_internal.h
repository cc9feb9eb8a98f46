/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A processor is one stage of a chain: it takes records and passes on what it chooses.
 *
 *	joiner ──→ sample ──→ filter ──→ metrics ──→ log ──→ export
 *
 * All of a chain runs in one thread. What may wait (a disk, a network) is done by the thread of a
 * sender (sender_internal.h).
 */
#ifndef WAFFLE_EXPORT_PROCESS_PROCESSOR_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_PROCESSOR_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/process/chain_host.h"
#include "export/process/full_record.h"
#include "util/error.h"

/* ---- options ---- */

enum processor_option_type {
	PROCESSOR_TEXT,     /* const char *; NULL: not given */
	PROCESSOR_CHOICE,   /* unsigned, an index of `choices` */
	PROCESSOR_TIME,     /* uint64_t, ns */
	PROCESSOR_SIZE,     /* uint64_t, bytes */
	PROCESSOR_NUMBER,   /* uint64_t */
	PROCESSOR_FRACTION, /* struct processor_fraction */
	PROCESSOR_REST,     /* const char *: all between the parentheses */
};

struct processor_fraction {
	uint32_t keep, of; /* 0 < keep <= of */
};

/* A row of the table of a processor's options, which also makes the help and the documentation. */
struct processor_option {
	const char *name;
	const char *argument; /* as the help names it */
	const char *help;     /* one sentence or more, with the default */
	enum processor_option_type type;
	bool first; /* the name may be left out */
	bool required;
	bool replaces; /* names a file that is replaced: two processes need two names */
	const char *const *choices; /* ends with NULL */
	uint64_t min, max, value;   /* bounds and default of numbers */
	size_t at;                  /* offset in the processor's configuration */
};

/* ---- a processor ---- */

struct processor;
struct metrics_snapshot;

struct processor_type {
	const char *name;
	const char *help; /* one sentence or more */
	const char *example;
	const struct processor_option *options;
	size_t option_count;
	size_t config_bytes, state_bytes;
	bool batched; /* a batch() is put in front of it unless there is one */
	/* This function and those below may be NULL. Opens the libraries that the processor needs.
	 * Any thread may call it. */
	int (*prepare)(struct error *err);
	/* Completes `state`, which is zero. */
	int (*open)(struct processor *processor, struct error *err);
	/* Takes records and passes on what it chooses. */
	void (*records)(struct processor *processor, struct full_record *const *records,
			size_t count);
	/* Takes the metrics of a processor before it. */
	void (*metrics)(struct processor *processor, const struct metrics_snapshot *snapshot);
	/* Called about once a second. */
	void (*tick)(struct processor *processor, uint64_t now_ns);
	/* Lets go of what it has: what is passed on and written so far is to survive the program's
	 * end. Must not wait for a network. */
	void (*flush)(struct processor *processor);
	/* The program dies, or nearly did: passes on and hands over to a sender all it has. */
	void (*save)(struct processor *processor);
	/* Waits at most until `until_ns` (CLOCK_MONOTONIC) for its sender to have written that. */
	void (*drain)(struct processor *processor, uint64_t until_ns);
	/* All records have come. */
	void (*end)(struct processor *processor);
	/* Waits at most until `until_ns` (CLOCK_MONOTONIC) for what is still to be written, and
	 * frees its state in any case. Also called if open() failed. */
	void (*close)(struct processor *processor, uint64_t until_ns);
};

struct processor {
	const struct processor_type *type;
	const struct chain_host *host;
	struct processor *next; /* NULL: the last one */
	void *config, *state;
	const struct joiner *joiner;
	bool counted; /* a metrics() in front of it sends the last values of counters to it */
	bool *lossy;  /* close() sets it if records were lost on their way out */
};

static inline void processor_give(struct processor *processor, struct full_record *const *records,
				  size_t count)
{
	processor->type->records(processor, records, count);
}

/* Gives records to the next processor. */
static inline void processor_pass(struct processor *processor, struct full_record *const *records,
				  size_t count)
{
	if (processor->next && count)
		processor_give(processor->next, records, count);
}

/* Gives metrics to all exporters that follow. */
static inline void processor_pass_metrics(struct processor *processor,
					  const struct metrics_snapshot *snapshot)
{
	for (struct processor *next = processor->next; next; next = next->next)
		if (next->type->metrics)
			next->type->metrics(next, snapshot);
}

/* ---- the table of processors (processors.c) ---- */

extern const struct processor_type *const processor_types[];
extern const size_t processor_type_count;
/* NULL: there is none of this name. */
const struct processor_type *processor_type_find(const char *name, size_t len);

#endif
