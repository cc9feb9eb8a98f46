// SPDX-License-Identifier: Apache-2.0
/* Files that others name are opened only when it is known that they are ordinary ones, and below
 * the root of who names them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/store.h"
#include "target/elf/elffile.h"
#include "target/process/mapping_file.h"
#include "util/input.h"

struct fixture {
	char folder[64], path[128];
	int watch;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	strcpy(fixture->folder, "/tmp/test_input.XXXXXX");
	assert_non_null(mkdtemp(fixture->folder));
	snprintf(fixture->path, sizeof(fixture->path), "%s/it", fixture->folder);
	fixture->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	assert_true(fixture->watch >= 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	char command[128];

	close(fixture->watch);
	snprintf(command, sizeof(command), "rm -rf %s", fixture->folder);
	assert_int_equal(system(command), 0); // NOLINT(bugprone-command-processor,cert-env33-c)
	free(fixture);
	return 0;
}

/* Tells whether somebody has opened the file since the last call. Reading its attributes does not
 * count. */
static bool was_opened(const struct fixture *fixture)
{
	char events[4096];

	return read(fixture->watch, events, sizeof(events)) > 0;
}

static void begin(const struct fixture *fixture)
{
	assert_true(inotify_add_watch(fixture->watch, fixture->path, IN_OPEN) >= 0);
	assert_false(was_opened(fixture));
}

static void test_fifo_is_not_opened(void **state)
{
	const struct fixture *fixture = *state;
	struct error err = ERROR_INIT;
	struct store_reader *reader;
	struct elf_file file;

	assert_int_equal(mkfifo(fixture->path, 0600), 0);
	begin(fixture);
	assert_int_equal(input_open(fixture->path), -EINVAL);
	assert_int_equal(elf_file_open(&file, fixture->path), -ENOEXEC);
	assert_int_equal(store_reader_open(&reader, fixture->path, &err), -EINVAL);
	assert_false(was_opened(fixture));
}

static void test_ordinary_file_is_opened_also_by_a_link(void **state)
{
	const struct fixture *fixture = *state;
	char link[160], text[8];
	int fd = open(fixture->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, "text", 4), 4);
	close(fd);
	begin(fixture);
	snprintf(link, sizeof(link), "%s-link", fixture->path);
	assert_int_equal(symlink(fixture->path, link), 0);
	fd = input_open(link);
	assert_true(fd >= 0);
	assert_true(was_opened(fixture));
	assert_int_equal(input_read_fd(fd, text, sizeof(text)), 4);
	assert_memory_equal(text, "text", 4);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	assert_int_equal(input_open(fixture->folder), -EISDIR);
	unlink(link);
	assert_int_equal(input_open(link), -ENOENT);
}

/* The device and inode that the kernel shows for a mapped file. */
static struct mapping mapping_of(const char *path)
{
	struct error err = ERROR_INIT;
	struct mapping found = {0};
	struct mappings mine;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *page = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	assert_int_equal(process_mappings_all(&mine, getpid(), &err), 0);
	for (size_t i = 0; i < mine.list.len; i++)
		if (mine.list.data[i].start == (uintptr_t)page)
			found = mine.list.data[i];
	mappings_free(&mine);
	munmap(page, 1);
	close(fd);
	assert_true(found.ino);
	found.start = 0x1000; /* nothing is mapped there: it has to be found by its path */
	found.end = 0x2000;
	return found;
}

/* An absolute link leads to a folder of the process's root and not of ours. */
static void test_mapped_file_is_opened_below_the_processs_root(void **state)
{
	const struct fixture *fixture = *state;
	char path[PATH_MAX], link[] = "/link/file", other[PATH_MAX];
	struct mapping mapping;
	int ends[2], fd;
	pid_t child;
	char byte;

	if (geteuid())
		skip();
	assert_int_equal(mkdir(fixture->path, 0755), 0);
	snprintf(path, sizeof(path), "%s/link", fixture->path);
	assert_int_equal(symlink("/only-inside", path), 0);
	snprintf(path, sizeof(path), "%s/only-inside", fixture->path);
	assert_int_equal(mkdir(path, 0755), 0);
	strcat(path, "/file");
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "text", 4), 4);
	close(fd);
	mapping = mapping_of(path);
	mapping.path = link;
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		if (chroot(fixture->path) || write(ends[1], "x", 1) != 1)
			_exit(1);
		pause();
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	fd = mapping_open(&mapping, child, other, sizeof(other));
	assert_true(fd >= 0);
	close(fd);
	/* Another file at that path is not the one that is mapped. */
	mapping.ino++;
	assert_int_equal(mapping_open(&mapping, child, other, sizeof(other)), -ENOENT);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ends[0]);
	close(ends[1]);
}

/* Another file is mapped there now, as after an exec, which may use the same addresses. */
static void test_another_file_at_the_addresses_of_a_mapping_is_not_opened(void **state)
{
	struct error err = ERROR_INIT;
	struct mappings mine;
	char path[PATH_MAX];
	size_t opened = 0;

	(void)state;
	assert_int_equal(process_mappings(&mine, getpid(), &err), 0);
	for (size_t i = 0; i < mine.list.len; i++) {
		struct mapping mapping = mine.list.data[i];
		int fd = mapping_open(&mapping, getpid(), path, sizeof(path));

		assert_true(fd >= 0);
		close(fd);
		opened++;
		mapping.ino++;
		assert_int_equal(mapping_open(&mapping, getpid(), path, sizeof(path)), -ENOENT);
		mapping.ino--;
		mapping.dev++;
		assert_int_equal(mapping_open(&mapping, getpid(), path, sizeof(path)), -ENOENT);
	}
	assert_true(opened > 1);
	mappings_free(&mine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_fifo_is_not_opened, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ordinary_file_is_opened_also_by_a_link, set_up,
						tear_down),
		cmocka_unit_test(test_another_file_at_the_addresses_of_a_mapping_is_not_opened),
		cmocka_unit_test_setup_teardown(test_mapped_file_is_opened_below_the_processs_root,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
