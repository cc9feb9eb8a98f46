// SPDX-License-Identifier: Apache-2.0
/* The operations of a device by name: kernels, copies by direction, sets, and all by the span of
 * the program that launched them. */
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/gpu_report_internal.h"
#include "util/keymap.h"
#include "util/memory.h"

/* Sums by the number of a name. `row_of` has the row of each name in `sums`, plus one; the rows of
 * a device are forgotten by its own sums. */
struct sum_rows {
	uint32_t *row_of;
	gpu_sums *sums;
};

struct name_sums {
	const struct gpu_timeline *timeline;
	struct gpu_device_report *device;
	struct sum_rows kernels, copies, sets, spans; /* copies: by gpu_timeline_op.copy */
	uint32_t *site_name; /* site -> number of its name; the last one is for unknown sites */
	VEC(const char *) site_names;
};

static void sum_add(struct sum_rows *rows, uint32_t number, const char *name,
		    const struct gpu_timeline_op *op, uint64_t ns)
{
	struct gpu_sum *sum;

	if (!rows->row_of[number]) {
		vec_add(rows->sums, (struct gpu_sum){.name = name, .min_ns = UINT64_MAX});
		rows->row_of[number] = (uint32_t)rows->sums->len;
	}
	sum = &rows->sums->data[rows->row_of[number] - 1];
	sum->count++;
	sum->total_ns += ns;
	sum->bytes += op->bytes;
	sum->min_ns = ns < sum->min_ns ? ns : sum->min_ns;
	sum->max_ns = ns > sum->max_ns ? ns : sum->max_ns;
}

uint32_t gpu_report_span(const struct gpu_timeline *timeline, const struct gpu_timeline_op *op)
{
	uint32_t span = MODEL_NONE;

	if (op->captured != MODEL_NONE)
		span = gpu_timeline_program_span(timeline,
						 timeline->model->events.data[op->captured].parent);
	if (span != MODEL_NONE)
		return span;
	return op->launch == MODEL_NONE ? MODEL_NONE : timeline->launches.data[op->launch].span;
}

static void op_sum(struct name_sums *sums, const struct gpu_timeline_op *op)
{
	const struct gpu_timeline *timeline = sums->timeline;
	const struct model *model = timeline->model;
	uint64_t from = op->start_ts > sums->device->from_ts ? op->start_ts : sums->device->from_ts;
	uint64_t to = op->end_ts < sums->device->to_ts ? op->end_ts : sums->device->to_ts;
	uint32_t span, site;

	if (!gpu_op_is_work(op->kind) || op->end_ts < sums->device->from_ts ||
	    op->start_ts > sums->device->to_ts)
		return;
	if (op->kind == GPU_OP_KERNEL || op->kind == GPU_OP_GRAPH)
		sum_add(&sums->kernels, op->name, gpu_timeline_name(timeline, op), op, to - from);
	else if (op->kind == GPU_OP_SET)
		sum_add(&sums->sets, op->name, gpu_timeline_name(timeline, op), op, to - from);
	else
		sum_add(&sums->copies, op->copy, gpu_timeline_copy_name(timeline, op) ?: "unknown",
			op, to - from);
	span = gpu_report_span(timeline, op);
	if (span == MODEL_NONE)
		return;
	site = model->spans.data[span].site;
	site = site < model_site_count(model) ? site : model_site_count(model);
	sum_add(&sums->spans, sums->site_name[site], sums->site_names.data[sums->site_name[site]],
		op, to - from);
}

static int compare_sums(const void *left, const void *right)
{
	const struct gpu_sum *a = left, *b = right;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Sorts the rows. The next device begins without any. */
static void rows_finish(struct sum_rows *rows, size_t numbers)
{
	if (rows->sums->len)
		qsort(rows->sums->data, rows->sums->len, sizeof(*rows->sums->data), compare_sums);
	memset(rows->row_of, 0, numbers * sizeof(*rows->row_of));
}

/* Sites of the same name, such as those of a template, are one row. */
static void site_names_find(struct name_sums *sums)
{
	const struct model *model = sums->timeline->model;
	uint32_t count = model_site_count(model);
	struct keymap names = {0};

	sums->site_name = memory_get(((size_t)count + 1) * sizeof(*sums->site_name));
	for (uint32_t i = 0; i <= count; i++) {
		const char *name = model_site(model, i)->name;
		uint32_t number = keymap_get(&names, name, strlen(name));

		if (number == MAP_NONE) {
			number = (uint32_t)sums->site_names.len;
			keymap_put(&names, name, strlen(name), number);
			vec_add(&sums->site_names, name);
		}
		sums->site_name[i] = number;
	}
	keymap_free(&names);
}

static void device_sums(struct name_sums *sums, struct gpu_report *report, uint32_t device)
{
	const struct gpu_timeline_device *at = &report->timeline->devices.data[device];
	struct gpu_device_report *to = &report->devices[device];
	size_t names = report->timeline->names.len;

	sums->device = to;
	sums->kernels.sums = &to->kernels;
	sums->copies.sums = &to->copies;
	sums->sets.sums = &to->sets;
	sums->spans.sums = &to->spans;
	for (uint32_t i = at->op; i < at->op + at->op_count; i++)
		op_sum(sums, &report->timeline->ops.data[i]);
	rows_finish(&sums->kernels, names);
	rows_finish(&sums->copies, report->timeline->copies.len + 1);
	rows_finish(&sums->sets, names);
	rows_finish(&sums->spans, sums->site_names.len);
}

void gpu_sums_report(struct gpu_report *report)
{
	size_t names = report->timeline->names.len;
	struct name_sums sums = {.timeline = report->timeline};

	site_names_find(&sums);
	sums.kernels.row_of = memory_zeroed(names, sizeof(uint32_t));
	sums.copies.row_of = memory_zeroed(report->timeline->copies.len + 1, sizeof(uint32_t));
	sums.sets.row_of = memory_zeroed(names, sizeof(uint32_t));
	sums.spans.row_of = memory_zeroed(sums.site_names.len, sizeof(uint32_t));
	for (uint32_t i = 0; i < report->timeline->devices.len; i++)
		device_sums(&sums, report, i);
	free(sums.kernels.row_of);
	free(sums.copies.row_of);
	free(sums.sets.row_of);
	free(sums.spans.row_of);
	free(sums.site_name);
	vec_free(&sums.site_names);
}
