// SPDX-License-Identifier: Apache-2.0
#include "render/disorder.h"

#include <inttypes.h>
#include <string.h>

#include "model/comm/comm.h"
#include "render/json/span_stack.h"
#include "util/terminal.h"
#include "util/units.h"

struct disorder {
	const struct model *model;
	struct model_comm *comm;
	struct stack_names *names; /* NULL: no stacks of calls were recorded */
};

/* Where in the program a call is. */
struct call_place {
	const char *name; /* NULL: unknown */
	const char *file; /* NULL: unknown */
	uint32_t line;
};

/* NULL: there is nothing to show, or no memory to find it. */
static struct model_comm *comm_of(const struct model *model)
{
	struct model_comm *comm;
	struct model_gpu *gpu;

	if (!model->unaligned_collectives)
		return NULL;
	gpu = model_gpu_new(model);
	comm = model_comm_new(model, gpu);
	model_gpu_free(gpu);
	return comm;
}

static struct disorder disorder_open(const struct model *model)
{
	struct disorder disorder = {.model = model, .comm = comm_of(model)};

	if (model_disorder_count(disorder.comm))
		disorder.names = span_stack_open(model);
	return disorder;
}

static void disorder_close(struct disorder *disorder)
{
	stack_names_close(disorder->names);
	model_comm_free(disorder->comm);
}

static void put_text(FILE *out, const char *text)
{
	terminal_put(out, text, strlen(text));
}

struct caller {
	struct call_place place;
	const char *library; /* the module of the innermost frame */
};

/* The first frame outside the library that was called, which is the innermost frame's. */
static void caller_see(const struct stack_frame *frame, void *arg)
{
	struct caller *caller = arg;

	if (frame->cut || !frame->module)
		return;
	if (!caller->library)
		caller->library = frame->module;
	if (caller->place.name || !frame->function || !strcmp(frame->module, caller->library))
		return;
	caller->place = (struct call_place){frame->function, frame->file, frame->line};
}

/* Keeps the innermost frame. */
static void python_see(const struct stack_frame *frame, void *arg)
{
	struct call_place *place = arg;

	if (!frame->cut && !place->name && frame->function)
		*place = (struct call_place){frame->function, frame->file, frame->line};
}

static struct call_place place_in_stack(const struct disorder *disorder, uint64_t id)
{
	const struct model_stack *stack =
		disorder->names ? model_stack_of(disorder->model, id) : NULL;
	struct caller caller = {0};

	if (stack)
		stack_names_all(disorder->names, stack->python_stack, stack->ts, python_see,
				&caller.place);
	if (stack && !caller.place.name)
		stack_names_all(disorder->names, stack->user_stack, stack->ts, caller_see, &caller);
	return caller.place;
}

/* The frame that called, if a stack was recorded. Else the innermost span around the call whose
 * place in the source is known. */
static struct call_place place_of(const struct disorder *disorder, uint32_t span)
{
	const struct model *model = disorder->model;
	struct call_place place = place_in_stack(disorder, model->spans.data[span].id);
	uint32_t at = model->spans.data[span].parent;

	while (!place.name && at < model->spans.len) {
		const struct site_info *site = model_site(model, model->spans.data[at].site);

		if (*site->file)
			place = (struct call_place){site->name, site->file, site->line};
		at = model->spans.data[at].parent;
	}
	return place;
}

/* "rank 1 (pid 4711) called MPI_Allreduce at 512 ms, in step (train.c:41)" */
static void put_call(const struct disorder *disorder, uint32_t span, uint32_t rank, FILE *out)
{
	const struct model *model = disorder->model;
	const struct model_span *at = &model->spans.data[span];
	struct call_place place = place_of(disorder, span);
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
	if (!place.name)
		return;
	fputs(", in ", out);
	put_text(out, place.name);
	if (!place.file)
		return;
	fputs(" (", out);
	put_text(out, place.file);
	fprintf(out, ":%" PRIu32 ")", place.line);
}

/* ---- ranks that two processes claim ---- */

/* The file in which a process was traced; NULL: there is only one file, or no file names it. */
static const char *file_of(const struct model *model, uint32_t pid)
{
	uint32_t count = store_reader_capture_count(model->reader);

	for (uint32_t i = 0; count > 1 && i < count; i++) {
		const struct store_capture *capture = store_reader_capture(model->reader, i);

		for (uint32_t at = 0; at < capture->process_count; at++)
			if (store_reader_process(model->reader, capture->first_process + at)->pid ==
			    pid)
				return capture->file;
	}
	return NULL;
}

/* "process 4711 of job.1.waffle" */
static void put_claimant(const struct model *model, uint32_t pid, FILE *out)
{
	const char *file = file_of(model, pid);

	fprintf(out, "process %" PRIu32, model_pid_real(model, pid));
	if (file)
		fputs(" of ", out);
	if (file)
		put_text(out, file);
}

/* One line, however many ranks there are: two jobs under one name claim all of them. */
static void put_claims(const struct model *model, const struct model_comm *comm, const char *head,
		       FILE *out)
{
	size_t count = model_claim_count(comm);
	const struct model_claim *claim;

	if (!count)
		return;
	claim = model_claim_at(comm, 0);
	fprintf(out, "%srank %" PRIu32, head, claim->rank);
	if (claim->job) {
		fputs(" of job ", out);
		put_text(out, strtab_get(model->strings, claim->job));
	}
	fputs(" is claimed by ", out);
	put_claimant(model, claim->pid, out);
	fputs(" and by ", out);
	put_claimant(model, claim->other_pid, out);
	if (count > 1)
		fprintf(out, ", and %zu more %s twice", count - 1,
			units_plural(count - 1, "rank is", "ranks are"));
	fputs(", so no call of the job is matched; leave out what is of another run\n", out);
}

static void put_claimant_json(const struct model *model, uint32_t pid, struct json *json)
{
	const char *file = file_of(model, pid);

	json_object_begin(json);
	json_field_u64(json, "pid", model_pid_real(model, pid));
	json_field_string(json, "host", model->hosts[store_pid_host(pid)]->name);
	if (file)
		json_field_string(json, "file", file);
	json_object_end(json);
}

static void put_claims_json(const struct model *model, const struct model_comm *comm,
			    struct json *json)
{
	size_t count = model_claim_count(comm);

	if (!count)
		return;
	json_key(json, "ranks_claimed_twice");
	json_array_begin(json);
	for (size_t i = 0; i < count; i++) {
		const struct model_claim *claim = model_claim_at(comm, i);

		json_object_begin(json);
		json_field_string(json, "job", strtab_get(model->strings, claim->job));
		json_field_u64(json, "rank", claim->rank);
		json_key(json, "processes");
		json_array_begin(json);
		put_claimant_json(model, claim->pid, json);
		put_claimant_json(model, claim->other_pid, json);
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
}

/* ---- all ---- */

void disorder_print_text(const struct model *model, const char *head, FILE *out)
{
	struct disorder disorder = disorder_open(model);

	for (size_t i = 0; i < model_disorder_count(disorder.comm); i++) {
		const struct model_disorder *at = model_disorder_at(disorder.comm, i);

		fprintf(out,
			"%scollective %" PRIu64 " of a communicator differs between ranks: ", head,
			at->seq);
		put_call(&disorder, at->other_span, at->other_rank, out);
		fputs("; ", out);
		put_call(&disorder, at->span, at->rank, out);
		fputc('\n', out);
	}
	put_claims(model, disorder.comm, head, out);
	disorder_close(&disorder);
}

static void put_call_json(const struct disorder *disorder, uint32_t span, uint32_t rank,
			  struct json *json)
{
	const struct model *model = disorder->model;
	const struct model_span *at = &model->spans.data[span];
	struct call_place place = place_of(disorder, span);

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
	if (place.name)
		json_field_string(json, "within", place.name);
	if (place.file) {
		json_field_string(json, "file", place.file);
		json_field_u64(json, "line", place.line);
	}
	json_object_end(json);
}

void disorder_put_json(const struct model *model, struct json *json)
{
	struct disorder disorder = disorder_open(model);

	json_key(json, "collectives_in_different_order");
	json_array_begin(json);
	for (size_t i = 0; i < model_disorder_count(disorder.comm); i++) {
		const struct model_disorder *at = model_disorder_at(disorder.comm, i);

		json_object_begin(json);
		json_key(json, "comm");
		json_hex64(json, at->comm);
		json_key(json, "seq");
		json_u64(json, at->seq);
		json_key(json, "ranks_that_differ");
		json_u64(json, at->others);
		json_key(json, "calls");
		json_array_begin(json);
		put_call_json(&disorder, at->other_span, at->other_rank, json);
		put_call_json(&disorder, at->span, at->rank, json);
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
	put_claims_json(model, disorder.comm, json);
	disorder_close(&disorder);
}
