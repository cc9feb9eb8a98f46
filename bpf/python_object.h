/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Objects of Python in the memory of a process: attributes, ints and short texts. The process is
 * not trusted, and may change all of it meanwhile. The includer defines
 * WAFFLE_PYTHON_READ(context, to, bytes, address), which reads memory; non-zero: unreadable.
 */
#ifndef WAFFLE_PYTHON_OBJECT_H
#define WAFFLE_PYTHON_OBJECT_H

#include "stack.h"

#define WAFFLE_PYTHON_VERSION(minor) (0x03000000u | (minor) << 16)

/* PyTypeObject: Include/cpython/object.h, the same in all versions */
#define WAFFLE_TYPE_BASIC_SIZE 32
#define WAFFLE_TYPE_DICT_OFFSET 288
#define WAFFLE_FLAG_INLINE_VALUES (1u << 2)
#define WAFFLE_FLAG_MANAGED_DICT (1u << 4)
/* PyDictObject: Include/cpython/dictobject.h */
#define WAFFLE_DICT_KEYS 32
#define WAFFLE_DICT_VALUES 40
/* PyDictKeysObject: before 3.11 Objects/dict-common.h, then Include/internal/pycore_dict.h */
#define WAFFLE_KEYS_OLD_SIZE 8
#define WAFFLE_KEYS_OLD_COUNT 32
#define WAFFLE_KEYS_OLD_INDICES 40
#define WAFFLE_KEYS_LOG2_INDEX_BYTES 9
#define WAFFLE_KEYS_KIND 10
#define WAFFLE_KEYS_COUNT 24
#define WAFFLE_KEYS_INDICES 32
#define WAFFLE_KEYS_LOG2_MAX 24
#define WAFFLE_KIND_GENERAL 0 /* the entries have the hash, too */
/* Words before an object: Include/internal/pycore_object.h */
#define WAFFLE_BEFORE_DICT 24
#define WAFFLE_BEFORE_VALUES 32 /* only in 3.11 */
/* Since 3.13 PyDictValues has a head, whose byte 3 says whether the values are in use. */
#define WAFFLE_VALUES_HEAD 8
#define WAFFLE_VALUES_VALID 3
/* PyLongObject: Include/cpython/longintrepr.h; the sign and the flags are the low bits */
#define WAFFLE_LONG_SIZE 16
#define WAFFLE_LONG_DIGIT 24
#define WAFFLE_LONG_TAG_SHIFT 3
#define WAFFLE_LONG_TAG_SIGN 3

/* 0: unreadable. */
static inline __u64 waffle_python_word(const void *context, __u64 address)
{
	__u64 word;

	return WAFFLE_PYTHON_READ(context, &word, sizeof(word), address) ? 0 : word;
}

/* An int of one digit that is not negative, as all tids are. 0: it is none. */
static inline __u32 waffle_python_number(const void *context, const struct waffle_python *python,
					 __u64 object)
{
	__u64 size = waffle_python_word(context, object + WAFFLE_LONG_SIZE);
	__u32 digit;

	if (python->version >= WAFFLE_PYTHON_VERSION(12)
		    ? size >> WAFFLE_LONG_TAG_SHIFT != 1 || size & WAFFLE_LONG_TAG_SIGN
		    : size != 1)
		return 0;
	return WAFFLE_PYTHON_READ(context, &digit, sizeof(digit), object + WAFFLE_LONG_DIGIT)
		       ? 0
		       : digit;
}

/* The texts of module threading that names are found by. */
enum waffle_python_text {
	WAFFLE_TEXT_OTHER,
	WAFFLE_TEXT_NAME,      /* "_name" */
	WAFFLE_TEXT_NATIVE_ID, /* "_native_id" */
	WAFFLE_TEXT_BOOTSTRAP, /* "_bootstrap" */
};

/* The first eight bytes of a text, as one number. */
static inline __u64 waffle_python_letters(const char *letters)
{
	__u64 word;

	__builtin_memcpy(&word, letters, sizeof(word));
	return word;
}

/* Which text a str is. Most attributes have other lengths, so their texts are not read. */
static inline enum waffle_python_text
waffle_python_text(const void *context, const struct waffle_python *python, __u64 object)
{
	__u64 length = waffle_python_word(context, object + WAFFLE_PYTHON_LENGTH);
	__u64 words[2] = {0, 0};
	__u32 state;

	if ((length != 5 && length != 10) ||
	    WAFFLE_PYTHON_READ(context, &state, sizeof(state), object + WAFFLE_PYTHON_STATE) ||
	    !WAFFLE_PYTHON_ASCII(state) ||
	    WAFFLE_PYTHON_READ(context, words, length, object + python->ascii_bytes))
		return WAFFLE_TEXT_OTHER;
	if (words[0] == waffle_python_letters("_name\0\0"))
		return WAFFLE_TEXT_NAME;
	if (words[0] == waffle_python_letters("_native_") && words[1] == ('i' | 'd' << 8))
		return WAFFLE_TEXT_NATIVE_ID;
	if (words[0] == waffle_python_letters("_bootstr") && words[1] == ('a' | 'p' << 8))
		return WAFFLE_TEXT_BOOTSTRAP;
	return WAFFLE_TEXT_OTHER;
}

/* Keys, and where their values are. */
struct waffle_python_table {
	__u64 entries; /* address */
	__u64 count;
	__u64 values; /* 0: in the entries */
	__u32 entry_bytes, key;
};

static inline int waffle_python_keys(const void *context, const struct waffle_python *python,
				     __u64 keys, struct waffle_python_table *table)
{
	__u8 bytes, kind;
	__u64 size;

	if (!keys)
		return 0;
	if (python->version < WAFFLE_PYTHON_VERSION(11)) {
		size = waffle_python_word(context, keys + WAFFLE_KEYS_OLD_SIZE);
		table->count = waffle_python_word(context, keys + WAFFLE_KEYS_OLD_COUNT);
		table->entry_bytes = 24;
		table->key = 8;
		table->entries = keys + WAFFLE_KEYS_OLD_INDICES + (size <= 0xff ? size : 2 * size);
		return size <= 0xffff;
	}
	if (WAFFLE_PYTHON_READ(context, &bytes, 1, keys + WAFFLE_KEYS_LOG2_INDEX_BYTES) ||
	    WAFFLE_PYTHON_READ(context, &kind, 1, keys + WAFFLE_KEYS_KIND) ||
	    bytes > WAFFLE_KEYS_LOG2_MAX)
		return 0;
	table->count = waffle_python_word(context, keys + WAFFLE_KEYS_COUNT);
	table->entry_bytes = kind == WAFFLE_KIND_GENERAL ? 24 : 16;
	table->key = kind == WAFFLE_KIND_GENERAL ? 8 : 0;
	table->entries = keys + WAFFLE_KEYS_INDICES + (1ull << bytes);
	return 1;
}

static inline int waffle_python_dict(const void *context, const struct waffle_python *python,
				     __u64 dict, struct waffle_python_table *table)
{
	if (!dict)
		return 0;
	table->values = waffle_python_word(context, dict + WAFFLE_DICT_VALUES);
	if (table->values && python->version >= WAFFLE_PYTHON_VERSION(13))
		table->values += WAFFLE_VALUES_HEAD;
	return waffle_python_keys(context, python,
				  waffle_python_word(context, dict + WAFFLE_DICT_KEYS), table);
}

/* 3.13 and later: the values may be behind the object. 0: they are elsewhere. */
static inline __u64 waffle_python_inline_values(const void *context, __u64 object, __u64 type)
{
	__u64 values = object + waffle_python_word(context, type + WAFFLE_TYPE_BASIC_SIZE);
	__u8 valid;

	return WAFFLE_PYTHON_READ(context, &valid, 1, values + WAFFLE_VALUES_VALID) || !valid
		       ? 0
		       : values + WAFFLE_VALUES_HEAD;
}

/* Finds the attributes: Objects/dictobject.c and Objects/object.c, _PyObject_GetDictPtr() and
 * _PyObject_ComputedDictPointer(). False: there are none. */
static inline int waffle_python_attributes(const void *context, const struct waffle_python *python,
					   __u64 object, struct waffle_python_table *table)
{
	__u64 type = waffle_python_word(context, object + WAFFLE_PYTHON_TYPE), offset, dict;
	__u32 flags, version = python->version;

	table->values = 0;
	if (!object || !type ||
	    WAFFLE_PYTHON_READ(context, &flags, sizeof(flags), type + WAFFLE_PYTHON_TYPE_FLAGS))
		return 0;
	if (version < WAFFLE_PYTHON_VERSION(11) || !(flags & WAFFLE_FLAG_MANAGED_DICT)) {
		offset = waffle_python_word(context, type + WAFFLE_TYPE_DICT_OFFSET);
		dict = offset && offset < 4096 ? waffle_python_word(context, object + offset) : 0;
		return waffle_python_dict(context, python, dict, table);
	}
	dict = waffle_python_word(context, object - WAFFLE_BEFORE_DICT);
	if (version < WAFFLE_PYTHON_VERSION(12) && !dict)
		table->values = waffle_python_word(context, object - WAFFLE_BEFORE_VALUES);
	else if (version >= WAFFLE_PYTHON_VERSION(12) && version < WAFFLE_PYTHON_VERSION(13) &&
		 dict & 1) /* a mark of values */
		table->values = dict + 1;
	else if (version >= WAFFLE_PYTHON_VERSION(13) && !dict && flags & WAFFLE_FLAG_INLINE_VALUES)
		table->values = waffle_python_inline_values(context, object, type);
	else
		return waffle_python_dict(context, python, dict, table);
	/* The values of an object without a dict have the keys of its type. */
	return table->values &&
	       waffle_python_keys(context, python,
				  waffle_python_word(context, type + python->type_cached_keys),
				  table);
}

/* The addresses of the key of an entry, and of its value. */
static inline __u64 waffle_python_key_at(const struct waffle_python_table *table, __u64 index)
{
	return table->entries + index * table->entry_bytes + table->key;
}

static inline __u64 waffle_python_value_at(const struct waffle_python_table *table, __u64 index)
{
	return table->values ? table->values + 8 * index : waffle_python_key_at(table, index) + 8;
}

#endif
