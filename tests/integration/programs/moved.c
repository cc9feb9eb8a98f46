// SPDX-License-Identifier: Apache-2.0
/* Replaces a page of its code by a copy, as programs do that move code to huge pages. Then, for
 * each line that it reads, it calls a function there and another one. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

__attribute__((noinline, section(".moved"), aligned(PAGE))) int moved(int n)
{
	__asm__ volatile("");
	return n + 1;
}
/* Keeps everything else out of the page. */
__attribute__((used, section(".moved"), aligned(PAGE))) static void behind(void)
{
}

__attribute__((noinline)) int stays(int n)
{
	__asm__ volatile("");
	return n + 2;
}

int main(void)
{
	void *copy = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int sum = 0;

	if (copy == MAP_FAILED)
		return 1;
	memcpy(copy, (void *)moved, PAGE);
	if (mprotect(copy, PAGE, PROT_READ | PROT_EXEC) ||
	    mremap(copy, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)moved) == MAP_FAILED)
		return 1;
	printf("ready pid=%d\n", (int)getpid());
	fflush(stdout);
	while (getchar() != EOF) {
		for (int i = 0; i < 10; i++)
			sum += moved(i) + stays(i);
		printf("did sum=%d\n", sum);
		fflush(stdout);
	}
	return 0;
}
