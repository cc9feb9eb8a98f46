// SPDX-License-Identifier: Apache-2.0
/* Looks up records by their thread and time. A capture is untrusted, so no look-up scans all
 * records of a kind. */
#include "analyze/why/lookup/why_lookup.h"

#include <signal.h>
#include <stdlib.h>

#include "util/memory.h"
#include "util/search.h"

/* ---- indexes ---- */

static bool is_stop(const struct model_signal *signal)
{
	return signal->signo == SIGSTOP || signal->signo == SIGTSTP || signal->signo == SIGTTIN ||
	       signal->signo == SIGTTOU;
}

static uint32_t stopped_pid(const struct model *model, uint32_t signal)
{
	return model->threads.data[model->signals.data[signal].target].pid;
}

static int by_stopped(const void *left, const void *right, void *arg)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	uint32_t a_pid = stopped_pid(arg, a), b_pid = stopped_pid(arg, b);

	if (a_pid != b_pid)
		return a_pid < b_pid ? -1 : 1;
	return a < b ? -1 : a > b;
}

static int by_issuer(const void *left, const void *right, void *arg)
{
	const struct model *model = arg;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	uint32_t a_thread = model->ios.data[a].thread, b_thread = model->ios.data[b].thread;

	if (a_thread != b_thread)
		return a_thread < b_thread ? -1 : 1;
	return a < b ? -1 : a > b;
}

void why_lookup_init(struct why *why)
{
	const struct model *model = why->model;

	for (uint32_t i = 0; i < model->signals.len; i++)
		if (is_stop(&model->signals.data[i]) &&
		    model->signals.data[i].target < model->threads.len)
			vec_add(&why->stops, i);
	for (uint32_t i = 0; i < model->ios.len; i++)
		vec_add(&why->ios, i);
	if (why->stops.len)
		qsort_r(why->stops.data, why->stops.len, sizeof(*why->stops.data), by_stopped,
			(void *)model);
	if (why->ios.len)
		qsort_r(why->ios.data, why->ios.len, sizeof(*why->ios.data), by_issuer,
			(void *)model);
}

/* ---- signals ---- */

size_t why_signals_after(const struct model *model, uint64_t ts)
{
	return lower_bound(model->signals.len, i, model->signals.data[i].ts <= ts);
}

/* Whether a record is of a thread before `thread`, or is its own and not after ts. */
static bool is_until(uint32_t record_thread, uint64_t record_ts, uint32_t thread, uint64_t ts)
{
	return record_thread < thread || (record_thread == thread && record_ts <= ts);
}

/* The same for a stop and the process that it stopped. */
static bool stop_until(struct why *why, uint32_t signal, uint32_t pid, uint64_t ts)
{
	why->searched++;
	return is_until(stopped_pid(why->model, signal), why->model->signals.data[signal].ts, pid,
			ts);
}

const struct model_signal *why_stopper(struct why *why, uint32_t thread, uint64_t ts)
{
	const struct model *model = why->model;
	uint32_t pid = model->threads.data[thread].pid;
	size_t after = lower_bound(why->stops.len, i, stop_until(why, why->stops.data[i], pid, ts));

	if (!after || stopped_pid(model, why->stops.data[after - 1]) != pid)
		return NULL;
	return &model->signals.data[why->stops.data[after - 1]];
}

/* ---- requests to devices ---- */

/* Limit of the requests to examine that end in a wait, and of those that end later. */
#define IO_MAX 256

/* Index of the first request that ends after ts. */
static size_t ios_after(const struct model *model, uint64_t ts)
{
	return lower_bound(model->ios.len, i, model->ios.data[i].done_ts <= ts);
}

/* The same among the requests of a thread, in why.ios. */
static size_t own_ios_after(const struct why *why, uint32_t thread, uint64_t ts)
{
	const struct model_io *ios = why->model->ios.data;
	const uint32_t *own = why->ios.data;

	return lower_bound(why->ios.len, i,
			   is_until(ios[own[i]].thread, ios[own[i]].done_ts, thread, ts));
}

/* Whether a request may be what the wait was for. One to another device is not. */
static bool is_for(const struct model_io *io, const struct why_io_wait *wait)
{
	return io->issue_ts < wait->to &&
	       !!(io->flags & (WAFFLE_IO_WRITE | WAFFLE_IO_FLUSH)) == wait->write &&
	       (!wait->dev || !io->dev || io->dev == wait->dev);
}

static void list_own(struct why *why, const struct why_io_wait *wait, struct why_io_list *list)
{
	uint32_t within = 0, later = 0;

	for (size_t i = own_ios_after(why, wait->thread, wait->from);
	     i < why->ios.len && list->count < WHY_IO_LISTED; i++) {
		const struct model_io *io = &why->model->ios.data[why->ios.data[i]];

		if (io->thread != wait->thread ||
		    (io->done_ts > wait->to ? ++later > IO_MAX : ++within > IO_MAX))
			break;
		why->searched++;
		if (!is_for(io, wait))
			continue;
		list->whose = WHY_IO_OWN;
		list->sure |= io->done_ts <= wait->to;
		list->ios[list->count++] = why->ios.data[i];
	}
}

/* Whether another thread of the same host issued the request: devices of two hosts may have one
 * number. */
static bool is_of_other(const struct model *model, const struct model_io *io,
			const struct why_io_wait *wait)
{
	return io->thread != wait->thread && !(io->flags & WAFFLE_IO_NEIGHBOUR) &&
	       model_host_of(model, io->thread) == model_host_of(model, wait->thread);
}

/* A request of another thread: the last one that ends in the wait, or else the first one that ends
 * later. */
static void list_others(struct why *why, const struct why_io_wait *wait, struct why_io_list *list)
{
	const struct model *model = why->model;
	size_t end = ios_after(model, wait->to), i, found = SIZE_MAX;

	for (i = end; i && end - i < IO_MAX && model->ios.data[i - 1].done_ts > wait->from &&
		      found == SIZE_MAX;
	     i--) {
		why->searched++;
		if (is_of_other(model, &model->ios.data[i - 1], wait) &&
		    is_for(&model->ios.data[i - 1], wait))
			found = i - 1;
	}
	for (i = end; i < model->ios.len && i - end < IO_MAX && found == SIZE_MAX; i++) {
		why->searched++;
		if (is_of_other(model, &model->ios.data[i], wait) &&
		    is_for(&model->ios.data[i], wait))
			found = i;
	}
	if (found == SIZE_MAX)
		return;
	list->whose = WHY_IO_OTHERS;
	/* They may use other devices than this wait's. */
	list->sure = found < end && wait->dev && model->ios.data[found].dev == wait->dev;
	list->ios[list->count++] = (uint32_t)found;
}

void why_io_find(struct why *why, const struct why_io_wait *wait, struct why_io_list *list)
{
	*list = (struct why_io_list){.whose = WHY_IO_NONE};
	list_own(why, wait, list);
	if (!list->count)
		list_others(why, wait, list);
}

/* ---- page faults and quotas ---- */

const struct model_fault *why_fault_during(const struct model *model, uint32_t thread,
					   uint64_t from, uint64_t to)
{
	const struct model_fault *faults = model->faults.data;
	size_t found = lower_bound(model->faults.len, i,
				   is_until(faults[i].thread, faults[i].to_ts, thread, from));

	if (found < model->faults.len && faults[found].thread == thread &&
	    faults[found].from_ts < to)
		return &faults[found];
	return NULL;
}

size_t why_quota_after(const struct model *model, uint32_t thread, uint64_t ts)
{
	const struct model_quota *quotas = model->quotas.data;

	return lower_bound(model->quotas.len, i,
			   is_until(quotas[i].thread, quotas[i].ts, thread, ts));
}
