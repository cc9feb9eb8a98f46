/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages, domains and categories of NVTX, and the names of waffle_named.h that spans and events
 * with them have. Texts are kept once, and for ever, since the program may keep a handle of them.
 * Their number is bounded, because a program may put what varies into a message: a message beyond
 * the limit is recorded with the name "nvtx", and is the value of its key `message`.
 *
 * All functions may be called by several threads and in signal handlers: they take no lock.
 */
#ifndef WAFFLE_USDT_GPU_NVTX_TEXT_H
#define WAFFLE_USDT_GPU_NVTX_TEXT_H

#include <stdint.h>
#include <wchar.h>

#include "waffle_named.h"

/* A text that is kept. */
struct nvtx_text;
#define NVTX_TEXTS_MAX 8192
/* Bytes of a text. What is longer is cut. */
#define NVTX_TEXT_BYTES WAFFLE_NAME_MAX

/* NULL: the text is NULL, there are too many, or memory is short. */
struct nvtx_text *nvtx_text_of(const char *text);
/* Writes a text of wide characters as UTF-8, as much as there is room for. NULL becomes "". */
void nvtx_text_narrow(char *to, size_t size, const wchar_t *wide);
/* What the program holds as the handle of a registered string. NULL: it is not one of ours, as of
 * strings that were registered before the library was there. */
struct nvtx_text *nvtx_text_of_handle(const void *handle);
const char *nvtx_text_string(const struct nvtx_text *text);

/* Keys that a name has, in this order. */
enum nvtx_key {
	NVTX_KEY_DOMAIN = 1,
	NVTX_KEY_CATEGORY = 2,
	NVTX_KEY_PAYLOAD = 4,
	NVTX_KEY_SETS = 8,
	NVTX_KEY_MESSAGE = 8, /* not for callers of nvtx_name() */
};
#define NVTX_KEYS_MAX 4
/* The name of ranges (`span`) or marks with this text and a set of keys. With the text NULL, it is
 * "nvtx" and has a last key for the message. */
waffle_name_t *nvtx_name(struct nvtx_text *text, bool span, unsigned keys);

/* Makes such a name with further keys. */
waffle_name_t *nvtx_name_make(const struct nvtx_text *text, bool span, unsigned keys,
			      const waffle_key_t *more, unsigned count);
/* The number of a text, below NVTX_TEXTS_MAX. */
unsigned nvtx_text_number(const struct nvtx_text *text);

/* ---- domains and their categories ---- */

#define NVTX_DOMAINS_MAX 256
#define NVTX_CATEGORIES_MAX 1024

/* Makes a domain, or finds the one of that name. NULL: as nvtx_text_of(). */
const void *nvtx_domain(const char *name);
/* Its number from 1; 0: the default domain, or a handle that is not one of ours. */
unsigned nvtx_domain_number(const void *domain);
/* The name of a domain with a number other than 0. */
const char *nvtx_domain_name(unsigned number);

/* Beyond the limit, categories have no name. */
void nvtx_category_set(unsigned domain, uint32_t category, const char *name);
/* NULL: it has none. */
const char *nvtx_category_name(unsigned domain, uint32_t category);

#endif
