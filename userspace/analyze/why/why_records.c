// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the numbers of the records that prove the steps. The model does not keep them, because that
 * would cost memory for every record, and only a handful are needed. So we read the capture again.
 */
#include <stdlib.h>

#include "analyze/why/lookup/why_lookup.h"
#include "analyze/why/why.h"
#include "util/memory.h"
#include "util/search.h"

const char *const why_role_names[WHY_ROLE_COUNT] = {
	[WHY_ROLE_OUT] = "switch-out",
	[WHY_ROLE_IN] = "switch-in",
	[WHY_ROLE_LATER] = "later switch-in",
	[WHY_ROLE_BEHIND] = "switch-in of the other",
	[WHY_ROLE_SPAN] = "span begin",
	[WHY_ROLE_LAUNCH] = "launch",
	[WHY_ROLE_ARRIVAL] = "arrival",
	[WHY_ROLE_WAIT] = "wait",
	[WHY_ROLE_WAKE] = "wake",
	[WHY_ROLE_FAULT] = "fault",
	[WHY_ROLE_IO] = "io",
	[WHY_ROLE_SIGNAL] = "signal",
	[WHY_ROLE_QUOTA] = "quota",
	[WHY_ROLE_STOLEN] = "stolen",
	[WHY_ROLE_FREQUENCY] = "frequency",
	[WHY_ROLE_LOSS] = "loss",
};

/* Number of records of one kind to list per step. */
#define NAMED_MAX 16

/* ---- which records a step needs ---- */

static void want(struct why *why, struct why_step *step, enum why_role role, uint64_t ts,
		 uint32_t tid)
{
	if (!ts)
		return;
	step->count++;
	vec_add(&why->records, (struct why_record){.ts = ts, .tid = tid, .role = role});
}

static void want_thread(struct why *why, struct why_step *step, enum why_role role, uint64_t ts,
			uint32_t thread)
{
	if (thread < why->model->threads.len)
		want(why, step, role, ts, why->model->threads.data[thread].tid);
}

static void want_switches(struct why *why, struct why_step *step)
{
	const struct model *model = why->model;
	const struct model_switch *sw;

	want_thread(why, step, WHY_ROLE_OUT, step->out_ts, step->thread);
	want_thread(why, step, WHY_ROLE_IN, step->in_ts, step->thread);
	want_thread(why, step, WHY_ROLE_LATER, step->later_ts, step->thread);
	if (step->behind >= model->switches.len)
		return;
	sw = &model->switches.data[step->behind];
	want_thread(why, step, WHY_ROLE_BEHIND, sw->ts, sw->next);
}

static void want_span(struct why *why, struct why_step *step)
{
	const struct model *model = why->model;

	if (step->span < model->spans.len &&
	    !(model->spans.data[step->span].flags & MODEL_SPAN_BEGUN_BEFORE))
		want_thread(why, step, WHY_ROLE_SPAN, model->spans.data[step->span].start_ts,
			    model->spans.data[step->span].thread);
}

static void want_call(struct why *why, struct why_step *step)
{
	if (step->gpu)
		want_thread(why, step, step->last_rank ? WHY_ROLE_ARRIVAL : WHY_ROLE_LAUNCH,
			    step->call_ts, step->call_thread);
}

static void want_wait(struct why *why, struct why_step *step)
{
	const struct model *model = why->model;

	if (step->wait < model->waits.len)
		want_thread(why, step, WHY_ROLE_WAIT, model->waits.data[step->wait].from_ts,
			    step->thread);
	if (step->wake_ts && model_wake_at(model, step->thread, step->wake_ts))
		want_thread(why, step, WHY_ROLE_WAKE, step->wake_ts, step->thread);
}

static void want_ios(struct why *why, struct why_step *step, bool write)
{
	const struct model *model = why->model;
	const struct why_io_wait wait = {
		.thread = step->thread,
		.dev = step->dev,
		.from = step->out_ts,
		.to = step->wake_ts ? step->wake_ts : step->to_ts,
		.write = write,
	};
	struct why_io_list list;

	why_io_find(why, &wait, &list);
	for (uint32_t i = 0; i < list.count; i++) {
		const struct model_io *io = &model->ios.data[list.ios[i]];

		want_thread(why, step, WHY_ROLE_IO, io->done_ts, io->thread);
	}
}

static void want_fault(struct why *why, struct why_step *step)
{
	const struct model_fault *fault =
		why_fault_during(why->model, step->thread, step->from_ts, step->to_ts);

	if (fault)
		want_thread(why, step, WHY_ROLE_FAULT, fault->to_ts, step->thread);
	else if (step->state == WAFFLE_THREAD_BLOCKED)
		want_ios(why, step, false);
}

static void want_signal(struct why *why, struct why_step *step)
{
	const struct model_signal *signal = why_stopper(why, step->thread, step->out_ts);

	if (signal)
		want_thread(why, step, WHY_ROLE_SIGNAL, signal->ts, signal->target);
}

static void want_quotas(struct why *why, struct why_step *step)
{
	const struct model *model = why->model;
	uint64_t begin = step->wake_ts ? step->wake_ts : step->out_ts;
	size_t first = why_quota_after(model, step->thread, begin);

	for (size_t i = first; i < model->quotas.len && i - first < NAMED_MAX &&
			       model->quotas.data[i].thread == step->thread &&
			       model->quotas.data[i].ts <= step->in_ts;
	     i++)
		want_thread(why, step, WHY_ROLE_QUOTA, model->quotas.data[i].ts, step->thread);
}

/* Records of time in which the thread was on a CPU but did not run. */
static void want_stolen(struct why *why, struct why_step *step)
{
	const struct model *model = why->model;
	size_t first = model_stolen_after(model, step->thread, step->from_ts);

	for (size_t i = first; i < model->stolen.len && i - first < NAMED_MAX &&
			       model->stolen.data[i].thread == step->thread &&
			       model->stolen.data[i].from_ts < step->to_ts;
	     i++)
		want_thread(why, step, WHY_ROLE_STOLEN, model->stolen.data[i].to_ts, step->thread);
}

static void want_frequency(struct why *why, struct why_step *step)
{
	const struct model *model = why->model;
	const struct model_frequency *all = model->frequencies.data, *last;
	size_t count = step->cpu_khz ? model->frequencies.len : 0;
	size_t after = lower_bound(count, i,
				   all[i].cpu < step->cpu ||
					   (all[i].cpu == step->cpu && all[i].ts <= step->from_ts));

	last = after ? &all[after - 1] : NULL;
	if (last && last->cpu == step->cpu)
		want(why, step, WHY_ROLE_FREQUENCY, last->ts, last->cpu);
}

static void want_losses(struct why *why, struct why_step *step)
{
	const struct model *model = why->model;
	uint32_t others = step->count;

	for (size_t i = 0; i < model->losses.len && step->count - others < NAMED_MAX; i++)
		if (model->losses.data[i].from_ts < step->to_ts &&
		    model->losses.data[i].to_ts > step->from_ts)
			want(why, step, WHY_ROLE_LOSS, model->losses.data[i].to_ts,
			     model->losses.data[i].cpu);
}

/* Records that a cause at the end of a chain needs besides the switches. */
static void want_cause(struct why *why, struct why_step *step, enum why_cause cause)
{
	switch (why_causes[cause].proof) {
	case WHY_ROLE_IO:
		want_ios(why, step, cause == WHY_DISK_WRITE);
		break;
	case WHY_ROLE_FAULT:
		want_fault(why, step);
		break;
	case WHY_ROLE_SIGNAL:
		want_signal(why, step);
		break;
	case WHY_ROLE_QUOTA:
		want_quotas(why, step);
		break;
	case WHY_ROLE_STOLEN:
		if (step->object)
			want_stolen(why, step);
		break;
	case WHY_ROLE_LOSS:
		want_losses(why, step);
		break;
	default:
		break;
	}
}

static void want_part(struct why *why, const struct why_part *part)
{
	for (uint32_t i = 0; i < part->step_count; i++) {
		struct why_step *step = &why->steps.data[part->step + i];

		step->record = (uint32_t)why->records.len;
		step->count = 0;
		want_switches(why, step);
		want_wait(why, step);
		want_span(why, step);
		want_call(why, step);
		want_frequency(why, step);
		if (i + 1 == part->step_count)
			want_cause(why, step, part->cause);
	}
}

/* There may be parts of instances that why_varied_keep() left out. */
static void want_all(struct why *why)
{
	for (size_t i = 0; i < why->instances.len; i++) {
		const struct why_instance *instance = &why->instances.data[i];

		for (uint32_t k = 0; k < instance->part_count; k++)
			want_part(why, &why->parts.data[instance->part + k]);
	}
}

/* ---- the second reading ---- */

/* The wanted records, sorted by time, role and thread or CPU, and an index of their times. */
struct record_search {
	struct why_record **wanted;
	size_t count;
	struct map begins;  /* ts → first index in `wanted` */
	uint64_t *searched; /* counts the steps; NULL: not counted */
};

static int compare(const struct why_record *a, const struct why_record *b)
{
	if (a->ts != b->ts)
		return a->ts < b->ts ? -1 : 1;
	if (a->role != b->role)
		return a->role < b->role ? -1 : 1;
	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

static int by_key(const void *left, const void *right)
{
	return compare(*(struct why_record *const *)left, *(struct why_record *const *)right);
}

static void search_init(struct record_search *search, struct why_record *records, size_t count)
{
	search->count = count;
	search->wanted = memory_zeroed(search->count + 1, sizeof(struct why_record *));
	for (size_t i = 0; i < search->count; i++)
		search->wanted[i] = &records[i];
	qsort(search->wanted, search->count, sizeof(struct why_record *), by_key);
	for (size_t i = search->count; i--;)
		map_put(&search->begins, search->wanted[i]->ts, (uint32_t)i);
}

static void search_free(struct record_search *search)
{
	free(search->wanted);
	map_free(&search->begins);
}

/* Index of the first wanted record from `low` on that is not before `key`. */
static size_t search_after(const struct record_search *search, size_t low,
			   const struct why_record *key)
{
	return lower_bound_in(low, search->count, i, compare(search->wanted[i], key) < 0);
}

static uint64_t key_of(const struct waffle_rec *rec)
{
	return rec->kind == WAFFLE_REC_WAIT ? ((const struct waffle_rec_wait *)rec)->from_ts
					    : rec->ts;
}

/* Numbers all wanted records of one role and thread or CPU. The first record of the file that fits
 * counts, so they are numbered once, however many there are of that time. */
static void take_role(const struct record_search *search, size_t begin, struct why_record key,
		      uint64_t number)
{
	for (size_t at = search_after(search, begin, &key);
	     at < search->count && !search->wanted[at]->number &&
	     !compare(search->wanted[at], &key);
	     at++) {
		search->wanted[at]->number = number;
		if (search->searched)
			++*search->searched;
	}
	if (search->searched)
		++*search->searched;
}

/* The roles from `first` to `last` that a record of a thread or CPU has. */
static void take_roles(const struct record_search *search, const struct waffle_rec *rec,
		       enum why_role first, enum why_role last, uint32_t tid, uint64_t number)
{
	struct why_record key = {.ts = key_of(rec), .tid = tid};
	uint32_t begin = map_get(&search->begins, key.ts);

	for (unsigned role = first; begin != MAP_NONE && role <= last; role++) {
		key.role = (enum why_role)role;
		take_role(search, begin, key, number);
	}
}

static void take(const struct record_search *search, const struct waffle_rec *rec, uint64_t number)
{
#define TAKE(first, last, of) take_roles(search, rec, WHY_ROLE_##first, WHY_ROLE_##last, of, number)
	switch (rec->kind) {
	case WAFFLE_REC_HIT:
		TAKE(SPAN, ARRIVAL, rec->tid);
		break;
	case WAFFLE_REC_SWITCH:
		TAKE(OUT, OUT, rec->tid);
		TAKE(IN, BEHIND, ((const struct waffle_rec_switch *)rec)->next_tid);
		break;
	case WAFFLE_REC_STATE: /* at the begin of the capture */
		TAKE(OUT, IN, rec->tid);
		break;
	case WAFFLE_REC_WAIT:
		TAKE(WAIT, WAIT, rec->tid);
		break;
	case WAFFLE_REC_WAKE:
		TAKE(WAKE, WAKE, ((const struct waffle_rec_wake *)rec)->woken_tid);
		break;
	case WAFFLE_REC_FAULT:
		TAKE(FAULT, FAULT, rec->tid);
		break;
	case WAFFLE_REC_IO:
		TAKE(IO, IO, rec->tid);
		break;
	case WAFFLE_REC_SIGNAL:
		TAKE(SIGNAL, SIGNAL, ((const struct waffle_rec_signal *)rec)->target_tid);
		break;
	case WAFFLE_REC_QUOTA:
		TAKE(QUOTA, QUOTA, rec->tid);
		break;
	case WAFFLE_REC_STOLEN:
		TAKE(STOLEN, STOLEN, rec->tid);
		break;
	case WAFFLE_REC_FREQUENCY:
		TAKE(FREQUENCY, FREQUENCY, rec->cpu);
		break;
	case WAFFLE_REC_LOSS:
		TAKE(LOSS, LOSS, rec->cpu);
		break;
	default:
		break;
	}
#undef TAKE
}

static int by_number(const void *left, const void *right)
{
	const struct why_record *a = left, *b = right;

	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return a->role < b->role ? -1 : a->role > b->role;
}

/* Sorts the records of each step as they are in the file. */
static void sort_records(struct why *why)
{
	for (size_t i = 0; i < why->steps.len; i++) {
		struct why_step *step = &why->steps.data[i];

		if (step->count)
			qsort(&why->records.data[step->record], step->count,
			      sizeof(*why->records.data), by_number);
	}
}

int why_records_number(struct store_reader *reader, struct why_record *records, size_t count,
		       uint64_t *searched, struct error *err)
{
	struct record_search search = {.searched = searched};
	const struct waffle_rec *rec;
	int result;

	if (!count)
		return 0;
	search_init(&search, records, count);
	/* The record of a wait comes with the switch-in after it, which is also wanted. */
	result = store_reader_seek(
		reader,
		(struct store_window){search.wanted[0]->ts, search.wanted[search.count - 1]->ts},
		err);
	while (!result && (result = store_reader_next(reader, &rec, err)) > 0) {
		uint64_t number = store_reader_number(reader);

		if (number)
			take(&search, rec, number);
		result = 0;
	}
	search_free(&search);
	return result;
}

int why_records_find(struct why *why, struct error *err)
{
	int result;

	want_all(why);
	result = why_records_number(why->model->reader, why->records.data, why->records.len,
				    &why->searched, err);
	sort_records(why);
	return result;
}
