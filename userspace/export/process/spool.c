// SPDX-License-Identifier: Apache-2.0
#include "export/process/spool_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/output.h"
#include "util/vec.h"

#define NAME_BYTES 64
/* More files are left for the next listing. */
#define NAMES_MAX 65536u

struct spool_name {
	char text[NAME_BYTES];
	uint64_t bytes;
};

struct spool {
	int folder, lock;
	bool owns; /* this process delivers */
	uint64_t limit_bytes;
	uint32_t number;
	VEC(struct spool_name) names; /* as of the last listing, oldest first */
	size_t next;                  /* in it */
	uint64_t bytes;               /* of all files, as of the last listing, and of those since */
	char current[NAME_BYTES];     /* of spool_first(); "": none */
};

int spool_open(struct spool **result, const char *path, uint64_t limit_bytes, struct error *err)
{
	struct spool *spool = calloc(1, sizeof(*spool));

	*result = NULL;
	if (!spool)
		return error_set(err, ENOMEM, "%s: out of memory", path);
	spool->limit_bytes = limit_bytes;
	spool->lock = -1;
	mkdir(path, 0700);
	spool->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (spool->folder >= 0)
		spool->lock = openat(spool->folder, "lock",
				     O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (spool->lock < 0) {
		int code = errno;

		spool_close(spool);
		return error_set(err, code, "%s: %s; spool= needs a folder that can be written",
				 path, strerror(code));
	}
	*result = spool;
	return 0;
}

void spool_close(struct spool *spool)
{
	if (!spool)
		return;
	if (spool->lock >= 0)
		close(spool->lock);
	if (spool->folder >= 0)
		close(spool->folder);
	vec_free(&spool->names);
	free(spool);
}

/* ---- listing ---- */

/* The numbers at the end of a name; false: it is not that of a parcel. */
static bool name_parse(const char *name, uint32_t *kind, uint32_t *records)
{
	unsigned long long time;
	unsigned pid, number;
	int end = 0;

	return strlen(name) < NAME_BYTES &&
	       sscanf(name, "%16llx-%8x-%8x-%u-%u.parcel%n", &time, &pid, &number, kind, records,
		      &end) == 5 &&
	       end && !name[end];
}

static int name_compare(const void *left, const void *right)
{
	return strcmp(((const struct spool_name *)left)->text,
		      ((const struct spool_name *)right)->text);
}

static void list(struct spool *spool)
{
	int fd = openat(spool->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	uint32_t kind, records;

	spool->names.len = spool->next = 0;
	spool->bytes = 0;
	if (!folder) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(folder)) && spool->names.len < NAMES_MAX) {
		struct spool_name name = {0};
		struct stat status;

		if (!name_parse(entry->d_name, &kind, &records) ||
		    fstatat(spool->folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(status.st_mode))
			continue;
		snprintf(name.text, sizeof(name.text), "%.63s", entry->d_name);
		name.bytes = (uint64_t)status.st_size;
		spool->bytes += name.bytes;
		if (!vec_push(&spool->names, name))
			break;
	}
	closedir(folder);
	if (spool->names.len)
		qsort(spool->names.data, spool->names.len, sizeof(*spool->names.data),
		      name_compare);
}

/* ---- writing ---- */

/* Removes the oldest parcels until there is room. */
static void room_make(struct spool *spool, uint64_t bytes, uint64_t *dropped)
{
	list(spool);
	while (spool->next < spool->names.len && spool->bytes + bytes > spool->limit_bytes) {
		const struct spool_name *name = &spool->names.data[spool->next++];
		uint32_t kind, records;

		if (name_parse(name->text, &kind, &records) &&
		    !unlinkat(spool->folder, name->text, 0))
			*dropped += records;
		spool->bytes -= name->bytes < spool->bytes ? name->bytes : spool->bytes;
	}
}

int spool_put(struct spool *spool, const struct parcel *parcel, uint64_t *dropped)
{
	char name[NAME_BYTES], temporary[NAME_BYTES + 4];
	int fd, result;

	if (parcel->len > spool->limit_bytes || parcel->len > SPOOL_PARCEL_MAX)
		return -ENOSPC;
	if (!spool->number || spool->bytes + parcel->len > spool->limit_bytes)
		room_make(spool, parcel->len, dropped);
	snprintf(name, sizeof(name), "%016" PRIx64 "-%08x-%08x-%u-%u.parcel",
		 clock_ns(CLOCK_REALTIME), (unsigned)getpid(), spool->number++, parcel->kind,
		 parcel->records);
	snprintf(temporary, sizeof(temporary), "%s.new", name);
	fd = openat(spool->folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return -errno;
	result = output_write(fd, parcel->data, parcel->len);
	if (close(fd) && !result)
		result = -errno;
	if (!result && renameat(spool->folder, temporary, spool->folder, name))
		result = -errno;
	if (result)
		unlinkat(spool->folder, temporary, 0);
	else
		spool->bytes += parcel->len;
	return result;
}

/* ---- reading ---- */

static struct parcel *parcel_read(const struct spool *spool, const char *name)
{
	int fd = openat(spool->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct parcel *parcel = NULL;
	struct stat status;
	uint32_t kind, records;
	size_t len = 0;

	if (fd < 0)
		return NULL;
	/* Another user's file could make this process send what it would not. */
	if (!fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
	    status.st_size <= SPOOL_PARCEL_MAX && name_parse(name, &kind, &records))
		parcel = malloc(sizeof(*parcel) + (size_t)status.st_size);
	if (parcel) {
		*parcel = (struct parcel){
			.kind = kind, .records = records, .len = (size_t)status.st_size};
		while (len < parcel->len) {
			ssize_t got = read(fd, parcel->data + len, parcel->len - len);

			if (got <= 0)
				break;
			len += (size_t)got;
		}
		if (len < parcel->len) {
			free(parcel);
			parcel = NULL;
		}
	}
	close(fd);
	return parcel;
}

struct parcel *spool_first(struct spool *spool)
{
	spool->owns = spool->owns || !flock(spool->lock, LOCK_EX | LOCK_NB);
	*spool->current = '\0';
	if (!spool->owns)
		return NULL;
	if (spool->next >= spool->names.len)
		list(spool);
	while (spool->next < spool->names.len) {
		const struct spool_name *name = &spool->names.data[spool->next];
		struct parcel *parcel = parcel_read(spool, name->text);

		if (parcel) {
			snprintf(spool->current, sizeof(spool->current), "%s", name->text);
			return parcel;
		}
		spool->next++;
	}
	return NULL;
}

void spool_remove(struct spool *spool)
{
	if (!*spool->current)
		return;
	unlinkat(spool->folder, spool->current, 0);
	/* A listing may have been made since. */
	if (spool->next < spool->names.len &&
	    !strcmp(spool->names.data[spool->next].text, spool->current)) {
		uint64_t bytes = spool->names.data[spool->next++].bytes;

		spool->bytes -= bytes < spool->bytes ? bytes : spool->bytes;
	}
	*spool->current = '\0';
}
