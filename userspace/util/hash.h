/* SPDX-License-Identifier: Apache-2.0 */
/* FNV-1a with 64 bits. Do not use it where somebody may want to cause collisions. */
#ifndef WAFFLE_UTIL_HASH_H
#define WAFFLE_UTIL_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_BEGIN 0xcbf29ce484222325ull

/* Continues from `hash`, which is HASH_BEGIN at first. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3ull;
	return hash;
}

static inline uint64_t hash_text(uint64_t hash, const char *text)
{
	return hash_bytes(hash, text, strlen(text));
}

#endif
