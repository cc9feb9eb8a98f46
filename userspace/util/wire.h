/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between waffle-bpf and its own processes. Numbers are in the machine's byte order; texts
 * and bytes follow their length. The reader does not trust a message: after a read beyond its end
 * or an impossible length, it returns zeros and sets `bad`.
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
/* NULL and "" are different values. */
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
/* Returns a pointer into the message. NULL if NULL was written, or on an error (`bad`). */
const char *wire_get_text(struct wire_in *in);
/* Reads a number of elements, each of which takes at least `size` bytes of the message. */
uint32_t wire_get_count(struct wire_in *in, size_t size);
/* Whether the whole message was read without an error. */
bool wire_in_done(const struct wire_in *in);

#endif
