// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/process/series_internal.h"
#include "util/json.h"

/* ---- choices ---- */

static const struct {
	const char *name;
	bool label, histogram;
} fields[] = {
	[SERIES_CATEGORY] = {"category", true, false},
	[SERIES_SEVERITY] = {"severity", true, false},
	[SERIES_COMM] = {"comm", true, false},
	[SERIES_PID] = {"pid", true, false},
	[SERIES_TID] = {"tid", true, false},
	[SERIES_FUNC] = {"func", true, false},
	[SERIES_FILE] = {"file", true, false},
	[SERIES_DUR] = {"dur", false, true},
};
#define FIELD_COUNT (sizeof(fields) / sizeof(fields[0]))

/* A key may have any bytes; labels may not, and some have a meaning. */
static void label_make(struct series_choice *choice)
{
	static const char *const taken[] = {"kind", "name", "le", "overflow", "quantile"};
	const char *key = choice->field == SERIES_KV ? choice->key : fields[choice->field].name;
	bool prefix = !*key || isdigit((unsigned char)*key) || *key == '_';

	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		prefix = prefix || !strcmp(key, taken[i]);
	for (size_t i = 0; choice->field == SERIES_KV && i < FIELD_COUNT; i++)
		prefix = prefix || !strcmp(key, fields[i].name);
	snprintf(choice->label, sizeof(choice->label), "%s%s", prefix ? "kv_" : "", key);
	for (char *at = choice->label; *at; at++)
		if (!isalnum((unsigned char)*at))
			*at = '_';
}

static int choice_parse(struct series_choice *choice, bool histograms, const char *origin,
			const char *word, size_t len, struct error *err)
{
	if (len > 3 && !strncmp(word, "kv.", 3) && len - 3 < sizeof(choice->key)) {
		choice->field = SERIES_KV;
		snprintf(choice->key, sizeof(choice->key), "%.*s", (int)len - 3, word + 3);
		label_make(choice);
		return 0;
	}
	for (size_t i = 0; i < FIELD_COUNT; i++)
		if (strlen(fields[i].name) == len && !strncmp(fields[i].name, word, len) &&
		    (histograms ? fields[i].histogram : fields[i].label)) {
			choice->field = (enum series_field)i;
			label_make(choice);
			return 0;
		}
	return error_set(err, EINVAL, "%s: metrics(): '%.*s': expected %s", origin, (int)len, word,
			 histograms ? "dur or kv.KEY"
				    : "kv.KEY, category, severity, comm, pid, tid, func or file");
}

int series_choices_parse(struct series_choice *choices, size_t *count, size_t max, bool histograms,
			 const char *origin, const char *text, struct error *err)
{
	while (text) {
		size_t len = strcspn(text, "+");
		int result;

		if (*count == max)
			return error_set(err, EINVAL, "%s: metrics(): at most %zu %s", origin, max,
					 histograms ? "histograms" : "fields in by=");
		result = choice_parse(&choices[*count], histograms, origin, text, len, err);
		if (result)
			return result;
		for (size_t i = 0; i < *count; i++)
			if (!strcmp(choices[i].label, choices[*count].label))
				return error_set(err, EINVAL,
						 "%s: metrics(): '%.*s' is the same as another one",
						 origin, (int)len, text);
		++*count;
		text = text[len] ? text + len + 1 : NULL;
	}
	return 0;
}

/* ---- labels ---- */

/* Returns false if the record has no such value. */
static bool field_text(const struct full_record *full, const struct series_choice *choice,
		       char text[SERIES_VALUE_MAX])
{
	const struct waffle_record *record = &full->record;
	struct waffle_value value;
	bool on_track = *record->track; /* instead of a thread, whose name it then is in filters */
	const char *from = choice->field == SERIES_CATEGORY   ? record->category
			   : choice->field == SERIES_SEVERITY ? record->severity
			   : choice->field == SERIES_COMM ? on_track ? record->track : record->comm
			   : choice->field == SERIES_FUNC ? record->func
			   : choice->field == SERIES_FILE ? record->file
							  : NULL;

	if (from || choice->field != SERIES_KV) {
		if (from)
			snprintf(text, SERIES_VALUE_MAX, "%s", from);
		else if (choice->field == SERIES_TID && on_track)
			return false;
		else
			snprintf(text, SERIES_VALUE_MAX, "%u",
				 choice->field == SERIES_PID ? record->pid : record->tid);
		return *text;
	}
	if (!full_record_value(full, choice->key, &value))
		return false;
	switch (value.type) {
	case WAFFLE_VALUE_TEXT:
		snprintf(text, SERIES_VALUE_MAX, "%.*s", (int)value.text_len, value.text);
		return *text;
	case WAFFLE_VALUE_I64:
		snprintf(text, SERIES_VALUE_MAX, "%" PRId64, value.i64);
		return true;
	case WAFFLE_VALUE_F64:
		snprintf(text, SERIES_VALUE_MAX, "%g", value.f64);
		if (isfinite(value.f64))
			json_plain_point(text, strlen(text));
		return true;
	case WAFFLE_VALUE_BOOL:
		snprintf(text, SERIES_VALUE_MAX, "%s", value.u64 ? "true" : "false");
		return true;
	case WAFFLE_VALUE_NONE:
		return false;
	default:
		snprintf(text, SERIES_VALUE_MAX, "%" PRIu64, value.u64);
		return true;
	}
}

static const char *kind_name(const struct waffle_record *record)
{
	static const char *const names[] = {
		[WAFFLE_RECORD_SPAN] = "span",
		[WAFFLE_RECORD_EVENT] = "event",
		[WAFFLE_RECORD_COUNTER] = "counter",
		[WAFFLE_RECORD_LOG] = "log",
	};

	return names[record->kind];
}

struct series_key {
	char text[256 + SERIES_LABELS_MAX * (SERIES_VALUE_MAX + 1)];
	size_t len;
};

static void key_add(struct series_key *key, const char *text)
{
	size_t room = sizeof(key->text) - key->len - 1, len = strlen(text);

	if (len > room)
		len = room;
	memcpy(key->text + key->len, text, len);
	key->len += len;
	key->text[key->len++] = '\0';
}

/* The values of all labels, each with a NUL; one that the record does not have is empty. */
static void key_make(struct series_key *key, const struct series_table *table,
		     const struct full_record *full)
{
	char text[SERIES_VALUE_MAX], name[SERIES_VALUE_MAX];

	key->len = 0;
	key_add(key, kind_name(&full->record));
	snprintf(name, sizeof(name), "%s", full->record.name);
	key_add(key, name);
	for (size_t i = 0; i < table->label_count; i++)
		key_add(key, field_text(full, &table->labels[i], text) ? text : "");
}

/* ---- the table ---- */

static struct series *series_add(struct series_table *table, const void *key, size_t len)
{
	struct series *series = calloc(1, sizeof(*series));
	uint32_t at = (uint32_t)table->series.len;

	if (!series || !vec_push(&table->series, series) ||
	    !keymap_set(&table->index, key, len, at)) {
		if (series && table->series.len > at)
			table->series.len = at;
		free(series);
		return NULL;
	}
	return series;
}

static struct series *series_new(struct series_table *table, const struct series_key *key)
{
	struct series *series = series_add(table, key->text, key->len);
	/* The copy of the key in the map holds the values. */
	const char *at =
		series ? table->index.entries.data[table->index.entries.len - 1].key : NULL;

	for (size_t i = 0; series && i < 2 + table->label_count; i++) {
		series->values[i] = *at ? at : NULL;
		at += strlen(at) + 1;
	}
	return series;
}

/* NULL: out of memory. */
static struct series *series_of(struct series_table *table, const struct full_record *full)
{
	static const char overflow[] = "overflow"; /* no key is like this, without a NUL */
	struct series_key key;
	struct series *series;
	uint32_t at;

	key_make(&key, table, full);
	at = keymap_get(&table->index, key.text, key.len);
	if (at != MAP_NONE)
		return table->series.data[at];
	if (table->series.len < table->limit)
		return series_new(table, &key);
	table->overflowed++;
	at = keymap_get(&table->index, overflow, sizeof(overflow) - 1);
	if (at != MAP_NONE)
		return table->series.data[at];
	series = series_add(table, overflow, sizeof(overflow) - 1);
	if (series)
		series->overflow = true;
	return series;
}

static bool value_number(const struct waffle_value *value, double *number)
{
	switch (value->type) {
	case WAFFLE_VALUE_I64:
		*number = (double)value->i64;
		return true;
	case WAFFLE_VALUE_U64:
		*number = (double)value->u64;
		return true;
	case WAFFLE_VALUE_F64:
		*number = value->f64;
		return true;
	default:
		return false;
	}
}

static bool histogram_value(const struct full_record *full, const struct series_choice *choice,
			    double *number)
{
	const struct waffle_record *record = &full->record;
	struct waffle_value value;

	if (choice->field == SERIES_KV)
		return full_record_value(full, choice->key, &value) && value_number(&value, number);
	if (record->kind != WAFFLE_RECORD_SPAN || record->flags & WAFFLE_RECORD_UNFINISHED)
		return false;
	*number = (double)(record->end_ns - record->start_ns) / 1e9;
	return true;
}

static void histogram_take(struct series_table *table, struct exp_histogram **histogram,
			   const struct waffle_record *record, double value)
{
	struct exemplar exemplar = {
		.value = value,
		.unix_ns = record->end_ns + (uint64_t)record->unix_offset_ns,
		.trace_hi = record->trace_hi,
		.trace_lo = record->trace_lo,
		.span_id = record->kind == WAFFLE_RECORD_SPAN ? record->id : record->parent,
		.fresh = true,
	};

	if (!*histogram) {
		*histogram = malloc(sizeof(**histogram));
		if (!*histogram)
			return;
		exp_histogram_init(*histogram);
	}
	if (!exp_histogram_add(*histogram, value))
		table->skipped++;
	else if (exemplar.trace_hi | exemplar.trace_lo)
		exp_histogram_exemplify(*histogram, &exemplar);
}

void series_take(struct series_table *table, const struct full_record *full)
{
	const struct waffle_record *record = &full->record;
	struct series *series = series_of(table, full);
	struct full_record_values room;
	struct full_record decoded = *full;
	double value;

	table->simulated |= full->simulated;
	if (!series)
		return;
	if (record->kind == WAFFLE_RECORD_COUNTER) {
		full_record_decode(&decoded, &room);
		if (decoded.record.value_count && value_number(&room.values[0], &value)) {
			series->is_counter = true;
			series->last = value;
			series->last_unix_ns = record->end_ns + (uint64_t)record->unix_offset_ns;
		}
		return;
	}
	series->count++;
	for (size_t i = 0; i < table->histogram_count; i++)
		if (histogram_value(full, &table->histograms[i], &value))
			histogram_take(table, &series->histograms[i], record, value);
}

void series_free(struct series_table *table)
{
	for (size_t i = 0; i < table->series.len; i++) {
		for (size_t j = 0; j < SERIES_HISTOGRAMS_MAX; j++)
			free(table->series.data[i]->histograms[j]);
		free(table->series.data[i]);
	}
	vec_free(&table->series);
	keymap_free(&table->index);
}
