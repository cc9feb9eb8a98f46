// SPDX-License-Identifier: Apache-2.0
#include "analyze/gpu/replay_what_if.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "filter/eval.h"
#include "util/memory.h"
#include "util/units.h"

/* Behind those of enum gpu_op_kind. */
enum {
	REPLAY_WHAT_LAUNCHES = GPU_OP_KIND_COUNT,
	REPLAY_WHAT_RANK,
	REPLAY_WHAT_ALL, /* operations of all kinds */
};

/* ---- parsing ---- */

static const struct {
	const char *word;
	unsigned kind;
} words[] = {
	{"kernels", GPU_OP_KERNEL},
	{"copies", GPU_OP_COPY},
	{"sets", GPU_OP_SET},
	{"graphs", GPU_OP_GRAPH},
	{"launches", REPLAY_WHAT_LAUNCHES},
};

/* The last colon that is not within quotes; NULL: there is none. */
static const char *colon_find(const char *text)
{
	const char *colon = NULL;
	bool quoted = false;

	for (; *text; text++) {
		if (quoted && *text == '\\' && text[1])
			text++;
		else if (*text == '"')
			quoted = !quoted;
		else if (*text == ':' && !quoted)
			colon = text;
	}
	return colon;
}

/* A copy without the blanks around it. The caller frees it. */
static char *text_trimmed(const char *from, const char *to)
{
	size_t len;
	char *text;

	while (from < to && isspace((unsigned char)*from))
		from++;
	while (to > from && isspace((unsigned char)to[-1]))
		to--;
	len = (size_t)(to - from);
	text = memory_get(len + 1);
	memcpy(text, from, len);
	text[len] = '\0';
	return text;
}

static bool factor_parse(const char *text, double *factor)
{
	char *end;

	if (!isdigit((unsigned char)*text) && *text != '.')
		return false;
	*factor = strtod(text, &end);
	return !strcmp(end, "x") && isfinite(*factor) && *factor > 0;
}

static int effect_parse(struct replay_what_if *what_if, const char *text, struct error *err)
{
	if (!strcmp(text, "not late"))
		what_if->effect = REPLAY_EFFECT_NOT_LATE;
	else if (factor_parse(text, &what_if->factor))
		what_if->effect = REPLAY_EFFECT_FASTER;
	else if (units_parse_duration(text, &what_if->ns))
		what_if->effect = REPLAY_EFFECT_TAKES;
	else
		return error_set(err, EINVAL,
				 "--what-if: '%s' is no change: give 2x (twice as fast), a time "
				 "such as 10us, 0, or 'not late'",
				 text);
	if ((what_if->effect == REPLAY_EFFECT_NOT_LATE) !=
	    (!what_if->filter && what_if->kind == REPLAY_WHAT_RANK))
		return error_set(err, EINVAL,
				 "--what-if: 'not late' is for a rank, and nothing else is: give "
				 "'rank 2: not late'");
	return 0;
}

static bool rank_parse(const char *text, uint32_t *rank)
{
	uint64_t number;

	if (strncmp(text, "rank ", 5) != 0)
		return false;
	for (text += 5; *text == ' '; text++)
		;
	if (!units_parse_number(text, &number) || number >= MODEL_NONE)
		return false;
	*rank = (uint32_t)number;
	return true;
}

/* `kernel ~ "x"` is a comparison of the name of a kernel. */
static int filter_make(struct replay_what_if *what_if, const char *text, struct error *err)
{
	static const char word[] = "kernel";
	const char *rest = text + sizeof(word) - 1;
	char *whole;
	size_t size;
	int result;
	FILE *out;

	what_if->kind = REPLAY_WHAT_ALL;
	if (strncmp(text, word, sizeof(word) - 1) != 0 || !*rest || !strchr(" \t~!=", *rest))
		return filter_parse(&what_if->filter, "--what-if", text, err);
	what_if->kind = GPU_OP_KERNEL;
	out = memory_stream(&whole, &size);
	fprintf(out, "name%s", rest);
	memory_require(!fclose(out));
	result = filter_parse(&what_if->filter, "--what-if", whole, err);
	free(whole);
	return result;
}

static int what_parse(struct replay_what_if *what_if, const char *text, struct error *err)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		what_if->kind = words[i].kind;
		if (!strcmp(text, words[i].word))
			return 0;
	}
	what_if->kind = REPLAY_WHAT_RANK;
	if (rank_parse(text, &what_if->rank))
		return 0;
	return filter_make(what_if, text, err);
}

/* rate() counts records of a time, which has no meaning for a change of all that match. */
static int filter_check(const struct replay_what_if *what_if, struct error *err)
{
	if (!what_if->filter || !what_if->filter->rate.unit_ns)
		return 0;
	return error_set(err, EINVAL, "--what-if: '%s': rate() is for captures; leave it out",
			 what_if->text);
}

int replay_what_if_parse(struct replay_what_if *what_if, const char *text, struct error *err)
{
	const char *colon = colon_find(text);
	char *what, *effect;
	int result;

	*what_if = (struct replay_what_if){.text = text};
	if (!colon)
		return error_set(err, EINVAL,
				 "--what-if: '%s' has no ':' between what and how it changes, as "
				 "in 'copies: 0'",
				 text);
	what = text_trimmed(text, colon);
	effect = text_trimmed(colon + 1, colon + strlen(colon));
	result = what_parse(what_if, what, err)
			 ?: filter_check(what_if, err)
			 ?: effect_parse(what_if, effect, err);
	free(what);
	free(effect);
	if (result)
		replay_what_if_free(what_if);
	return result;
}

void replay_what_if_free(struct replay_what_if *what_if)
{
	filter_free(what_if->filter);
	what_if->filter = NULL;
}

/* ---- replaying ---- */

/* Whether a filter asks for nothing but the name. */
static bool asks_name_only(const struct filter_expr *filter)
{
	for (unsigned field = 0; field < FILTER_FIELD_COUNT; field++)
		if (field != FILTER_NAME && filter_uses(filter, field))
			return false;
	return !filter_samples(filter);
}

bool replay_what_if_needs_spans(const struct replay_what_if *what_if)
{
	return what_if->filter && !asks_name_only(what_if->filter);
}

/* What a what-if matches. */
struct matcher {
	const struct replay_build *build;
	const struct replay_what_if *what_if;
	bool *names; /* of each timeline.names, if the filter asks for nothing else; else NULL */
};

static struct matcher matcher_open(const struct replay_build *build,
				   const struct replay_what_if *what_if)
{
	struct matcher matcher = {.build = build, .what_if = what_if};
	const struct gpu_timeline *timeline = build->timeline;

	if (!what_if->filter || replay_what_if_needs_spans(what_if))
		return matcher;
	matcher.names = memory_get(timeline->names.len * sizeof(*matcher.names));
	for (size_t i = 0; i < timeline->names.len; i++) {
		const struct site_info site = {.name = timeline->names.data[i],
					       .category = GPU_CATEGORY,
					       .kind = WAFFLE_SITE_SPAN};
		const struct filter_subject subject = {.site = &site, .ended = true};

		matcher.names[i] = filter_eval(what_if->filter, &subject) == FILTER_YES;
	}
	return matcher;
}

static bool span_matches(const struct replay_what_if *what_if, const struct model *model,
			 uint32_t index)
{
	const struct model_span *span = &model->spans.data[index];
	const struct model_context *context = model_context_of(model, span);
	const struct waffle_frame head = {span->id, context->parent_id, context->trace_hi,
					  context->trace_lo};
	const struct model_thread *track = &model->threads.data[span->thread];
	const struct filter_subject subject = {
		.site = model_site(model, span->site),
		.head = &head,
		.values = model_values(model, span->site, span->frame),
		.pid = model_pid_real(model, track->pid),
		.tid = model_pid_real(model, track->tid),
		.cpu = span->cpu,
		.comm = model_thread_name(model, span->thread),
		.ended = true,
		.dur_ns = span->end_ts - span->start_ts,
	};

	return filter_eval(what_if->filter, &subject) == FILTER_YES;
}

/* The node is a launch, and the capture does not show how long its call took. In the replay, that
 * time belongs to what the thread does until its next call. */
static bool is_untimed(const struct replay_build *build, uint32_t node)
{
	struct replay_origin origin = build->origins.data[node];

	return origin.kind == REPLAY_ORIGIN_LAUNCH &&
	       gpu_launch_host_span(&build->timeline->launches.data[origin.index]) == MODEL_NONE;
}

static bool node_matches(const struct matcher *matcher, uint32_t node)
{
	const struct replay_what_if *what_if = matcher->what_if;
	const struct gpu_timeline *timeline = matcher->build->timeline;
	struct replay_origin origin = matcher->build->origins.data[node];
	const struct gpu_timeline_op *op;

	if (origin.kind == REPLAY_ORIGIN_LAUNCH)
		return what_if->kind == REPLAY_WHAT_LAUNCHES;
	if (origin.kind != REPLAY_ORIGIN_OP)
		return false;
	op = &timeline->ops.data[origin.index];
	if (what_if->kind != REPLAY_WHAT_ALL && op->kind != what_if->kind)
		return false;
	if (matcher->names)
		return matcher->names[op->name];
	return !what_if->filter || span_matches(what_if, timeline->model, op->span);
}

static uint64_t changed_ns(const struct replay_what_if *what_if, uint64_t dur_ns)
{
	double ns;

	if (what_if->effect == REPLAY_EFFECT_TAKES)
		return what_if->ns;
	ns = (double)dur_ns / what_if->factor;
	return ns < 9e18 ? (uint64_t)ns : (uint64_t)9e18;
}

static void durations_run(const struct replay_build *build, const struct replay_what_if *what_if,
			  const bool *selected, struct replay_answer *answer)
{
	const struct replay_graph *graph = &build->graph;
	uint64_t *dur_ns = memory_get(graph->nodes.len * sizeof(*dur_ns));
	struct matcher matcher = matcher_open(build, what_if);
	const struct replay_change change = {
		.selected = selected, .dur_ns = dur_ns, .cut = build->cut};

	for (uint32_t i = 0; i < graph->nodes.len; i++) {
		dur_ns[i] = graph->nodes.data[i].dur_ns;
		if ((selected && !selected[i]) || !node_matches(&matcher, i))
			continue;
		if (is_untimed(build, i)) {
			answer->untimed++;
			continue;
		}
		dur_ns[i] = changed_ns(what_if, dur_ns[i]);
		answer->matched++;
	}
	if (answer->matched)
		replay_run(graph, &change, &answer->result);
	free(matcher.names);
	free(dur_ns);
}

/* Nobody waits for the rank, and the makespan is that of the others: the rank itself still does
 * what made it late. */
static void rank_run(const struct replay_build *build, const struct replay_what_if *what_if,
		     const bool *selected, struct replay_answer *answer)
{
	const struct replay_graph *graph = &build->graph;
	bool *cut = memory_zeroed(graph->edges.len, sizeof(*cut));
	bool *ignored = memory_zeroed(graph->nodes.len, sizeof(*ignored));
	const struct replay_change change = {.selected = selected, .cut = cut, .ignored = ignored};

	if (graph->edges.len)
		memcpy(cut, build->cut, graph->edges.len * sizeof(*cut));
	for (size_t i = 0; i < build->arrivals.len; i++) {
		if (map_get(&build->ranks, build->arrivals.data[i].pid) != what_if->rank)
			continue;
		cut[build->arrivals.data[i].edge] = true;
		answer->matched++;
	}
	for (uint32_t i = 0; i < graph->nodes.len && answer->matched; i++)
		ignored[i] = map_get(&build->ranks, replay_build_pid(build, i)) == what_if->rank;
	if (answer->matched)
		replay_run(graph, &change, &answer->result);
	free(cut);
	free(ignored);
}

int replay_what_if_run(const struct replay_build *build, const struct replay_what_if *what_if,
		       const bool *selected, struct replay_answer *answer, struct error *err)
{
	*answer = (struct replay_answer){0};
	if (what_if->effect == REPLAY_EFFECT_NOT_LATE)
		rank_run(build, what_if, selected, answer);
	else
		durations_run(build, what_if, selected, answer);
	if (answer->matched)
		return 0;
	if (what_if->effect == REPLAY_EFFECT_NOT_LATE)
		return error_set(err, ENOENT,
				 "--what-if: '%s' changes nothing: no other rank of the capture "
				 "meets rank %u in a collective whose kernels were recorded",
				 what_if->text, what_if->rank);
	if (answer->untimed)
		return error_set(
			err, ENOENT,
			"--what-if: '%s' changes nothing: how long these calls took was not "
			"recorded (docs/replay.md)",
			what_if->text);
	return error_set(err, ENOENT,
			 "--what-if: '%s' matches none of the operations that are replayed; "
			 "waffle-bpf gpu lists the kernels",
			 what_if->text);
}
