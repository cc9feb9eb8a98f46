// SPDX-License-Identifier: Apache-2.0
#include "util/wire.h"

#include <string.h>

void wire_put(struct wire_out *out, const void *bytes, size_t size)
{
	if (!vec_reserve(&out->bytes, size)) {
		out->no_memory = true;
		return;
	}
	if (size)
		memcpy(out->bytes.data + out->bytes.len, bytes, size);
	out->bytes.len += size;
}

void wire_put_u32(struct wire_out *out, uint32_t value)
{
	wire_put(out, &value, sizeof(value));
}

void wire_put_u64(struct wire_out *out, uint64_t value)
{
	wire_put(out, &value, sizeof(value));
}

/* The length includes the NUL, so that 0 means NULL. */
void wire_put_text(struct wire_out *out, const char *text)
{
	size_t size = text ? strlen(text) + 1 : 0;

	if (size > UINT32_MAX) {
		out->no_memory = true;
		return;
	}
	wire_put_u32(out, (uint32_t)size);
	wire_put(out, text, size);
}

void wire_out_free(struct wire_out *out)
{
	vec_free(&out->bytes);
}

struct wire_in wire_in(const void *bytes, size_t size)
{
	const unsigned char *at = bytes;

	return (struct wire_in){.at = at,
				.end = size ? at + size : at}; /* NULL may come with size 0 */
}

void wire_get(struct wire_in *in, void *to, size_t size)
{
	if (in->bad || size > (size_t)(in->end - in->at)) {
		in->bad = true;
		memset(to, 0, size);
		return;
	}
	if (size)
		memcpy(to, in->at, size);
	in->at += size;
}

uint32_t wire_get_u32(struct wire_in *in)
{
	uint32_t value;

	wire_get(in, &value, sizeof(value));
	return value;
}

uint64_t wire_get_u64(struct wire_in *in)
{
	uint64_t value;

	wire_get(in, &value, sizeof(value));
	return value;
}

const char *wire_get_text(struct wire_in *in)
{
	uint32_t size = wire_get_u32(in);
	const char *text = (const char *)in->at;

	if (!size || in->bad)
		return NULL;
	if (size > (size_t)(in->end - in->at) || memchr(text, '\0', size) != text + size - 1) {
		in->bad = true;
		return NULL;
	}
	in->at += size;
	return text;
}

uint32_t wire_get_count(struct wire_in *in, size_t size)
{
	uint32_t count = wire_get_u32(in);

	if (count > (size_t)(in->end - in->at) / (size ? size : 1)) {
		in->bad = true;
		return 0;
	}
	return count;
}

bool wire_in_done(const struct wire_in *in)
{
	return !in->bad && in->at == in->end;
}
