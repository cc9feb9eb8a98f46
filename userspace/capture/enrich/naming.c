// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/naming_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/hash.h"
#include "util/keymap.h"
#include "util/vec.h"

#define OBJECTS_MAX (1u << 20)
#define AGAIN_NS 100000000ull /* minimum interval of lookups for names that may change */
/* Lookups may take so much time at once, and this share of the total time. */
#define BUDGET_NS 200000000ull
#define BUDGET_PART 20

/* Kinds of objects whose names change with time or may improve. */
enum object_kind {
	OBJECT_FIXED,
	/* Many objects share an inode, so the key has process and descriptor. */
	OBJECT_BY_DESCRIPTOR,
	OBJECT_WEAK, /* the process was gone: only the inode is known */
};

struct object_row {
	struct file_key key;
	uint32_t pid, fd; /* for objects known by their descriptor only; else 0 */
	uint32_t number;
	uint64_t name_hash;
	uint64_t looked_ts;
	enum object_kind kind;
};

struct naming {
	struct store_writer *writer;
	uint32_t count;      /* number of objects written */
	struct keymap index; /* inode, device, descriptor and process → index in `rows` */
	VEC(struct object_row) rows;
	uint64_t start_ts, spent_ns;
	struct descriptor found; /* too large for the stack */
};

int naming_open(struct naming **naming, struct store_writer *writer, struct error *err)
{
	*naming = calloc(1, sizeof(**naming));
	if (!*naming)
		return error_set(err, ENOMEM, "out of memory");
	(*naming)->writer = writer;
	(*naming)->start_ts = clock_monotonic_ns();
	return 0;
}

void naming_close(struct naming *naming)
{
	if (!naming)
		return;
	keymap_free(&naming->index);
	vec_free(&naming->rows);
	free(naming);
}

/* The row of a key. A new row has number 0 and looked_ts 0. NULL: there is no room. */
static struct object_row *row_get(struct naming *naming, const struct file_key *key, uint32_t pid,
				  uint32_t fd)
{
	const uint64_t words[] = {key->ino, key->dev, pid, fd};
	struct object_row row = {.key = *key, .pid = pid, .fd = fd};
	uint32_t index = keymap_get(&naming->index, words, sizeof(words));

	if (index != MAP_NONE)
		return &naming->rows.data[index];
	if (naming->rows.len >= OBJECTS_MAX || !vec_push(&naming->rows, row))
		return NULL;
	if (!keymap_set(&naming->index, words, sizeof(words), (uint32_t)naming->rows.len - 1)) {
		naming->rows.len--;
		return NULL;
	}
	return &naming->rows.data[naming->rows.len - 1];
}

static int row_write(struct naming *naming, struct object_row *row, uint32_t pid, struct error *err)
{
	/* A changed detail makes a different object, even with the same name. */
	uint64_t name_hash =
		hash_bytes(hash_begin_secret(), naming->found.name, strlen(naming->found.name) + 1);
	uint64_t hash = hash_text(name_hash, naming->found.detail);
	struct store_object object = {.ino = row->key.ino,
				      .dev = row->key.dev,
				      .pid = pid,
				      .name = naming->found.name,
				      .detail = naming->found.detail};
	int result;

	if (row->number && row->name_hash == hash)
		return 0;
	if (naming->count >= OBJECTS_MAX || !store_writer_has_room(naming->writer))
		return 0;
	result = store_writer_add_object(naming->writer, &object, err);
	if (result)
		return result;
	row->name_hash = hash;
	row->number = ++naming->count;
	return 0;
}

static bool is_by_descriptor(const char *name)
{
	return !strncmp(name, "anon_inode:", strlen("anon_inode:"));
}

static bool too_dear(const struct naming *naming, uint64_t now)
{
	return naming->spent_ns >= BUDGET_NS + (now - naming->start_ts) / BUDGET_PART;
}

/* Looks up a file and charges the time to the budget. */
static int look_up(struct naming *naming, pid_t pid, int fd, const struct file_key *key)
{
	uint64_t begin = clock_monotonic_ns();
	int result = -EAGAIN;

	if (!too_dear(naming, begin))
		result = pid ? descriptor_find(&naming->found, pid, fd, key) : -ESRCH;
	naming->spent_ns += clock_monotonic_ns() - begin;
	return result;
}

/* Kinds of anonymous inodes that threads wait for, by their names in the kernel's sources. */
static const char *anonymous_name(const char *kind)
{
	static const char *const names[] = {
		"[eventpoll]", "[eventfd]",     "[timerfd]",    "[signalfd]", "[io_uring]",
		"[fanotify]",  "[userfaultfd]", "[perf_event]", "[pidfd]",    "inotify"};

	for (size_t i = 0; *kind && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(kind, names[i], 8))
			return names[i];
	return NULL;
}

/* An anonymous file has a name even if its process is gone. */
static int64_t anonymous_file(struct naming *naming, pid_t pid, int fd, const struct file_key *key,
			      const char *name, struct error *err)
{
	struct object_row *row = row_get(naming, key, (uint32_t)pid, (uint32_t)fd);
	uint64_t now = clock_monotonic_ns();
	int result;

	if (!row)
		return 0;
	snprintf(naming->found.name, sizeof(naming->found.name), "anon_inode:%s", name);
	naming->found.detail[0] = '\0';
	if (!strcmp(name, "[eventpoll]")) {
		if (row->number && (now - row->looked_ts < AGAIN_NS || too_dear(naming, now)))
			return row->number;
		if (!too_dear(naming, now))
			epoll_watched(naming->found.detail, sizeof(naming->found.detail), pid, fd);
		naming->spent_ns += clock_monotonic_ns() - now;
		row->looked_ts = now;
		if (row->number && !naming->found.detail[0]) /* the process is gone */
			return row->number;
	}
	result = row_write(naming, row, (uint32_t)pid, err);
	return result ? result : (int64_t)row->number;
}

int64_t naming_file(struct naming *naming, pid_t pid, int fd, const struct file_key *key,
		    const char *kind, struct error *err)
{
	const char *anonymous = anonymous_name(kind);
	struct object_row *row;
	uint64_t now = clock_monotonic_ns();
	int result;

	if (anonymous)
		return anonymous_file(naming, pid, fd, key, anonymous, err);
	row = row_get(naming, key, 0, 0);
	if (row && row->kind == OBJECT_BY_DESCRIPTOR)
		row = row_get(naming, key, (uint32_t)pid, (uint32_t)fd);
	if (!row)
		return 0;
	if (row->looked_ts && (row->kind == OBJECT_FIXED || now - row->looked_ts < AGAIN_NS) &&
	    !(row->pid && now - row->looked_ts >= AGAIN_NS))
		return row->number;
	result = look_up(naming, pid, fd, key);
	if (result == -EAGAIN)
		return row->number;
	if (!result && !row->pid && is_by_descriptor(naming->found.name)) {
		row->kind = OBJECT_BY_DESCRIPTOR;
		row = row_get(naming, key, (uint32_t)pid, (uint32_t)fd);
		if (!row)
			return 0;
	}
	row->looked_ts = now;
	if (result) {
		if (row->pid || row->number)
			return row->number;
		row->kind = OBJECT_WEAK;
		if (!descriptor_of_inode(&naming->found, key))
			return 0;
	} else {
		row->kind = OBJECT_FIXED;
	}
	result = row_write(naming, row, (uint32_t)pid, err);
	return result ? result : (int64_t)row->number;
}

static int64_t named_once(struct naming *naming, struct object_row *row, bool found,
			  struct error *err)
{
	int result = found ? row_write(naming, row, 0, err) : 0;

	row->looked_ts = clock_monotonic_ns();
	return result ? result : (int64_t)row->number;
}

int64_t naming_device(struct naming *naming, uint32_t dev, struct error *err)
{
	struct descriptor *found = &naming->found;
	struct object_row *row = row_get(naming, &(struct file_key){.dev = dev}, 0, 0);

	if (!row || row->looked_ts)
		return row ? row->number : 0;
	strcpy(found->detail, "block device");
	return named_once(naming, row, block_device_name(found->name, sizeof(found->name), dev),
			  err);
}

int64_t naming_cgroup(struct naming *naming, pid_t tid, uint64_t ino, struct error *err)
{
	struct descriptor *found = &naming->found;
	struct object_row *row = row_get(naming, &(struct file_key){.ino = ino}, 0, 0);

	if (!row || row->looked_ts)
		return row ? row->number : 0;
	strcpy(found->detail, "cgroup");
	return named_once(naming, row, cgroup_path(found->name, sizeof(found->name), tid, ino),
			  err);
}
