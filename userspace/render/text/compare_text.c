// SPDX-License-Identifier: Apache-2.0
#include "render/text/compare_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "render/json/summary_json.h"
#include "render/text/notices.h"
#include "render/text/report_causes.h"
#include "util/terminal.h"
#include "util/units.h"

/* Limit of the causes of each name, unless all rows are shown. */
#define CAUSES_SHOWN 5
/* Causes whose change is a smaller part of the largest one are only summed up. */
#define SMALL_PARTS 100

#define COLUMNS 110
#define WHO_COLUMN 70

struct compare_printer {
	const struct why_comparison *comparison;
	const struct report_view *view;
	FILE *out;
};

static void paint(const struct compare_printer *printer, const char *sequence)
{
	terminal_paint(printer->out, printer->view->colour, sequence);
}

static void put(const struct compare_printer *printer, const char *text)
{
	terminal_put(printer->out, text, strlen(text));
}

static uint64_t rounded(double ns)
{
	return ns > 0 ? (uint64_t)llround(ns) : 0;
}

/* "+1.62 ms", "-40.0 us" or "0 ns" */
static const char *change_text(char text[UNITS_TEXT + 1], double ns)
{
	char duration[UNITS_TEXT];
	uint64_t size = rounded(fabs(ns));

	units_format_duration(duration, size);
	snprintf(text, UNITS_TEXT + 1, "%s%s", !size ? "" : ns < 0 ? "-" : "+", duration);
	return text;
}

static void put_cell(const struct compare_printer *printer, unsigned columns, double ns)
{
	char text[UNITS_TEXT];

	terminal_put_cell(printer->out, columns, units_format_duration(text, rounded(ns)));
}

/* "  +1.40 ms      0 ns →   1.40 ms  lock              certain  loader in load, futex 0x… (m)" */
static void print_change(const struct compare_printer *printer, const struct why_change_name *name,
			 const struct why_change *change)
{
	enum why_side side = change->cause[WHY_AFTER] ? WHY_AFTER : WHY_BEFORE;
	const struct why_group_cause *cause = change->cause[side];
	char text[UNITS_TEXT + 1], *who;

	/* Not which process of a name: the captures have different ones. */
	who = report_culprit_text(printer->comparison->of[side], name->group[side], cause, NULL, "",
				  COLUMNS - WHO_COLUMN);
	terminal_put_cell(printer->out, 14,
			  change_text(text, change->ns[WHY_AFTER] - change->ns[WHY_BEFORE]));
	put_cell(printer, 12, change->ns[WHY_BEFORE]);
	fputs(" → ", printer->out);
	put_cell(printer, 8, change->ns[WHY_AFTER]);
	fputs("  ", printer->out);
	paint(printer, why_causes[cause->cause].colour);
	fprintf(printer->out, "%-16s", why_causes[cause->cause].name);
	paint(printer, TERMINAL_END);
	fprintf(printer->out, "  %-7s  %s\n", why_grade_names[cause->grade], who);
	free(who);
}

/* How many of the causes are not 0 ns on both sides. */
static size_t causes_count(const struct why_change_name *name)
{
	size_t count = name->causes.len;

	while (count && why_change_is_nothing(&name->causes.data[count - 1]))
		count--;
	return count;
}

static void print_rest(const struct compare_printer *printer, const struct why_change_name *name,
		       size_t shown, size_t count)
{
	double ns[WHY_SIDES] = {0, 0};
	char text[UNITS_TEXT + 1];

	if (shown == count)
		return;
	for (size_t i = shown; i < count; i++)
		for (unsigned side = 0; side < WHY_SIDES; side++)
			ns[side] += name->causes.data[i].ns[side];
	paint(printer, TERMINAL_DIM);
	terminal_put_cell(printer->out, 14, change_text(text, ns[WHY_AFTER] - ns[WHY_BEFORE]));
	put_cell(printer, 12, ns[WHY_BEFORE]);
	fputs(" → ", printer->out);
	put_cell(printer, 8, ns[WHY_AFTER]);
	fprintf(printer->out, "  %zu more\n", count - shown);
	paint(printer, TERMINAL_END);
}

static void put_spans(const struct compare_printer *printer, const struct why_change_name *name,
		      enum why_side side)
{
	const struct why_group *group = name->group[side];
	char count[UNITS_TEXT], time[UNITS_TEXT];

	if (!group) {
		fputs("none", printer->out);
		return;
	}
	fprintf(printer->out, "%s %s of %s", units_format_count(count, group->count),
		units_plural(group->count, "span", "spans"),
		units_format_duration(time, rounded(name->ns[side])));
}

static bool is_small(const struct why_change_name *name, const struct why_change *change)
{
	const struct why_change *first = &name->causes.data[0];

	return fabs(change->ns[WHY_AFTER] - change->ns[WHY_BEFORE]) * SMALL_PARTS <
	       fabs(first->ns[WHY_AFTER] - first->ns[WHY_BEFORE]);
}

static void print_name(const struct compare_printer *printer, const struct why_change_name *name)
{
	const struct why_group *group = name->group[WHY_AFTER] ?: name->group[WHY_BEFORE];
	double change = name->ns[WHY_AFTER] - name->ns[WHY_BEFORE];
	size_t count = causes_count(name), shown = count;
	char text[UNITS_TEXT + 1];

	fputs("  ", printer->out);
	paint(printer, TERMINAL_BOLD);
	put(printer, *group->name ? group->name : "(no name)");
	paint(printer, TERMINAL_END);
	fputs(": ", printer->out);
	put_spans(printer, name, WHY_BEFORE);
	fputs(" → ", printer->out);
	put_spans(printer, name, WHY_AFTER);
	if (name->group[WHY_BEFORE] && name->group[WHY_AFTER]) {
		fprintf(printer->out, ", %s", change_text(text, change));
		if (name->ns[WHY_BEFORE] > 0)
			fprintf(printer->out, " (%+.1f %%)", 100 * change / name->ns[WHY_BEFORE]);
	}
	fputc('\n', printer->out);
	if (printer->view->rows && shown > CAUSES_SHOWN)
		shown = CAUSES_SHOWN;
	while (printer->view->rows && shown > 1 && is_small(name, &name->causes.data[shown - 1]))
		shown--;
	for (size_t i = 0; i < shown; i++)
		print_change(printer, name, &name->causes.data[i]);
	print_rest(printer, name, shown, count);
}

static void print_doubts(const struct compare_printer *printer, const char *path,
			 const struct why_aggregate *of)
{
	if (!of->partial && !of->model->counts.lost)
		return;
	paint(printer, TERMINAL_WARN);
	put(printer, path);
	if (of->model->counts.lost)
		fputs(": records were lost, so times and causes may be wrong\n", printer->out);
	else
		fputs(": too many spans, so only the first ones are explained\n", printer->out);
	paint(printer, TERMINAL_END);
}

void compare_print_text(const struct why_comparison *comparison, const char *const paths[WHY_SIDES],
			const struct report_view *view, FILE *out)
{
	const struct compare_printer printer = {comparison, view, out};
	size_t shown = comparison->names.len;

	paint(&printer, TERMINAL_BOLD);
	put(&printer, paths[WHY_BEFORE]);
	fputs(" → ", out);
	put(&printer, paths[WHY_AFTER]);
	fputs(": change of an average span, by name and cause\n", out);
	paint(&printer, TERMINAL_END);
	for (unsigned side = 0; side < WHY_SIDES; side++)
		print_doubts(&printer, paths[side], comparison->of[side]);
	notice_put_where(out, comparison->of[WHY_AFTER]->model);
	if (view->rows && shown > view->rows)
		shown = view->rows;
	for (size_t i = 0; i < shown; i++)
		print_name(&printer, &comparison->names.data[i]);
	if (!comparison->names.len)
		fputs("  no spans that begin and end in the captures\n", out);
	if (shown < comparison->names.len)
		fprintf(out, "  … %zu more names; --json has all\n", comparison->names.len - shown);
}

/* ---- JSON ---- */

static void side_json(struct json *json, const char *key, const struct why_change_name *name,
		      enum why_side side)
{
	json_key(json, key);
	if (!name->group[side]) {
		json_null(json);
		return;
	}
	json_object_begin(json);
	json_field_u64(json, "count", name->group[side]->count);
	json_field_u64(json, "explained", name->group[side]->explained);
	json_field_f64(json, "mean_ns", name->ns[side]);
	json_field_u64(json, "p99_ns", name->group[side]->p99_ns);
	json_object_end(json);
}

static void change_json(struct json *json, const struct why_comparison *comparison,
			const struct why_change *change)
{
	enum why_side side = change->cause[WHY_AFTER] ? WHY_AFTER : WHY_BEFORE;
	const struct why_group_cause *cause = change->cause[side];

	json_object_begin(json);
	json_field_string(json, "cause", why_causes[cause->cause].name);
	json_field_string(json, "grade", why_grade_names[cause->grade]);
	report_culprit_json(json, comparison->of[side], cause);
	json_field_f64(json, "before_ns", change->ns[WHY_BEFORE]);
	json_field_f64(json, "after_ns", change->ns[WHY_AFTER]);
	json_field_f64(json, "change_ns", change->ns[WHY_AFTER] - change->ns[WHY_BEFORE]);
	json_object_end(json);
}

static void name_json(struct json *json, const struct why_comparison *comparison,
		      const struct why_change_name *name)
{
	const struct why_group *group = name->group[WHY_AFTER] ?: name->group[WHY_BEFORE];

	json_object_begin(json);
	json_field_string(json, "name", group->name);
	json_field_string(json, "category", group->category);
	side_json(json, "before", name, WHY_BEFORE);
	side_json(json, "after", name, WHY_AFTER);
	json_field_f64(json, "change_ns", name->ns[WHY_AFTER] - name->ns[WHY_BEFORE]);
	json_key(json, "causes");
	json_array_begin(json);
	for (size_t i = 0; i < name->causes.len; i++)
		change_json(json, comparison, &name->causes.data[i]);
	json_array_end(json);
	json_object_end(json);
}

static void capture_json(struct json *json, const char *key, const char *path,
			 const struct why_aggregate *of)
{
	json_key(json, key);
	json_object_begin(json);
	json_field_string(json, "file", path);
	json_field_bool(json, "causes_partial", of->partial);
	summary_json_filter(json, of->model);
	json_key(json, "records");
	json_object_begin(json);
	summary_json_counts(json, &of->model->counts);
	json_object_end(json);
	json_object_end(json);
}

int compare_print_json(const struct why_comparison *comparison, const char *const paths[WHY_SIDES],
		       FILE *out)
{
	struct json *json = json_new(out, true);

	json_object_begin(json);
	capture_json(json, "before", paths[WHY_BEFORE], comparison->of[WHY_BEFORE]);
	capture_json(json, "after", paths[WHY_AFTER], comparison->of[WHY_AFTER]);
	json_key(json, "names");
	json_array_begin(json);
	for (size_t i = 0; i < comparison->names.len; i++)
		name_json(json, comparison, &comparison->names.data[i]);
	json_array_end(json);
	json_object_end(json);
	return json_close(json);
}
