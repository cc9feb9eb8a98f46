// SPDX-License-Identifier: Apache-2.0
#include "target/demangle.h"

#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

/* libsupc++; returns 0 if the whole name was written. It allocates on the stack only, so that one
 * may leave it with longjmp. */
int __gcclibcxx_demangle_callback(const char *mangled,
				  void (*piece)(const char *text, size_t len, void *arg),
				  void *arg);

struct output {
	jmp_buf full;
	char *text;
	size_t len;
};

static void append_piece(const char *text, size_t len, void *arg)
{
	struct output *output = arg;

	if (len >= DEMANGLE_MAX - output->len)
		longjmp(output->full, 1);
	memcpy(output->text + output->len, text, len);
	output->len += len;
}

const char *demangle(const char *symbol, char text[DEMANGLE_MAX])
{
	struct output output = {.text = text};

	/* Anything else would be taken for a type: "i" is int. */
	if (strncmp(symbol, "_Z", 2) != 0 || strlen(symbol) >= DEMANGLE_MAX)
		return NULL;
	if (setjmp(output.full))
		return NULL;
	if (__gcclibcxx_demangle_callback(symbol, append_piece, &output) || !output.len)
		return NULL;
	text[output.len] = '\0';
	return text;
}
