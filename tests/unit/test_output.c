// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
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

static void write_and_commit(const char *path, const char *text)
{
	struct error err = ERROR_INIT;
	struct output output;

	if (output_open(&output, path, &err))
		fail_msg("%s", err.message);
	fputs(text, output.file);
	if (output_commit(&output, &err))
		fail_msg("%s", err.message);
}

static void test_only_the_owner_can_read_the_file(void **state)
{
	struct output_test *test = *state;
	mode_t mask = umask(0);
	struct stat st;

	write_text(test->path, "old");
	assert_int_equal(chmod(test->path, 0666), 0);
	write_and_commit(test->path, "new");
	umask(mask);
	assert_int_equal(stat(test->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void test_published_file_has_its_name_and_takes_what_comes_later(void **state)
{
	struct output_test *test = *state;
	struct error err = ERROR_INIT;
	struct output output;

	assert_int_equal(output_open(&output, test->path, &err), 0);
	assert_int_not_equal(access(test->path, F_OK), 0);
	assert_int_equal(output_publish(&output, &err), 0);
	fputs("later", output.file);
	fflush(output.file);
	assert_holds(test->path, "later");
	output_abort(&output);
	assert_holds(test->path, "later");
	assert_int_equal(count_files(test->folder), 1);
}

static void test_new_file_never_replaces_another(void **state)
{
	struct output_test *test = *state;
	struct error err = ERROR_INIT;
	struct output output;

	write_and_commit(test->path, "old");
	assert_int_equal(output_open_new(&output, test->path, &err), -EEXIST);
	assert_non_null(strstr(err.message, "exists already"));
	err = (struct error)ERROR_INIT;
	assert_int_equal(output_open_new(&output, "/dev/stdout", &err), -EEXIST);
	unlink(test->path);
	err = (struct error)ERROR_INIT;
	assert_int_equal(output_open_new(&output, test->path, &err), 0);
	write_and_commit(test->path, "other");
	assert_int_equal(output_publish(&output, &err), -EEXIST);
	output_abort(&output);
	assert_holds(test->path, "other");
	unlink(test->path);
	assert_int_equal(output_open_new(&output, test->path, &err), 0);
	fputs("new", output.file);
	assert_int_equal(output_commit(&output, &err), 0);
	assert_holds(test->path, "new");
	assert_int_equal(count_files(test->folder), 1);
}

static void test_fifo_is_written_to_and_stays(void **state)
{
	struct output_test *test = *state;
	struct error err = ERROR_INIT;
	struct output output;
	char read_back[8] = {0};
	struct stat st;
	int reader;

	assert_int_equal(mkfifo(test->path, 0600), 0);
	assert_int_equal(output_open(&output, test->path, &err), -EINVAL);
	assert_non_null(strstr(err.message, "nobody reads from it"));
	reader = open(test->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(reader >= 0);
	write_and_commit(test->path, "text");
	assert_int_equal(read(reader, read_back, sizeof(read_back)), 4);
	assert_string_equal(read_back, "text");
	err = (struct error)ERROR_INIT;
	assert_int_equal(output_open(&output, test->path, &err), 0);
	output_abort(&output);
	close(reader);
	assert_int_equal(lstat(test->path, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
}

static void test_link_is_replaced_and_what_it_leads_to_is_not_touched(void **state)
{
	struct output_test *test = *state;
	char target[96];
	struct stat st;

	snprintf(target, sizeof(target), "%s/target", test->folder);
	write_text(target, "untouched");
	assert_int_equal(symlink(target, test->path), 0);
	write_and_commit(test->path, "new");
	assert_holds(target, "untouched");
	assert_holds(test->path, "new");
	assert_int_equal(lstat(test->path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	unlink(target);
}

static void test_link_to_a_device_or_a_pipe_is_refused(void **state)
{
	struct output_test *test = *state;
	struct error err = ERROR_INIT;
	struct output output;
	char target[96];

	snprintf(target, sizeof(target), "%s/target", test->folder);
	assert_int_equal(mkfifo(target, 0600), 0);
	assert_int_equal(symlink(target, test->path), 0);
	assert_int_equal(output_open(&output, test->path, &err), -ELOOP);
	assert_non_null(strstr(err.message, "is a symbolic link"));
	unlink(test->path);
	unlink(target);
	assert_int_equal(symlink("/dev/full", test->path), 0);
	err = (struct error)ERROR_INIT;
	assert_int_equal(output_open(&output, test->path, &err), -ELOOP);
	assert_int_equal(count_files(test->folder), 1);
}

static void test_folder_that_is_exchanged_meanwhile_leads_nowhere_else(void **state)
{
	struct output_test *test = *state;
	struct error err = ERROR_INIT;
	char mine[96], moved[96], other[96], path[128];
	struct output output;

	snprintf(mine, sizeof(mine), "%s/mine", test->folder);
	snprintf(moved, sizeof(moved), "%s/moved", test->folder);
	snprintf(other, sizeof(other), "%s/other", test->folder);
	assert_int_equal(mkdir(mine, 0755) | mkdir(other, 0755), 0);
	snprintf(path, sizeof(path), "%s/x", mine);
	assert_int_equal(output_open(&output, path, &err), 0);
	fputs("text", output.file);
	assert_int_equal(rename(mine, moved), 0);
	assert_int_equal(symlink(other, mine), 0);
	assert_int_equal(output_commit(&output, &err), 0);
	assert_int_equal(count_files(other), 0);
	snprintf(path, sizeof(path), "%s/x", moved);
	assert_holds(path, "text");
	unlink(path);
	unlink(mine);
	assert_int_equal(rmdir(moved) | rmdir(other), 0);
}

/* A shell's `> FILE` behind -o /dev/stdout is the caller's own. */
static void test_descriptor_by_its_name_is_written_to(void **state)
{
	struct output_test *test = *state;
	struct error err = ERROR_INIT;
	struct output output;
	char path[32];
	int fd = open(test->path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	write_and_commit(path, "text");
	assert_holds(test->path, "text");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	write_and_commit(path, "more");
	assert_holds(test->path, "textmore");
	close(fd);
	assert_int_equal(output_open(&output, path, &err), -EINVAL);
	assert_non_null(strstr(err.message, "Bad file descriptor"));
}

static void test_disk_is_refused(void **state)
{
	struct output_test *test = *state;
	struct error err = ERROR_INIT;
	struct output output;

	if (mknod(test->path, S_IFBLK | 0600, 0))
		skip();
	assert_int_equal(output_open(&output, test->path, &err), -EINVAL);
	assert_non_null(strstr(err.message, "is a disk"));
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
		with_folder(test_only_the_owner_can_read_the_file),
		with_folder(test_published_file_has_its_name_and_takes_what_comes_later),
		with_folder(test_new_file_never_replaces_another),
		with_folder(test_fifo_is_written_to_and_stays),
		with_folder(test_link_is_replaced_and_what_it_leads_to_is_not_touched),
		with_folder(test_link_to_a_device_or_a_pipe_is_refused),
		with_folder(test_folder_that_is_exchanged_meanwhile_leads_nowhere_else),
		with_folder(test_descriptor_by_its_name_is_written_to),
		with_folder(test_disk_is_refused),
	};

	return cmocka_run_group_tests_name("output", tests, NULL, NULL);
}
