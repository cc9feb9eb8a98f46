// SPDX-License-Identifier: Apache-2.0
#include "util/glob.h"

#include <stdlib.h>
#include <string.h>

/* Position in a pattern. */
struct glob_scan {
	const char *pattern;
	size_t len, at;
};

static void set_add(uint64_t set[4], unsigned byte)
{
	set[byte / 64] |= 1ull << (byte % 64);
}

/* Reads the next byte of a set, with '\' removed. False: the pattern ends. */
static bool scan_member(struct glob_scan *scan, unsigned char *byte)
{
	if (scan->at < scan->len && scan->pattern[scan->at] == '\\')
		scan->at++;
	if (scan->at >= scan->len)
		return false;
	*byte = (unsigned char)scan->pattern[scan->at++];
	return true;
}

/* Whether a '-' here makes a range as in "a-z". Before the closing ']' it does not. */
static bool scan_is_range(const struct glob_scan *scan)
{
	return scan->at + 1 < scan->len && scan->pattern[scan->at] == '-' &&
	       scan->pattern[scan->at + 1] != ']';
}

/* Reads a set, from after its '[' to after its ']'. A ']' at the beginning is a member. */
static bool scan_set(struct glob_scan *scan, struct glob_token *token)
{
	size_t open = scan->at - 1, first, dash;
	bool inverted = scan->at < scan->len && scan->pattern[scan->at] == '!';
	unsigned char low, high;

	scan->at += inverted;
	first = scan->at;
	while (scan->at < scan->len && (scan->pattern[scan->at] != ']' || scan->at == first)) {
		if (!scan_member(scan, &low))
			break;
		high = low;
		dash = scan->at;
		if (scan_is_range(scan)) {
			scan->at++;
			if (!scan_member(scan, &high))
				break;
		}
		if (high < low) {
			scan->at = dash;
			return false;
		}
		for (unsigned byte = low; byte <= high; byte++)
			set_add(token->set, byte);
	}
	if (scan->at >= scan->len) {
		scan->at = open;
		return false;
	}
	scan->at++;
	for (unsigned i = 0; inverted && i < 4; i++)
		token->set[i] = ~token->set[i];
	token->type = GLOB_SET;
	return true;
}

/* Reads a token. False: there is an error at scan->at. */
static bool scan_token(struct glob_scan *scan, struct glob_token *token)
{
	unsigned char byte = (unsigned char)scan->pattern[scan->at++];

	*token = (struct glob_token){.type = GLOB_BYTE, .byte = byte};
	switch (byte) {
	case '*':
		token->type = GLOB_STAR;
		break;
	case '?':
		token->type = GLOB_ANY_ONE;
		break;
	case '[':
		return scan_set(scan, token);
	case '\\':
		if (scan->at == scan->len) {
			scan->at--;
			return false;
		}
		token->byte = (unsigned char)scan->pattern[scan->at++];
		break;
	default:
		break;
	}
	return true;
}

struct glob *glob_new(const char *pattern, size_t len, size_t *at)
{
	struct glob_scan scan = {pattern, len, 0};
	struct glob *glob = malloc(sizeof(*glob) + len * sizeof(glob->tokens[0]));
	struct glob_token token;

	*at = len;
	if (!glob)
		return NULL;
	glob->len = 0;
	while (scan.at < len) {
		if (!scan_token(&scan, &token)) {
			*at = scan.at;
			free(glob);
			return NULL;
		}
		if (token.type != GLOB_STAR || !glob->len ||
		    glob->tokens[glob->len - 1].type != GLOB_STAR)
			glob->tokens[glob->len++] = token;
	}
	return glob;
}

void glob_free(struct glob *glob)
{
	free(glob);
}

bool glob_token_takes(const struct glob_token *token, unsigned char byte)
{
	switch (token->type) {
	case GLOB_BYTE:
		return token->byte == byte;
	case GLOB_ANY_ONE:
		return true;
	case GLOB_SET:
		return token->set[byte / 64] >> (byte % 64) & 1;
	case GLOB_STAR:
		break;
	}
	return false;
}

/*
 * The tokens after a star are tried at each position in turn. On a mismatch only the last star
 * needs to take more bytes. The stars before it took as few as possible, which leaves most of the
 * text for the rest.
 */
bool glob_matches(const struct glob *glob, const char *text, size_t len)
{
	size_t token = 0, at = 0, star = SIZE_MAX, star_at = 0;

	while (at < len) {
		if (token < glob->len && glob->tokens[token].type == GLOB_STAR) {
			star = token++;
			star_at = at;
		} else if (token < glob->len &&
			   glob_token_takes(&glob->tokens[token], (unsigned char)text[at])) {
			token++;
			at++;
		} else if (star != SIZE_MAX) {
			token = star + 1;
			at = ++star_at;
		} else {
			return false;
		}
	}
	while (token < glob->len && glob->tokens[token].type == GLOB_STAR)
		token++;
	return token == glob->len;
}
