/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulates a worker (target/worker/worker.h) within this process. There is none, or it works
 * correctly, or it replies with any bytes, as a worker does that a file has taken over. For
 * programs with a single source file.
 */
#ifndef WAFFLE_FUZZ_FAKE_WORKER_H
#define WAFFLE_FUZZ_FAKE_WORKER_H

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "capture/enrich/handles.h"
#include "require.h"
#include "target/dwarf/cfi_remote.h"
#include "target/elf/demangle.h"
#include "target/elf/object_remote.h"
#include "target/process/program_facts.h"
#include "target/elf/symbols.h"
#include "target/elf/symbols_remote.h"
#include "target/worker/worker.h"

enum fake_worker { WORKER_ABSENT, WORKER_HONEST, WORKER_LYING };

static struct {
	enum fake_worker is;
	bool busy; /* in a handler, where there is no worker */
	unsigned distrusted;
	struct symbols_service symbols;
	const uint8_t *lies, *lies_end;
} worker;

bool worker_is_there(void)
{
	return worker.is != WORKER_ABSENT && !worker.busy;
}

static int serve(enum worker_op op, struct wire_in *in, int fd, struct wire_out *reply)
{
	static const worker_handler handlers[WORKER_OPS] = {
		[WORKER_OBJECT] = object_serve,         [WORKER_FRAMES] = symbols_serve_frames,
		[WORKER_BEFORE] = symbols_serve_before, [WORKER_VARIABLE] = symbols_serve_variable,
		[WORKER_MODULE] = symbols_serve_module, [WORKER_UNWIND] = cfi_serve,
		[WORKER_GO] = symbols_serve_go,         [WORKER_PROGRAM] = program_facts_serve,
		[WORKER_HANDLES] = handles_serve,       [WORKER_NAME] = demangle_serve,
	};
	int result;

	require(handlers[op]);
	worker.busy = true;
	result = handlers[op](in, fd, reply, &worker.symbols);
	worker.busy = false;
	require(result <= 0);
	return result;
}

/* Format: a byte with an error, two bytes with the length of the reply, and the reply. */
static int lie(struct wire_out *reply)
{
	size_t left = (size_t)(worker.lies_end - worker.lies), size;
	int result;

	if (left < 3)
		return -EPROTO;
	result = -(int)(worker.lies[0] % 134);
	size = worker.lies[1] | (size_t)worker.lies[2] << 8;
	worker.lies += 3;
	left -= 3;
	size = size < left ? size : left;
	wire_put(reply, worker.lies, size);
	worker.lies += size;
	return result;
}

int worker_call(enum worker_use use, enum worker_op op, const struct wire_out *request, int fd,
		const char *name, struct wire_out *reply, struct error *err)
{
	struct wire_in in = wire_in(request->bytes.data, request->bytes.len);
	int result;

	(void)use;
	*reply = (struct wire_out){0};
	require(worker_is_there() && !request->no_memory);
	result = worker.is == WORKER_LYING ? lie(reply) : serve(op, &in, fd, reply);
	return result == -EPROTO ? error_set(err, EPROTO, "%s: the worker ended", name) : result;
}

int worker_reply_bad(const char *name, struct error *err)
{
	/* Only a lying worker may send a malformed reply. */
	require(worker.is == WORKER_LYING);
	worker.distrusted++;
	return error_set(err, EPROTO, "%s: makes no sense", name);
}

/* Only a queue calls these, and none is open. */
int worker_call_watched(enum worker_use use, enum worker_op op, const struct wire_out *request,
			int fd, const char *name, struct worker_opens *opens,
			struct wire_out *reply, struct error *err)
{
	(void)use, (void)op, (void)request, (void)fd, (void)name;
	(void)opens, (void)reply, (void)err;
	require(false);
	return 0;
}

bool worker_misses(const char *name)
{
	(void)name;
	require(false);
	return false;
}

void worker_given_up(const char *name)
{
	(void)name;
	require(false);
}

void worker_stop_at(int fd)
{
	(void)fd;
	require(false);
}

static inline void worker_is(enum fake_worker is)
{
	symbolizer_close(worker.symbols.symbolizer);
	worker.symbols.symbolizer = NULL;
	worker.is = is;
	worker.distrusted = 0;
}

#endif
