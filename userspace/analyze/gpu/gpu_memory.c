// SPDX-License-Identifier: Apache-2.0
/* The memory of GPUs that processes had allocated, from the probes of cudaMalloc(), cudaFree() and
 * their relatives. Which device it lies on is not known. */
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/gpu_report_internal.h"
#include "model/gpu/gpu.h"
#include "model/order.h"
#include "util/keymap.h"
#include "util/memory.h"

struct memory_scan {
	struct gpu_report *report;
	struct map process_at;        /* pid -> index in report.memory */
	struct keymap blocks;         /* pid and address -> index in `bytes` */
	VEC(uint64_t) bytes;          /* of each block; 0: freed */
	VEC(uint64_t) now;            /* allocated by process */
	VEC(struct order_item) order; /* index: the span, twice; odd: it frees */
};

static bool has_key(const struct site_info *site, const char *name)
{
	for (unsigned i = 0; i < site->key_count && i < WAFFLE_KEYS_MAX; i++)
		if (!strcmp(site->keys[i].name, name))
			return true;
	return false;
}

static bool is_free(const struct site_info *site)
{
	return site->call && !strcmp(site->category, "cuda") && has_key(site, "address") &&
	       !has_key(site, "bytes") && site->role != SITE_ROLE_ALLOC;
}

static void calls_collect(struct memory_scan *scan)
{
	const struct model *model = scan->report->timeline->model;
	size_t sites = model->sites.len;
	unsigned char *what = memory_zeroed(sites + 1, 1); /* 1: it allocates, 2: it frees */

	for (size_t i = 0; i < sites; i++)
		what[i] = model->sites.data[i].role == SITE_ROLE_ALLOC ? 1
			  : is_free(&model->sites.data[i])             ? 2
								       : 0;
	for (uint32_t i = 0; i < model->spans.len && i < UINT32_MAX / 2; i++) {
		const struct model_span *span = &model->spans.data[i];
		unsigned is = span->site < sites ? what[span->site] : 0;

		if (is && !(span->flags & MODEL_SPAN_CUT))
			vec_add(&scan->order,
				(struct order_item){is == 1 ? span->end_ts : span->start_ts,
						    2 * i + (is == 2)});
	}
	free(what);
	order_sort(scan->order.data, scan->order.len);
}

static uint32_t process_of(struct memory_scan *scan, uint32_t pid)
{
	uint32_t at = map_get(&scan->process_at, pid);

	if (at != MAP_NONE)
		return at;
	at = (uint32_t)scan->report->memory.len;
	map_put(&scan->process_at, pid, at);
	vec_add(&scan->report->memory, (struct gpu_memory){.pid = pid});
	vec_add(&scan->now, 0);
	return at;
}

static void block_free(struct memory_scan *scan, uint32_t process, const uint64_t key[2])
{
	uint32_t block = keymap_remove(&scan->blocks, key, 2 * sizeof(key[0]));

	if (block == MAP_NONE) {
		scan->report->memory.data[process].unknown_frees++;
		return;
	}
	scan->report->memory.data[process].frees++;
	scan->now.data[process] -= scan->bytes.data[block];
}

static void block_allocate(struct memory_scan *scan, uint32_t process, const uint64_t key[2],
			   uint64_t bytes)
{
	struct gpu_memory *memory = &scan->report->memory.data[process];
	uint32_t old = keymap_get(&scan->blocks, key, 2 * sizeof(key[0]));

	/* Its free was not recorded. */
	if (old != MAP_NONE)
		scan->now.data[process] -= scan->bytes.data[old];
	keymap_put(&scan->blocks, key, 2 * sizeof(key[0]), (uint32_t)scan->bytes.len);
	vec_add(&scan->bytes, bytes);
	memory->allocations++;
	scan->now.data[process] += bytes;
	if (scan->now.data[process] > memory->peak_bytes)
		memory->peak_bytes = scan->now.data[process];
}

static void call_scan(struct memory_scan *scan, uint32_t item)
{
	const struct model *model = scan->report->timeline->model;
	uint32_t span = item / 2, thread = model->spans.data[span].thread;
	struct value address, bytes, result;
	uint64_t key[2] = {model->threads.data[thread].pid};

	if (!model_gpu_value(model, MODEL_NODE_SPAN, span, "address", &address) || !address.u64 ||
	    (model_gpu_value(model, MODEL_NODE_SPAN, span, "result", &result) && result.u64))
		return;
	key[1] = address.u64;
	if (item % 2)
		block_free(scan, process_of(scan, (uint32_t)key[0]), key);
	else if (model_gpu_value(model, MODEL_NODE_SPAN, span, "bytes", &bytes) &&
		 bytes.u64 < UINT64_MAX >> 16)
		block_allocate(scan, process_of(scan, (uint32_t)key[0]), key, bytes.u64);
}

void gpu_memory_report(struct gpu_report *report)
{
	struct memory_scan scan = {.report = report};

	calls_collect(&scan);
	for (size_t i = 0; i < scan.order.len; i++)
		call_scan(&scan, scan.order.data[i].index);
	for (size_t i = 0; i < report->memory.len; i++)
		report->memory.data[i].end_bytes = scan.now.data[i];
	map_free(&scan.process_at);
	keymap_free(&scan.blocks);
	vec_free(&scan.bytes);
	vec_free(&scan.now);
	vec_free(&scan.order);
}
