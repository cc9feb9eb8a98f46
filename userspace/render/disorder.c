// SPDX-License-Identifier: Apache-2.0
#include "render/disorder.h"

#include <inttypes.h>
#include <string.h>

#include "model/comm/comm.h"
#include "util/terminal.h"
#include "util/units.h"

/* NULL: there is nothing to show, or no memory to find it. */
static struct model_comm *comm_of(const struct model *model)
{
	struct model_comm *comm = NULL;
	struct model_gpu *gpu;

	if (!model->unaligned_collectives || model_gpu_new(&gpu, model))
		return NULL;
	if (model_comm_new(&comm, model, gpu))
		comm = NULL;
	model_gpu_free(gpu);
	return comm;
}

static void put_text(FILE *out, const char *text)
{
	terminal_put(out, text, strlen(text));
}

/* The innermost span around a call whose place in the source is known, or NULL. */
static const struct site_info *place_of(const struct model *model, uint32_t span)
{
	uint32_t at = model->spans.data[span].parent;

	while (at < model->spans.len) {
		const struct site_info *site = model_site(model, model->spans.data[at].site);

		if (*site->file)
			return site;
		at = model->spans.data[at].parent;
	}
	return NULL;
}

/* "rank 1 (pid 4711) called MPI_Allreduce at 512 ms, in step (train.c:41)" */
static void put_call(const struct model *model, uint32_t span, uint32_t rank, FILE *out)
{
	const struct model_span *at = &model->spans.data[span];
	const struct site_info *place = place_of(model, span);
	char text[UNITS_TEXT];

	if (rank == MODEL_NONE)
		fputs("a rank", out);
	else
		fprintf(out, "rank %" PRIu32, rank);
	fprintf(out, " (pid %" PRIu32, model_pid_real(model, model->threads.data[at->thread].pid));
	if (model->host_count > 1) {
		fputs(" on ", out);
		put_text(out, model->hosts[model_host_of(model, at->thread)]->name);
	}
	fputs(") called ", out);
	put_text(out, model_site(model, at->site)->name);
	fprintf(out, " at %s", units_format_duration(text, at->start_ts - model->start_ts));
	if (!place)
		return;
	fputs(", in ", out);
	put_text(out, place->name);
	fputs(" (", out);
	put_text(out, place->file);
	fprintf(out, ":%" PRIu32 ")", place->line);
}

void disorder_print_text(const struct model *model, const char *head, FILE *out)
{
	struct model_comm *comm = comm_of(model);

	for (size_t i = 0; i < model_disorder_count(comm); i++) {
		const struct model_disorder *disorder = model_disorder_at(comm, i);

		fprintf(out,
			"%scollective %" PRIu64 " of a communicator differs between ranks: ", head,
			disorder->seq);
		put_call(model, disorder->other_span, disorder->other_rank, out);
		fputs("; ", out);
		put_call(model, disorder->span, disorder->rank, out);
		fputc('\n', out);
	}
	model_comm_free(comm);
}

static void put_call_json(const struct model *model, uint32_t span, uint32_t rank,
			  struct json *json)
{
	const struct model_span *at = &model->spans.data[span];
	const struct site_info *place = place_of(model, span);

	json_object_begin(json);
	json_key(json, "id");
	json_hex64(json, at->id);
	json_key(json, "name");
	json_string(json, model_site(model, at->site)->name);
	if (rank != MODEL_NONE) {
		json_key(json, "rank");
		json_u64(json, rank);
	}
	json_key(json, "pid");
	json_u64(json, model_pid_real(model, model->threads.data[at->thread].pid));
	json_key(json, "host");
	json_string(json, model->hosts[model_host_of(model, at->thread)]->name);
	json_key(json, "start_ns");
	json_u64(json, at->start_ts);
	if (place) {
		json_key(json, "within");
		json_string(json, place->name);
		json_key(json, "file");
		json_string(json, place->file);
		json_key(json, "line");
		json_u64(json, place->line);
	}
	json_object_end(json);
}

void disorder_put_json(const struct model *model, struct json *json)
{
	struct model_comm *comm = comm_of(model);

	json_key(json, "collectives_in_different_order");
	json_array_begin(json);
	for (size_t i = 0; i < model_disorder_count(comm); i++) {
		const struct model_disorder *disorder = model_disorder_at(comm, i);

		json_object_begin(json);
		json_key(json, "comm");
		json_hex64(json, disorder->comm);
		json_key(json, "seq");
		json_u64(json, disorder->seq);
		json_key(json, "ranks_that_differ");
		json_u64(json, disorder->others);
		json_key(json, "calls");
		json_array_begin(json);
		put_call_json(model, disorder->other_span, disorder->other_rank, json);
		put_call_json(model, disorder->span, disorder->rank, json);
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
	model_comm_free(comm);
}
