// SPDX-License-Identifier: Apache-2.0
/* Values of texts and numbers in an expression. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter/lexer_internal.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define FRACTION_MAX 32 /* digits after the point; 10^32 fits in 128 bits */
/* With at most this many, a number that overflows 128 bits has a value above 64 bits. */
#define FRACTION_SAFE 18

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull

static const struct {
	const char *name;
	enum unit_type type;
	uint64_t scale;
} units[] = {
	{"ns", UNIT_TIME, 1},
	{"us", UNIT_TIME, NS_PER_US},
	{"\xc2\xb5s", UNIT_TIME, NS_PER_US}, /* micro sign */
	{"\xce\xbcs", UNIT_TIME, NS_PER_US}, /* Greek mu */
	{"ms", UNIT_TIME, NS_PER_MS},
	{"s", UNIT_TIME, NS_PER_S},
	{"min", UNIT_TIME, 60 * NS_PER_S},
	{"h", UNIT_TIME, 3600 * NS_PER_S},
	{"B", UNIT_BYTES, 1},
	{"KiB", UNIT_BYTES, 1ull << 10},
	{"MiB", UNIT_BYTES, 1ull << 20},
	{"GiB", UNIT_BYTES, 1ull << 30},
	{"TiB", UNIT_BYTES, 1ull << 40},
	{"k", UNIT_COUNT, 1000},
	{"M", UNIT_COUNT, 1000000},
	{"G", UNIT_COUNT, 1000000000},
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Decodes an escape and moves *at to its end. -1: it is invalid. */
static int escape_read(const char *text, uint32_t *at, uint32_t end)
{
	static const char letters[] = "\"'\\nt", bytes[] = "\"'\\\n\t";
	const char *letter = *at + 1 < end ? strchr(letters, text[*at + 1]) : NULL;
	int high, low;

	if (letter && *letter) {
		*at += 2;
		return (unsigned char)bytes[letter - letters];
	}
	if (*at + 3 >= end || text[*at + 1] != 'x')
		return -1;
	high = hex_digit(text[*at + 2]);
	low = hex_digit(text[*at + 3]);
	/* A NUL is rejected, since recorded texts end at a NUL. */
	if (high < 0 || low < 0 || !(high | low))
		return -1;
	*at += 4;
	return high * 16 + low;
}

bool text_decode(const struct source *source, const struct token *token, char *bytes, uint32_t *len,
		 uint32_t *fault)
{
	uint32_t at = token->from + 1, end = token->to - 1;

	*len = 0;
	while (at < end) {
		int byte;

		if (source->text[at] != '\\') {
			bytes[(*len)++] = source->text[at++];
			continue;
		}
		*fault = at;
		byte = escape_read(source->text, &at, end);
		if (byte < 0)
			return false;
		bytes[(*len)++] = (char)byte;
	}
	return true;
}

uint32_t text_position(const struct source *source, const struct token *token, uint32_t byte)
{
	uint32_t at = token->from + 1;

	while (byte-- > 0 && at < token->to - 1) {
		if (source->text[at] != '\\')
			at++;
		else if (escape_read(source->text, &at, token->to - 1) < 0)
			break;
	}
	return at;
}

bool unit_known(const char *word, size_t len)
{
	for (size_t i = 0; i < COUNT_OF(units); i++) {
		if (strlen(units[i].name) == len && !memcmp(units[i].name, word, len))
			return true;
	}
	return false;
}

/* Computes *value = *value * base + digit. False: it overflows. */
static bool add_digit(__uint128_t *value, unsigned base, unsigned digit)
{
	if (*value > (~(__uint128_t)0 - digit) / base)
		return false;
	*value = *value * base + digit;
	return true;
}

static int too_long(const struct source *source, const struct token *token, struct error *err)
{
	return source_fault(source, token->from, token->to, err,
			    "too many digits behind the '.' of a number: expected at most %d",
			    FRACTION_SAFE);
}

static int too_large(const struct source *source, const struct token *token, struct error *err)
{
	return source_fault(source, token->from, token->to, err,
			    "'%s' is too large: expected a number from -9223372036854775808 to "
			    "18446744073709551615",
			    source_show(source->text + token->from, token->to - token->from).text);
}

static int hex_read(const struct source *source, const struct token *token, uint32_t at,
		    struct number *number, struct error *err)
{
	uint32_t begin = at;

	for (; at < token->to && hex_digit(source->text[at]) >= 0; at++)
		if (!add_digit(&number->digits, 16, (unsigned)hex_digit(source->text[at])))
			return too_large(source, token, err);
	if (at == begin || at < token->to)
		return source_fault(source, at, token->to, err,
				    "expected hexadecimal digits behind 0x, and no unit");
	return 0;
}

/* Reads the digits after the point. Zeros at the end are ignored. */
static int fraction_read(const struct source *source, const struct token *token, uint32_t *at,
			 struct number *number, struct error *err)
{
	uint32_t begin = *at, end;

	while (*at < token->to && source->text[*at] >= '0' && source->text[*at] <= '9')
		++*at;
	if (*at == begin)
		return source_fault(source, token->from, token->to, err,
				    "expected digits behind the '.' of a number");
	for (end = *at; end > begin && source->text[end - 1] == '0'; end--)
		;
	number->fraction = end - begin;
	for (uint32_t i = begin; i < end; i++) {
		if (end - begin > FRACTION_MAX ||
		    !add_digit(&number->digits, 10, (unsigned)(source->text[i] - '0')))
			return too_long(source, token, err);
	}
	return 0;
}

static int unit_read(const struct source *source, const struct token *token, uint32_t at,
		     struct number *number, struct error *err)
{
	const char *text = source->text + at;
	size_t len = token->to - at;

	number->scale = 1;
	if (!len)
		return 0;
	for (size_t i = 0; i < COUNT_OF(units); i++) {
		if (strlen(units[i].name) == len && !memcmp(units[i].name, text, len)) {
			number->unit = units[i].type;
			number->scale = units[i].scale;
			return 0;
		}
	}
	return source_fault(source, at, token->to, err,
			    "unknown unit '%s': expected ns us ms s min h, B KiB MiB GiB TiB, or "
			    "k M G (thousands)",
			    source_show(text, len).text);
}

int number_read(const struct source *source, const struct token *token, struct number *number,
		struct error *err)
{
	const char *text = source->text;
	uint32_t at = token->from;
	int result;

	*number = (struct number){.negative = text[at] == '-', .scale = 1};
	at += number->negative;
	if (token->to - at > 1 && text[at] == '0' && (text[at + 1] == 'x' || text[at + 1] == 'X'))
		return hex_read(source, token, at + 2, number, err);
	for (; at < token->to && text[at] >= '0' && text[at] <= '9'; at++)
		if (!add_digit(&number->digits, 10, (unsigned)(text[at] - '0')))
			return too_large(source, token, err);
	if (at < token->to && text[at] == '.') {
		at++;
		result = fraction_read(source, token, &at, number, err);
		if (result)
			return result;
	}
	return unit_read(source, token, at, number, err);
}

/* Returns the double nearest to digits / 10^fraction. */
static double nearest(__uint128_t digits, unsigned fraction)
{
	char text[64];
	size_t at = sizeof(text) - 8;

	snprintf(text + at, 8, "e-%u", fraction);
	do {
		text[--at] = (char)('0' + (unsigned)(digits % 10));
		digits /= 10;
	} while (digits);
	return strtod(text + at, NULL);
}

int number_value(const struct source *source, const struct token *token,
		 const struct number *number, struct filter_literal *literal, struct error *err)
{
	__uint128_t value = number->digits, power = 1;

	*literal = (struct filter_literal){.type = FILTER_LITERAL_INTEGER};
	for (unsigned i = 0; i < number->fraction; i++)
		power *= 10;
	if (value > ~(__uint128_t)0 / number->scale)
		return number->fraction > FRACTION_SAFE ? too_long(source, token, err)
							: too_large(source, token, err);
	value *= number->scale;
	if (value / power > (number->negative ? 1ull << 63 : UINT64_MAX))
		return too_large(source, token, err);
	if (value % power) {
		literal->type = FILTER_LITERAL_FLOAT;
		literal->f64 = nearest(value, number->fraction) * (number->negative ? -1 : 1);
		return 0;
	}
	literal->magnitude = (uint64_t)(value / power);
	literal->negative = number->negative && literal->magnitude;
	return 0;
}
