// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/output.h"

struct output_test {
	char folder[64];
	char path[96];
};

static int setup(void **state)
{
	struct output_test *test = calloc(1, sizeof(*test));

	assert_non_null(test);
	strcpy(test->folder, "/tmp/waffle-output-XXXXXX");
	assert_non_null(mkdtemp(test->folder));
	snprintf(test->path, sizeof(test->path), "%s/out.json", test->folder);
	*state = test;
	return 0;
}

static int teardown(void **state)
{
	struct output_test *test = *state;
	int ret;

	unlink(test->path);
	ret = rmdir(test->folder); /* fails if a temporary file was left */
	free(test);
	return ret;
}

static unsigned count_files(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;

	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
	closedir(dir);
	return count;
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void assert_holds(const char *path, const char *text)
{
	char read[64] = {0};
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_non_null(fgets(read, sizeof(read), file));
	fclose(file);
	assert_string_equal(read, text);
}

static void test_old_file_stays_until_the_new_one_is_committed(void **state)
{
	struct output_test *test = *state;
	struct error err = ERROR_INIT;
	struct output output;

	write_text(test->path, "old");
	assert_int_equal(output_open(&output, test->path, &err), 0);
	fputs("new", output.file);
	fflush(output.file);
	assert_holds(test->path, "old");
	assert_int_equal(output_commit(&output, &err), 0);
	assert_holds(test->path, "new");
	assert_int_equal(count_files(test->folder), 1);
	assert_null(output.file);
	output_abort(&output); /* nothing to do any more */
	assert_holds(test->path, "new");
}

static void test_aborted_output_leaves_the_old_file_and_nothing_else(void **state)
{
	struct output_test *test = *state;
	struct error err = ERROR_INIT;
	struct output output;

	write_text(test->path, "old");
	assert_int_equal(output_open(&output, test->path, &err), 0);
	fputs("new", output.file);
	output_abort(&output);
	assert_holds(test->path, "old");
	assert_int_equal(count_files(test->folder), 1);
}

static void test_two_outputs_of_one_name_do_not_meet(void **state)
{
	struct output_test *test = *state;
	struct error err = ERROR_INIT;
	struct output first, second;

	assert_int_equal(output_open(&first, test->path, &err), 0);
	assert_int_equal(output_open(&second, test->path, &err), 0);
	fputs("first", first.file);
	fputs("second", second.file);
	assert_int_equal(output_commit(&second, &err), 0);
	assert_holds(test->path, "second");
	assert_int_equal(output_commit(&first, &err), 0);
	assert_holds(test->path, "first");
	assert_int_equal(count_files(test->folder), 1);
}

static void test_full_device_is_told_at_commit(void **state)
{
	struct error err = ERROR_INIT;
	struct output output;

	(void)state;
	assert_int_equal(output_open(&output, "/dev/full", &err), 0);
	assert_null(output.temporary);
	fputs("text", output.file);
	assert_int_equal(output_commit(&output, &err), -ENOSPC);
	assert_string_equal(err.message, "/dev/full: No space left on device");
}

static void test_commit_that_cannot_rename_leaves_no_temporary_file(void **state)
{
	struct output_test *test = *state;
	struct error err = ERROR_INIT;
	struct output output;

	assert_int_equal(output_open(&output, test->path, &err), 0);
	assert_int_equal(mkdir(test->path, 0755), 0); /* meanwhile */
	assert_int_equal(output_commit(&output, &err), -EISDIR);
	assert_ptr_equal(strstr(err.message, test->path), err.message);
	assert_int_equal(rmdir(test->path), 0);
	assert_int_equal(count_files(test->folder), 0);
}

static void test_names_that_cannot_be_files_are_refused(void **state)
{
	struct output_test *test = *state;
	struct output output;
	struct error err;
	char path[128];

	err = (struct error)ERROR_INIT;
	assert_int_equal(output_open(&output, test->folder, &err), -EISDIR);
	assert_non_null(strstr(err.message, "is a directory"));
	assert_null(output.file);
	err = (struct error)ERROR_INIT;
	assert_int_equal(output_open(&output, "", &err), -EINVAL);
	err = (struct error)ERROR_INIT;
	snprintf(path, sizeof(path), "%s/none/out", test->folder);
	assert_int_equal(output_open(&output, path, &err), -ENOENT);
	err = (struct error)ERROR_INIT;
	snprintf(path, sizeof(path), "%s/out/", test->folder);
	assert_int_equal(output_open(&output, path, &err), -EISDIR);
}

static void test_dash_is_standard_output_which_stays_open(void **state)
{
	struct error err = ERROR_INIT;
	struct output output;

	(void)state;
	assert_int_equal(output_open(&output, "-", &err), 0);
	assert_ptr_equal(output.file, stdout);
	assert_int_equal(output_commit(&output, &err), 0);
	assert_int_equal(fflush(stdout), 0);
}

static void test_file_in_the_current_folder_needs_no_slash(void **state)
{
	struct output_test *test = *state;
	struct error err = ERROR_INIT;
	struct output output;
	char *old = getcwd(NULL, 0);

	assert_non_null(old);
	assert_int_equal(chdir(test->folder), 0);
	assert_int_equal(output_open(&output, "out.json", &err), 0);
	fputs("here", output.file);
	assert_int_equal(output_commit(&output, &err), 0);
	assert_int_equal(chdir(old), 0);
	free(old);
	assert_holds(test->path, "here");
}

static uid_t owner_with_sudo_uid(struct output_test *test, const char *uid)
{
	struct error err = ERROR_INIT;
	struct output output;
	struct stat st;

	setenv("SUDO_UID", uid, 1);
	assert_int_equal(output_open(&output, test->path, &err), 0);
	assert_int_equal(output_commit(&output, &err), 0);
	unsetenv("SUDO_UID");
	assert_int_equal(stat(test->path, &st), 0);
	return st.st_uid;
}

static void test_file_belongs_to_the_caller_of_sudo_if_that_is_a_number(void **state)
{
	struct output_test *test = *state;

	if (geteuid() != 0)
		skip();
	unsetenv("SUDO_GID");
	assert_int_equal(owner_with_sudo_uid(test, "4321"), 4321);
	assert_int_equal(owner_with_sudo_uid(test, "4321x"), 0);
	assert_int_equal(owner_with_sudo_uid(test, "-1"), 0);
	assert_int_equal(owner_with_sudo_uid(test, "4294967295"), 0);
	assert_int_equal(owner_with_sudo_uid(test, ""), 0);
}

#define with_folder(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_folder(test_old_file_stays_until_the_new_one_is_committed),
		with_folder(test_aborted_output_leaves_the_old_file_and_nothing_else),
		with_folder(test_two_outputs_of_one_name_do_not_meet),
		cmocka_unit_test(test_full_device_is_told_at_commit),
		with_folder(test_commit_that_cannot_rename_leaves_no_temporary_file),
		with_folder(test_names_that_cannot_be_files_are_refused),
		cmocka_unit_test(test_dash_is_standard_output_which_stays_open),
		with_folder(test_file_in_the_current_folder_needs_no_slash),
		with_folder(test_file_belongs_to_the_caller_of_sudo_if_that_is_a_number),
	};

	return cmocka_run_group_tests_name("output", tests, NULL, NULL);
}
