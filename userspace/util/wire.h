/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between waffle-bpf and its own processes: numbers in the machine's byte order, and texts
 * and bytes after their length. The reader trusts nothing: beyond the end, or after an impossible
 * length, it returns zeros and sets `bad`.
 */
#ifndef WAFFLE_UTIL_WIRE_H
#define WAFFLE_UTIL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/vec.h"

struct wire_out {
	VEC(unsigned char) bytes;
	bool no_memory;
};

void wire_put(struct wire_out *out, const void *bytes, size_t size);
void wire_put_u32(struct wire_out *out, uint32_t value);
void wire_put_u64(struct wire_out *out, uint64_t value);
/* NULL and "" are different texts. */
void wire_put_text(struct wire_out *out, const char *text);
void wire_out_free(struct wire_out *out);

struct wire_in {
	const unsigned char *at, *end;
	bool bad;
};

struct wire_in wire_in(const void *bytes, size_t size);
void wire_get(struct wire_in *in, void *to, size_t size);
uint32_t wire_get_u32(struct wire_in *in);
uint64_t wire_get_u64(struct wire_in *in);
/* The text, in the message itself; NULL if that was written, or with `bad`. */
const char *wire_get_text(struct wire_in *in);
/* How many elements follow; each takes at least `size` bytes. */
uint32_t wire_get_count(struct wire_in *in, size_t size);
/* Whether the whole message was read without an error. */
bool wire_in_done(const struct wire_in *in);

#endif
