// SPDX-License-Identifier: Apache-2.0
#include "capture/record_filter_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "filter/stream/stream.h"
#include "util/map.h"

struct record_filter {
	struct record_filter_options options;
	struct filter_stream *stream;
	struct map processes;
	uint32_t sites; /* number of those that the stream knows */
	uint64_t taken, delivered, malformed;
	int failed; /* the first error of deliver() during a call */
};

static void kept(struct waffle_rec *rec, void *arg)
{
	struct record_filter *filter = arg;
	int result = filter->options.deliver(rec, filter->options.arg);

	if (!result)
		filter->delivered++;
	else if (result == -EINVAL)
		filter->malformed++;
	else if (!filter->failed)
		filter->failed = result;
}

int record_filter_open(struct record_filter **result, const struct record_filter_options *options,
		       struct error *err)
{
	struct record_filter *filter = calloc(1, sizeof(*filter));
	struct filter_stream_options stream = {
		.filter = options->filter,
		.keep_children = options->keep_children,
		.rate_windows = options->rate_windows,
		.deliver = kept,
		.arg = filter,
	};
	int code;

	*result = NULL;
	if (!filter)
		return error_set(err, ENOMEM, "out of memory");
	filter->options = *options;
	code = filter_stream_open(&filter->stream, &stream, err);
	if (code)
		free(filter);
	else
		*result = filter;
	return code;
}

void record_filter_close(struct record_filter *filter)
{
	if (!filter)
		return;
	filter_stream_free(filter->stream);
	map_free(&filter->processes);
	free(filter);
}

bool record_filter_wants(const struct record_filter *filter, const struct site_info *site)
{
	return filter_stream_use(filter->stream, site) != FILTER_STREAM_DORMANT;
}

void record_filter_process(struct record_filter *filter, pid_t pid)
{
	/* Without memory its records are not filtered. A file can be filtered later. */
	(void)map_set(&filter->processes, (uint32_t)pid, 1);
}

void record_filter_forget(struct record_filter *filter, pid_t pid)
{
	if (map_remove(&filter->processes, (uint32_t)pid) != MAP_NONE)
		filter_stream_process_exit(filter->stream, (uint32_t)pid);
}

void record_filter_thread(struct record_filter *filter, const struct waffle_rec *rec)
{
	const struct waffle_rec_task *task = (const struct waffle_rec_task *)rec;
	const struct waffle_rec_exit *end = (const struct waffle_rec_exit *)rec;

	if (rec->kind == WAFFLE_REC_TASK)
		filter_stream_name(filter->stream, task->tgid, rec->tid, task->comm);
	else if (rec->kind == WAFFLE_REC_EXIT)
		filter_stream_thread_exit(filter->stream, end->tgid, rec->tid);
	else if (rec->kind == WAFFLE_REC_EXEC)
		filter_stream_process_exit(filter->stream, end->tgid);
}

bool record_filter_takes(const struct record_filter *filter, const struct waffle_rec *rec)
{
	uint32_t tgid = rec->kind == WAFFLE_REC_HIT
				? ((const struct waffle_rec_hit *)rec)->tgid
				: ((const struct waffle_rec_span_end *)rec)->tgid;

	return map_get(&filter->processes, tgid) != MAP_NONE;
}

/* Tells the stream of sites up to this one. */
static void sites_add(struct record_filter *filter, uint32_t number)
{
	const struct arming_site *site;

	while (filter->sites <= number) {
		site = arming_site(filter->options.arming, filter->sites);
		if (!site || !filter_stream_add_site(filter->stream, site->original))
			return;
		filter->sites++;
	}
}

int record_filter_pass(struct record_filter *filter, struct waffle_rec *rec)
{
	struct waffle_rec_hit *hit = (struct waffle_rec_hit *)rec;

	filter->failed = 0;
	if (rec->kind == WAFFLE_REC_HIT) {
		if (hit->site >= filter->sites)
			sites_add(filter, hit->site);
		filter_stream_hit(filter->stream, hit, rec->ts);
	} else {
		filter_stream_end(filter->stream, (struct waffle_rec_span_end *)rec, rec->ts);
	}
	filter->taken += !filter->failed;
	return filter->failed;
}

int record_filter_pass_track(struct record_filter *filter, struct waffle_rec_hit *hit,
			     struct waffle_rec_span_end *end, uint64_t now)
{
	filter->failed = 0;
	if (hit->site >= filter->sites)
		sites_add(filter, hit->site);
	filter_stream_hit(filter->stream, hit, now);
	if (end->rec.kind)
		filter_stream_end(filter->stream, end, now);
	/* The drain knows them as one. */
	filter->taken += !filter->failed;
	return filter->failed;
}

struct record_filter_counts record_filter_counts(const struct record_filter *filter)
{
	return (struct record_filter_counts){
		.taken = filter->taken,
		.delivered = filter->delivered,
		.lost = filter_stream_counts(filter->stream).lost + filter->malformed,
	};
}
