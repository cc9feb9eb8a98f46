// SPDX-License-Identifier: Apache-2.0
/* A process from one exec to the next: reads return data of that program or none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/process/image.h"
#include "target/process/process.h"

static char word[] = "a word of this program";

struct child {
	pid_t pid;
	int go; /* at its end the child goes on */
};

static void program_run(const char *program)
{
	char *environment[] = {(char *)(uintptr_t) "A=1", (char *)(uintptr_t) "B=", NULL};

	execle(program, program, "60", (char *)NULL, environment);
	_exit(127);
}

/* A child that waits, and then becomes `program` as the user `uid`; NULL: it ends. */
static struct child child_start(const char *program, uid_t uid)
{
	struct child child;
	int ends[2];
	char byte;

	assert_int_equal(pipe(ends), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (!child.pid) {
		close(ends[1]);
		if (read(ends[0], &byte, 1) < 0 || !program || (uid && setuid(uid)))
			_exit(1);
		program_run(program);
	}
	close(ends[0]);
	child.go = ends[1];
	return child;
}

static void child_go(struct child *child)
{
	close(child->go);
	child->go = -1;
}

static bool is_asleep(pid_t pid)
{
	char path[64], state = '?';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	if (file)
		fclose(file);
	return state == 'S';
}

/* Until it runs the program, and sleeps there: the exec is over. */
static void child_becomes(struct child *child, const char *program)
{
	char path[PATH_MAX];

	child_go(child);
	do
		usleep(1000);
	while (!process_link(child->pid, "exe", path) || strcmp(path, program) != 0 ||
	       !is_asleep(child->pid));
}

static void child_end(struct child *child)
{
	if (child->go >= 0)
		close(child->go);
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
}

static bool has_word(const struct image *image)
{
	char text[sizeof(word)];

	return image_read(image, (uintptr_t)word, text, sizeof(text)) && !strcmp(text, word);
}

/* A copy of sleep(1) that is there for the test. */
static void sleep_copy(char path[PATH_MAX], mode_t mode)
{
	char typed[] = "/tmp/test_image.XXXXXX", command[PATH_MAX];
	int fd = mkstemp(typed);

	assert_true(fd >= 0);
	close(fd);
	assert_non_null(realpath(typed, path));
	snprintf(command, sizeof(command), "cp $(command -v sleep) %s", path);
	assert_int_equal(system(command), 0); // NOLINT(bugprone-command-processor,cert-env33-c)
	assert_int_equal(chmod(path, mode), 0);
}

static void test_memory_of_a_process_is_read(void **state)
{
	struct child child = child_start(NULL, 0);
	struct image image;
	char text[8192];

	(void)state;
	assert_int_equal(image_open(&image, child.pid), 0);
	assert_true(has_word(&image));
	assert_true(image_is_there(&image));
	assert_false(image_read(&image, 16, text, 1));
	assert_false(image_read(&image, UINT64_MAX - 4, text, 8));
	assert_int_equal(image_read_some(&image, 16, text, sizeof(text)), 0);
	image_close(&image);
	child_end(&child);
}

static void test_image_ends_with_an_exec(void **state)
{
	struct image before, after;
	char path[PATH_MAX], *text, **environment;
	struct child child;

	(void)state;
	sleep_copy(path, 0755);
	child = child_start(path, 0);
	assert_int_equal(image_open(&before, child.pid), 0);
	child_becomes(&child, path);
	assert_false(has_word(&before));
	assert_false(image_is_there(&before));
	assert_int_equal(image_open(&after, child.pid), 0);
	assert_true(image_is_there(&after));
	environment = image_environment(&after, &text);
	assert_non_null(environment);
	assert_string_equal(environment_value(environment, "A"), "1");
	assert_string_equal(environment_value(environment, "B"), "");
	assert_null(environment_value(environment, "PATH"));
	free(environment);
	free(text);
	child_end(&child);
	assert_false(image_is_there(&after));
	image_close(&before);
	image_close(&after);
	unlink(path);
}

static void test_process_that_is_gone_has_no_image(void **state)
{
	struct child child = child_start(NULL, 0);
	struct image image, none;

	(void)state;
	assert_int_equal(image_open(&image, child.pid), 0);
	child_end(&child);
	assert_false(has_word(&image));
	assert_int_equal(image_open(&none, child.pid), -ESRCH);
	image_close(&image);
}

static void test_program_that_was_given_rights_has_no_image(void **state)
{
	struct child child;
	struct image image;
	char path[PATH_MAX];

	(void)state;
	if (geteuid())
		skip();
	sleep_copy(path, 04755);
	child = child_start(path, 65534);
	child_becomes(&child, path);
	assert_int_equal(image_open(&image, child.pid), -EACCES);
	child_end(&child);
	/* A program that has these rights already gains none. */
	child = child_start(path, 0);
	child_becomes(&child, path);
	assert_int_equal(image_open(&image, child.pid), 0);
	image_close(&image);
	child_end(&child);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_of_a_process_is_read),
		cmocka_unit_test(test_image_ends_with_an_exec),
		cmocka_unit_test(test_process_that_is_gone_has_no_image),
		cmocka_unit_test(test_program_that_was_given_rights_has_no_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
