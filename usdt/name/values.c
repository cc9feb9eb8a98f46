// SPDX-License-Identifier: Apache-2.0
#include "usdt/name/values.h"

#include <math.h>
#include <string.h>

static bool has_text(const waffle_value_t *value)
{
	return value->type == WAFFLE_KEY_STR && value->text;
}

/* Measures a string, and returns the words that it takes behind its first. */
static size_t measure_string(struct values_layout *layout, unsigned i, const waffle_value_t *value)
{
	bool nul = value->length == WAFFLE_LENGTH_NUL;
	size_t length = nul ? strnlen(value->text, WAFFLE_STR_MAX + 1) : value->length;

	layout->cut[i] = length > WAFFLE_STR_MAX;
	layout->string[i] = (uint16_t)(layout->cut[i] ? WAFFLE_STR_MAX : length);
	return (layout->string[i] + 7u) / 8;
}

struct values_layout values_measure(const struct site_info *site, const waffle_value_t *values,
				    unsigned count)
{
	struct values_layout layout = {.count = count < site->key_count ? count : site->key_count};
	size_t words = 0;

	for (unsigned i = 0; i < layout.count; i++) {
		char type = site->keys[i].type;

		words += type == WAFFLE_KEY_NUMBER ? 2 : 1;
		if (type == WAFFLE_KEY_STR && has_text(&values[i]))
			words += measure_string(&layout, i, &values[i]);
	}
	layout.bytes = words * 8;
	return layout;
}

/* Copies a string and returns the words used. */
static size_t put_string(unsigned long long *to, const waffle_value_t *value, size_t length,
			 bool cut)
{
	if (!has_text(value)) {
		/* Both marks: the value is unknown. */
		to[0] = value->type == WAFFLE_KEY_STR ? WAFFLE_STR_NULL
						      : WAFFLE_STR_NULL | WAFFLE_STR_CUT;
		return 1;
	}
	to[0] = length | (cut ? WAFFLE_STR_CUT : 0);
	if (length % 8)
		to[1 + length / 8] = 0; /* the padding */
	memcpy(to + 1, value->text, length);
	return 1 + (length + 7) / 8;
}

static bool is_number(char type)
{
	return type == WAFFLE_KEY_I64 || type == WAFFLE_KEY_U64 || type == WAFFLE_KEY_F64 ||
	       type == WAFFLE_KEY_BOOL;
}

static double real_of(const waffle_value_t *value)
{
	return value->type == WAFFLE_KEY_F64   ? value->f64
	       : value->type == WAFFLE_KEY_I64 ? (double)value->i64
					       : (double)value->u64;
}

/* The nearest number that the type has. */
static unsigned long long integer_of(const waffle_value_t *value, char type)
{
	if (value->type == WAFFLE_KEY_I64 && type == WAFFLE_KEY_U64)
		return value->i64 > 0 ? value->u64 : 0;
	if (value->type != WAFFLE_KEY_F64 && type == WAFFLE_KEY_I64 &&
	    value->type != WAFFLE_KEY_I64)
		return value->u64 <= INT64_MAX ? value->u64 : INT64_MAX;
	if (value->type != WAFFLE_KEY_F64)
		return value->u64;
	if (isnan(value->f64))
		return 0;
	if (type == WAFFLE_KEY_I64)
		return value->f64 >= 0x1p63   ? INT64_MAX
		       : value->f64 < -0x1p63 ? (unsigned long long)INT64_MIN
					      : (unsigned long long)(long long)value->f64;
	return value->f64 >= 0x1p64 ? UINT64_MAX
	       : value->f64 <= 0    ? 0
				    : (unsigned long long)value->f64;
}

/* The word of a key that is not a string. A value that does not fit its type is 0. */
static unsigned long long word_of(const waffle_value_t *value, char type)
{
	double real;
	unsigned long long word;

	if (type == value->type)
		return value->u64;
	if (!is_number(type) || !is_number(value->type))
		return 0;
	if (type == WAFFLE_KEY_BOOL)
		return value->type == WAFFLE_KEY_F64 ? value->f64 != 0 : value->u64 != 0;
	if (type != WAFFLE_KEY_F64)
		return integer_of(value, type);
	real = real_of(value);
	memcpy(&word, &real, sizeof(word));
	return word;
}

static void put_number(unsigned long long *to, const waffle_value_t *value)
{
	to[0] = value->type == WAFFLE_KEY_F64   ? WAFFLE_NUMBER_F64
		: value->type == WAFFLE_KEY_I64 ? WAFFLE_NUMBER_I64
		: is_number(value->type)        ? WAFFLE_NUMBER_U64
						: WAFFLE_NUMBER_NONE;
	to[1] = is_number(value->type) ? value->u64 : 0;
}

void values_put(unsigned long long *to, const struct site_info *site, const waffle_value_t *values,
		const struct values_layout *layout)
{
	for (unsigned i = 0; i < layout->count; i++) {
		char type = site->keys[i].type;

		if (type == WAFFLE_KEY_STR) {
			to += put_string(to, &values[i], layout->string[i], layout->cut[i]);
		} else if (type == WAFFLE_KEY_NUMBER) {
			put_number(to, &values[i]);
			to += 2;
		} else {
			*to++ = word_of(&values[i], type);
		}
	}
}
