// SPDX-License-Identifier: Apache-2.0
#include "target/process/opened_fifo.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "target/process/path_at.h"
#include "target/process/root.h"

#ifdef SYS_open /* x86_64 */
#define OPENS_BY_PATH SYS_open
#else
#define OPENS_BY_PATH -1
#endif

bool is_open_call(int syscall)
{
	return syscall == SYS_openat || syscall == SYS_openat2 ||
	       (syscall >= 0 && syscall == OPENS_BY_PATH);
}

/* Reads the path and flags of the call. False: the path is relative to a descriptor, or cannot be
 * read. */
static bool call_read(char text[PATH_MAX], uint64_t *flags, const struct image *image, int syscall,
		      const uint64_t *args)
{
	bool at = syscall != OPENS_BY_PATH;
	struct open_how how = {.flags = args[at + 1]};
	size_t len = image_read_some(image, args[at], text, PATH_MAX - 1);

	text[len] = '\0';
	if (syscall == SYS_openat2 &&
	    (!image_read(image, args[2], &how, sizeof(how)) || how.resolve & RESOLVE_IN_ROOT))
		return false;
	*flags = how.flags;
	return *text && (*text == '/' || !at || (int)args[0] == AT_FDCWD);
}

static bool fifo_key(struct file_key *key, int fd)
{
	struct statx info;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &info) ||
	    !S_ISFIFO(info.stx_mode))
		return false;
	key->ino = info.stx_ino;
	key->dev = dev_of_kernel(makedev(info.stx_dev_major, info.stx_dev_minor));
	return true;
}

bool opened_fifo_find(struct opened_fifo *fifo, pid_t pid, const struct image *image, int syscall,
		      const uint64_t *args)
{
	char text[PATH_MAX];
	struct root root;
	const char *folder;
	bool found = false;
	uint64_t flags;
	int fd, len;

	if (!call_read(text, &flags, image, syscall, args) || root_open(&root, pid))
		return false;
	fifo->lacks = (flags & O_ACCMODE) == O_WRONLY ? "nobody has opened it to read"
						      : "nobody has opened it to write";
	folder = *text == '/' ? "" : root_inside(&root, root.folder);
	len = snprintf(fifo->path, PATH_MAX, "%s%s%s", folder, *text == '/' ? "" : "/", text);
	fd = len < PATH_MAX ? path_at_cached(root.fd, fifo->path, 0) : -1;
	if (fd >= 0) {
		found = fifo_key(&fifo->key, fd);
		close(fd);
	}
	root_close(&root);
	return found;
}
