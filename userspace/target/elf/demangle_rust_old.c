// SPDX-License-Identifier: Apache-2.0
#include "target/elf/demangle_rust_internal.h"

#include <string.h>

#define HASH_DIGITS 16
#define HEX "0123456789abcdef"

/* "::h" and 16 digits, at the end of each such name. */
static bool ends_in_hash(const char *text, size_t len)
{
	const char *hash;

	if (len <= HASH_DIGITS + 3)
		return false;
	hash = text + len - HASH_DIGITS;
	return !strncmp(hash - 3, "::h", 3) && strspn(hash, HEX) >= HASH_DIGITS;
}

/* The printable character of ASCII whose code two hexadecimal digits say; 0: they say none. */
static char character_of(const char *code)
{
	static const char digits[] = HEX;
	const char *high = code[0] ? strchr(digits, code[0]) : NULL;
	const char *low = high && code[1] ? strchr(digits, code[1]) : NULL;
	long number = low ? (high - digits) * 16 + (low - digits) : 0;

	return number >= ' ' && number < 0x7f ? (char)number : 0;
}

/* Decodes "$LT$", "$u7b$" or "..", of which *len bytes are read. NULL: it is none of these. */
static const char *decode(const char *text, size_t *len, char character[2])
{
	static const char *const codes[][2] = {
		{"$SP$", "@"}, {"$BP$", "*"}, {"$RF$", "&"}, {"$LT$", "<"}, {"$GT$", ">"},
		{"$LP$", "("}, {"$RP$", ")"}, {"$C$", ","},  {"..", "::"},
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		*len = strlen(codes[i][0]);
		if (!strncmp(text, codes[i][0], *len))
			return codes[i][1];
	}
	*len = 5;
	character[0] = strncmp(text, "$u", 2) ? 0 : character_of(text + 2);
	character[1] = '\0';
	return character[0] && text[4] == '$' ? character : NULL;
}

/* Each code is at least as long as what it stands for. */
bool demangle_rust_old(char *text)
{
	const char *clone = strstr(text, " [clone ");
	size_t len = clone ? (size_t)(clone - text) : strlen(text), out = 0;

	if (!ends_in_hash(text, len))
		return false;
	text[len - HASH_DIGITS - 3] = '\0';
	for (size_t at = 0; text[at];) {
		size_t read;
		char character[2];
		const char *stands_for = decode(text + at, &read, character);

		if (stands_for) {
			memcpy(text + out, stands_for, strlen(stands_for));
			out += strlen(stands_for);
			at += read;
		} else if (text[at] == '_' && text[at + 1] == '$' &&
			   (!out || text[out - 1] == ':')) {
			at++; /* an identifier cannot begin with '$' */
		} else {
			text[out++] = text[at++];
		}
	}
	text[out] = '\0';
	return true;
}
