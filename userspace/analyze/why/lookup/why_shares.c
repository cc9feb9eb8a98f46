// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_shares.h"

#include <stdlib.h>

#include "util/memory.h"

static int by_thing(const void *left, const void *right)
{
	const struct why_share *a = left, *b = right;

	if (a->of != b->of)
		return a->of < b->of ? -1 : 1;
	return a->wait < b->wait ? -1 : a->wait > b->wait;
}

static void join(why_shares *shares)
{
	size_t kept = 0;

	if (!shares->len)
		return;
	qsort(shares->data, shares->len, sizeof(*shares->data), by_thing);
	for (size_t i = 1; i < shares->len; i++) {
		if (shares->data[i].of == shares->data[kept].of)
			shares->data[kept].ns += shares->data[i].ns;
		else
			shares->data[++kept] = shares->data[i];
	}
	shares->len = kept + 1;
}

/* Joining only full lists of this length costs little for each addition. */
#define JOIN_MIN 64

void why_shares_add(why_shares *shares, const struct why_share *more)
{
	if (shares->len && shares->data[shares->len - 1].of == more->of) {
		shares->data[shares->len - 1].ns += more->ns;
		return;
	}
	if (shares->len == shares->cap && shares->len >= JOIN_MIN) {
		join(shares);
		/* If most are different, the list has to grow. */
		vec_need(shares, shares->len > shares->cap / 2 ? shares->cap : 1);
	}
	vec_add(shares, *more);
}

void why_shares_add_all(why_shares *shares, const why_shares *more)
{
	for (size_t i = 0; i < more->len; i++)
		why_shares_add(shares, &more->data[i]);
}

struct why_share why_shares_most(why_shares *shares)
{
	struct why_share most = {.ns = 0};

	join(shares);
	for (size_t i = 0; i < shares->len; i++)
		if (shares->data[i].ns > most.ns)
			most = shares->data[i];
	return most;
}
