/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FNV-1a with 64 bits (hash_bytes, hash_text), and a faster keyed hash (hash_word, hash_keyed).
 * Tables whose keys an untrusted program chooses, such as its names, use the keyed hash: for FNV-1a
 * anybody can make keys that collide. Its secret differs from process to process, but a child of
 * fork() has that of its parent. A table that must tell all keys apart is a keymap.
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

/* Continues from `hash`, which is secret->begin at first. Both halves of the product count, so
 * that the high bits of a word reach the low bits of the hash, too. */
static inline uint64_t hash_word(uint64_t hash, uint64_t word, const struct hash_secret *secret)
{
	unsigned __int128 product = (unsigned __int128)(hash ^ word) * secret->factor;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Continues from `hash` as hash_word() does, with the length and all bytes. The length separates
 * keys of several parts: "ab", "c" and "a", "bc" differ. */
static inline uint64_t hash_keyed(uint64_t hash, const void *bytes, size_t len,
				  const struct hash_secret *secret)
{
	uint64_t word;
	size_t at = 0;

	hash = hash_word(hash, len, secret);
	for (; at + sizeof(word) <= len; at += sizeof(word)) {
		memcpy(&word, (const char *)bytes + at, sizeof(word));
		hash = hash_word(hash, word, secret);
	}
	if (at == len)
		return hash;
	word = 0;
	memcpy(&word, (const char *)bytes + at, len - at);
	return hash_word(hash, word, secret);
}

/* Spreads the bits of a number upwards, so take the upper bits of the result. Only for numbers that
 * nobody can choose, or where a collision costs little. Fibonacci hashing: Knuth, The Art of
 * Computer Programming, 6.4. */
static inline uint64_t hash_number(uint64_t number)
{
	return number * 0x9e3779b97f4a7c15ull;
}

/* FNV-1a. Continues from `hash`, which is HASH_BEGIN at first. Beginning with a secret instead
 * would not help: whether two keys collide depends only on its lowest byte. */
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
