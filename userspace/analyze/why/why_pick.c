// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_pick.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why/hang/why_hang.h"
#include "analyze/why/lookup/why_go.h"
#include "util/clock.h"
#include "util/memory.h"
#include "util/suggest.h"
#include "util/units.h"

/* Number of names to suggest. */
#define OFFERED_MAX 5

struct offer {
	char text[256];
	const char *names[OFFERED_MAX];
	unsigned count;
};

/* Adds a name unless it is there already. */
static void offer_name(struct offer *offer, const char *name, const char *quote)
{
	size_t len = strlen(offer->text);

	if (offer->count == OFFERED_MAX)
		return;
	for (unsigned i = 0; i < offer->count; i++)
		if (!strcmp(offer->names[i], name))
			return;
	offer->names[offer->count] = name;
	snprintf(offer->text + len, sizeof(offer->text) - len, "%s%s%s%s", offer->count ? ", " : "",
		 quote, name, quote);
	offer->count++;
}

/* Parses "00000000000000a1" or "0xa1". */
static bool parse_id(const char *text, uint64_t *id)
{
	const char *digits = strncmp(text, "0x", 2) ? text : text + 2;
	size_t len = strlen(digits);
	char *end;

	if (!len || len > 16 || (digits == text && len != 16) ||
	    strspn(digits, "0123456789abcdefABCDEF") != len)
		return false;
	*id = strtoull(digits, &end, 16);
	return true;
}

/* Why the capture may have fewer spans than the user expects. */
static const char *spans_left_out(const struct model *model)
{
	uint64_t bytes_cut;

	if (model->filtered.expression)
		return " that the filter keeps";
	return store_reader_truncated(model->reader, &bytes_cut)
		       ? " in what is left of the file, which is cut off"
		       : "";
}

/* Rejects spans that are all on tracks: no thread can have waited. */
static int reject_tracks(const struct why_query *query, const struct model *model,
			 struct error *err)
{
	uint32_t track = MODEL_NONE;

	for (size_t i = 0; model->track_count && i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];

		if (query->span_id ? span->id != query->span_id
				   : strcmp(model_site(model, span->site)->name, query->name) != 0)
			continue;
		if (!model_is_track(model, span->thread))
			return 0;
		track = span->thread;
	}
	if (track == MODEL_NONE)
		return 0;
	return error_set(err, EINVAL,
			 "that span is on the track '%s', which has no thread that could wait; "
			 "--origin follows its links",
			 model_thread_name(model, track));
}

static int pick_span(struct why_query *query, const struct model *model, const char *wanted,
		     struct error *err)
{
	struct offer near = {0}, any = {0};
	uint64_t id;

	for (size_t i = 0; i < model->spans.len; i++) {
		const char *name = model_site(model, model->spans.data[i].site)->name;

		if (!strcmp(name, wanted)) {
			query->name = name;
			return 0;
		}
		if (near.count < OFFERED_MAX && suggest_similar(wanted, name))
			offer_name(&near, name, "'");
		if (any.count < OFFERED_MAX)
			offer_name(&any, name, "'");
	}
	if (parse_id(wanted, &id)) {
		if (!id || model_span_find(model, id) == MAP_NONE)
			return error_set(err, ENOENT, "no span has the id %s", wanted);
		query->span_id = id;
		return 0;
	}
	if (!any.count)
		return error_set(err, ENOENT, "no span '%s': there are no spans%s", wanted,
				 spans_left_out(model));
	return error_set(err, ENOENT, "no span '%s'; %s %s", wanted,
			 near.count ? "did you mean" : "there are",
			 near.count ? near.text : any.text);
}

int why_pick_span(uint32_t *span, const struct model *model, const char *wanted, struct error *err)
{
	struct why_query query = {0};
	int result = pick_span(&query, model, wanted, err);

	if (result)
		return result;
	if (query.span_id) {
		*span = model_span_find(model, query.span_id);
		return 0;
	}
	for (size_t i = model->spans.len; i--;) {
		if (strcmp(model_site(model, model->spans.data[i].site)->name, query.name) != 0)
			continue;
		*span = (uint32_t)i;
		break;
	}
	return 0;
}

int why_pick_event(uint32_t *event, const struct model *model, const char *wanted,
		   struct error *err)
{
	struct offer near = {0};
	uint64_t id = 0;
	bool is_id = parse_id(wanted, &id) && id;

	/* Takes the last one, because that is where the trouble was seen. */
	for (size_t i = model->events.len; i--;) {
		const char *name = model_site(model, model->events.data[i].site)->name;

		if (!strcmp(name, wanted) || (is_id && model->events.data[i].id == id)) {
			*event = (uint32_t)i;
			return 0;
		}
		if (near.count < OFFERED_MAX && suggest_similar(wanted, name))
			offer_name(&near, name, "'");
	}
	if (is_id && model_span_find(model, id) != MAP_NONE)
		return error_set(err, ENOENT,
				 "no event has the id %s, but a span has; give --span %s --origin",
				 wanted, wanted);
	if (is_id)
		return error_set(err, ENOENT, "no event has the id %s", wanted);
	return error_set(err, ENOENT, "no event '%s'; %s %s", wanted,
			 near.count ? "did you mean" : "waffle-bpf report",
			 near.count ? near.text : "lists them");
}

static int pick_tid(struct why_query *query, const struct model *model, uint64_t tid,
		    struct error *err)
{
	for (size_t i = 0; i < model->threads.len; i++)
		if (model_pid_real(model, model->threads.data[i].tid) == tid && tid) {
			query->tid = model->threads.data[i].tid;
			query->comm = NULL;
			return 0;
		}
	return error_set(err, ENOENT, "no thread %" PRIu64 "; waffle-bpf report lists them", tid);
}

static int pick_comm(struct why_query *query, const struct model *model, const char *wanted,
		     struct error *err)
{
	struct offer near = {0};

	for (uint32_t i = 0; i < model->threads.len; i++) {
		const char *comm = model_thread_name(model, i);
		const char *kind = model_thread_kind_name(model, i);

		if (!model->threads.data[i].traced)
			continue;
		if (!strcmp(comm, wanted) || !strcmp(kind, wanted)) {
			query->comm = strcmp(comm, wanted) ? kind : comm;
			query->tid = 0;
			return 0;
		}
		if (suggest_similar(wanted, comm))
			offer_name(&near, comm, "'");
	}
	return error_set(err, ENOENT, "no thread '%s'; %s %s", wanted,
			 near.count ? "did you mean" : "waffle-bpf report",
			 near.count ? near.text : "lists them");
}

static int pick_thread(struct why_query *query, const struct model *model,
		       const struct why_wanted *wanted, struct error *err)
{
	uint64_t tid, start = model->meta->start_ts;
	int result;

	query->from_ts = clock_after(start, wanted->from_ns);
	query->to_ts = clock_after(start, wanted->to_ns);
	if (query->to_ts > model->end_ts)
		query->to_ts = model->end_ts;
	result = model_reaches(model, query->from_ts, err);
	if (result)
		return result;
	if (units_parse_number(wanted->thread, &tid))
		return pick_tid(query, model, tid, err);
	return pick_comm(query, model, wanted->thread, err);
}

bool why_pick_has_spans(const struct model *model)
{
	for (size_t i = 0; i < model->spans.len; i++)
		if (!site_is_bookkeeping(model_site(model, model->spans.data[i].site)))
			return true;
	return false;
}

/* A span of a set that is armed wherever its library is mapped (docs/torch.md, docs/mpi.md): nobody
 * asked for it.
 */
static bool comes_with_library(const struct site_info *site)
{
	static const char *const categories[] = {"torch", "jax", "mpi"};

	for (size_t i = 0; site->call && i < sizeof(categories) / sizeof(categories[0]); i++)
		if (!strcmp(site->category, categories[i]))
			return true;
	return false;
}

/* Spans of libraries that take less than this part of their threads' time do not show why a program
 * is slow: a loop without backward() has no steps. */
#define LIBRARY_PARTS 10 /* one tenth */

/* Whether all spans come with libraries and take a small part of their threads' time. */
static bool has_only_small_spans(const struct model *model)
{
	uint64_t *in_spans = memory_zeroed(model->threads.len, sizeof(*in_spans));
	bool small = true;

	for (size_t i = 0; small && i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];
		const struct site_info *site = model_site(model, span->site);

		if (site_is_bookkeeping(site) || site_is_once(site))
			continue;
		small = comes_with_library(site) && span->thread < model->threads.len;
		if (small && span->end_ts > span->start_ts)
			in_spans[span->thread] += span->end_ts - span->start_ts;
	}
	for (size_t i = 0; small && i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];

		small = in_spans[i] <=
			(thread->running_ns + thread->runnable_ns + thread->blocked_ns) /
				LIBRARY_PARTS;
	}
	free(in_spans);
	return small;
}

bool why_pick_explains_spans(const struct model *model)
{
	return why_pick_has_spans(model) &&
	       (model->selected || *spans_left_out(model) || !has_only_small_spans(model));
}

/* ---- the busiest thread ---- */

/* Whether the thread's process is one that the user named: its parent is not traced. */
static bool is_of_root(const struct model *model, uint32_t thread)
{
	const struct model_process *process = model_process_of(model, thread);
	uint32_t parent = process ? map_get(&model->pids, process->ppid) : MAP_NONE;

	return parent >= model->processes.len ||
	       model->processes.data[parent].main_thread >= model->threads.len ||
	       !model->threads.data[model->processes.data[parent].main_thread].traced;
}

/* Which threads to choose from. A child may run longer than its parent just because it takes its
 * parent's CPU. */
enum among {
	AMONG_ALL,
	AMONG_ROOTS,      /* of the processes that the user named */
	AMONG_BUSY_ROOTS, /* of these, those that ran or waited for a CPU for `least_ns` */
};

/* The thread that ran longest, of those that lived for at least `least_ns`. */
static const struct model_thread *busiest_of(const struct model *model, uint64_t least_ns,
					     enum among among)
{
	const struct model_thread *busiest = NULL;

	for (uint32_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];
		uint64_t ns = thread->running_ns + thread->runnable_ns;

		if (among != AMONG_BUSY_ROOTS)
			ns += thread->blocked_ns;
		if (thread->traced && thread->has_sched && ns >= least_ns &&
		    (among == AMONG_ALL || is_of_root(model, i)) &&
		    (!busiest || thread->running_ns > busiest->running_ns))
			busiest = thread;
	}
	return busiest;
}

/* The busiest thread of all. A child that ran for at most twice as long as a thread of a process
 * that the user named may have run for that one, which is chosen instead. */
static const struct model_thread *busiest_of_any(const struct model *model, uint64_t least_ns)
{
	const struct model_thread *busiest = busiest_of(model, least_ns, AMONG_ALL);
	const struct model_thread *root = busiest_of(model, least_ns, AMONG_ROOTS);

	return root && root->running_ns && root->running_ns >= busiest->running_ns / 2 ? root
										       : busiest;
}

/* A thread that lives only briefly explains little. If there are many of them, as in a shell script
 * or with a thread for each request, a thread that waits for them explains all of them. */
static const struct model_thread *busiest_thread(const struct model *model)
{
	uint64_t length = model->end_ts > model->start_ts ? model->end_ts - model->start_ts : 0;

	return busiest_of(model, length / 2, AMONG_BUSY_ROOTS)
		       ?: busiest_of_any(model, length / 2)
		       ?: busiest_of(model, 0, AMONG_ALL);
}

static void pick_one(struct why_query *query, const struct model *model,
		     const struct model_thread *thread)
{
	query->tid = thread->tid;
	query->from_ts = model->start_ts;
	query->to_ts = model->end_ts;
}

int why_pick_busiest(struct why_query *query, const struct model *model)
{
	const struct model_thread *busiest = busiest_thread(model);

	if (!busiest)
		return -ENOENT;
	pick_one(query, model, busiest);
	return 0;
}

/* Whether a thread may be one of many that Go's runtime made, and ran for less than half of the
 * time. */
static bool is_of_runtime(const struct why_query *query, const struct model *model,
			  const struct model_thread *thread)
{
	const struct model_process *process =
		model_process_of(model, (uint32_t)(thread - model->threads.data));

	/* A thread with a name of its own is one that the program gave to a goroutine. */
	return thread->running_ns <= (model->end_ts - model->start_ts) / 2 && process &&
	       process->main_thread < model->threads.len &&
	       thread->comm == model->threads.data[process->main_thread].comm &&
	       why_go_is_process(model, query->names, thread->pid);
}

/* The runtime of Go moves the work of a program between its threads. If the busiest thread is one
 * of them, it explains little, and the program as a whole is chosen: that of the user, although a
 * child may run longer. */
static void pick_go_program(struct why_query *query, const struct model *model,
			    const struct model_thread *busiest)
{
	const struct model_thread *of_root = busiest_of(model, 0, AMONG_ROOTS);

	if (busiest->running_ns > (model->end_ts - model->start_ts) / 2)
		return;
	if (of_root && is_of_runtime(query, model, of_root))
		busiest = of_root;
	else if (!is_of_runtime(query, model, busiest))
		return;
	query->program = busiest->pid;
	query->tid = 0;
}

/* ---- threads that hang ---- */

/* A thread that is blocked for most of the time and uses less than this part of a CPU explains less
 * than one that hangs. */
#define IDLE_PARTS 20

/* A thread that is stuck; of several, the main thread of a process that the user named, then the
 * first one in the order of the hangs. MODEL_NONE: none. */
static uint32_t stuck_thread(const struct why_hangs *hangs, const struct model *model)
{
	uint32_t found = MODEL_NONE;

	for (size_t i = 0; i < hangs->waits.len; i++) {
		uint32_t number = model->open_waits.data[hangs->waits.data[i].wait].thread;
		const struct model_thread *thread = &model->threads.data[number];

		if (!hangs->waits.data[i].stuck || !thread->has_sched)
			continue;
		if (thread->tid == thread->pid && is_of_root(model, number))
			return number;
		if (found == MODEL_NONE)
			found = number;
	}
	return found;
}

/* If the busiest thread is next to idle, a thread that hangs takes its place. */
static void pick_stuck(struct why_query *query, const struct model *model,
		       const struct model_thread *busiest)
{
	uint64_t length = model->end_ts - model->start_ts;
	struct why_hangs hangs;
	uint32_t stuck;

	if (busiest->running_ns > length / IDLE_PARTS || busiest->blocked_ns < length / 2)
		return;
	why_hangs_find(&hangs, model, query->names);
	stuck = stuck_thread(&hangs, model);
	why_hangs_free(&hangs);
	if (stuck == MODEL_NONE)
		return;
	pick_one(query, model, &model->threads.data[stuck]);
	query->stuck = true;
}

/* ---- the query ---- */

/* Rejects a query for spans none of which is selected. */
static int reject_unselected(const struct why_query *query, const struct model *model,
			     struct error *err)
{
	for (size_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];

		if (model_is_selected(model, i) &&
		    (!query->span_id || span->id == query->span_id) &&
		    (!query->name || !strcmp(model_site(model, span->site)->name, query->name)))
			return 0;
	}
	return error_set(err, ENOENT, "no span%s%s%s matches --where; waffle-bpf report lists them",
			 query->name ? " '" : "", query->name ?: "", query->name ? "'" : "");
}

int why_pick(struct why_query *query, const struct model *model, const struct why_wanted *wanted,
	     struct error *err)
{
	const struct model_thread *busiest;
	int result = 0;

	if (wanted->thread)
		return pick_thread(query, model, wanted, err);
	if (wanted->span)
		result = pick_span(query, model, wanted->span, err)
				 ?: reject_tracks(query, model, err);
	if (wanted->span || why_pick_explains_spans(model))
		return result ?: reject_unselected(query, model, err);
	busiest = *spans_left_out(model) ? NULL : busiest_thread(model);
	if (!busiest)
		return error_set(err, ENOENT,
				 "there are no spans%s; --thread explains a thread's time",
				 spans_left_out(model));
	pick_one(query, model, busiest);
	pick_go_program(query, model, busiest);
	if (!query->program)
		pick_stuck(query, model, busiest);
	return 0;
}
