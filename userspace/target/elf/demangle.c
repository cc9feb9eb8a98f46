// SPDX-License-Identifier: Apache-2.0
#include "target/elf/demangle.h"

#include <errno.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

#include "target/worker/sandbox.h"
#include "target/worker/worker.h"

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

	if (!sandbox_limited(NAME_MS, attempt_make, &attempt) || !attempt.whole)
		return NULL;
	text[attempt.len] = '\0';
	return text;
}

int demangle_serve(struct wire_in *request, int fd, struct wire_out *reply, void *arg)
{
	const char *symbol = wire_get_text(request);
	char text[DEMANGLE_MAX];

	(void)fd, (void)arg;
	if (!symbol || !wire_in_done(request))
		return -EINVAL;
	wire_put_text(reply, demangle(symbol, text));
	return 0;
}

static const char *demangle_remote(const char *symbol, char text[DEMANGLE_MAX])
{
	struct wire_out request = {0}, reply = {0};
	struct error problem = ERROR_INIT;
	const char *found = NULL;

	wire_put_text(&request, symbol);
	if (!worker_call(WORKER_FOR_NAMES, WORKER_NAME, &request, -1, "a mangled name", &reply,
			 &problem)) {
		struct wire_in in = wire_in(reply.bytes.data, reply.bytes.len);
		const char *name = wire_get_text(&in);
		size_t size = name ? strlen(name) + 1 : 0;

		if (size && size <= DEMANGLE_MAX)
			found = memcpy(text, name, size);
	}
	wire_out_free(&request);
	wire_out_free(&reply);
	return found;
}

const char *demangle(const char *symbol, char text[DEMANGLE_MAX])
{
	/* The demangler would read any other name as a type: "i" is int. */
	if (strncmp(symbol, "_Z", 2) != 0 || strlen(symbol) >= DEMANGLE_MAX)
		return NULL;
	return worker_is_there() ? demangle_remote(symbol, text) : demangle_here(symbol, text);
}
