// SPDX-License-Identifier: Apache-2.0
/*
 * libFuzzer entry for the model and the report: the input is a list of records, each of a length
 * byte (in words) and its bytes, that go through a .waffle file. Whatever they say, the model has
 * to keep the promises of model/model.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/store_fixture.h"
#include "analyze/report.h"
#include "export/info.h"
#include "export/report_text.h"
#include "export/formats.h"
#include "model/gpu.h"
#include "model/model.h"
#include "require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A call of each role, a span or an event, with all the keys that any of them has. */
static struct site_info role_site(unsigned role, bool span)
{
	struct site_info site = {
		.name = role % 3 ? "call" : "call {stream} {grid}",
		.category = "cuda",
		.file = "",
		.func = "",
		.object = "/lib/x.so",
		.kind = span ? WAFFLE_SITE_SPAN : WAFFLE_SITE_EVENT,
		.role = (uint16_t)role,
		.call = true,
		.key_count = 10,
		.keys = {{WAFFLE_KEY_PTR, "stream"},
			 {WAFFLE_KEY_PTR, "event"},
			 {WAFFLE_KEY_CODE, "kernel"},
			 {WAFFLE_KEY_PTR, "comm"},
			 {WAFFLE_KEY_I64, "rank"},
			 {WAFFLE_KEY_I64, "nranks"},
			 {WAFFLE_KEY_U64, "seq"},
			 {WAFFLE_KEY_U64, "count"},
			 {WAFFLE_KEY_DIM3, "grid"},
			 {WAFFLE_KEY_STR, "text"}},
	};

	if (role == SITE_ROLE_COPY && span)
		site.keys[0].name = "bytes";
	return site;
}
#define ROLE_SITES (2 * SITE_ROLE_COUNT)

/* Small numbers here as well, so that calls meet. */
static void tame_call(struct record_buffer *rec)
{
	struct waffle_rec_hit *hit = &rec->hit;
	uint64_t *words = (uint64_t *)(void *)(hit + 1);

	if (rec->rec.kind != WAFFLE_REC_HIT && rec->rec.kind != WAFFLE_REC_RETURN)
		return;
	if (rec->rec.kind == WAFFLE_REC_RETURN) {
		struct waffle_rec_return *end = (struct waffle_rec_return *)(void *)hit;

		end->site %= FIXTURE_SITES + ROLE_SITES;
		end->span_id &= 0xff;
		end->tgid &= 3;
		return;
	}
	hit->site %= FIXTURE_SITES + ROLE_SITES;
	if (hit->site < FIXTURE_SITES || hit->frame_bytes > 160)
		return;
	hit->tgid &= 3;
	words[0] = (words[0] & 0xff) + 1;
	words[1] = words[2] = words[3] = 0;
	for (unsigned i = 4; i < hit->frame_bytes / 8; i++)
		words[i] &= i == 10 ? 0xff : 3;
}

static void write_records(struct store_writer *writer, const uint8_t *data, size_t size)
{
	struct record_buffer rec;
	struct error err = ERROR_INIT;
	size_t at = 0;

	while (at < size) {
		size_t bytes = (size_t)data[at++] * 8;

		if (bytes > size - at)
			bytes = size - at;
		memset(&rec, 0, sizeof(rec));
		memcpy(&rec, data + at, bytes);
		at += bytes;
		/* Small numbers make records that have to do with each other. */
		rec.rec.kind %= WAFFLE_REC_KIND_COUNT + 1;
		rec.rec.tid %= 8;
		rec.rec.ts &= RECORD_TS_MAX;
		tame_call(&rec);
		if (rec.rec.kind < WAFFLE_REC_KIND_COUNT && record_size(&rec, sizeof(rec)))
			store_writer_append(writer, &rec.rec, &err);
	}
}

static int check_interval(const struct model_interval *interval, void *arg)
{
	uint64_t *last_to = arg;

	require(interval->from_ts < interval->to_ts);
	require(interval->to_ts >= *last_to);
	*last_to = interval->to_ts;
	return 0;
}

static void check_model(const struct model *model)
{
	uint64_t last_to = 0;

	for (size_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];

		require(span->start_ts <= span->end_ts);
		require(!i || span[-1].start_ts <= span->start_ts);
		require(span->parent == MODEL_NONE || span->parent < i);
		require(span->thread < model->threads.len);
		require(span->end_thread < model->threads.len);
		require(span->running_ns + span->runnable_ns <= span->end_ts - span->start_ts);
	}
	for (size_t i = 1; i < model->events.len; i++)
		require(model->events.data[i - 1].ts <= model->events.data[i].ts);
	for (size_t i = 0; i < model->links.len; i++) {
		const struct model_link *link = &model->links.data[i];
		size_t ends[] = {[MODEL_NODE_SPAN] = model->spans.len,
				 [MODEL_NODE_EVENT] = model->events.len};

		require(link->from < ends[link->from_kind]);
		require(link->to == MODEL_NONE || link->to < ends[link->to_kind]);
	}
	require(!model_each_interval(model, check_interval, &last_to));
}

static void check_gpu(const struct model *model)
{
	struct model_gpu_awaited awaited = {0};
	struct model_gpu_op op, last;
	struct model_gpu *gpu;

	if (model_gpu_new(&gpu, model))
		return;
	for (uint32_t i = 0; i < model->spans.len; i++) {
		const struct model_collective *collective = model_collective_of(gpu, i);
		const struct model_gpu_op *ops;

		if (model_gpu_awaited(gpu, i, &awaited))
			break;
		ops = awaited.ops.data;
		for (size_t n = 0; n < awaited.ops.len; n++) {
			require(ops[n].ts < model->spans.data[i].start_ts);
			require(!n || ops[n].ts <= ops[n - 1].ts);
			op = ops[n];
			do
				last = op;
			while (model_gpu_previous(gpu, &last, &op) && op.ts <= last.ts);
			require(op.ts <= last.ts);
		}
		for (uint32_t at = i, n = 0; (at = model_gpu_group_next(gpu, at)) != MODEL_NONE;)
			require(at < model->spans.len && n++ < model->spans.len);
		require(!collective || collective->last < collective->count);
		for (uint32_t n = 0; collective && n < collective->count; n++) {
			require(collective->calls[n].span < model->spans.len);
			require(collective->calls[n].arrival_ts <=
				collective->calls[collective->last].arrival_ts);
		}
	}
	for (uint32_t i = 0; i < model->spans.len; i++) {
		size_t first, count = model_links_from(model, MODEL_NODE_SPAN, i, &first);

		require(first + count <= model->links.len);
	}
	vec_free(&awaited.ops);
	model_gpu_free(gpu);
}

static void print_all(const struct model *model)
{
	struct report_options options = REPORT_OPTIONS_DEFAULT;
	struct report_view view = {0, true};
	struct error err = ERROR_INIT;
	struct report *report;
	FILE *out = fopen("/dev/null", "w");

	if (out && !report_new(&report, model, &options, &err)) {
		report_print_text(report, &view, out);
		require(!report_print_json(report, out));
		info_print_text(model, out);
		require(!info_print_json(model, out));
		report_free(report);
	}
	if (out) {
		require(!chrome_write(model, out, &err));
		require(!ndjson_write(model, out, &err));
		require(!perfetto_write(model, out, &err));
	}
	if (out)
		fclose(out);
}

static void load_all(struct store_reader *reader, const struct model_keep *keep)
{
	struct error err = ERROR_INIT;
	struct model *model;

	if (model_load(&model, reader, STORE_ALL, keep, &err))
		return;
	check_model(model);
	check_gpu(model);
	print_all(model);
	model_free(model);
}

/* Every kind of question that needs something of its own. */
static const struct filter_expr *a_filter(void)
{
	static struct filter_expr *filter;
	struct error err = ERROR_INIT;

	if (!filter)
		require(!filter_parse(
			&filter, "fuzz",
			"(dur > 10 || depth == 1 || parent.name ~ \"*a*\" || comm != \"b\" || "
			"cpu == 1 || sample(1/2) && kind == event) && rate(3/s)",
			&err));
	return filter;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct store_counts counts[WAFFLE_SOURCE_COUNT] = {0};
	struct store_writer *writer;
	struct store_reader *reader;
	struct error err = ERROR_INIT;
	struct model_keep keep = {a_filter(), false};
	char path[64];

	snprintf(path, sizeof(path), "/dev/shm/waffle-fuzz-%d", (int)getpid());
	if (store_writer_open(&writer, path, &fixture_meta, &err))
		return 0;
	for (unsigned i = 0; i < FIXTURE_SITES; i++)
		store_writer_add_site(writer, &fixture_sites[i], &err);
	for (unsigned i = 0; i < ROLE_SITES; i++) {
		struct site_info site = role_site(i / 2, i % 2);

		store_writer_add_site(writer, &site, &err);
	}
	write_records(writer, data, size);
	store_writer_close(writer, fixture_meta.start_ts + 1000000, counts, &err);
	err = (struct error)ERROR_INIT;
	if (!store_reader_open(&reader, path, &err)) {
		load_all(reader, NULL);
		load_all(reader, &keep);
		keep.keep_children = true;
		load_all(reader, &keep);
		store_reader_close(reader);
	}
	unlink(path);
	return 0;
}
