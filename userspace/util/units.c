// SPDX-License-Identifier: Apache-2.0
#include "util/units.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct unit {
	const char *name;
	uint64_t size;
};

/* Largest first, since the parts of a duration must come in this order. */
static const struct unit duration_units[] = {
	{"d", 86400ull * 1000000000},
	{"h", 3600ull * 1000000000},
	{"m", 60ull * 1000000000},
	{"s", 1000000000},
	{"ms", 1000000},
	{"us", 1000},
	{"µs", 1000},
	{"ns", 1},
};

static const struct unit byte_units[] = {
	{"", 1},
	{"B", 1},
	{"k", 1ull << 10},
	{"K", 1ull << 10},
	{"kB", 1ull << 10},
	{"KB", 1ull << 10},
	{"KiB", 1ull << 10},
	{"M", 1ull << 20},
	{"MB", 1ull << 20},
	{"MiB", 1ull << 20},
	{"G", 1ull << 30},
	{"GB", 1ull << 30},
	{"GiB", 1ull << 30},
	{"T", 1ull << 40},
	{"TB", 1ull << 40},
	{"TiB", 1ull << 40},
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *parse_digits(const char *text, uint64_t *number)
{
	uint64_t sum = 0;

	if (!is_digit(*text))
		return NULL;
	for (; is_digit(*text); text++)
		if (__builtin_mul_overflow(sum, 10, &sum) ||
		    __builtin_add_overflow(sum, (uint64_t)(*text - '0'), &sum))
			return NULL;
	*number = sum;
	return text;
}

/* A decimal number with an optional fraction, in billionths. Further digits are ignored. */
struct decimal {
	uint64_t whole;
	uint64_t billionths;
};

static const char *parse_decimal(const char *text, struct decimal *decimal)
{
	uint64_t weight = 100000000;

	decimal->billionths = 0;
	text = parse_digits(text, &decimal->whole);
	if (!text || *text != '.')
		return text;
	if (!is_digit(*++text))
		return NULL;
	for (; is_digit(*text); text++, weight /= 10)
		decimal->billionths += weight * (uint64_t)(*text - '0');
	return text;
}

static bool decimal_scale(const struct decimal *decimal, uint64_t unit, uint64_t *product)
{
	uint64_t whole;
	unsigned __int128 fraction = (unsigned __int128)decimal->billionths * unit / 1000000000;

	return !__builtin_mul_overflow(decimal->whole, unit, &whole) &&
	       !__builtin_add_overflow(whole, (uint64_t)fraction, product);
}

/* Length in bytes of a unit: up to the next digit. */
static size_t unit_length(const char *text)
{
	return strcspn(text, "0123456789.");
}

bool units_parse_duration(const char *text, uint64_t *ns)
{
	uint64_t sum = 0, limit = UINT64_MAX;

	if (!strcmp(text, "0")) {
		*ns = 0;
		return true;
	}
	do {
		struct decimal decimal;
		uint64_t part;
		size_t len, unit = 0;

		text = parse_decimal(text, &decimal);
		if (!text)
			return false;
		len = unit_length(text);
		while (unit < COUNT_OF(duration_units) &&
		       (strlen(duration_units[unit].name) != len ||
			memcmp(duration_units[unit].name, text, len) != 0))
			unit++;
		if (unit == COUNT_OF(duration_units) || duration_units[unit].size >= limit ||
		    !decimal_scale(&decimal, duration_units[unit].size, &part) ||
		    __builtin_add_overflow(sum, part, &sum))
			return false;
		limit = duration_units[unit].size;
		text += len;
	} while (*text);
	*ns = sum;
	return true;
}

bool units_parse_bytes(const char *text, uint64_t *bytes)
{
	struct decimal decimal;

	text = parse_decimal(text, &decimal);
	if (!text)
		return false;
	for (size_t i = 0; i < COUNT_OF(byte_units); i++)
		if (!strcmp(byte_units[i].name, text))
			return decimal_scale(&decimal, byte_units[i].size, bytes);
	return false;
}

bool units_parse_number(const char *text, uint64_t *number)
{
	uint64_t parsed;

	text = parse_digits(text, &parsed);
	if (!text || *text)
		return false;
	*number = parsed;
	return true;
}

/* Formats three significant digits: 1.23, 12.3, 123. Rounding can reach the next unit: 999.7 gives
 * "1000". */
static char *format_scaled(char *text, uint64_t value, uint64_t unit, const char *name)
{
	double scaled = (double)value / (double)unit;
	int decimals = scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0;

	snprintf(text, UNITS_TEXT, "%.*f %s", unit == 1 ? 0 : decimals, scaled, name);
	return text;
}

char *units_format_duration(char text[UNITS_TEXT], uint64_t ns)
{
	static const struct unit units[] = {{"s", 1000000000}, {"ms", 1000000}, {"us", 1000}};
	uint64_t seconds = ns / 1000000000;

	if (seconds >= 3600)
		snprintf(text, UNITS_TEXT, "%" PRIu64 " h %02u min", seconds / 3600,
			 (unsigned)(seconds / 60 % 60));
	else if (seconds >= 100)
		snprintf(text, UNITS_TEXT, "%u min %02u s", (unsigned)(seconds / 60),
			 (unsigned)(seconds % 60));
	if (seconds >= 100)
		return text;
	/* A value that would be rounded to 1000 of a unit gets the next larger unit. */
	for (size_t i = 0; i < COUNT_OF(units); i++)
		if (ns >= units[i].size ||
		    (units[i].size > 1000 && ns * 2000 >= units[i].size * 1999))
			return format_scaled(text, ns, units[i].size, units[i].name);
	return format_scaled(text, ns, 1, "ns");
}

char *units_format_bytes(char text[UNITS_TEXT], uint64_t bytes)
{
	static const struct unit units[] = {
		{"TiB", 1ull << 40}, {"GiB", 1ull << 30}, {"MiB", 1ull << 20}, {"KiB", 1ull << 10}};

	for (size_t i = 0; i < COUNT_OF(units); i++)
		if (bytes >= units[i].size)
			return format_scaled(text, bytes, units[i].size, units[i].name);
	return format_scaled(text, bytes, 1, "B");
}

char *units_format_count(char text[UNITS_TEXT], uint64_t count)
{
	char digits[UNITS_TEXT];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	char *at = text;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*at++ = ',';
		*at++ = digits[i];
	}
	*at = '\0';
	return text;
}

const char *units_plural(uint64_t count, const char *one, const char *many)
{
	return count == 1 ? one : many;
}

char *units_format_more(char text[UNITS_TEXT], uint64_t others)
{
	text[0] = '\0';
	if (others)
		snprintf(text, UNITS_TEXT, " and %" PRIu64 " more", others);
	return text;
}

char *units_format_share(char text[UNITS_TEXT], uint64_t part, uint64_t whole)
{
	if (whole)
		snprintf(text, UNITS_TEXT, "%.1f %%", 100.0 * (double)part / (double)whole);
	else
		snprintf(text, UNITS_TEXT, "-");
	return text;
}
