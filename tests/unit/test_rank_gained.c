// SPDX-License-Identifier: Apache-2.0
/* Ranks of programs that gained rights. It is a program of its own, since it runs a copy of itself,
 * which an emulator cannot do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/process/rank.h"

/* A copy of this program that is set-user-ID, run by another user, and becomes root as a whole.
 * Then neither the owner of its files nor its user ids show that it gained rights. */
static pid_t gainer_start(const char *program, int *ready)
{
	char *arguments[] = {(char *)program, "gains", NULL};
	char *environment[] = {"PMI_RANK=7", "PMI_SIZE=9", NULL};
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		dup2(ends[1], 1);
		if (!setgid(65534) && !setuid(65534))
			execve(program, arguments, environment);
		_exit(1);
	}
	assert_true(pid > 0);
	close(ends[1]);
	*ready = ends[0];
	return pid;
}

static void test_rank_of_a_program_that_gained_rights_is_private(void **state)
{
	char folder[] = "/tmp/waffle-rank-XXXXXX", program[64], command[256];
	struct process_rank rank = {0};
	char said[8] = "";
	bool known;
	int ready;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	assert_non_null(mkdtemp(folder));
	snprintf(program, sizeof(program), "%s/gains", folder);
	snprintf(command, sizeof(command), "chmod 755 %s && cp /proc/%d/exe %s && chmod 4755 %s",
		 folder, getpid(), program, program);
	assert_int_equal(system(command), 0);
	pid = gainer_start(program, &ready);
	assert_int_equal(read(ready, said, sizeof(said)), 5);
	close(ready);
	known = process_rank_read(&rank, pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(program);
	rmdir(folder);
	/* A file system that ignores the set-user-ID bit tests nothing. */
	if (!strcmp(said, "same\n"))
		skip();
	assert_string_equal(said, "root\n");
	assert_false(known);
	assert_int_equal(rank.rank, PROCESS_RANK_NONE);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "gains")) {
		printf("%s", setuid(0) || getuid() ? "same\n" : "root\n");
		fflush(stdout);
		pause();
		return 0;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rank_of_a_program_that_gained_rights_is_private),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
