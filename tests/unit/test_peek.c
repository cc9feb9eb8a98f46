// SPDX-License-Identifier: Apache-2.0
/* Looking at paths while a file system is mounted whose server does not answer: a FUSE without a
 * server, in a mount namespace of the test. Whatever asks it waits for ever. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/process/mounts.h"
#include "target/process/path_at.h"
#include "util/input.h"

static char folder[] = "/tmp/waffle-peek-XXXXXX";
static int server = -1;

static const char *in_folder(const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static int start(void **state)
{
	(void)state;
	if (!mkdtemp(folder) || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", folder, "tmpfs", 0, NULL) || mkdir(in_folder("fuse"), 0755) ||
	    mknod(in_folder("file"), S_IFREG | 0644, 0) || symlink("file", in_folder("link")))
		return -1;
	return 0;
}

static int stop(void **state)
{
	(void)state;
	umount2(in_folder("fuse"), MNT_DETACH);
	close(server);
	return umount2(folder, MNT_DETACH) || rmdir(folder);
}

static void mount_fuse(void)
{
	char options[64];

	server = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	assert_true(server >= 0);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", server);
	assert_int_equal(mount("none", in_folder("fuse"), "fuse", 0, options), 0);
	/* The list of mounts is cached for a while. */
	while (mounts_are_local(getpid(), MOUNTS_ANY))
		usleep(1000);
}

static uint64_t device_at(const char *name, mode_t type)
{
	int fd = path_at_peek(in_folder(name), O_NOFOLLOW);
	struct stat status;

	assert_true(fd >= 0);
	assert_int_equal(input_stat(fd, &status), 0);
	assert_int_equal(status.st_mode & S_IFMT, type);
	close(fd);
	return (uint64_t)major(status.st_dev) << 20 | minor(status.st_dev);
}

static void test_a_path_is_seen_by_what_the_kernel_has_in_memory(void **state)
{
	(void)state;
	mount_fuse();
	assert_false(mounts_device_waits(getpid(), device_at("file", S_IFREG)));
	assert_false(mounts_device_waits(getpid(), device_at("link", S_IFLNK)));
	assert_true(mounts_device_waits(getpid(), device_at("fuse", S_IFDIR)));
	assert_int_equal(path_at_peek(in_folder("fuse/file"), 0), -EAGAIN);
	assert_int_equal(path_at_peek(in_folder("fuse/../fuse/folder/file"), 0), -EAGAIN);
}

static void test_of_a_process_that_is_gone_nothing_is_known(void **state)
{
	(void)state;
	assert_true(mounts_device_waits(-1, 0));
	assert_false(mounts_are_local(-1, MOUNTS_ANY));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_path_is_seen_by_what_the_kernel_has_in_memory),
		cmocka_unit_test(test_of_a_process_that_is_gone_nothing_is_known),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
