/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps PROGRAM: counts the instructions of each loop of PROGRAM (dormant.c) by single-stepping it,
 * and prints "<loop> <instructions a pass>".
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* Runs the child to its next breakpoint; false at its end. */
static int run_on(pid_t child)
{
	int status;

	if (ptrace(PTRACE_CONT, child, NULL, NULL))
		fail("PTRACE_CONT");
	if (waitpid(child, &status, 0) != child)
		fail("waitpid");
	if (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP)
		return 1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	fprintf(stderr, "steps: the program ended badly (status %#x)\n", (unsigned)status);
	exit(1);
}

/* Steps to the next breakpoint: an int3 is one step whose code byte lies just before it. */
static long count_steps(pid_t child)
{
	int status;
	long count = 0;

	for (;;) {
		siginfo_t info;

		if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL))
			fail("PTRACE_SINGLESTEP");
		if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
			fail("waitpid");
		if (ptrace(PTRACE_GETSIGINFO, child, NULL, &info))
			fail("PTRACE_GETSIGINFO");
		if (info.si_code ==
		    SI_KERNEL) /* a breakpoint; a step is TRAP_TRACE or TRAP_HWBKPT */
			return count;
		count++;
	}
}

int main(int argc, char **argv)
{
	int out[2], status;
	char name[64];
	int passes;
	FILE *names;
	pid_t child;

	if (argc != 2 || pipe(out))
		fail("steps PROGRAM");
	child = fork();
	if (child < 0)
		fail("fork");
	if (!child) {
		dup2(out[1], STDOUT_FILENO);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl(argv[1], argv[1], (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	names = fdopen(out[0], "r");
	if (!names || waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
		fail("exec");
	while (run_on(child)) {
		long count = count_steps(child);

		if (fscanf(names, "%63s %d", name, &passes) != 2 || passes <= 0)
			fail("what is run");
		printf("%s %.3f\n", name, (double)count / passes);
	}
	return 0;
}
