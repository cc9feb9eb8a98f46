// SPDX-License-Identifier: Apache-2.0
/* Ranks from environments, and names of files made from them. */
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

#include "target/process/output_name.h"
#include "target/process/rank.h"

struct rank_case {
	const char *environment; /* with | for NUL, one after each string */
	uint32_t rank, world_size;
	const char *job;
};

static const struct rank_case cases[] = {
	{"OMPI_COMM_WORLD_RANK=3|OMPI_COMM_WORLD_SIZE=8|PMIX_NAMESPACE=prte-1@1|", 3, 8,
	 "openmpi:prte-1@1"},
	{"PMI_RANK=0|PMI_SIZE=2|", 0, 2, ""},
	{"SLURM_PROCID=5|SLURM_NTASKS=16|SLURM_JOB_ID=4711|", 5, 16, "slurm:4711"},
	{"RANK=1|WORLD_SIZE=4|TORCHELASTIC_RUN_ID=r1|", 1, 4, "torchrun:r1"},
	{"RANK=1|WORLD_SIZE=4|TORCHELASTIC_RUN_ID=none|", 1, 4, ""},
	{"RANK=1|WORLD_SIZE=4|", 1, 4, ""},
	/* torchrun under Slurm: Slurm's rank is that of the node's launcher. */
	{"SLURM_PROCID=0|SLURM_NTASKS=2|SLURM_JOB_ID=1|RANK=9|WORLD_SIZE=16|TORCHELASTIC_RUN_ID=x|",
	 9, 16, "torchrun:x"},
	/* mpirun under Slurm. */
	{"SLURM_PROCID=0|SLURM_NTASKS=2|OMPI_COMM_WORLD_RANK=3|OMPI_COMM_WORLD_SIZE=4|", 3, 4, ""},
	{"", PROCESS_RANK_NONE, 0, ""},
	{"RANK=1|", PROCESS_RANK_NONE, 0, ""},
	{"RANK=4|WORLD_SIZE=4|", PROCESS_RANK_NONE, 0, ""},
	{"RANK=-1|WORLD_SIZE=4|", PROCESS_RANK_NONE, 0, ""},
	{"RANK=1x|WORLD_SIZE=4|", PROCESS_RANK_NONE, 0, ""},
	{"RANK=99999999999999999999|WORLD_SIZE=4|", PROCESS_RANK_NONE, 0, ""},
	{"XRANK=1|WORLD_SIZE=4|RANKS=3|", PROCESS_RANK_NONE, 0, ""},
	/* The last string has no end. */
	{"WORLD_SIZE=4|RANK=1", PROCESS_RANK_NONE, 0, ""},
};

static void test_rank_is_read_from_the_environment_of_each_launcher(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t len = strlen(cases[i].environment);
		char *text = malloc(len + 1);
		struct process_rank rank;
		bool found;

		assert_non_null(text);
		memcpy(text, cases[i].environment, len);
		for (size_t at = 0; at < len; at++)
			if (text[at] == '|')
				text[at] = '\0';
		found = process_rank_parse(&rank, text, len);
		free(text);
		assert_int_equal(found, cases[i].rank != PROCESS_RANK_NONE);
		assert_int_equal(rank.rank, cases[i].rank);
		assert_int_equal(rank.world_size, cases[i].world_size);
		assert_string_equal(rank.job, cases[i].job);
	}
}

static void test_long_job_is_cut(void **state)
{
	char environment[1024];
	struct process_rank rank;
	int len = snprintf(environment, sizeof(environment),
			   "PMI_RANK=1%cOMPI_COMM_WORLD_RANK=1%c"
			   "OMPI_COMM_WORLD_SIZE=2%cPMIX_NAMESPACE=%0600d%c",
			   0, 0, 0, 7, 0);

	(void)state;
	assert_true(process_rank_parse(&rank, environment, (size_t)len));
	assert_int_equal(strlen(rank.job), PROCESS_JOB_BYTES - 1);
}

static void expands(const char *pattern, pid_t pid, const char *expected)
{
	struct error err = ERROR_INIT;
	uint32_t target_rank;
	char path[64];

	assert_int_equal(
		output_name_expand(path, sizeof(path), "-o", pattern, pid, &target_rank, &err), 0);
	assert_int_equal(target_rank, PROCESS_RANK_NONE);
	assert_string_equal(path, expected);
}

static void fails(const char *pattern, int code, const char *text)
{
	struct error err = ERROR_INIT;
	uint32_t target_rank;
	char path[32];

	assert_int_equal(
		output_name_expand(path, sizeof(path), "-o", pattern, 1 << 30, &target_rank, &err),
		code);
	if (!strstr(err.message, text))
		fail_msg("'%s' does not contain '%s'", err.message, text);
}

static void test_name_of_a_file_has_host_pid_and_rank(void **state)
{
	char host[64] = "", expected[128];

	(void)state;
	assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
	snprintf(expected, sizeof(expected), "a/%s.waffle", host);
	expands("a/%h.waffle", 1, expected);
	expands("%p-%%.waffle", 4711, "4711-%.waffle");
	expands("plain.waffle", 4711, "plain.waffle");
	fails("%x", -EINVAL, "%x is not known");
	fails("a%", -EINVAL, "ends with %");
	fails("%r.waffle", -ENODATA, "%r is unknown");
	fails("0123456789012345678901234567890123456789", -ENAMETOOLONG, "too long");
}

/* A child with the environment, that waits to be killed. */
static pid_t child_start(char *const environment[])
{
	char *const arguments[] = {"/bin/sleep", "100", NULL};
	pid_t pid = fork();

	if (!pid) {
		execve("/bin/sleep", arguments, environment);
		_exit(1);
	}
	assert_true(pid > 0);
	return pid;
}

static void child_stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_rank_of_another_process_is_its_claim(void **state)
{
	char *environment[] = {"PMI_RANK=7", "PMI_SIZE=9", NULL};
	pid_t pid = child_start(environment);
	struct error err = ERROR_INIT;
	uint32_t target_rank = 0;
	char path[64];
	int ret = -1;

	(void)state;
	/* Until the child runs its own program, it has our environment. */
	for (unsigned i = 0; i < 60000 && ret; i++, usleep(1000)) {
		err = (struct error)ERROR_INIT;
		ret = output_name_expand(path, sizeof(path), "-o", "%r.waffle", pid, &target_rank,
					 &err);
	}
	child_stop(pid);
	assert_int_equal(ret, 0);
	assert_string_equal(path, "7.waffle");
	assert_int_equal(target_rank, 7);
}

static void test_name_of_a_host_leads_to_no_other_folder(void **state)
{
	static const char *const hosts[][2] = {
		{".", "_"}, {"..", "__"}, {"a/b", "a_b"}, {"a\x1b\nb.c", "a__b.c"}, {"", ""}};

	(void)state;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		char text[32];

		strcpy(text, hosts[i][0]);
		output_name_clean(text);
		assert_string_equal(text, hosts[i][1]);
	}
}

/* If a variable is there twice, the first one counts. */
static void test_rank_behind_many_variables_is_found(void **state)
{
	size_t bytes = 100000;
	char *environment = calloc(1, bytes + 64);
	struct process_rank rank;

	(void)state;
	assert_non_null(environment);
	memcpy(environment + bytes, "PMI_RANK=1\0PMI_RANK=2\0PMI_SIZE=4", 32);
	assert_true(process_rank_parse(&rank, environment, bytes + 64));
	assert_int_equal(rank.rank, 1);
	free(environment);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rank_is_read_from_the_environment_of_each_launcher),
		cmocka_unit_test(test_long_job_is_cut),
		cmocka_unit_test(test_name_of_a_file_has_host_pid_and_rank),
		cmocka_unit_test(test_rank_of_another_process_is_its_claim),
		cmocka_unit_test(test_name_of_a_host_leads_to_no_other_folder),
		cmocka_unit_test(test_rank_behind_many_variables_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
