// SPDX-License-Identifier: Apache-2.0
#include "util/utf8.h"

#include <stdint.h>
#include <string.h>

/* Valid lead bytes and the bytes that may follow them, by ranges of the lead byte (Unicode 15,
 * table 3-7). */
struct lead {
	uint8_t first, last;            /* range of the lead byte */
	uint8_t second_min, second_max; /* range of the second byte; later bytes are 80..BF */
	uint8_t bytes;
};

static const struct lead leads[] = {
	{0x00, 0x7f, 0x00, 0x00, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
	{0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
	{0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

/*
 * Checks the sequence at `s`. Returns its length if it is well-formed; else 0, with the number of
 * bytes to replace in *bad.
 */
static size_t sequence_length(const unsigned char *s, size_t len, size_t *bad)
{
	*bad = 1;
	for (size_t i = 0; i < sizeof(leads) / sizeof(leads[0]); i++) {
		const struct lead *lead = &leads[i];

		if (s[0] < lead->first || s[0] > lead->last)
			continue;
		for (size_t n = 1; n < lead->bytes; n++) {
			uint8_t min = n == 1 ? lead->second_min : 0x80;
			uint8_t max = n == 1 ? lead->second_max : 0xbf;

			if (n >= len || s[n] < min || s[n] > max) {
				*bad = n;
				return 0;
			}
		}
		return lead->bytes;
	}
	return 0;
}

static size_t ascii_length(const char *text, size_t len)
{
	size_t at = 0;

	for (uint64_t word; at + sizeof(word) <= len; at += sizeof(word)) {
		memcpy(&word, text + at, sizeof(word));
		if (word & 0x8080808080808080ull)
			break;
	}
	while (at < len && !(text[at] & 0x80))
		at++;
	return at;
}

size_t utf8_valid(const char *text, size_t len)
{
	size_t at = ascii_length(text, len), bad;

	while (at < len) {
		size_t n = sequence_length((const unsigned char *)text + at, len - at, &bad);

		if (n == 0)
			break;
		at += n;
		at += ascii_length(text + at, len - at);
	}
	return at;
}

size_t utf8_cut(const char *text, size_t max)
{
	size_t len = strnlen(text, max + 1);

	if (len <= max)
		return len;
	while (max && ((unsigned char)text[max] & 0xc0) == 0x80)
		max--;
	return max;
}

size_t utf8_clean(const char *text, size_t len, char *out)
{
	size_t written = 0;

	for (size_t at = 0; at < len;) {
		size_t good = utf8_valid(text + at, len - at), bad = 0;

		memcpy(out + written, text + at, good);
		written += good;
		at += good;
		if (at == len)
			break;
		sequence_length((const unsigned char *)text + at, len - at, &bad);
		memcpy(out + written, "\xef\xbf\xbd", 3);
		written += 3;
		at += bad;
	}
	return written;
}
