// SPDX-License-Identifier: Apache-2.0
/* Nested calls. Each function still does something after its call returns. */
#define CALLED __attribute__((noinline, noclone))

static volatile int sink;

CALLED int innermost(int number)
{
	sink = number;
	return sink + 1;
}

CALLED int middle(int number)
{
	int result = innermost(number);

	return result + sink;
}

CALLED int outermost(int number)
{
	int result = middle(number);

	return result * 3 + sink;
}

int main(void)
{
	int result = outermost(5);

	result += sink;
	return result == 12345;
}
