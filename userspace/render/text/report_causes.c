// SPDX-License-Identifier: Apache-2.0
#include "render/text/report_causes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "render/json/samples_json.h"
#include "render/place.h"
#include "render/text/samples_text_internal.h"
#include "util/memory.h"
#include "util/template_fold.h"
#include "util/terminal.h"
#include "util/units.h"
#include "util/utf8.h"

/* Limits for each name, unless everything is shown. */
#define CAUSES_SHOWN 5
#define DIFFERENCES_SHOWN 3
/* Causes are shown for one name per this many rows in the table of names. */
#define ROWS_A_NAME 4

#define COLUMNS 100
#define WHO_COLUMN 52     /* in the table of causes */
#define SAMPLES_INDENT 25 /* below the name of the cause */
#define INDENT 6          /* of the differences */
/* Minimum width of an object. */
#define OBJECT_COLUMNS 16

struct causes_printer {
	const struct report *report;
	const struct report_view *view;
	FILE *out;
};

static void paint(const struct causes_printer *printer, const char *sequence)
{
	terminal_paint(printer->out, printer->view->colour, sequence);
}

static void put(FILE *out, const char *text)
{
	terminal_put(out, text, strlen(text));
}

/* ---- culprits ---- */

/* A file is told by the end of its path, and what is said of it behind a comma can be missing:
 * "…/shard-7 (ext4), of wh…". */
static void put_end_of_name(FILE *out, const char *object, unsigned room)
{
	const char *end = strstr(object, ", ") ?: object + strlen(object), *begin;
	unsigned columns = terminal_columns(object) - terminal_columns(end);

	if (columns < room) {
		terminal_put(out, object, (size_t)(terminal_skip(object, room - 1) - object));
		fputs("…", out);
		return;
	}
	begin = terminal_skip(object, columns - room + 1);
	fputs("…", out);
	terminal_put(out, begin, (size_t)(end - begin));
}

static void put_object(FILE *out, const char *object, unsigned room, enum why_object_shown shown)
{
	char *folded = template_fold(object, room);
	unsigned columns = terminal_columns(folded);

	if (columns <= room) {
		put(out, folded);
	} else if (shown == WHY_OBJECT_BEGIN) {
		terminal_put(out, folded, (size_t)(terminal_skip(folded, room - 1) - folded));
		fputs("…", out);
	} else {
		put_end_of_name(out, folded, room);
	}
	free(folded);
}

static bool has_thread(const struct why_group_cause *cause)
{
	return cause->own || cause->comm != MODEL_NONE;
}

/* Prints " (rank 1)" or " (4711)". */
static void put_process(FILE *out, const struct model *model, const struct model_process *process)
{
	char text[PLACE_TEXT];

	if (*place_of_process(text, model, process) == '\0')
		place_process(text, model, process->main_thread);
	fputs(" (", out);
	put(out, text);
	fputc(')', out);
}

/* Prints the thread of a cause and its span: "loader-2 in load". One of several processes of a name
 * follows it: "python (4711) in step". */
static void put_thread(FILE *out, const struct why_aggregate *of, const struct why_group *group,
		       const struct why_group_cause *cause, const struct model_process *process)
{
	const struct why_group *groups = of->groups.data;

	if (cause->comm != MODEL_NONE)
		put(out, strtab_get(of->model->strings, cause->comm));
	else
		fputs("the span's own thread", out);
	if (process)
		put_process(out, of->model, process);
	if (cause->span != MODEL_NONE && (!cause->own || &groups[cause->span] != group)) {
		fputs(" in ", out);
		put(out, groups[cause->span].name);
	}
}

char *report_object_text(const struct why_aggregate *of, const struct why_group_cause *cause)
{
	char *text = NULL;
	size_t len;
	FILE *out = memory_stream(&text, &len);

	if (cause->connections)
		fprintf(out, "%" PRIu32 " ", cause->connections);
	fputs(strtab_get(of->why->texts, cause->object), out);
	memory_require(!fclose(out));
	return text;
}

/* Prints the object of a cause, to follow the thread. */
static void put_thing(FILE *out, const struct why_aggregate *of,
		      const struct why_group_cause *cause, unsigned room)
{
	char *object = report_object_text(of, cause);

	if (cause->object)
		put_object(out, object, room < OBJECT_COLUMNS ? OBJECT_COLUMNS : room,
			   why_causes[cause->cause].shown);
	else if (cause->merged && has_thread(cause))
		fputs("several", out);
	else if (cause->merged)
		fprintf(out, "%u %s", cause->merged,
			units_plural(cause->merged, "other", "others"));
	else if (!has_thread(cause))
		fputs(why_causes[cause->cause].text, out);
	free(object);
}

char *report_culprit_text(const struct why_aggregate *of, const struct why_group *group,
			  const struct why_group_cause *cause, const struct model_process *process,
			  const char *prefix, unsigned room)
{
	char *text = NULL;
	size_t len;
	FILE *out = memory_stream(&text, &len);

	fputs(prefix, out);
	if (has_thread(cause))
		put_thread(out, of, group, cause, process);
	if (has_thread(cause) && (cause->object || cause->merged))
		fputs(", ", out);
	if (!fflush(out) && terminal_columns(text) < room)
		put_thing(out, of, cause, room - terminal_columns(text));
	memory_require(!fclose(out));
	if (terminal_columns(text) > room) {
		char *end = (char *)terminal_skip(text, room - 1);

		/* The mark needs three bytes, but a removed character may have had only one. */
		*end = '\0';
		if (len - strlen(text) >= strlen("…"))
			strcpy(end, "…");
	}
	return text;
}

/* ---- causes ---- */

static void print_cause(const struct causes_printer *printer, const struct why_group *group,
			size_t number)
{
	const struct why_group_cause *cause = &group->causes.data[number];
	const struct why_aggregate *of = printer->report->causes;
	char *who = report_culprit_text(of, group, cause, why_group_cause_process(of, group, cause),
					"", COLUMNS - WHO_COLUMN);
	char share[UNITS_TEXT], time[UNITS_TEXT];

	fputs("  ", printer->out);
	terminal_put_cell(printer->out, 10,
			  units_format_share(share, cause->total_ns, group->explained_ns));
	terminal_put_cell(printer->out, 11, units_format_duration(time, cause->total_ns));
	fputs("  ", printer->out);
	paint(printer, number ? "" : TERMINAL_BOLD);
	paint(printer, why_causes[cause->cause].colour);
	fprintf(printer->out, "%-16s", why_causes[cause->cause].name);
	paint(printer, TERMINAL_END);
	fprintf(printer->out, "  %-7s  %s\n", why_grade_names[cause->grade], who);
	free(who);
	samples_print(printer->out, of->why->sample_places, cause->places.data, cause->places.len,
		      SAMPLES_INDENT);
}

static void print_rest(const struct causes_printer *printer, const struct why_group *group,
		       size_t shown)
{
	char share[UNITS_TEXT], time[UNITS_TEXT];
	uint64_t ns = 0;

	if (shown == group->causes.len)
		return;
	for (size_t i = shown; i < group->causes.len; i++)
		ns += group->causes.data[i].total_ns;
	paint(printer, TERMINAL_DIM);
	fputs("  …", printer->out);
	terminal_put_cell(printer->out, 9, units_format_share(share, ns, group->explained_ns));
	terminal_put_cell(printer->out, 11, units_format_duration(time, ns));
	fprintf(printer->out, "  %zu more\n", group->causes.len - shown);
	paint(printer, TERMINAL_END);
}

/* ---- slow spans ---- */

/* Describes a difference: "+150 ms disk-read of loader-2 in load, /data/shard-7 (ext4)". */
static char *difference_text(const struct report *report, const struct why_group *group,
			     const struct why_group_cause *cause)
{
	const struct why_aggregate *of = report->causes;
	bool thing = cause->object || cause->merged;
	char prefix[UNITS_TEXT + 32], time[UNITS_TEXT];

	units_format_duration(time, (uint64_t)why_group_difference(group, cause));
	snprintf(prefix, sizeof(prefix), "+%s %s%s", time, why_causes[cause->cause].name,
		 has_thread(cause) ? " of "
		 : thing           ? ": "
				   : "");
	if (!has_thread(cause) && !thing)
		return memory_text(prefix);
	return report_culprit_text(of, group, cause, why_group_cause_process(of, group, cause),
				   prefix, COLUMNS - INDENT - 1);
}

/* Prints what the slow spans have more of, as many items a line as fit. */
static void print_differences(const struct causes_printer *printer, const struct why_group *group,
			      const uint32_t *causes, size_t count)
{
	unsigned at = COLUMNS;

	for (size_t i = 0; i < count; i++) {
		const struct why_group_cause *cause = &group->causes.data[causes[i]];
		char *text = difference_text(printer->report, group, cause);
		unsigned columns = terminal_columns(text);

		if (at + columns + 3 > COLUMNS) {
			fprintf(printer->out, "%s%*s", i ? ";\n" : "", INDENT, "");
			at = INDENT;
		} else {
			fputs("; ", printer->out);
			at += 2;
		}
		fputs(text, printer->out);
		at += columns;
		free(text);
	}
	fputc('\n', printer->out);
}

static void print_slow(const struct causes_printer *printer, const struct why_group *group)
{
	uint32_t causes[DIFFERENCES_SHOWN];
	size_t count = why_group_different(group, causes, DIFFERENCES_SHOWN);
	uint64_t slow = why_group_mean(group->slow_total_ns, group->slow_count);
	uint64_t median = why_group_mean(group->median_total_ns, group->median_count);
	char slow_text[UNITS_TEXT], all_text[UNITS_TEXT], mean[UNITS_TEXT], usual[UNITS_TEXT];

	if (!count)
		return;
	fprintf(printer->out,
		"    slow ones (≥ p99, %s of %s) take %s, median ones %s; more in the slow ones:\n",
		units_format_count(slow_text, group->slow_count),
		units_format_count(all_text, group->explained), units_format_duration(mean, slow),
		units_format_duration(usual, median));
	print_differences(printer, group, causes, count);
}

/* ---- without culprits ---- */

/* Causes of a smaller part of the time than this are not shown there. */
#define BY_CAUSE_PARTS 100
/* A cause is split if its largest culprit leaves more than this part of the time to others. */
#define SPLIT_PARTS 10

/* Whether the rows do not show what most of the time was lost to, or split a cause. `ns`: the time
 * of each cause. */
static bool hides_cause(const struct why_group *group, const uint64_t *ns)
{
	const struct why_group_cause *first = &group->causes.data[0];
	uint64_t left[WHY_CAUSE_COUNT];

	memcpy(left, ns, sizeof(left));
	for (size_t i = group->causes.len; i--;)
		left[group->causes.data[i].cause] =
			ns[group->causes.data[i].cause] - group->causes.data[i].total_ns;
	for (unsigned i = 0; i < WHY_CAUSE_COUNT; i++)
		if (ns[i] > ns[first->cause] || left[i] > group->explained_ns / SPLIT_PARTS)
			return true;
	return left[first->cause] > group->explained_ns / BY_CAUSE_PARTS;
}

static bool has_run(const struct why_group *group, enum why_cause cause, uint64_t ns)
{
	uint64_t ran_ns = 0;

	for (size_t i = 0; i < group->causes.len; i++)
		if (group->causes.data[i].cause == cause)
			ran_ns += group->causes.data[i].ran_ns;
	return why_has_run(cause, ran_ns, ns);
}

/* Prints "    by cause: 64.0 % socket (running), 27.0 % running". `ns`: the time of each cause;
 * shown causes are removed. */
static void put_by_cause(const struct causes_printer *printer, const struct why_group *group,
			 uint64_t *ns)
{
	char share[UNITS_TEXT];

	for (unsigned shown = 0; shown < WHY_CAUSE_COUNT; shown++) {
		unsigned most = 0;

		for (unsigned i = 1; i < WHY_CAUSE_COUNT; i++)
			most = ns[i] > ns[most] ? i : most;
		if (shown && ns[most] <= group->explained_ns / BY_CAUSE_PARTS)
			break;
		fprintf(printer->out, "%s %s %s%s", shown ? "," : "    by cause:",
			units_format_share(share, ns[most], group->explained_ns),
			why_causes[most].name, has_run(group, most, ns[most]) ? " (running)" : "");
		ns[most] = 0;
	}
	fputc('\n', printer->out);
}

static void print_by_cause(const struct causes_printer *printer, const struct why_group *group)
{
	uint64_t ns[WHY_CAUSE_COUNT] = {0};

	if (!group->causes.len)
		return;
	for (size_t i = 0; i < group->causes.len; i++)
		ns[group->causes.data[i].cause] += group->causes.data[i].total_ns;
	if (hides_cause(group, ns))
		put_by_cause(printer, group, ns);
}

/* A process that is to blame for a smaller part of the time is not shown there. */
#define BY_PROCESS_PARTS 10
#define PROCESSES_SHOWN 4

/* Whether a process makes others wait for more than the first cause shows. */
static bool hides_process(const struct why_group *group)
{
	uint64_t part_ns = group->explained_ns / BY_PROCESS_PARTS;

	for (size_t i = 0; i < group->processes.len; i++)
		if (group->processes.data[i].others_ns > part_ns &&
		    group->processes.data[i].ns > group->causes.data[0].total_ns + part_ns)
			return true;
	return false;
}

/* Prints "    by process: 75.2 % python (4711, rank 1), 17.0 % python (4710, rank 0)": one process
 * has several causes, and the rows tell processes apart by their names only. */
static void print_by_process(const struct causes_printer *printer, const struct why_group *group)
{
	const struct model *model = printer->report->causes->model;
	char share[UNITS_TEXT], at[PLACE_TEXT];

	if (!group->causes.len || !hides_process(group))
		return;
	for (size_t i = 0; i < group->processes.len && i < PROCESSES_SHOWN; i++) {
		const struct why_group_process *sum = &group->processes.data[i];
		uint32_t main = model->processes.data[sum->process].main_thread;

		if (i && sum->ns <= group->explained_ns / BY_PROCESS_PARTS)
			break;
		fprintf(printer->out, "%s %s ", i ? "," : "    by process:",
			units_format_share(share, sum->ns, group->explained_ns));
		put(printer->out, model_thread_name(model, main));
		fputs(" (", printer->out);
		put(printer->out, place_process(at, model, main));
		fputc(')', printer->out);
	}
	fputc('\n', printer->out);
}

/* ---- all names ---- */

static void print_group(const struct causes_printer *printer, const struct why_group *group)
{
	size_t shown = group->causes.len;
	char count[UNITS_TEXT], time[UNITS_TEXT];

	if (printer->view->rows && shown > CAUSES_SHOWN)
		shown = CAUSES_SHOWN;
	fputs("  ", printer->out);
	paint(printer, TERMINAL_BOLD);
	put(printer->out, *group->name ? group->name : "(no name)");
	paint(printer, TERMINAL_END);
	fprintf(printer->out, ": %s span%s, %s", units_format_count(count, group->explained),
		units_plural(group->explained, "", "s"),
		units_format_duration(time, group->explained_ns));
	if (group->unfinished)
		fprintf(printer->out, "; %s unfinished (%s) %s not count",
			units_format_count(count, group->unfinished),
			units_format_duration(time, group->unfinished_ns),
			units_plural(group->unfinished, "does", "do"));
	fputc('\n', printer->out);
	print_by_cause(printer, group);
	print_by_process(printer, group);
	for (size_t i = 0; i < shown; i++)
		print_cause(printer, group, i);
	print_rest(printer, group, shown);
	print_slow(printer, group);
}

static void print_partial(const struct causes_printer *printer)
{
	const struct why_aggregate *causes = printer->report->causes;
	char explained[UNITS_TEXT], all[UNITS_TEXT];
	uint64_t part = 0, whole = 0;

	if (!causes->partial)
		return;
	for (size_t i = 0; i < causes->groups.len; i++) {
		part += causes->groups.data[i].explained;
		whole += causes->groups.data[i].count;
	}
	paint(printer, TERMINAL_WARN);
	fprintf(printer->out,
		"  of the first %s of %s spans only: there are too many; --from and --to choose "
		"others\n",
		units_format_count(explained, part), units_format_count(all, whole));
	paint(printer, TERMINAL_END);
}

void report_print_causes(const struct report *report, const struct report_view *view, FILE *out)
{
	const struct causes_printer printer = {report, view, out};
	size_t names = view->rows / ROWS_A_NAME + !!(view->rows % ROWS_A_NAME), more = 0;

	if (!report->causes)
		return;
	for (size_t i = 0, shown = 0; i < report->spans.len; i++) {
		const struct why_group *group = report_causes(report, &report->spans.data[i]);

		if (!group)
			continue;
		if (view->rows && shown == names) {
			more++;
			continue;
		}
		if (!shown++) {
			paint(&printer, TERMINAL_BOLD);
			fputs("\nCAUSES      share       time  cause             grade    who and "
			      "what\n",
			      out);
			paint(&printer, TERMINAL_END);
			print_partial(&printer);
		}
		print_group(&printer, group);
	}
	if (more) {
		paint(&printer, TERMINAL_DIM);
		fprintf(out, "  … of %zu more names; --top 0 shows all\n", more);
		paint(&printer, TERMINAL_END);
	}
}

/* ---- JSON ---- */

static void field_text(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	if (text)
		json_string(json, text);
	else
		json_null(json);
}

void report_culprit_json(struct json *json, const struct why_aggregate *causes,
			 const struct why_group_cause *cause)
{
	json_key(json, "culprit");
	json_object_begin(json);
	json_field_bool(json, "own", cause->own);
	field_text(json, "comm",
		   cause->comm == MODEL_NONE ? NULL
					     : strtab_get(causes->model->strings, cause->comm));
	field_text(json, "span",
		   cause->span == MODEL_NONE ? NULL : causes->groups.data[cause->span].name);
	field_text(json, "object",
		   cause->object ? strtab_get(causes->why->texts, cause->object) : NULL);
	json_object_end(json);
}

static void cause_json(struct json *json, const struct report *report,
		       const struct why_group *group, const struct why_group_cause *cause)
{
	json_object_begin(json);
	json_field_string(json, "cause", why_causes[cause->cause].name);
	json_field_f64(json, "share",
		       group->explained_ns ? (double)cause->total_ns / (double)group->explained_ns
					   : 0);
	json_field_string(json, "grade", why_grade_names[cause->grade]);
	report_culprit_json(json, report->causes, cause);
	json_field_u64(json, "merged", cause->merged);
	if (cause->connections)
		json_field_u64(json, "connections", cause->connections);
	json_field_u64(json, "total_ns", cause->total_ns);
	json_field_u64(json, "spans", cause->spans);
	json_field_u64(json, "slow_ns_mean", why_group_mean(cause->slow_ns, group->slow_count));
	json_field_u64(json, "median_ns_mean",
		       why_group_mean(cause->median_ns, group->median_count));
	json_field_i64(json, "difference_ns", why_group_difference(group, cause));
	samples_json(json, report->causes->why, cause->places.data, cause->places.len);
	json_object_end(json);
}

void report_causes_json(struct json *json, const struct report *report,
			const struct report_span *row)
{
	const struct why_group *group = report_causes(report, row);

	if (!group)
		return;
	json_key(json, "explained");
	json_object_begin(json);
	json_field_u64(json, "count", group->explained);
	json_field_u64(json, "total_ns", group->explained_ns);
	json_object_end(json);
	json_key(json, "slow");
	json_object_begin(json);
	json_field_u64(json, "count", group->slow_count);
	json_field_u64(json, "from_ns", group->p99_ns);
	json_field_u64(json, "ns_mean", why_group_mean(group->slow_total_ns, group->slow_count));
	json_object_end(json);
	json_key(json, "median");
	json_object_begin(json);
	json_field_u64(json, "count", group->median_count);
	json_field_u64(json, "from_ns", group->p40_ns);
	json_field_u64(json, "to_ns", group->p60_ns);
	json_field_u64(json, "ns_mean",
		       why_group_mean(group->median_total_ns, group->median_count));
	json_object_end(json);
	json_key(json, "causes");
	json_array_begin(json);
	for (size_t i = 0; i < group->causes.len; i++)
		cause_json(json, report, group, &group->causes.data[i]);
	json_array_end(json);
}
