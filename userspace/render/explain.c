// SPDX-License-Identifier: Apache-2.0
#include "render/explain.h"

#include <inttypes.h>
#include <string.h>

#include "render/text/report_text.h"
#include "util/json.h"
#include "util/terminal.h"
#include "util/units.h"

/* Where a part of an expression is decided: at the first two places for a capture, at the last one
 * for an existing file. */
enum explain_place { PLACE_ARMING, PLACE_KERNEL, PLACE_COUNT, PLACE_AFTERWARDS = PLACE_COUNT };
static const char *const place_names[] = {
	[PLACE_ARMING] = "decided when sites are armed",
	[PLACE_KERNEL] = "decided in the kernel, at each hit",
};

static bool uses_sample(const struct filter_expr *filter)
{
	for (size_t i = 0; i < filter->nodes.len; i++)
		if (filter->nodes.data[i].type == FILTER_SAMPLE)
			return true;
	return false;
}

static bool field_is_of(enum filter_field field, enum explain_place place)
{
	return place == PLACE_AFTERWARDS || filter_fields[field].at_site == (place == PLACE_ARMING);
}

/* Calls `each` for every part of the expression that is decided at a place. */
static void parts_each(const struct filter_expr *filter, enum explain_place place,
		       void (*each)(const char *part, void *arg), void *arg)
{
	for (unsigned field = 0; field < FILTER_FIELD_COUNT; field++)
		if (filter_uses(filter, field) && field_is_of(field, place))
			each(filter_fields[field].name, arg);
	if (place != PLACE_ARMING && uses_sample(filter))
		each("sample()", arg);
	if (place != PLACE_ARMING && filter->rate.unit_ns)
		each("rate()", arg);
}

struct text_parts {
	FILE *out;
	unsigned count;
};

static void part_print(const char *part, void *arg)
{
	struct text_parts *parts = arg;

	fprintf(parts->out, "%s%s", parts->count++ ? ", " : "", part);
}

static void put(FILE *out, const char *text)
{
	terminal_put(out, text, strlen(text));
}

static void put_head(const struct filter_expr *filter, FILE *out)
{
	fputs("filter: ", out);
	put(out, filter_source(filter));
	fputc('\n', out);
}

static void put_places(const struct filter_expr *filter, FILE *out)
{
	for (enum explain_place place = 0; place < PLACE_COUNT; place++) {
		struct text_parts parts = {.out = out};

		fprintf(out, "%s: ", place_names[place]);
		parts_each(filter, place, part_print, &parts);
		fputs(parts.count ? "\n" : "nothing\n", out);
	}
	fputs("decided afterwards, by waffle-bpf: nothing\n", out);
}

/* `checked`: the name of a site whose hits a program checks. In JSON it is "asked". */
static const char *use_name(const struct plan *plan, const struct explain_site *site,
			    const char *checked)
{
	switch (site->use) {
	case PLAN_DORMANT:
		return "dormant";
	case PLAN_CONTEXT:
		return "context";
	default:
		return plan->is_static || plan->classes.data[site->class].always ? "always"
										 : checked;
	}
}

static void put_site(const struct plan *plan, const struct explain_site *site, FILE *out)
{
	fprintf(out, "  %-8s", use_name(plan, site, "checked"));
	if (site->use == PLAN_MATCHES && !plan->is_static &&
	    !plan->classes.data[site->class].always)
		fprintf(out, " program %-3" PRIu32, site->class + 1);
	else
		fprintf(out, " %-11s", "");
	fprintf(out, " %-9s ", site_kind_name(site->site->kind));
	put(out, site->site->name);
	fputs("  ", out);
	put(out, site->site->file);
	fprintf(out, ":%u  ", site->site->line);
	put(out, site->site->object);
	fputc('\n', out);
}

static void put_sites(const struct explain *explain, FILE *out)
{
	const struct plan *plan = explain->plan;
	uint64_t context = plan->uses[PLAN_CONTEXT];

	fprintf(out, "\nsites: %" PRIu64 " armed, %" PRIu64 " left dormant",
		plan->uses[PLAN_MATCHES], plan->uses[PLAN_DORMANT]);
	if (context)
		fprintf(out, ", %" PRIu64 " that can't match armed as context (%s)", context,
			plan->keep_children ? "they may be inside a kept span"
			: plan->tracks      ? "parents are checked"
					    : "traces that are sampled begin in spans");
	fputc('\n', out);
	for (size_t i = 0; i < explain->sites.len; i++)
		put_site(plan, &explain->sites.data[i], out);
}

static void put_code(const struct filter_code *code, const char *when, uint32_t jited, FILE *out)
{
	if (!code->insns.len)
		return;
	fprintf(out, "  %s: %zu instructions for %" PRIu32 " predicate%s", when, code->insns.len,
		code->predicates, units_plural(code->predicates, "", "s"));
	if (jited)
		fprintf(out, ", %" PRIu32 " bytes of machine code", jited);
	fputc('\n', out);
}

/* Prints a residual, with each comparison as the user wrote it. `above` is the parent operator: ||
 * in && needs parentheses, && in || does not. */
static void put_residual(const struct filter_expr *filter, const struct residual *residual,
			 uint32_t index, enum filter_node_type above, FILE *out)
{
	const struct filter_node *node = &residual->nodes.data[index];
	const struct filter_predicate *predicate;
	bool enclosed = node->type == FILTER_OR && above == FILTER_AND;

	switch (node->type) {
	case FILTER_AND:
	case FILTER_OR:
		fputs(enclosed ? "(" : "", out);
		put_residual(filter, residual, node->left, node->type, out);
		fputs(node->type == FILTER_AND ? " && " : " || ", out);
		put_residual(filter, residual, node->right, node->type, out);
		fputs(enclosed ? ")" : "", out);
		break;
	case FILTER_NOT:
		fputs("!(", out);
		put_residual(filter, residual, node->left, FILTER_NOT, out);
		fputc(')', out);
		break;
	case FILTER_TEST:
		predicate = &filter->predicates.data[node->predicate];
		terminal_put(out, filter->source + predicate->from,
			     predicate->to - predicate->from);
		break;
	case FILTER_SAMPLE:
		fprintf(out, "sample(%" PRIu32 "/%" PRIu32 ")", node->keep, node->of);
		break;
	default:
		fputs(node->type == FILTER_TRUE ? "true" : "false", out);
	}
}

/* Prints the residual of the first site of a class. The other sites have an equal one. */
static void put_question(const struct explain *explain, uint32_t class, FILE *out)
{
	const struct filter_expr *filter = explain->plan->filter;
	struct residual residual = {0};
	size_t i = 0;

	while (i < explain->sites.len && (explain->sites.data[i].use != PLAN_MATCHES ||
					  explain->sites.data[i].class != class))
		i++;
	if (i < explain->sites.len &&
	    residual_make(&residual, filter, explain->sites.data[i].site)) {
		fputs("  asks: ", out);
		put_residual(filter, &residual, (uint32_t)residual.nodes.len - 1, FILTER_TRUE, out);
		fputc('\n', out);
	}
	residual_free(&residual);
}

static void put_classes(const struct explain *explain, FILE *out)
{
	const struct plan *plan = explain->plan;
	char time[UNITS_TEXT];

	for (uint32_t i = 0; i < plan->classes.len; i++) {
		const struct plan_class *class = &plan->classes.data[i];
		const struct explain_class *loaded = &explain->classes.data[i];

		if (!class->hit.insns.len && !class->end.insns.len)
			continue;
		fprintf(out, "\nprogram %" PRIu32 ", of %" PRIu32 " %s%s, accepted by the kernel\n",
			i + 1, class->sites, class->is_span ? "span" : "event",
			units_plural(class->sites, "", "s"));
		put_question(explain, i, out);
		put_code(&class->hit, class->is_span ? "at the begin" : "at the hit",
			 loaded->hit_jited_bytes, out);
		put_code(&class->end, "at the end", loaded->end_jited_bytes, out);
	}
	if (explain->load_ns)
		fprintf(out, "\nloading all programs took %s\n",
			units_format_duration(time, explain->load_ns));
}

void explain_print_text(const struct explain *explain, FILE *out)
{
	const struct plan *plan = explain->plan;
	char count[UNITS_TEXT], unit[UNITS_TEXT];

	put_head(plan->filter, out);
	put_places(plan->filter, out);
	if (plan->filter->rate.unit_ns)
		fprintf(out, "rate: at most %s in each %s, evaluated last\n",
			units_format_count(count, plan->filter->rate.count),
			units_format_duration(unit, plan->filter->rate.unit_ns));
	fputs(explain->sched ? "thread switches: recorded, all of them\n"
			     : "thread switches: not recorded\n",
	      out);
	put_sites(explain, out);
	put_classes(explain, out);
}

/* ---- JSON ---- */

static void part_json(const char *part, void *arg)
{
	json_string(arg, part);
}

/* The places from `first` to `last` get parts, the others none. */
static void json_places(struct json *json, const struct filter_expr *filter,
			enum explain_place first, enum explain_place last)
{
	static const char *const keys[] = {"at_arming", "in_kernel", "afterwards"};

	for (enum explain_place place = 0; place <= PLACE_AFTERWARDS; place++) {
		json_key(json, keys[place]);
		json_array_begin(json);
		if (place >= first && place <= last)
			parts_each(filter, place, part_json, json);
		json_array_end(json);
	}
}

static void json_sites(struct json *json, const struct explain *explain)
{
	json_key(json, "sites");
	json_array_begin(json);
	for (size_t i = 0; i < explain->sites.len; i++) {
		const struct explain_site *site = &explain->sites.data[i];

		json_object_begin(json);
		json_field_string(json, "kind", site_kind_name(site->site->kind));
		json_field_string(json, "name", site->site->name);
		json_field_string(json, "file", site->site->file);
		json_field_u64(json, "line", site->site->line);
		json_field_string(json, "lib", site->site->object);
		json_field_string(json, "use", use_name(explain->plan, site, "asked"));
		if (site->use == PLAN_MATCHES && !explain->plan->is_static)
			json_field_u64(json, "program", site->class + 1);
		json_object_end(json);
	}
	json_array_end(json);
}

/* The bytes of each instruction (struct bpf_insn), in hexadecimal. */
static void json_code(struct json *json, const char *key, const struct filter_code *code)
{
	char text[2 * sizeof(struct bpf_insn) + 1];

	json_key(json, key);
	json_array_begin(json);
	for (size_t i = 0; i < code->insns.len; i++) {
		const uint8_t *bytes = (const uint8_t *)&code->insns.data[i];

		for (size_t at = 0; at < sizeof(struct bpf_insn); at++)
			sprintf(text + 2 * at, "%02x", bytes[at]);
		json_string(json, text);
	}
	json_array_end(json);
}

int explain_print_json(const struct explain *explain, FILE *out)
{
	const struct plan *plan = explain->plan;
	struct json *json = json_new(out, true);

	json_object_begin(json);
	json_field_string(json, "filter", filter_source(plan->filter));
	json_places(json, plan->filter, PLACE_ARMING, PLACE_KERNEL);
	json_field_bool(json, "thread_switches", explain->sched);
	json_field_u64(json, "armed", plan->uses[PLAN_MATCHES]);
	json_field_u64(json, "dormant", plan->uses[PLAN_DORMANT]);
	json_field_u64(json, "context", plan->uses[PLAN_CONTEXT]);
	json_field_u64(json, "load_ns", explain->load_ns);
	json_sites(json, explain);
	json_key(json, "programs");
	json_array_begin(json);
	for (uint32_t i = 0; i < plan->classes.len; i++) {
		const struct plan_class *class = &plan->classes.data[i];

		json_object_begin(json);
		json_field_u64(json, "program", i + 1);
		json_field_u64(json, "sites", class->sites);
		json_code(json, "hit", &class->hit);
		json_code(json, "end", &class->end);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
	return json_close(json);
}

/* ---- an existing file ---- */

void explain_print_file_text(const struct filter_expr *filter, const char *file, FILE *out)
{
	struct text_parts parts = {.out = out};

	put(out, file);
	fputs(" is recorded already: no sites are armed, nothing is in the kernel.\n", out);
	put_head(filter, out);
	fputs("decided afterwards, by waffle-bpf, for each span and event: ", out);
	parts_each(filter, PLACE_AFTERWARDS, part_print, &parts);
	fputs(parts.count ? "\n" : "nothing\n", out);
	fputs(filter_wants_sched(filter) ? "thread switches: kept, all of them\n"
					 : "thread switches: left out\n",
	      out);
}

int explain_print_file_json(const struct filter_expr *filter, FILE *out)
{
	struct json *json = json_new(out, true);

	json_object_begin(json);
	json_field_string(json, "filter", filter_source(filter));
	json_places(json, filter, PLACE_AFTERWARDS, PLACE_AFTERWARDS);
	json_field_bool(json, "thread_switches", filter_wants_sched(filter));
	json_object_end(json);
	return json_close(json);
}
