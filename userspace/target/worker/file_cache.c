// SPDX-License-Identifier: Apache-2.0
#include "target/worker/file_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "target/process/mounts.h"
#include "util/hash.h"
#include "util/input.h"
#include "util/output.h"
#include "util/text.h"

#define FORMAT 4 /* changes with the reply of a worker, and with what the rows mean */
#define CACHE_VARIABLE "WAFFLE_CACHE"
#define TEMPORARY ".new-"
#define NAME_SIZE 64
#define PAYLOAD_MAX (FILE_CACHE_BYTES_MAX / 2)
/* A file that changed just now may change again without a new ctime, whose clock is coarse. */
#define SETTLED_SECONDS 2
#define STALE_SECONDS 60 /* a temporary file of this age was left by a killed tracer */
#define HEAD_BYTES 4096
#define LARGE_PAGE ((size_t)2 << 20)
#define USED_SECONDS (60 * 60 * 24) /* how exact the time of the last use is */

/* How names of entries begin. */
static const char *const prefixes[] = {
	[FILE_CACHE_UNWIND] = "unwind-", [FILE_CACHE_REQUEST] = "parsed-"};

/* Followed by the request, and by the reply. */
struct entry_header {
	char magic[8];
	uint32_t format, version; /* `version`: a hash of waffle's */
	uint64_t device, inode, size, head;
	int64_t changed_s, changed_ns;
	uint64_t request, payload; /* sizes in bytes: of the request, and of both */
	uint64_t check;            /* a hash of the reply */
};

struct file_cache {
	int folder;
};

static bool is_roots_alone(const struct stat *status)
{
	return !status->st_uid && !(status->st_mode & (S_IWGRP | S_IWOTH));
}

/* Opens a folder within another one, whose descriptor it closes. Returns a descriptor, or -1. */
static int folder_enter(int parent, const char *name, bool last)
{
	struct stat status;
	int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | (last ? O_RDONLY : O_PATH);
	int fd = openat(parent, name, flags);

	if (fd < 0 && errno == ENOENT && last && !mkdirat(parent, name, 0700))
		fd = openat(parent, name, flags);
	close(parent);
	if (fd >= 0 && (fstat(fd, &status) || !is_roots_alone(&status))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Follows no symbolic links: their folders would have to be checked as well. */
static int folder_open(const char *path)
{
	char copy[PATH_MAX], *at = copy, *name;
	struct stat status;
	int fd;

	if (path[0] != '/' || strlen(path) >= sizeof(copy))
		return -1;
	strcpy(copy, path);
	fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, &status) || !is_roots_alone(&status))) {
		close(fd);
		return -1;
	}
	while (fd >= 0 && (name = strsep(&at, "/"))) {
		bool last = !at || !at[strspn(at, "/")];

		if (name[0])
			fd = folder_enter(fd, name, last);
		if (last)
			return fd;
	}
	return fd;
}

struct file_cache *file_cache_open_default(void)
{
	return file_cache_open(getenv(CACHE_VARIABLE) ?: FILE_CACHE_FOLDER);
}

struct file_cache *file_cache_open(const char *folder)
{
	struct file_cache *cache;
	int fd = geteuid() ? -1 : folder_open(folder);

	cache = fd < 0 ? NULL : malloc(sizeof(*cache));
	if (cache)
		cache->folder = fd;
	else if (fd >= 0)
		close(fd);
	return cache;
}

void file_cache_close(struct file_cache *cache)
{
	if (cache)
		close(cache->folder);
	free(cache);
}

/* Words that are hashed side by side: tables have megabytes, and each step of a hash waits for the
 * one before. */
#define LANES 4

static uint64_t checksum(const void *bytes, size_t size)
{
	static const struct hash_secret fixed = {.factor = 0x9e3779b97f4a7c15ull,
						 .begin = HASH_BEGIN};
	uint64_t lanes[LANES] = {HASH_BEGIN, HASH_BEGIN + 1, HASH_BEGIN + 2, HASH_BEGIN + 3};
	const unsigned char *at = bytes;
	uint64_t sum = hash_word(fixed.begin, size, &fixed), words[LANES];

	for (; size >= sizeof(words); size -= sizeof(words), at += sizeof(words)) {
		memcpy(words, at, sizeof(words));
		for (unsigned i = 0; i < LANES; i++)
			lanes[i] = hash_word(lanes[i], words[i], &fixed);
	}
	for (unsigned i = 0; i < LANES; i++)
		sum = hash_word(sum, lanes[i], &fixed);
	return hash_keyed(sum, at, size, &fixed);
}

/* Reads the first page, and looks at the flags of the mount. */
static bool head_read(int fd, uint64_t *head)
{
	unsigned char bytes[HEAD_BYTES];
	struct statvfs mount;

	if (fstatvfs(fd, &mount) || mount.f_flag & ST_NOSUID ||
	    pread(fd, bytes, sizeof(bytes), 0) != sizeof(bytes))
		return false;
	*head = checksum(bytes, sizeof(bytes));
	return true;
}

bool file_cache_may_have(const struct file_cache *cache, int fd, struct file_cache_file *file)
{
	struct stat *status = &file->status;
	uint64_t device;

	file->head = 0;
	if (!cache || input_stat(fd, status) || !S_ISREG(status->st_mode) ||
	    !is_roots_alone(status) || status->st_size < FILE_CACHE_FILE_MIN ||
	    time(NULL) - status->st_ctim.tv_sec <= SETTLED_SECONDS)
		return false;
	device = (uint64_t)major(status->st_dev) << 20 | minor(status->st_dev);
	if (!mounts_device_is_local(getpid(), device))
		return false;
	/* An overlay may wait for the server of a layer. Users can't mount one here. */
	return !mounts_device_answers(getpid(), device) || head_read(fd, &file->head);
}

bool file_cache_is_unchanged(int fd, const struct file_cache_file *file)
{
	const struct stat *before = &file->status;
	struct stat now;

	return !input_stat(fd, &now) && now.st_size == before->st_size &&
	       now.st_ctim.tv_sec == before->st_ctim.tv_sec &&
	       now.st_ctim.tv_nsec == before->st_ctim.tv_nsec;
}

static void header_make(struct entry_header *header, const struct file_cache_file *file,
			const struct file_cache_key *key)
{
	const struct stat *status = &file->status;

	*header = (struct entry_header){
		.magic = {'W', 'F', 'L', 'U', 'N', 'W', 'N', 'D'},
		.format = FORMAT,
		.version = (uint32_t)hash_text(HASH_BEGIN, WAFFLE_VERSION),
		.device = status->st_dev,
		.inode = status->st_ino,
		.size = (uint64_t)status->st_size,
		.head = file->head,
		.changed_s = status->st_ctim.tv_sec,
		.changed_ns = status->st_ctim.tv_nsec,
		.request = key->request.bytes.len,
	};
}

/* A file may have several entries of requests. */
static void entry_name(char name[NAME_SIZE], const struct stat *file,
		       const struct file_cache_key *key)
{
	int len = snprintf(name, NAME_SIZE, "%s%jx-%jx", prefixes[key->kind],
			   (uintmax_t)file->st_dev, (uintmax_t)file->st_ino);

	if (key->request.bytes.len)
		snprintf(name + len, NAME_SIZE - (size_t)len, "-%" PRIx64,
			 checksum(key->request.bytes.data, key->request.bytes.len));
}

static bool read_whole(int fd, void *to, size_t size)
{
	return input_read_fd(fd, to, size) == (ssize_t)size;
}

/* Whether the entry goes on with the request. */
static bool request_matches(int fd, const struct wire_out *request)
{
	size_t size = request->bytes.len;
	unsigned char *bytes = size ? malloc(size) : NULL;
	bool same = !size || (bytes && read_whole(fd, bytes, size) &&
			      !memcmp(bytes, request->bytes.data, size));

	free(bytes);
	return same;
}

/* Makes room in an empty reply. Large pages, where there are any, take fewer page faults. */
static bool reply_reserve(struct wire_out *reply, size_t size)
{
	if (size >= LARGE_PAGE)
		reply->bytes.data =
			aligned_alloc(LARGE_PAGE, (size + LARGE_PAGE - 1) & -LARGE_PAGE);
	if (!reply->bytes.data)
		return vec_reserve(&reply->bytes, size);
	madvise(reply->bytes.data, size & -LARGE_PAGE, MADV_HUGEPAGE);
	reply->bytes.cap = size;
	return true;
}

/* Tables are large, so they are read to where they stay. */
static bool reply_read(int fd, size_t size, uint64_t check, struct wire_out *reply)
{
	if (!reply_reserve(reply, size) || !read_whole(fd, reply->bytes.data, size) ||
	    checksum(reply->bytes.data, size) != check)
		return false;
	reply->bytes.len = size;
	return true;
}

/* Reads an open entry into an empty reply. */
static bool entry_read(int fd, const struct file_cache_file *file, const struct file_cache_key *key,
		       struct wire_out *reply)
{
	size_t before = key->request.bytes.len;
	struct entry_header header, wanted;
	struct stat status;
	bool good;

	header_make(&wanted, file, key);
	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || !is_roots_alone(&status) ||
	    !read_whole(fd, &header, sizeof(header)))
		return false;
	wanted.payload = header.payload;
	wanted.check = header.check;
	if (memcmp(&header, &wanted, sizeof(header)) != 0 || header.payload > PAYLOAD_MAX ||
	    header.payload < before || status.st_size != (off_t)(sizeof(header) + header.payload))
		return false;
	good = request_matches(fd, &key->request) &&
	       reply_read(fd, header.payload - before, header.check, reply);
	if (good && time(NULL) - status.st_mtim.tv_sec > USED_SECONDS)
		futimens(fd, NULL); /* the oldest entries are removed first */
	return good;
}

bool file_cache_get(const struct file_cache *cache, const struct file_cache_file *file,
		    const struct file_cache_key *key, struct wire_out *reply)
{
	char name[NAME_SIZE];
	bool good;
	int fd;

	if (key->request.no_memory)
		return false;
	entry_name(name, &file->status, key);
	fd = openat(cache->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	good = entry_read(fd, file, key, reply);
	close(fd);
	return good;
}

/* What the folder holds. */
struct contents {
	uint64_t bytes;
	uint32_t count;
	char oldest[NAME_SIZE]; /* "": it is empty */
	time_t oldest_time;
};

static bool is_entry(const char *name)
{
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

static void contents_add(const struct file_cache *cache, struct contents *contents,
			 const char *name)
{
	struct stat status;

	if (strlen(name) >= NAME_SIZE || fstatat(cache->folder, name, &status, AT_SYMLINK_NOFOLLOW))
		return;
	if (text_begins(name, TEMPORARY) && time(NULL) - status.st_mtim.tv_sec > STALE_SECONDS)
		unlinkat(cache->folder, name, 0);
	if (!is_entry(name))
		return;
	contents->bytes += (uint64_t)status.st_size;
	contents->count++;
	if (contents->oldest[0] && status.st_mtim.tv_sec >= contents->oldest_time)
		return;
	strcpy(contents->oldest, name);
	contents->oldest_time = status.st_mtim.tv_sec;
}

static struct contents contents_read(const struct file_cache *cache)
{
	int fd = openat(cache->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct contents contents = {0};
	const struct dirent *row;

	while (folder && (row = readdir(folder)))
		contents_add(cache, &contents, row->d_name);
	if (folder)
		closedir(folder);
	else if (fd >= 0)
		close(fd);
	return contents;
}

/* Removes the oldest entries until another one fits. */
static void room_make(const struct file_cache *cache, uint64_t bytes)
{
	struct contents contents = contents_read(cache);

	while (contents.oldest[0] &&
	       (contents.bytes + bytes > FILE_CACHE_BYTES_MAX ||
		contents.count >= FILE_CACHE_ENTRIES_MAX) &&
	       !unlinkat(cache->folder, contents.oldest, 0))
		contents = contents_read(cache);
}

void file_cache_put(const struct file_cache *cache, const struct file_cache_file *file,
		    const struct file_cache_key *key, const struct wire_out *reply)
{
	size_t size = key->request.bytes.len + reply->bytes.len;
	char name[NAME_SIZE], temporary[NAME_SIZE];
	struct entry_header header;
	bool good;
	int fd;

	if (reply->no_memory || key->request.no_memory || size > PAYLOAD_MAX)
		return;
	room_make(cache, sizeof(header) + size);
	header_make(&header, file, key);
	header.payload = size;
	header.check = checksum(reply->bytes.data, reply->bytes.len);
	entry_name(name, &file->status, key);
	snprintf(temporary, sizeof(temporary), TEMPORARY "%d-%jx", getpid(),
		 (uintmax_t)file->status.st_ino);
	fd = openat(cache->folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return;
	good = !output_write(fd, &header, sizeof(header)) &&
	       !output_write(fd, key->request.bytes.data, key->request.bytes.len) &&
	       !output_write(fd, reply->bytes.data, reply->bytes.len);
	good = !close(fd) && good;
	if (!good || renameat(cache->folder, temporary, cache->folder, name))
		unlinkat(cache->folder, temporary, 0);
}
