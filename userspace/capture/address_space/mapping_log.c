// SPDX-License-Identifier: Apache-2.0
#include "capture/address_space/mapping_log_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/elf/buildid.h"
#include "target/process/address_space.h"
#include "target/process/mapping_file.h"
#include "target/process/program_facts.h"
#include "target/worker/worker_queue.h"
#include "util/clock.h"
#include "util/keymap.h"
#include "util/vec.h"

#define PROGRAMS_MAX (1u << 14) /* whose facts are remembered */
#define LATE_MAX 256            /* files that are still being parsed, and open */
#define LATE_MAPPINGS_MAX 65536 /* of all of these files */
#define LATE_NS 50000000ull

/* The facts of a program or library that tell where its code is. */
struct mapped_program {
	struct build_id build_id;
	struct store_segment segments[STORE_SEGMENTS_MAX];
	uint32_t segment_count;
};

struct late_mapping {
	struct mapping mapping; /* with its own copy of the path */
	struct sighting seen;
};

/* A file that is still being parsed. Its mappings are written when that is done. */
struct late {
	uint64_t ino;
	uint32_t dev;
	int fd;
	char *path; /* as it was requested, since another path makes another request */
	VEC(struct late_mapping) mappings;
};

struct mapping_log {
	struct store_writer *writer;
	struct keymap program_of; /* inode and device of a file → index in `programs` */
	VEC(struct mapped_program) programs;
	VEC(struct late) late;
	size_t late_count; /* number of their mappings */
	uint64_t late_ts;  /* time of their last check */
	uint64_t unparsed; /* see mapping_log_unparsed() */
};

int mapping_log_open(struct mapping_log **log, struct store_writer *writer, struct error *err)
{
	*log = calloc(1, sizeof(**log));
	if (!*log)
		return error_set(err, ENOMEM, "out of memory");
	(*log)->writer = writer;
	return 0;
}

static void late_free(struct late *late)
{
	for (size_t i = 0; i < late->mappings.len; i++)
		free(late->mappings.data[i].mapping.path);
	vec_free(&late->mappings);
	free(late->path);
	close(late->fd);
}

void mapping_log_close(struct mapping_log *log)
{
	if (!log)
		return;
	vec_free(&log->programs);
	for (size_t i = 0; i < log->late.len; i++)
		late_free(&log->late.data[i]);
	vec_free(&log->late);
	keymap_free(&log->program_of);
	free(log);
}

/* Whether a mapping replaces a mapping of a file. */
static bool replaces_file(const struct known_mappings *known, const struct mapping *mapping)
{
	const struct mapping *list = known->now.list.data;

	for (size_t i = address_space_after(&known->now, mapping->start);
	     i < known->now.list.len && list[i].start < mapping->end; i++)
		if (list[i].ino)
			return true;
	return false;
}

/* -EAGAIN: it is still being parsed. */
static int program_read(struct mapped_program *program, int fd, const char *path)
{
	struct program_facts facts = {0};
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	int result = own < 0 ? -errno : program_facts_read(&facts, own, path);

	if (result)
		return result == -EAGAIN ? result : 0;
	program->build_id = facts.build_id;
	for (uint32_t i = 0; i < facts.segments.count && i < STORE_SEGMENTS_MAX; i++)
		program->segments[program->segment_count++] =
			(struct store_segment){.offset = facts.segments.list[i].offset,
					       .address = facts.segments.list[i].address,
					       .size = facts.segments.list[i].size};
	return 0;
}

/* NULL: it was not read yet. */
static const struct mapped_program *program_known(const struct mapping_log *log, uint64_t ino,
						  uint32_t dev)
{
	const uint64_t key[] = {ino, dev};
	uint32_t index = keymap_get(&log->program_of, key, sizeof(key));

	return index == MAP_NONE ? NULL : &log->programs.data[index];
}

/* Reads the facts of a file. *result -EAGAIN: it is still being parsed. */
static const struct mapped_program *program_add(struct mapping_log *log, uint64_t ino, uint32_t dev,
						int fd, const char *path, int *result)
{
	const uint64_t key[] = {ino, dev};
	struct mapped_program program = {0};

	*result = program_read(&program, fd, path);
	if (log->programs.len >= PROGRAMS_MAX) { /* most of them are gone, as after days */
		keymap_free(&log->program_of);
		log->programs.len = 0;
	}
	if (*result || !vec_push(&log->programs, program))
		return NULL;
	keymap_set(&log->program_of, key, sizeof(key), (uint32_t)log->programs.len - 1);
	return &log->programs.data[log->programs.len - 1];
}

static struct late *late_find(const struct mapping_log *log, const struct mapping *mapping)
{
	for (size_t i = 0; i < log->late.len; i++)
		if (log->late.data[i].ino == mapping->ino && log->late.data[i].dev == mapping->dev)
			return &log->late.data[i];
	return NULL;
}

/* Takes ownership of the descriptor. NULL: no room. */
static struct late *late_open(struct mapping_log *log, const struct mapping *mapping, int fd,
			      const char *path)
{
	struct late late = {.ino = mapping->ino, .dev = mapping->dev, .fd = fd};

	late.path = log->late.len < LATE_MAX ? strdup(path) : NULL;
	if (late.path && vec_push(&log->late, late))
		return &log->late.data[log->late.len - 1];
	late_free(&late);
	return NULL;
}

/* -EAGAIN: the mapping waits for its file. 0: there is no room, so it is written without facts. */
static int late_add(struct mapping_log *log, struct late *late, const struct mapping *mapping,
		    struct sighting seen)
{
	struct late_mapping waiting = {*mapping, seen};
	bool room = late && log->late_count < LATE_MAPPINGS_MAX;

	waiting.mapping.path = room ? strdup(mapping->path) : NULL;
	if (waiting.mapping.path && vec_push(&late->mappings, waiting)) {
		log->late_count++;
		return -EAGAIN;
	}
	free(waiting.mapping.path);
	log->unparsed++;
	return 0;
}

/* The facts of an executable file, read once per file. NULL: none. *result -EAGAIN: it is still
 * being parsed, and the mapping was added to `late`. */
static const struct mapped_program *program_of(struct mapping_log *log,
					       const struct mapping *mapping, struct sighting seen,
					       int *result)
{
	const struct mapped_program *program = program_known(log, mapping->ino, mapping->dev);
	struct late *late = late_find(log, mapping);
	char path[4096];
	int fd;

	*result = !program && late ? late_add(log, late, mapping, seen) : 0;
	if (program || late)
		return program;
	/* An event may be old, so the process may have other mappings by now. */
	fd = seen.reported ? mapping_open_same(mapping, seen.pid, path, sizeof(path))
			   : mapping_open(mapping, seen.pid, path, sizeof(path));
	if (fd < 0)
		return NULL;
	program = program_add(log, mapping->ino, mapping->dev, fd, path, result);
	if (*result == -EAGAIN)
		*result = late_add(log, late_open(log, mapping, fd, path), mapping, seen);
	else
		close(fd);
	return program;
}

static void mapping_describe(struct store_mapping *row, const struct mapped_program *program)
{
	const struct build_id *id = &program->build_id;

	if (id->size && id->size <= sizeof(row->build_id)) {
		memcpy(row->build_id, id->bytes, id->size);
		row->build_id_bytes = id->size;
	}
	row->segments = program->segments;
	row->segment_count = program->segment_count;
}

static int row_write(struct mapping_log *log, struct store_mapping *row,
		     const struct mapped_program *program, struct error *err)
{
	if (program)
		mapping_describe(row, program);
	return store_writer_add_mapping(log->writer, row, err);
}

static struct store_mapping row_of(const struct mapping *mapping, struct sighting seen)
{
	return (struct store_mapping){.ts = seen.ts,
				      .start = mapping->start,
				      .end = mapping->end,
				      .offset = mapping->offset,
				      .ino = mapping->ino,
				      .dev = mapping->dev,
				      .pid = (uint32_t)seen.pid,
				      .path = mapping->path};
}

/* Whether the capture has a mapping that was not replaced since. A row that was read does not
 * stand for a report, since only a report's time is exact. */
static bool is_written(const struct known_mappings *known, const struct mapping *mapping,
		       bool reported)
{
	const struct mapping *old =
		address_space_at(reported ? &known->reported : &known->now, mapping->start);

	return old && old->written && old->start == mapping->start && old->end == mapping->end &&
	       old->offset == mapping->offset && old->ino == mapping->ino &&
	       old->dev == mapping->dev;
}

/* A mapping read from /proc has no start time. */
int mapping_log_add(struct mapping_log *log, const struct known_mappings *known,
		    struct mapping *mapping, struct sighting seen, struct error *err)
{
	struct store_mapping row = row_of(mapping, seen);
	const struct mapped_program *program = NULL;
	int parsed = 0;

	mapping->written = is_written(known, mapping, seen.reported);
	if (mapping->written || (!mapping->ino && !mapping->executable))
		return 0;
	if (mapping->ino && mapping->executable)
		program = program_of(log, mapping, seen, &parsed);
	mapping->written = mapping->ino && (!seen.reported || program || parsed);
	if (!mapping->written) {
		if (!replaces_file(known, mapping))
			return 0;
		row.path = "";
		row.ino = row.dev = 0;
		if (!seen.reported) /* it was not there at that time */
			row.ts = known->last_ts + 1;
	}
	return parsed ? 0 : row_write(log, &row, program, err);
}

/* Writes the mappings of a file if it has been parsed, or in any case with `anyway`. Returns
 * whether it did. */
static bool late_write(struct mapping_log *log, const struct late *late, bool anyway, int *failed,
		       struct error *err)
{
	int result;
	const struct mapped_program *program =
		program_add(log, late->ino, late->dev, late->fd, late->path, &result);

	if (result == -EAGAIN && !anyway)
		return false;
	if (!program)
		log->unparsed += late->mappings.len;
	for (size_t i = 0; i < late->mappings.len && !*failed; i++) {
		const struct late_mapping *one = &late->mappings.data[i];
		struct store_mapping row = row_of(&one->mapping, one->seen);

		*failed = row_write(log, &row, program, err);
	}
	return true;
}

int mapping_log_late(struct mapping_log *log, bool all, struct error *err)
{
	uint64_t now = clock_monotonic_ns(), wait_until_ns;
	int failed = 0;

	if (!log->late.len || (!all && now - log->late_ts < LATE_NS))
		return 0;
	log->late_ts = now;
	wait_until_ns = worker_queue_wait_until(all ? now + LATE_NS : 0);
	for (size_t i = log->late.len; i > 0 && !failed; i--) {
		struct late *late = &log->late.data[i - 1];

		if (!late_write(log, late, all, &failed, err))
			continue;
		log->late_count -= late->mappings.len;
		late_free(late);
		*late = log->late.data[--log->late.len];
	}
	worker_queue_wait_until(wait_until_ns);
	return failed;
}

uint64_t mapping_log_unparsed(const struct mapping_log *log)
{
	return log->unparsed;
}
