// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_pick.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why/why_busiest.h"
#include "analyze/why/why_first_internal.h"
#include "analyze/why/why_small_spans_internal.h"
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

/* Whether to explain spans if the user chose nothing. */
static bool explains_spans(const struct model *model)
{
	return why_pick_has_spans(model) &&
	       (model->selected || *spans_left_out(model) || !why_has_only_small_spans(model));
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
	int result = 0;

	if (wanted->thread)
		return pick_thread(query, model, wanted, err);
	query->has_spans = explains_spans(model);
	if (wanted->span)
		result = pick_span(query, model, wanted->span, err)
				 ?: reject_tracks(query, model, err);
	if (!wanted->span && !model->selected && !*spans_left_out(model) &&
	    (why_busiest_asker(query, model) ||
	     (query->has_spans && why_first_before_requests(query, model))))
		return 0;
	if (wanted->span || query->has_spans)
		return result ?: reject_unselected(query, model, err);
	if (*spans_left_out(model) || why_busiest_program(query, model))
		return error_set(err, ENOENT,
				 "there are no spans%s; --thread explains a thread's time",
				 spans_left_out(model));
	return 0;
}
