// SPDX-License-Identifier: Apache-2.0
/* The sink that gives all records to a chain of processors, and to another sink behind it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "export/process/chain.h"
#include "export/process/chain_host.h"
#include "usdt/say/say.h"
#include "usdt/sink/callbacks.h"
#include "usdt/sink/sink.h"
#include "util/clock.h"
#include "util/vec.h"

/* A program that ends waits so long for its exporters, and one that dies by a signal. */
#define CLOSE_NS 2000000000ull
#define SAVE_NS 500000000ull

static bool dying;

void sink_process_hurry(void)
{
	__atomic_store_n(&dying, true, __ATOMIC_RELEASE);
}

struct sink_process {
	struct sink sink;
	struct sink *inner; /* NULL: there is no file, or it has failed */
	struct chain *chain;
	const uint32_t *collector_tid;
	VEC(const struct site_info *) sites;
};

static void say(const char *line, void *arg)
{
	(void)arg;
	say_text(line);
}

/* The chain goes on without the file. Returns -EINVAL if only this record was rejected. */
static int inner_result(struct sink_process *process, int result, struct error *err)
{
	if (!result || result == -EINVAL)
		return result;
	error_prefix(err, "only the processors go on");
	say_text(err->message);
	*err = (struct error)ERROR_INIT;
	sink_discard(process->inner);
	process->inner = NULL;
	return 0;
}

static int process_add_site(struct sink *sink, const struct site_info *site, struct error *err)
{
	struct sink_process *process = (struct sink_process *)sink;

	if (!vec_push(&process->sites, site))
		return error_set(err, ENOMEM, "out of memory");
	return process->inner ? inner_result(process, sink_add_site(process->inner, site, err), err)
			      : 0;
}

static int process_record(struct sink *sink, const struct waffle_rec *rec, struct error *err)
{
	struct sink_process *process = (struct sink_process *)sink;
	const struct site_info *site = NULL;

	if (rec->kind == WAFFLE_REC_HIT) {
		uint32_t number = ((const struct waffle_rec_hit *)rec)->site;

		site = number < process->sites.len ? process->sites.data[number] : NULL;
	}
	/* Sites that a callback reaches would otherwise make it run again and again. */
	if (rec->tid != __atomic_load_n(process->collector_tid, __ATOMIC_RELAXED))
		chain_record(process->chain, rec, site);
	return process->inner ? inner_result(process, sink_record(process->inner, rec, err), err)
			      : 0;
}

static int process_flush(struct sink *sink, const struct store_counts *counts, struct error *err)
{
	struct sink_process *process = (struct sink_process *)sink;
	int result = process->inner ? sink_flush(process->inner, counts, err) : 0;

	chain_tick(process->chain, clock_monotonic_ns());
	chain_flush(process->chain);
	return inner_result(process, result, err);
}

static int process_settle(struct sink *sink, struct error *err)
{
	struct sink_process *process = (struct sink_process *)sink;

	if (__atomic_exchange_n(&dying, false, __ATOMIC_ACQ_REL))
		chain_save(process->chain, SAVE_NS);
	return process->inner ? sink_settle(process->inner, err) : 0;
}

static void process_free(struct sink_process *process, uint64_t end_ts)
{
	if (process->chain)
		chain_close(process->chain, end_ts, CLOSE_NS);
	vec_free(&process->sites);
	free(process);
}

static int process_close(struct sink *sink, uint64_t end_ts, const struct store_counts *counts,
			 struct error *err)
{
	struct sink_process *process = (struct sink_process *)sink;
	int result = process->inner ? sink_close(process->inner, end_ts, counts, err) : 0;

	process_free(process, end_ts);
	return result;
}

static void process_discard(struct sink *sink)
{
	struct sink_process *process = (struct sink_process *)sink;

	if (process->inner)
		sink_discard(process->inner);
	process_free(process, clock_monotonic_ns());
}

static const struct sink_type process_type = {
	.add_site = process_add_site,
	.record = process_record,
	.flush = process_flush,
	.settle = process_settle,
	.close = process_close,
	.discard = process_discard,
};

int sink_process_open(struct sink **sink, const char *text, const char *name,
		      const uint32_t *collector_tid, const struct sink_origin *origin,
		      struct error *err)
{
	struct sink_process *process = calloc(1, sizeof(*process));
	const char *service = secure_getenv("OTEL_SERVICE_NAME");
	struct chain_host host = {
		.origin = name,
		.service = service && *service ? service : program_invocation_short_name,
		.pid = (uint32_t)getpid(),
		.unix_offset_ns = (int64_t)(origin->meta.real_ns - origin->meta.start_ts),
		.say = say,
		.call = callbacks_call,
	};
	int code;

	if (!process)
		return error_set(err, ENOMEM, "%s: out of memory", name);
	process->sink.type = &process_type;
	process->collector_tid = collector_tid;
	code = chain_open(&process->chain, text, &host, err);
	if (code) {
		process_free(process, 0);
		return code;
	}
	*sink = &process->sink;
	return 0;
}

void sink_process_add_file(struct sink *chain, struct sink *file)
{
	((struct sink_process *)chain)->inner = file;
}
