// SPDX-License-Identifier: Apache-2.0
/* The time of a critical path by kind, name and span. A path may have as many pieces as there are
 * operations, so its rows are found by numbers, and texts are only compared at the end. */
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/gpu_report_internal.h"
#include "util/keymap.h"
#include "util/memory.h"

/* Bits of a key: the kind, the name (of an operation, or a thread), and the site of the span. */
#define KIND_BITS 3
#define NAME_BITS 30
#define SITE_BITS 31
_Static_assert(KIND_BITS + NAME_BITS + SITE_BITS == 64 && GPU_PIECE_KIND_COUNT <= 1 << KIND_BITS,
	       "a key has all of it");

struct gpu_path_rows {
	const struct gpu_timeline *timeline;
	struct map row_at;
	gpu_path_sums rows;
};

struct gpu_path_rows *gpu_path_rows_new(const struct gpu_timeline *timeline)
{
	struct gpu_path_rows *rows = memory_zeroed(1, sizeof(*rows));

	memory_require(timeline->names.len < 1u << NAME_BITS &&
		       timeline->model->threads.len < 1u << NAME_BITS &&
		       timeline->model->sites.len < (1u << SITE_BITS) - 1);
	rows->timeline = timeline;
	return rows;
}

/* Returns the span's site plus one; 0: there is no span. */
static uint64_t span_number(const struct model *model, uint32_t span)
{
	uint32_t site = span == MODEL_NONE ? MODEL_NONE : model->spans.data[span].site;

	if (span == MODEL_NONE)
		return 0;
	return (site < model->sites.len ? site : model->sites.len) + 1ull;
}

static uint64_t piece_key(const struct gpu_timeline *timeline, const struct gpu_piece *piece)
{
	uint64_t name =
		piece->op == MODEL_NONE ? piece->thread : timeline->ops.data[piece->op].name;

	return piece->kind | name << KIND_BITS |
	       span_number(timeline->model, piece->span) << (KIND_BITS + NAME_BITS);
}

void gpu_path_rows_add(struct gpu_path_rows *rows, const struct gpu_piece *piece)
{
	const struct gpu_timeline *timeline = rows->timeline;
	const struct model *model = timeline->model;
	uint64_t key = piece_key(timeline, piece);
	uint32_t row = map_get(&rows->row_at, key);

	if (row == MAP_NONE) {
		row = (uint32_t)rows->rows.len;
		map_put(&rows->row_at, key, row);
		vec_add(&rows->rows,
			(struct gpu_path_sum){
				.kind = piece->kind,
				.name = piece->op == MODEL_NONE
						? model_thread_name(model, piece->thread)
						: gpu_timeline_name(timeline,
								    &timeline->ops.data[piece->op]),
				.span = piece->span == MODEL_NONE
						? NULL
						: model_site(model,
							     model->spans.data[piece->span].site)
							  ->name});
	}
	rows->rows.data[row].count++;
	rows->rows.data[row].total_ns += piece->to_ts - piece->from_ts;
}

static int compare_sums(const void *left, const void *right)
{
	const struct gpu_path_sum *a = left, *b = right;
	int names;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	names = strcmp(a->name, b->name);
	return names ? names : strcmp(a->span ?: "", b->span ?: "");
}

/* Rows of different threads or sites with the same texts are one. */
void gpu_path_rows_finish(struct gpu_path_rows *rows, gpu_path_sums *sums)
{
	struct strtab *names = strtab_make();
	struct keymap known = {0};

	for (size_t i = 0; i < rows->rows.len; i++) {
		const struct gpu_path_sum *row = &rows->rows.data[i];
		const uint64_t key[] = {row->kind, strtab_put(names, row->name, strlen(row->name)),
					row->span ? strtab_put(names, row->span, strlen(row->span))
						  : UINT64_MAX};
		uint32_t at = keymap_get(&known, key, sizeof(key));

		if (at == MAP_NONE) {
			keymap_put(&known, key, sizeof(key), (uint32_t)sums->len);
			vec_add(sums, *row);
			continue;
		}
		sums->data[at].count += row->count;
		sums->data[at].total_ns += row->total_ns;
	}
	keymap_free(&known);
	strtab_free(names);
	if (sums->len)
		qsort(sums->data, sums->len, sizeof(*sums->data), compare_sums);
	map_free(&rows->row_at);
	vec_free(&rows->rows);
	free(rows);
}
