// SPDX-License-Identifier: Apache-2.0
/* See programs/structs.c. */
#include "kept.h"

struct state {
	char before[64];
	int x;
};
typedef struct {
	int before, v;
} pair_t;
struct far {
	long before;
	int x;
};

int others(struct far **far);

KEPT int there(struct state *state)
{
	__asm__ volatile("");
	return state->x;
}

KEPT int there_pair(pair_t *pair)
{
	__asm__ volatile("");
	return pair->v;
}

int others(struct far **far)
{
	static struct far one = {0, 55};
	struct state state = {"", 22};
	pair_t pair = {5, 6};

	*far = &one;
	return there(&state) + there_pair(&pair);
}
