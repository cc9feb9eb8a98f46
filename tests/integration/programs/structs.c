// SPDX-License-Identifier: Apache-2.0
/* A struct and a type. programs/structs_other.c has different ones with the same names. */
#include <stdio.h>

#include "kept.h"

struct state {
	int before, x;
};
struct far;
typedef struct {
	long before[9];
	int v;
} pair_t;

int others(struct far **far);

KEPT int here(struct state *state)
{
	__asm__ volatile("");
	return state->x;
}

KEPT int here_pair(pair_t *pair)
{
	__asm__ volatile("");
	return pair->v;
}

/* Only the other file has the definition of this struct. */
KEPT int away(struct far *far)
{
	__asm__ volatile("" ::"r"(far));
	return 55;
}

int main(void)
{
	struct state state = {1, 11};
	pair_t pair = {.v = 77};
	struct far *far;
	int sum = others(&far);

	printf("%d\n", sum + here(&state) + here_pair(&pair) + away(far));
	return 0;
}
