/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FNV-1a with 64 bits, and a faster hash of words. Tables of what others choose, such as the names
 * in a program, use a secret: without one anybody can make keys that collide. The secret differs
 * from process to process, but not after fork(). A table that must tell all keys apart is a keymap.
 */
#ifndef WAFFLE_UTIL_HASH_H
#define WAFFLE_UTIL_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#define HASH_BEGIN 0xcbf29ce484222325ull

struct hash_secret {
	uint64_t factor, begin;
};

static inline struct hash_secret hash_secret(void)
{
	/* 16 random bytes from the kernel. */
	const void *random = (const void *)getauxval(AT_RANDOM);
	struct hash_secret secret = {0};

	if (random)
		memcpy(&secret, random, sizeof(secret));
	secret.factor |= 1;
	return secret;
}

static inline uint64_t hash_begin_secret(void)
{
	return HASH_BEGIN ^ hash_secret().begin;
}

/* Continues from `hash`, which is secret->begin at first. Both halves of the product count, so
 * that each bit of a word changes all bits of the hash in a way that depends on the secret. */
static inline uint64_t hash_word(uint64_t hash, uint64_t word, const struct hash_secret *secret)
{
	unsigned __int128 product = (unsigned __int128)(hash ^ word) * secret->factor;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Spreads the bits of a number upwards, so take the upper bits of the result. Only for numbers that
 * nobody can choose, or where a collision costs little. Fibonacci hashing: Knuth, The Art of
 * Computer Programming, 6.4. */
static inline uint64_t hash_number(uint64_t number)
{
	return number * 0x9e3779b97f4a7c15ull;
}

/* Continues from `hash`, which is one of the begins at first. */
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
