// SPDX-License-Identifier: Apache-2.0
#include "target/elf/demangle.h"

#include <errno.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/demangle_rust_internal.h"
#include "target/worker/sandbox.h"
#include "target/worker/worker.h"
#include "util/clock.h"

/* In libsupc++. Returns 0 if it wrote the whole name. It allocates only on the stack, so the
 * callback may leave it with longjmp(). */
int __gcclibcxx_demangle_callback(const char *mangled,
				  void (*piece)(const char *text, size_t len, void *arg),
				  void *arg);

/* A time limit, since demangling a crafted name of 200 bytes may practically never end. */
#define NAME_MS 100

struct attempt {
	const char *symbol;
	jmp_buf full;
	char *text;
	size_t len;
	bool whole;
};

static void append_piece(const char *text, size_t len, void *arg)
{
	struct attempt *attempt = arg;

	if (len >= DEMANGLE_MAX - attempt->len)
		longjmp(attempt->full, 1);
	memcpy(attempt->text + attempt->len, text, len);
	attempt->len += len;
}

static void attempt_make(void *arg)
{
	struct attempt *attempt = arg;

	if (!setjmp(attempt->full))
		attempt->whole =
			!__gcclibcxx_demangle_callback(attempt->symbol, append_piece, attempt) &&
			attempt->len;
}

static const char *demangle_here(const char *symbol, char text[DEMANGLE_MAX])
{
	struct attempt attempt = {.symbol = symbol, .text = text};

	if (demangle_is_rust(symbol))
		return demangle_rust(symbol, text, DEMANGLE_MAX) ? text : NULL;
	if (!sandbox_limited(NAME_MS, attempt_make, &attempt) || !attempt.whole)
		return NULL;
	text[attempt.len] = '\0';
	return text;
}

/* The demangler of C++ would read any other name as a type: "i" is int. */
static bool may_be_mangled(const char *symbol)
{
	return (!strncmp(symbol, "_Z", 2) || demangle_is_rust(symbol)) &&
	       strlen(symbol) < DEMANGLE_MAX;
}

int demangle_serve(struct wire_in *request, int fd, struct wire_out *reply, void *arg)
{
	uint64_t until_ns = clock_monotonic_ns() + NAME_MS * 1000000ull;
	char text[DEMANGLE_MAX];

	(void)fd, (void)arg;
	/* The reply may cover only the first names; the caller sends the others again. */
	do {
		const char *symbol = wire_get_text(request);

		if (!symbol)
			return -EINVAL;
		wire_put_text(reply, demangle_as_written(symbol, text));
	} while (!wire_in_done(request) && clock_monotonic_ns() < until_ns);
	return 0;
}

/* Asks the worker. Returns how many names its reply covers, as NULL if they can't be demangled. 0:
 * it failed. */
static size_t demangle_remote(const char *const *symbols, size_t count, char **names)
{
	struct wire_out request = {0}, reply = {0};
	struct error problem = ERROR_INIT;
	size_t done = 0;

	for (size_t i = 0; i < count; i++)
		wire_put_text(&request, symbols[i]);
	if (!worker_call(WORKER_FOR_NAMES, WORKER_NAME, &request, -1, "a mangled name", &reply,
			 &problem)) {
		struct wire_in in = wire_in(reply.bytes.data, reply.bytes.len);

		while (done < count && !in.bad && !wire_in_done(&in)) {
			const char *name = wire_get_text(&in);

			if (name && *name && strlen(name) < DEMANGLE_MAX)
				names[done] = strdup(name);
			done++;
		}
	}
	wire_out_free(&request);
	wire_out_free(&reply);
	return done;
}

static void demangle_batch_remote(const char *const *symbols, size_t count, char **names)
{
	for (size_t at = 0; at < count;) {
		size_t done = demangle_remote(symbols + at, count - at, names + at);

		at += done;
		if (done)
			continue;
		/* One of them may have killed the worker. One by one, only that one fails again:
		 * after too many deaths, no more names are demangled. */
		for (; at < count; at++)
			demangle_remote(&symbols[at], 1, &names[at]);
	}
}

static void demangle_batch_here(const char *const *symbols, size_t count, char **names)
{
	char text[DEMANGLE_MAX];

	for (size_t i = 0; i < count; i++)
		if (demangle_as_written(symbols[i], text))
			names[i] = strdup(text);
}

static void batch(const char *const *symbols, size_t count, char **names)
{
	memset(names, 0, count * sizeof(*names));
	(worker_is_there() ? demangle_batch_remote : demangle_batch_here)(symbols, count, names);
}

void demangle_batch(const char *const *symbols, size_t count, char **names)
{
	batch(symbols, count, names);
	for (size_t i = 0; i < count; i++)
		if (names[i])
			demangle_rust_old(names[i]);
}

const char *demangle_as_written(const char *symbol, char text[DEMANGLE_MAX])
{
	char *name = NULL;

	if (!may_be_mangled(symbol))
		return NULL;
	if (!worker_is_there())
		return demangle_here(symbol, text);
	batch(&symbol, 1, &name);
	if (name)
		strcpy(text, name);
	free(name);
	return name ? text : NULL;
}

const char *demangle(const char *symbol, char text[DEMANGLE_MAX])
{
	if (!demangle_as_written(symbol, text))
		return NULL;
	demangle_rust_old(text);
	return text;
}
