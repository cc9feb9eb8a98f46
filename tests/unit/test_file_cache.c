// SPDX-License-Identifier: Apache-2.0
/* The cache of what workers found in files: what comes back from it, and which folders and files it
 * refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "target/worker/file_cache.h"
#include "target/process/mounts.h"

/* Root's own folders, as the cache wants them. */
static char folder[] = "/var/cache/waffle-test-XXXXXX";

static struct file_cache *begin(void)
{
	struct file_cache *cache;

	if (geteuid())
		skip();
	cache = file_cache_open(folder);
	assert_non_null(cache);
	return cache;
}

static struct file_cache_file some_file(unsigned inode)
{
	struct file_cache_file file = {
		.status = {.st_dev = 7, .st_ino = inode, .st_size = 5 << 20},
		.head = 77,
	};

	file.status.st_ctim.tv_sec = 1700000000;
	file.status.st_ctim.tv_nsec = 123456789;
	return file;
}

/* The key of a request, or with NULL that of the unwind table. */
static struct file_cache_key key_of(const char *request)
{
	struct file_cache_key key = {.kind = request ? FILE_CACHE_REQUEST : FILE_CACHE_UNWIND};

	if (request)
		wire_put(&key.request, request, strlen(request));
	return key;
}

static void entry_put(struct file_cache *cache, const struct file_cache_file *file,
		      const char *request, const char *text)
{
	struct file_cache_key key = key_of(request);
	struct wire_out reply = {0};

	wire_put(&reply, text, strlen(text));
	file_cache_put(cache, file, &key, &reply);
	wire_out_free(&reply);
	wire_out_free(&key.request);
}

/* "": there is no valid entry. */
static void assert_entry(struct file_cache *cache, const struct file_cache_file *file,
			 const char *request, const char *text)
{
	struct file_cache_key key = key_of(request);
	struct wire_out reply = {0};

	assert_int_equal(file_cache_get(cache, file, &key, &reply), text[0] != '\0');
	assert_int_equal(reply.bytes.len, strlen(text));
	assert_memory_equal(reply.bytes.data ? (const char *)reply.bytes.data : "", text,
			    strlen(text));
	wire_out_free(&reply);
	wire_out_free(&key.request);
}

static void put(struct file_cache *cache, const struct file_cache_file *file, const char *text)
{
	entry_put(cache, file, NULL, text);
}

static void assert_has(struct file_cache *cache, const struct file_cache_file *file,
		       const char *text)
{
	assert_entry(cache, file, NULL, text);
}

static void entry_path(char path[128], const struct file_cache_file *file)
{
	snprintf(path, 128, "%s/unwind-%jx-%jx", folder, (uintmax_t)file->status.st_dev,
		 (uintmax_t)file->status.st_ino);
}

static void test_an_entry_belongs_to_one_state_of_one_file(void **state)
{
	struct file_cache *cache = begin();
	struct file_cache_file file = some_file(1), other;
	char path[128];
	struct stat entry;

	(void)state;
	assert_has(cache, &file, "");
	put(cache, &file, "the table of a library");
	assert_has(cache, &file, "the table of a library");
	entry_path(path, &file);
	assert_int_equal(stat(path, &entry), 0);
	assert_int_equal(entry.st_mode & 0777, 0600);
	assert_int_equal(stat(folder, &entry), 0);
	assert_int_equal(entry.st_mode & 0777, 0700);
	other = file;
	other.status.st_size++;
	assert_has(cache, &other, "");
	other = file;
	other.status.st_ctim.tv_nsec++;
	assert_has(cache, &other, "");
	other = file;
	other.status.st_ino++;
	assert_has(cache, &other, "");
	other = file;
	other.head++;
	assert_has(cache, &other, "");
	put(cache, &file, "its next table");
	assert_has(cache, &file, "its next table");
	file_cache_close(cache);
}

static void assert_answers(struct file_cache *cache, const char *request, const char *text)
{
	const struct file_cache_file file = some_file(3);

	assert_entry(cache, &file, request, text);
}

static void answer(struct file_cache *cache, const char *request, const char *text)
{
	const struct file_cache_file file = some_file(3);

	entry_put(cache, &file, request, text);
}

static void test_a_request_has_an_entry_of_its_own(void **state)
{
	struct file_cache *cache = begin();
	struct file_cache_file file = some_file(3);

	(void)state;
	assert_answers(cache, "which calls?", "");
	answer(cache, "which calls?", "cudaMalloc");
	answer(cache, "which sites?", "none");
	assert_answers(cache, "which calls?", "cudaMalloc");
	assert_answers(cache, "which sites?", "none");
	assert_answers(cache, "which calls", "");
	assert_has(cache, &file, ""); /* its unwind table is another entry */
	file_cache_close(cache);
}

static void test_another_request_whose_hash_is_the_same_has_no_entry(void **state)
{
	struct file_cache *cache = begin();
	char command[512];

	(void)state;
	answer(cache, "the first request", "its reply");
	answer(cache, "other request 123", "another reply");
	/* The second request's file has the first one's content, as if their hashes were the same.
	 * The cache compares the whole request, so the second one gets no reply. */
	snprintf(command, sizeof(command),
		 "set -- %s/parsed-7-3-*; for a; do grep -qa 'the first request' $a && one=$a;"
		 " grep -qa 'other request' $a && two=$a; done; cp $one $two",
		 folder);
	assert_int_equal(system(command), 0); // NOLINT(bugprone-command-processor,cert-env33-c)
	assert_answers(cache, "the first request", "its reply");
	assert_answers(cache, "other request 123", "");
	file_cache_close(cache);
}

static void test_a_damaged_entry_is_no_entry(void **state)
{
	static const char table[] = "the table of a library that is about to be damaged";
	struct file_cache *cache = begin();
	struct file_cache_file file = some_file(2);
	struct stat entry;
	char path[128], byte;

	(void)state;
	entry_path(path, &file);
	put(cache, &file, table);
	assert_int_equal(stat(path, &entry), 0);
	for (off_t at = 0; at < entry.st_size; at++) {
		int fd = open(path, O_RDWR | O_CLOEXEC);

		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 0x20;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		assert_has(cache, &file, "");
		byte ^= 0x20;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		close(fd);
	}
	assert_has(cache, &file, table);
	assert_int_equal(truncate(path, entry.st_size - 1), 0);
	assert_has(cache, &file, "");
	assert_int_equal(truncate(path, entry.st_size + 1), 0);
	assert_has(cache, &file, "");
	assert_int_equal(truncate(path, 3), 0);
	assert_has(cache, &file, "");
	put(cache, &file, table);
	assert_has(cache, &file, table);
	assert_int_equal(chmod(path, 0666), 0);
	assert_has(cache, &file, "");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_has(cache, &file, "");
	file_cache_close(cache);
}

/* A sparse file takes no room, but counts with its size. */
static void make_large(unsigned inode, off_t size, time_t used)
{
	struct timespec times[2] = {{.tv_sec = used}, {.tv_sec = used}};
	struct file_cache_file file = some_file(inode);
	char path[128];
	int fd;

	entry_path(path, &file);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
}

static bool is_there(unsigned inode)
{
	struct file_cache_file file = some_file(inode);
	char path[128];

	entry_path(path, &file);
	return !access(path, F_OK);
}

static void test_the_oldest_entries_make_room(void **state)
{
	struct file_cache *cache = begin();
	struct file_cache_file file = some_file(13);

	(void)state;
	make_large(10, FILE_CACHE_BYTES_MAX / 2, 1000);
	make_large(11, FILE_CACHE_BYTES_MAX / 2, 500);
	make_large(12, FILE_CACHE_BYTES_MAX / 4, 2000);
	put(cache, &file, "new");
	assert_false(is_there(11));
	assert_true(is_there(10) && is_there(12) && is_there(13));
	file_cache_close(cache);
}

static void assert_refused(const char *path)
{
	struct file_cache *cache = file_cache_open(path);

	assert_null(cache);
}

static void test_a_folder_that_others_can_write_is_refused(void **state)
{
	char path[128], inner[160];

	(void)state;
	if (geteuid())
		skip();
	assert_refused("off");
	assert_refused("");
	assert_refused("/tmp/waffle-cache");
	assert_int_not_equal(access("/tmp/waffle-cache", F_OK), 0);
	snprintf(path, sizeof(path), "%s/missing/cache", folder);
	assert_refused(path);
	snprintf(path, sizeof(path), "%s/open", folder);
	snprintf(inner, sizeof(inner), "%s/cache", path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0770), 0);
	assert_refused(path);
	assert_refused(inner);
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(chown(path, 12345, 0), 0);
	assert_refused(path);
	assert_refused(inner);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(symlink(folder, path), 0);
	assert_refused(path);
	assert_int_equal(unlink(path), 0);
}

static int library_find(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char **path = arg;

	(void)size;
	if (strstr(info->dlpi_name, "libc.so"))
		*path = info->dlpi_name;
	return 0;
}

static bool may_have(struct file_cache *cache, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct file_cache_file file;
	bool may = file_cache_may_have(cache, fd, &file);

	close(fd);
	return may;
}

static void test_only_files_of_root_on_a_local_file_system_are_kept(void **state)
{
	struct file_cache *cache = begin();
	const char *libc = NULL;
	struct statvfs mount;
	struct stat file;
	char path[128];

	(void)state;
	dl_iterate_phdr(library_find, &libc);
	if (libc && !stat(libc, &file) && !statvfs(libc, &mount))
		assert_int_equal(may_have(cache, libc),
				 file.st_size >= FILE_CACHE_FILE_MIN && !file.st_uid &&
					 (!(mount.f_flag & ST_NOSUID) ||
					  !mounts_device_answers(
						  getpid(), (uint64_t)major(file.st_dev) << 20 |
								    minor(file.st_dev))) &&
					 mounts_device_is_local(getpid(),
								(uint64_t)major(file.st_dev) << 20 |
									minor(file.st_dev)));
	assert_false(may_have(NULL, libc ? libc : "/proc/self/exe"));
	assert_false(may_have(cache, "/proc/kallsyms"));
	snprintf(path, sizeof(path), "%s/file", folder);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	assert_int_equal(truncate(path, 2 * FILE_CACHE_FILE_MIN), 0);
	assert_false(may_have(cache, path)); /* it changed just now */
	assert_int_equal(unlink(path), 0);
	file_cache_close(cache);
}

static int folder_make(void **state)
{
	(void)state;
	return geteuid() || mkdtemp(folder) ? 0 : -1;
}

static int folder_remove(void **state)
{
	char command[sizeof(folder) + 16];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return geteuid() ? 0 : system(command); // NOLINT(bugprone-command-processor,cert-env33-c)
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_entry_belongs_to_one_state_of_one_file),
		cmocka_unit_test(test_a_request_has_an_entry_of_its_own),
		cmocka_unit_test(test_another_request_whose_hash_is_the_same_has_no_entry),
		cmocka_unit_test(test_a_damaged_entry_is_no_entry),
		cmocka_unit_test(test_the_oldest_entries_make_room),
		cmocka_unit_test(test_a_folder_that_others_can_write_is_refused),
		cmocka_unit_test(test_only_files_of_root_on_a_local_file_system_are_kept),
	};

	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
