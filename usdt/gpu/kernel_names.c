// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/kernel_names.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/hash.h"
#include "util/keymap.h"
#include "util/vec.h"

/* A longer name is cut. Those of templates have some hundred bytes. */
#define TEXT_MAX 4096u
/* Demangled names have up to WAFFLE_NAME_MAX bytes: of a longer one the first ones and a hash of
 * the whole, so that the instances of a template remain different kernels. */
#define HASH_DIGITS 8
#define CUT_AT (WAFFLE_NAME_MAX - HASH_DIGITS - 1)

typedef char *(*demangler)(const char *mangled, char *to, size_t *size, int *status);

static struct {
	struct keymap names; /* shape, text → index in `made` */
	VEC(waffle_name_t *) made;
	demangler demangle;
	bool looked;
} all;

/* The C++ library is often loaded with the symbols of its user only. */
static demangler demangle_find(void)
{
	void *library;

	if (all.looked)
		return all.demangle;
	all.looked = true;
	*(void **)&all.demangle = dlsym(RTLD_DEFAULT, "__cxa_demangle");
	if (all.demangle)
		return all.demangle;
	library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_NOLOAD);
	if (library)
		*(void **)&all.demangle = dlsym(library, "__cxa_demangle");
	return all.demangle;
}

static waffle_name_t *name_make(const char *text, const struct fields *fields)
{
	char cut[WAFFLE_NAME_MAX + 1];
	size_t length = strlen(text);

	if (length > WAFFLE_NAME_MAX) {
		uint32_t hash = (uint32_t)hash_bytes(HASH_BEGIN, text, length);

		memcpy(cut, text, CUT_AT);
		snprintf(cut + CUT_AT, sizeof(cut) - CUT_AT, "~%08" PRIx32, hash);
		text = cut;
	}
	return waffle_name(&(struct waffle_name_spec){.size = sizeof(struct waffle_name_spec),
						      .kind = WAFFLE_SITE_SPAN,
						      .name = text,
						      .category = "gpu",
						      .keys = fields->keys,
						      .key_count = fields->count});
}

static waffle_name_t *name_new(const char *text, const struct fields *fields)
{
	demangler demangle = demangle_find();
	char *readable = NULL;
	waffle_name_t *name;
	int status;

	if (demangle && text[0] == '_' && text[1] == 'Z')
		readable = demangle(text, NULL, NULL, &status);
	name = name_make(readable ? readable : text, fields);
	free(readable);
	return name;
}

waffle_name_t *kernel_name(const char *text, const struct fields *fields)
{
	struct {
		uint32_t shape;
		char text[TEXT_MAX + 1];
	} key;
	size_t length = text && *text ? strnlen(text, TEXT_MAX) : 0;
	size_t bytes = offsetof(__typeof__(key), text) + length;
	waffle_name_t *name;
	uint32_t at;

	key.shape = fields->shape;
	memcpy(key.text, length ? text : "", length);
	key.text[length] = '\0';
	at = keymap_get(&all.names, &key, bytes);
	if (at != MAP_NONE)
		return all.made.data[at];
	name = name_new(length ? key.text : "kernel", fields);
	/* There are no more names than that. */
	if (all.made.len < WAFFLE_NAMES_MAX && vec_push(&all.made, name) &&
	    !keymap_set(&all.names, &key, bytes, (uint32_t)all.made.len - 1))
		all.made.len--;
	return name;
}
