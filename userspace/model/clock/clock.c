// SPDX-License-Identifier: Apache-2.0
#include "model/clock/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/clock/clock_hosts_internal.h"
#include "model/comm/comm.h"
#include "util/memory.h"

/* A collective of more hosts bounds only the first one's clock against the others', since all pairs
 * of thousands of hosts would be too many. */
#define PAIRED_HOSTS_MAX 64

const char *const clock_align_names[CLOCK_ALIGN_COUNT] = {
	[CLOCK_ALIGN_AUTO] = "auto",
	[CLOCK_ALIGN_WALL] = "wall",
	[CLOCK_ALIGN_NONE] = "none",
};

/* What one host did in a collective. */
struct part {
	uint32_t host;
	uint64_t begin_ts; /* its last rank entered */
	uint64_t end_ts;   /* its first rank left; UINT64_MAX: unknown */
};

struct aligning {
	const struct model *model;
	struct model_comm *comm;
	struct clock_hosts *hosts;
	uint64_t *used; /* of each host: collectives and messages with other hosts */
	struct part *parts;
	uint32_t *part_of; /* of each host: index in parts + 1 */
	uint32_t part_count;
};

/* ---- facts ---- */

static void before_add(struct aligning *aligning, const struct part *first,
		       const struct part *second, uint32_t tag)
{
	if (second->end_ts != UINT64_MAX)
		clock_hosts_add(aligning->hosts,
				&(struct clock_before){first->host, second->host, first->begin_ts,
						       second->end_ts, tag});
}

static struct part part_of_call(const struct aligning *aligning, const struct model_rank_call *call)
{
	return (struct part){model_host_of(aligning->model, call->thread), call->arrival_ts,
			     call->end_ts};
}

/* Finds the hosts of a collective. */
static void parts_make(struct aligning *aligning, const struct model_collective *collective)
{
	aligning->part_count = 0;
	for (uint32_t i = 0; i < collective->count; i++) {
		struct part call = part_of_call(aligning, &collective->calls[i]), *part;
		uint32_t *number = &aligning->part_of[call.host];

		if (!*number) {
			aligning->parts[aligning->part_count] = call;
			*number = ++aligning->part_count;
			continue;
		}
		part = &aligning->parts[*number - 1];
		if (call.begin_ts > part->begin_ts)
			part->begin_ts = call.begin_ts;
		if (call.end_ts < part->end_ts)
			part->end_ts = call.end_ts;
	}
	for (uint32_t i = 0; i < aligning->part_count; i++) {
		aligning->part_of[aligning->parts[i].host] = 0;
		aligning->used[aligning->parts[i].host] += aligning->part_count > 1;
	}
}

/* No rank leaves before every rank has entered. */
static void all_add(struct aligning *aligning, uint32_t tag)
{
	uint32_t paired = aligning->part_count <= PAIRED_HOSTS_MAX ? aligning->part_count : 1;
	const struct part *parts = aligning->parts;

	for (uint32_t i = 0; i < paired; i++)
		for (uint32_t j = i + 1; j < aligning->part_count; j++) {
			before_add(aligning, &parts[i], &parts[j], tag);
			before_add(aligning, &parts[j], &parts[i], tag);
		}
}

/* Data goes from, or to, one rank. */
static void root_add(struct aligning *aligning, const struct model_collective *collective,
		     uint32_t tag)
{
	struct part root = {.host = MODEL_NONE};

	for (uint32_t i = 0; i < collective->count; i++)
		if (collective->calls[i].rank == collective->root)
			root = part_of_call(aligning, &collective->calls[i]);
	for (uint32_t i = 0; root.host != MODEL_NONE && i < collective->count; i++) {
		struct part part = part_of_call(aligning, &collective->calls[i]);

		if (collective->flow == FLOW_FROM_ROOT)
			before_add(aligning, &root, &part, tag);
		else
			before_add(aligning, &part, &root, tag);
	}
}

/* Each rank has the data of the rank before it, and so that of all lower ones. */
static void prefix_add(struct aligning *aligning, const struct model_collective *collective,
		       uint32_t tag)
{
	for (uint32_t i = 1; i < collective->count; i++) {
		struct part lower = part_of_call(aligning, &collective->calls[i - 1]);
		struct part part = part_of_call(aligning, &collective->calls[i]);

		before_add(aligning, &lower, &part, tag);
	}
}

/* Whether a rank cannot leave before those whose data it needs have called. Nobody waits for data
 * that is empty, but a message of MPI is received also if it is. */
static bool is_awaited(const struct model_collective *collective)
{
	return collective->data == MODEL_DATA_SOME ||
	       (collective->mpi && collective->flow == FLOW_PAIR);
}

static void collective_add(struct aligning *aligning, uint32_t index)
{
	const struct model_collective *collective = model_collective_at(aligning->comm, index);

	if (collective->count < 2 || collective->alignment != COLLECTIVE_BY_CREATION)
		return;
	parts_make(aligning, collective);
	if (aligning->part_count < 2)
		return;
	if (collective->synchronizes)
		all_add(aligning, index);
	else if (!is_awaited(collective))
		return;
	else if (collective->flow == FLOW_FROM_ROOT || collective->flow == FLOW_TO_ROOT)
		root_add(aligning, collective, index);
	else if (collective->flow == FLOW_PREFIX || collective->flow == FLOW_PAIR)
		prefix_add(aligning, collective, index); /* a send comes before its receive */
}

/* ---- results ---- */

/* "MPI_Allreduce number 17 of ranks 0 and 3": of one rank on each host. */
static void fact_put(const struct aligning *aligning, uint32_t tag,
		     const struct clock_conflict *conflict, char *text, size_t size)
{
	const struct model_collective *collective;
	uint32_t ranks[2] = {MODEL_NONE, MODEL_NONE};

	if (tag == CLOCK_NO_TAG) {
		snprintf(text, size, "the bounds of other collectives");
		return;
	}
	collective = model_collective_at(aligning->comm, tag);
	for (uint32_t i = 0; i < collective->count; i++) {
		uint32_t host = model_host_of(aligning->model, collective->calls[i].thread);

		if (host == conflict->first && ranks[0] == MODEL_NONE)
			ranks[0] = collective->calls[i].rank;
		if (host == conflict->second && ranks[1] == MODEL_NONE)
			ranks[1] = collective->calls[i].rank;
	}
	snprintf(text, size, "%s number %" PRIu64 " of ranks %" PRIu32 " and %" PRIu32,
		 model_site(aligning->model, collective->site)->name, collective->seq, ranks[0],
		 ranks[1]);
}

/* A file of a host. */
static const char *file_of(const struct model *model, uint32_t host)
{
	for (uint32_t i = 0; i < store_reader_capture_count(model->reader); i++) {
		const struct store_capture *capture = store_reader_capture(model->reader, i);

		if (capture->host == host)
			return capture->file;
	}
	return "?";
}

static int conflict_set(const struct aligning *aligning, const struct clock_conflict *conflict,
			struct error *err)
{
	char fact[256], other[256];

	fact_put(aligning, conflict->tag, conflict, fact, sizeof(fact));
	fact_put(aligning, conflict->other_tag, conflict, other, sizeof(other));
	return error_set(err, EDOM,
			 "the clocks of %s (%s) and %s (%s) cannot be aligned: %s contradicts %s, "
			 "since the files are of different runs or a clock was set meanwhile; give "
			 "files of one run, or use --align wall or --align none, with which no "
			 "order between hosts is certain",
			 aligning->model->hosts[conflict->first]->name,
			 file_of(aligning->model, conflict->first),
			 aligning->model->hosts[conflict->second]->name,
			 file_of(aligning->model, conflict->second), fact, other);
}

/* The host whose clock is the job's: the first one, if it did anything with others. */
static uint32_t reference_of(const struct aligning *aligning)
{
	uint32_t best = 0;

	for (uint32_t i = 1; !aligning->used[0] && i < aligning->model->host_count; i++)
		if (aligning->used[i] > aligning->used[best])
			best = i;
	return best;
}

/* The time in which each host was seen, in its own clock. */
static void windows_make(const struct model *model, struct clock_window *windows)
{
	for (uint32_t i = 0; i < model->host_count; i++)
		windows[i] = (struct clock_window){UINT64_MAX, 0};
	for (uint32_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];
		struct clock_window *window = &windows[model_host_of(model, i)];

		if (thread->first_ts && thread->first_ts < window->from_ts)
			window->from_ts = thread->first_ts;
		if (thread->last_ts > window->to_ts)
			window->to_ts = thread->last_ts;
	}
}

static int clock_set(struct store_reader *reader, uint32_t host, const struct store_clock *clock,
		     struct error *err)
{
	int ret = store_reader_set_clock(reader, host, clock);

	return ret ? error_set(err, -ret, "the clock of host %s can't be corrected: %s",
			       store_reader_host(reader, host)->name, strerror(-ret))
		   : 0;
}

static int clocks_set(const struct aligning *aligning, struct store_reader *reader,
		      uint32_t reference, const struct clock_estimate *estimates,
		      uint32_t *unaligned, struct error *err)
{
	const struct model *model = aligning->model;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < model->host_count; i++) {
		struct store_clock clock = {.kind = STORE_CLOCK_REFERENCE,
					    .collectives = aligning->used[i]};

		if (i != reference && estimates[i].known) {
			clock_estimate_store(&estimates[i], aligning->used[i], &clock);
		} else if (i != reference) {
			clock = store_clock_by_wall(model->hosts[i], model->hosts[reference]);
			++*unaligned;
		}
		ret = clock_set(reader, i, &clock, err);
	}
	return ret;
}

static int solve(struct aligning *aligning, struct store_reader *reader, uint32_t *unaligned,
		 struct error *err)
{
	uint32_t count = aligning->model->host_count, reference = reference_of(aligning);
	struct clock_estimate *estimates = memory_zeroed(count, sizeof(*estimates));
	struct clock_window *windows = memory_zeroed(count, sizeof(*windows));
	struct clock_conflict conflict;
	int result = 0;

	windows_make(aligning->model, windows);
	if (clock_hosts_solve(aligning->hosts, reference, windows, estimates, &conflict))
		result = clocks_set(aligning, reader, reference, estimates, unaligned, err);
	else
		result = conflict_set(aligning, &conflict, err);
	free(estimates);
	free(windows);
	return result;
}

/* ---- the pass ---- */

static int align_model(const struct model *model, struct store_reader *reader, uint32_t *unaligned,
		       struct error *err)
{
	struct aligning aligning = {
		.model = model,
		.hosts = clock_hosts_new(model->host_count),
		.used = memory_zeroed(model->host_count, sizeof(*aligning.used)),
		.parts = memory_zeroed(model->host_count, sizeof(*aligning.parts)),
		.part_of = memory_zeroed(model->host_count, sizeof(*aligning.part_of)),
	};
	struct model_gpu *gpu = model_gpu_new(model);
	int result;

	aligning.comm = model_comm_new(model, gpu);
	for (uint32_t i = 0; i < model_collective_count(aligning.comm); i++)
		collective_add(&aligning, i);
	result = solve(&aligning, reader, unaligned, err);
	model_comm_free(aligning.comm);
	model_gpu_free(gpu);
	clock_hosts_free(aligning.hosts);
	free(aligning.used);
	free(aligning.parts);
	free(aligning.part_of);
	return result;
}

static int align_auto(struct store_reader *reader, uint32_t *unaligned, struct error *err)
{
	const struct model_filter only = {.only_roles = true};
	const struct store_clock none = {.kind = STORE_CLOCK_NONE, .error_ns = UINT64_MAX};
	struct model *model;
	int result = 0;

	/* Bounds are on the hosts' own clocks. */
	for (uint32_t i = 0; !result && i < store_reader_host_count(reader); i++)
		result = clock_set(reader, i, &none, err);
	if (result)
		return result;
	result = model_load(&model, reader, STORE_ALL, &only, err);
	if (!result)
		result = align_model(model, reader, unaligned, err);
	model_free(model);
	return result;
}

int clock_align(struct store_reader *reader, enum clock_align how, uint32_t *unaligned,
		struct error *err)
{
	uint32_t count = store_reader_host_count(reader);
	const struct store_host *first = store_reader_host(reader, 0);
	int result = 0;

	*unaligned = 0;
	/* The times of a merged file are corrected already. */
	if (count < 2 || store_reader_set_clock(reader, 0, &first->clock) == -ENOTSUP)
		return 0;
	if (how == CLOCK_ALIGN_AUTO)
		return align_auto(reader, unaligned, err);
	for (uint32_t i = 0; !result && i < count; i++) {
		struct store_clock clock = {.kind = i ? STORE_CLOCK_NONE : STORE_CLOCK_REFERENCE,
					    .error_ns = i ? UINT64_MAX : 0};

		if (i && how == CLOCK_ALIGN_WALL)
			clock = store_clock_by_wall(store_reader_host(reader, i), first);
		result = clock_set(reader, i, &clock, err);
	}
	return result;
}
