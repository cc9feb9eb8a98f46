// SPDX-License-Identifier: Apache-2.0
/* Functions that end in different ways. Prints what each returns, which no probe may change. */
#include <sched.h>
#include <stdio.h>

/* The compiler neither copies nor inlines it, and assumes nothing about it where it is called. */
#define WHOLE __attribute__((noipa))

int ends_tail(int n), ends_twice(int n), ends_leaf(int n, int by), ends_used(int n, int by);
int ends_chosen(int (*how)(int), int n), ends_elsewhere(int n), ends_outer(int n);

/* It has no symbol when the program is stripped. */
static WHOLE int behind(int n)
{
	if (n < 0)
		return -n;
	return 3 * n + 1;
}

static WHOLE int before_behind(int n)
{
	return behind(n + 1);
}

WHOLE int ends_tail(int n)
{
	return behind(n);
}

WHOLE int ends_twice(int n)
{
	return n % 2 ? before_behind(n) : n;
}

/* A jump through a table, with an empty stack frame. */
WHOLE int ends_leaf(int n, int by)
{
	switch (n) {
	case 0:
		return by * 3;
	case 1:
		return by + 77;
	case 2:
		return by ^ 9;
	case 3:
		return by / 7;
	case 4:
		return by % 11;
	case 5:
		return by << 3;
	case 6:
		return ~by * 5;
	default:
		return by;
	}
}

/* The same with a stack frame. */
WHOLE int ends_used(int n, int by)
{
	int sum = behind(by);

	switch (n) {
	case 0:
		return sum + behind(n) * 3;
	case 1:
		sum += before_behind(by);
		break;
	case 2:
		return sum ^ behind(sum);
	case 3:
		sum -= 9;
		break;
	case 4:
		return behind(sum);
	case 5:
		sum = behind(sum) + behind(-sum);
		break;
	default:
		break;
	}
	return sum + behind(by);
}

/* Its end is unknown. */
WHOLE int ends_chosen(int (*how)(int), int n)
{
	return how(n);
}

/* In another file. */
WHOLE int ends_elsewhere(int n)
{
	return sched_get_priority_max(n);
}

WHOLE int ends_outer(int n)
{
	return ends_elsewhere(n) + ends_tail(n) + ends_leaf(n, 5) + ends_chosen(ends_twice, n);
}

int main(void)
{
	for (int n = 0; n < 8; n++) {
		printf("outer n=%d ret=%d\n", n, ends_outer(n));
		printf("leaf n=%d ret=%d\n", n, ends_leaf(n, 100));
		printf("used n=%d ret=%d\n", n, ends_used(n, 100));
		printf("tail n=%d ret=%d\n", -n, ends_tail(-n));
	}
	return 0;
}
