// SPDX-License-Identifier: Apache-2.0
#include "capture/transport/ring_memory_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "usdt/ring/ring.h"

/* What the link of a mapping shows for a ring of libwaffle. */
#define RING_LINK "/memfd:waffle-ring"

/* The mount of an open file. The kernel tells it without asking the file system. */
static long mount_id(int fd)
{
	char path[64], line[128];
	long id = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	if (!file)
		return -1;
	while (id < 0 && fgets(line, sizeof(line), file))
		if (sscanf(line, "mnt_id: %ld", &id) != 1)
			id = -1;
	fclose(file);
	return id;
}

void ring_mount_close(struct ring_mount *mount)
{
	if (mount->fd >= 0)
		close(mount->fd);
	mount->fd = -1;
}

int ring_mount_open(struct ring_mount *mount)
{
	*mount = (struct ring_mount){.fd = memfd_create("waffle", MFD_CLOEXEC)};
	if (mount->fd < 0)
		return -errno;
	mount->id = mount_id(mount->fd);
	if (mount->id >= 0)
		return 0;
	ring_mount_close(mount);
	return -ENOSYS;
}

bool ring_mount_may_map(const struct ring_mount *mount)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *page = MAP_FAILED;
	char path[128];
	int fd = -1;

	if (!ftruncate(mount->fd, (off_t)bytes))
		page = mmap(NULL, bytes, PROT_READ, MAP_SHARED, mount->fd, 0);
	if (page == MAP_FAILED)
		return false;
	snprintf(path, sizeof(path), "/proc/self/map_files/%" PRIxPTR "-%" PRIxPTR, (uintptr_t)page,
		 (uintptr_t)page + bytes);
	fd = open(path, O_PATH | O_CLOEXEC);
	munmap(page, bytes);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/*
 * Opens the mapped file as a place only (O_PATH), which asks no file system. The link is read
 * first, since a path on NFS may have to ask its server even then. The mount is what counts,
 * because the process may have replaced the mapping in between.
 */
static int place_open(const struct ring_mount *mount, const char *path)
{
	char link[sizeof(RING_LINK)];
	ssize_t len = readlink(path, link, sizeof(link) - 1);
	int fd;

	if (len < 0)
		return -errno;
	if (len != sizeof(link) - 1 || memcmp(link, RING_LINK, sizeof(link) - 1) != 0)
		return -EACCES;
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (mount_id(fd) == mount->id)
		return fd;
	close(fd);
	return -EACCES;
}

/* Whether the memory has this size for ever. */
static bool is_sealed(int fd, uint64_t bytes, uint64_t *ino)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat status;

	if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW) ||
	    fstat(fd, &status))
		return false;
	*ino = status.st_ino;
	return S_ISREG(status.st_mode) && (uint64_t)status.st_size == bytes;
}

/* Opens all of a sealed memfd that a process has mapped at these addresses. Negative errno. */
static int memory_open(const struct ring_mount *mount, pid_t pid, uint64_t address, uint64_t bytes,
		       uint64_t *ino)
{
	char path[128];
	int place, fd;

	if (bytes < ring_map_bytes(RING_BYTES_MIN) || bytes > ring_map_bytes(RING_BYTES_MAX) ||
	    address > UINT64_MAX - bytes)
		return -EACCES;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, address,
		 address + bytes);
	place = place_open(mount, path);
	if (place < 0)
		return place;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	fd = fd < 0 ? -errno : fd;
	close(place);
	if (fd < 0 || is_sealed(fd, bytes, ino))
		return fd;
	close(fd);
	return -EACCES;
}

int ring_memory_open(struct ring_memory *memory, const struct ring_mount *mount, pid_t pid,
		     uint64_t address, uint64_t bytes, size_t head)
{
	int result = 0;

	*memory = (struct ring_memory){.mapped = head};
	memory->fd = memory_open(mount, pid, address, bytes, &memory->ino);
	if (memory->fd < 0)
		return memory->fd;
	memory->at = mmap(NULL, head, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
	if (memory->at == MAP_FAILED) {
		result = -errno;
		close(memory->fd);
	}
	return result;
}

int ring_memory_map(struct ring_memory *memory, const struct ring_mount *mount, pid_t pid,
		    uint64_t address, uint64_t bytes)
{
	int result = ring_memory_open(memory, mount, pid, address, bytes, bytes);

	if (!result)
		close(memory->fd);
	memory->fd = -1;
	return result;
}

bool ring_memory_read(const struct ring_memory *memory, uint64_t offset, void *to, size_t bytes)
{
	return pread(memory->fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

void ring_memory_unmap(struct ring_memory *memory)
{
	munmap(memory->at, memory->mapped);
	if (memory->fd >= 0)
		close(memory->fd);
}
