// SPDX-License-Identifier: Apache-2.0
/* A set-user-ID program. It reads a secret of its owner into section .secret, whose address is
 * known, passes it to a function, also in a child, and stays until its input ends. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

char secret[4096] __attribute__((section(".secret"))) = "none";

__attribute__((noinline)) void give(const char *text)
{
	__asm__ volatile("" : : "r"(text) : "memory");
}

int main(int argc, char **argv)
{
	int fd = open(argv[argc - 1], O_RDONLY);

	if (fd < 0 || read(fd, secret, sizeof(secret) - 1) <= 0)
		return 1;
	usleep(30000);
	give(secret);
	if (!fork()) {
		give(secret);
		_exit(0);
	}
	wait(NULL);
	printf("has it as %d\n", geteuid());
	fflush(stdout);
	return read(0, &fd, 1) < 0;
}
