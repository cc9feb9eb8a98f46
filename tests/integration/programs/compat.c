// SPDX-License-Identifier: Apache-2.0
/*
 * A 32-bit program without any library: gcc -m32 -nostdlib -static. For each byte of its input it
 * calls compat_work() and prints that.
 */
static int call(int number, int a, const void *b, int c)
{
	int result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(a), "c"(b), "d"(c)
			 : "memory");
	return result;
}

__attribute__((noinline)) long compat_work(long number, const char *text)
{
	__asm__ volatile("" : : "r"(text) : "memory");
	return number + 1;
}

void _start(void);
void _start(void)
{
	char byte;

	call(4, 1, "ready\n", 6);
	while (call(3, 0, &byte, 1) == 1)
		call(4, 1, "did\n", compat_work(3, "a text"));
	call(1, 0, 0, 0);
}
