// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/memory_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/address_space/hit_image.h"
#include "target/elf/buildid.h"
#include "target/process/address_space.h"
#include "target/process/mapping_file.h"
#include "target/process/process.h"
#include "target/process/program_facts.h"
#include "target/worker/worker_queue.h"
#include "util/clock.h"
#include "util/keymap.h"
#include "util/map.h"
#include "util/vec.h"

#define PROCESSES_MAX 16384
#define HELD_MAX 32            /* the kernel maps a program, its loader and the vDSO */
#define WRITTEN_MAX (1u << 21) /* mappings of all living processes, and files */
#define RESCAN_MIN_NS 20000000ull
#define SWEEP_NS 5000000000ull
#define RESCAN_MAX_NS 10000000000ull
#define LATE_MAX 256            /* files that are still being parsed, and open */
#define LATE_MAPPINGS_MAX 65536 /* of all of these files */
#define LATE_NS 50000000ull

struct known_memory {
	pid_t pid;                /* 0: unused */
	struct mappings mappings; /* sorted by address */
	struct mappings told;     /* the same, but only those that the kernel reported */
	uint64_t next_ts;         /* do not read them again before */
	uint64_t gap_ns;
	uint64_t read_ts;            /* time of the last read; 0: never */
	uint64_t begin_ts;           /* start of the program of `mappings`; 0: unknown */
	uint64_t told_ts;            /* the last event since then */
	bool whole;                  /* no code is missing, as far as is known */
	bool begun;                  /* a new program was reported; its exec record is pending */
	uint64_t begun_ts;           /* time of that, even if events were lost since; 0: none */
	VEC(struct mmap_event) held; /* mappings of that program; paths are copies */
};

/* The facts of a program or library that tell where its code is. */
struct memory_program {
	struct build_id build_id;
	struct store_segment segments[STORE_SEGMENTS_MAX];
	uint32_t segment_count;
};

/* When and how a mapping was seen. */
struct sighting {
	pid_t pid;
	uint64_t ts;
	bool told; /* reported by the kernel, not read from /proc */
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

struct memory {
	const struct kernel *kernel;
	struct store_writer *writer;
	struct map pids;    /* pid → index in `known` */
	struct map parents; /* of processes that run their parent's program */
	VEC(struct known_memory) known;
	VEC(uint32_t) unused;     /* indexes in `known` */
	uint64_t sweep_ts;        /* time of the last search for processes that are gone */
	struct keymap written;    /* mapping_key() of those that the capture has */
	struct keymap program_of; /* inode and device of a file → index in `programs` */
	VEC(struct memory_program) programs;
	VEC(struct late) late;
	size_t late_count; /* number of their mappings */
	uint64_t late_ts;  /* time of their last check */
	uint64_t unparsed; /* see memory_unparsed() */
};

int memory_open(struct memory **memory, const struct kernel *kernel, struct store_writer *writer,
		struct error *err)
{
	*memory = calloc(1, sizeof(**memory));
	if (!*memory)
		return error_set(err, ENOMEM, "out of memory");
	(*memory)->kernel = kernel;
	(*memory)->writer = writer;
	return 0;
}

static void held_free(struct known_memory *known)
{
	for (size_t i = 0; i < known->held.len; i++)
		free(known->held.data[i].mapping.path);
	vec_free(&known->held);
	known->begun_ts = 0;
}

static void known_free(struct known_memory *known)
{
	mappings_free(&known->mappings);
	mappings_free(&known->told);
	held_free(known);
}

static void late_free(struct late *late)
{
	for (size_t i = 0; i < late->mappings.len; i++)
		free(late->mappings.data[i].mapping.path);
	vec_free(&late->mappings);
	free(late->path);
	close(late->fd);
}

void memory_close(struct memory *memory)
{
	if (!memory)
		return;
	for (size_t i = 0; i < memory->known.len; i++)
		known_free(&memory->known.data[i]);
	vec_free(&memory->known);
	vec_free(&memory->unused);
	vec_free(&memory->programs);
	for (size_t i = 0; i < memory->late.len; i++)
		late_free(&memory->late.data[i]);
	vec_free(&memory->late);
	map_free(&memory->pids);
	map_free(&memory->parents);
	keymap_free(&memory->written);
	keymap_free(&memory->program_of);
	free(memory);
}

/* Everything up to this time is known. */
static uint64_t last_ts(const struct known_memory *known)
{
	return known->told_ts > known->read_ts ? known->told_ts : known->read_ts;
}

/* Whether a mapping replaces a mapping of a file. */
static bool replaces_file(const struct known_memory *known, const struct mapping *mapping)
{
	const struct mapping *list = known->mappings.list.data;

	for (size_t i = address_space_after(&known->mappings, mapping->start);
	     i < known->mappings.list.len && list[i].start < mapping->end; i++)
		if (list[i].ino)
			return true;
	return false;
}

/* -EAGAIN: it is still being parsed. */
static int program_read(struct memory_program *program, int fd, const char *path)
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
static const struct memory_program *program_known(const struct memory *memory, uint64_t ino,
						  uint32_t dev)
{
	const uint64_t key[] = {ino, dev};
	uint32_t index = keymap_get(&memory->program_of, key, sizeof(key));

	return index == MAP_NONE ? NULL : &memory->programs.data[index];
}

/* The same, read now. *result: -EAGAIN: it is still being parsed. */
static const struct memory_program *program_add(struct memory *memory, uint64_t ino, uint32_t dev,
						int fd, const char *path, int *result)
{
	const uint64_t key[] = {ino, dev};
	struct memory_program program = {0};

	*result = program_read(&program, fd, path);
	if (*result || memory->programs.len >= WRITTEN_MAX || !vec_push(&memory->programs, program))
		return NULL;
	keymap_set(&memory->program_of, key, sizeof(key), (uint32_t)memory->programs.len - 1);
	return &memory->programs.data[memory->programs.len - 1];
}

static struct late *late_find(const struct memory *memory, const struct mapping *mapping)
{
	for (size_t i = 0; i < memory->late.len; i++)
		if (memory->late.data[i].ino == mapping->ino &&
		    memory->late.data[i].dev == mapping->dev)
			return &memory->late.data[i];
	return NULL;
}

/* Takes ownership of the descriptor. NULL: no room. */
static struct late *late_open(struct memory *memory, const struct mapping *mapping, int fd,
			      const char *path)
{
	struct late late = {.ino = mapping->ino, .dev = mapping->dev, .fd = fd};

	late.path = memory->late.len < LATE_MAX ? strdup(path) : NULL;
	if (late.path && vec_push(&memory->late, late))
		return &memory->late.data[memory->late.len - 1];
	late_free(&late);
	return NULL;
}

/* -EAGAIN: the mapping waits for its file. 0: there is no room, so it is written without facts. */
static int late_add(struct memory *memory, struct late *late, const struct mapping *mapping,
		    struct sighting seen)
{
	struct late_mapping waiting = {*mapping, seen};
	bool room = late && memory->late_count < LATE_MAPPINGS_MAX;

	waiting.mapping.path = room ? strdup(mapping->path) : NULL;
	if (waiting.mapping.path && vec_push(&late->mappings, waiting)) {
		memory->late_count++;
		return -EAGAIN;
	}
	free(waiting.mapping.path);
	memory->unparsed++;
	return 0;
}

/* The facts of an executable file, read once per file. NULL: none. *result -EAGAIN: it is still
 * being parsed, and the mapping was added to `late`. */
static const struct memory_program *program_of(struct memory *memory, const struct mapping *mapping,
					       struct sighting seen, int *result)
{
	const struct memory_program *program = program_known(memory, mapping->ino, mapping->dev);
	struct late *late = late_find(memory, mapping);
	char path[4096];
	int fd;

	*result = !program && late ? late_add(memory, late, mapping, seen) : 0;
	if (program || late)
		return program;
	/* An event may be old, so the process may have other mappings by now. */
	fd = seen.told ? mapping_open_same(mapping, seen.pid, path, sizeof(path))
		       : mapping_open(mapping, seen.pid, path, sizeof(path));
	if (fd < 0)
		return NULL;
	program = program_add(memory, mapping->ino, mapping->dev, fd, path, result);
	if (*result == -EAGAIN)
		*result = late_add(memory, late_open(memory, mapping, fd, path), mapping, seen);
	else
		close(fd);
	return program;
}

static void mapping_describe(struct store_mapping *row, const struct memory_program *program)
{
	const struct build_id *id = &program->build_id;

	if (id->size && id->size <= sizeof(row->build_id)) {
		memcpy(row->build_id, id->bytes, id->size);
		row->build_id_bytes = id->size;
	}
	row->segments = program->segments;
	row->segment_count = program->segment_count;
}

/* Key of a written mapping. A mapping that the kernel reported has a separate key, since only its
 * time is exact. */
struct mapping_key {
	uint64_t words[6];
};

static struct mapping_key mapping_key(pid_t pid, const struct mapping *mapping, bool told)
{
	return (struct mapping_key){{(uint64_t)pid << 1 | told, mapping->start, mapping->end,
				     mapping->offset, mapping->ino, mapping->dev}};
}

static bool is_written(const struct memory *memory, pid_t pid, const struct mapping *mapping,
		       bool told)
{
	struct mapping_key key = mapping_key(pid, mapping, told);

	return keymap_get(&memory->written, &key, sizeof(key)) != MAP_NONE;
}

static bool remember_written(struct memory *memory, pid_t pid, const struct mapping *mapping,
			     bool told)
{
	struct mapping_key key = mapping_key(pid, mapping, told);

	return keymap_set(&memory->written, &key, sizeof(key), 1);
}

static void forget_written(struct memory *memory, pid_t pid, const struct mapping *mapping)
{
	for (unsigned told = 0; told < 2; told++) {
		struct mapping_key key = mapping_key(pid, mapping, told);

		keymap_remove(&memory->written, &key, sizeof(key));
	}
}

/* Forgets replaced mappings, so that they are written again if they come back. */
static void forget_replaced(struct memory *memory, const struct mappings *mappings, pid_t pid,
			    const struct mapping *mapping)
{
	const struct mapping *list = mappings->list.data;

	for (size_t i = address_space_after(mappings, mapping->start);
	     i < mappings->list.len && list[i].start < mapping->end; i++)
		if (list[i].ino != mapping->ino || list[i].dev != mapping->dev)
			forget_written(memory, pid, &list[i]);
}

static void forget_all(struct memory *memory, struct mappings *mappings, pid_t pid)
{
	for (size_t i = 0; i < mappings->list.len; i++)
		forget_written(memory, pid, &mappings->list.data[i]);
	mappings_free(mappings);
}

static int row_write(struct memory *memory, struct store_mapping *row,
		     const struct memory_program *program, struct error *err)
{
	if (program)
		mapping_describe(row, program);
	return store_writer_add_mapping(memory->writer, row, err);
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

/*
 * Writes a mapping, unless the capture has it already. The file of an event may be inaccessible,
 * for example in a mount namespace whose processes are gone. Then it is written without a path,
 * which might name another file here. Such mappings and anonymous code are only written where they
 * replace a file in `known`. A mapping read from /proc has no start time.
 */
static int mapping_write(struct memory *memory, const struct known_memory *known,
			 const struct mapping *mapping, struct sighting seen, struct error *err)
{
	struct store_mapping row = row_of(mapping, seen);
	const struct memory_program *program = NULL;
	int parsed = 0;

	forget_replaced(memory, seen.told ? &known->told : &known->mappings, seen.pid, mapping);
	if ((!mapping->ino && !mapping->executable) ||
	    is_written(memory, seen.pid, mapping, seen.told) || memory->written.len >= WRITTEN_MAX)
		return 0;
	if (mapping->ino && mapping->executable)
		program = program_of(memory, mapping, seen, &parsed);
	if (!mapping->ino || (seen.told && !program && !parsed)) {
		if (!replaces_file(known, mapping))
			return 0;
		row.path = "";
		row.ino = row.dev = 0;
		if (!seen.told)
			row.ts = last_ts(known) + 1;
	} else if (!remember_written(memory, seen.pid, mapping, seen.told) ||
		   !remember_written(memory, seen.pid, mapping, false)) {
		return 0;
	}
	return parsed ? 0 : row_write(memory, &row, program, err);
}

/* Writes the mappings of a file if it has been parsed, or in any case with `anyway`. Returns
 * whether it did. */
static bool late_write(struct memory *memory, const struct late *late, bool anyway, int *failed,
		       struct error *err)
{
	int result;
	const struct memory_program *program =
		program_add(memory, late->ino, late->dev, late->fd, late->path, &result);

	if (result == -EAGAIN && !anyway)
		return false;
	if (!program)
		memory->unparsed += late->mappings.len;
	for (size_t i = 0; i < late->mappings.len && !*failed; i++) {
		const struct late_mapping *one = &late->mappings.data[i];
		struct store_mapping row = row_of(&one->mapping, one->seen);

		*failed = row_write(memory, &row, program, err);
	}
	return true;
}

int memory_late(struct memory *memory, bool all, struct error *err)
{
	uint64_t now = clock_monotonic_ns(), wait_until_ns;
	int failed = 0;

	if (!memory->late.len || (!all && now - memory->late_ts < LATE_NS))
		return 0;
	memory->late_ts = now;
	wait_until_ns = worker_queue_wait_until(all ? now + LATE_NS : 0);
	for (size_t i = memory->late.len; i > 0 && !failed; i--) {
		struct late *late = &memory->late.data[i - 1];

		if (!late_write(memory, late, all, &failed, err))
			continue;
		memory->late_count -= late->mappings.len;
		late_free(late);
		*late = memory->late.data[--memory->late.len];
	}
	worker_queue_wait_until(wait_until_ns);
	return failed;
}

uint64_t memory_unparsed(const struct memory *memory)
{
	return memory->unparsed;
}

/*
 * The mappings of the program that a process ran at `ts`. If that is gone and was its parent's: the
 * last known mappings of the parent. False: unknown.
 */
static bool mappings_at(const struct memory *memory, pid_t pid, uint64_t ts,
			struct mappings *mappings, const struct mappings **seen)
{
	uint32_t parent = map_get(&memory->parents, (uint64_t)pid);
	uint32_t index = parent == MAP_NONE ? MAP_NONE : map_get(&memory->pids, parent);

	*seen = mappings;
	if (!hit_image_mappings(mappings, memory->kernel, pid, ts, true))
		return true;
	*mappings = (struct mappings){0};
	if (index == MAP_NONE)
		return false;
	*seen = &memory->known.data[index].mappings;
	return true;
}

/* 0: unknown. */
static uint64_t program_begin(const struct memory *memory, pid_t pid)
{
	uint64_t since = memory->kernel ? kernel_program_since(memory->kernel, pid) : 0;

	return since == UINT64_MAX ? 0 : since;
}

/*
 * Reads the mappings for a record of `ts`. *news: some of the ranges are new. The rows get a time
 * before the read: an event reported meanwhile is then later than the row and takes its place.
 * Those of a parent get the time of the record, since the process may run another program by now.
 */
static int scan(struct memory *memory, struct known_memory *known, pid_t pid, uint64_t ts,
		bool *news, struct error *err)
{
	uint64_t now = clock_monotonic_ns();
	struct sighting sighting = {pid, now, false};
	const struct mappings *seen;
	struct mappings mappings;
	int result = 0;

	*news = false;
	if (!mappings_at(memory, pid, ts, &mappings, &seen))
		return 0;
	if (seen != &mappings)
		sighting.ts = ts;
	for (size_t i = 0; i < seen->list.len && i < ADDRESS_SPACE_MAX && !result; i++) {
		result = mapping_write(memory, known, &seen->list.data[i], sighting, err);
		*news = *news || !address_space_at(&known->mappings, seen->list.data[i].start);
	}
	if (seen == &mappings) {
		mappings_free(&known->mappings);
		known->mappings = mappings;
		known->read_ts = now;
		known->begin_ts = program_begin(memory, pid);
		known->whole = true;
	}
	return result;
}

/* The exit of an untraced process is not reported, so check for processes that are gone. */
static void forget_gone(struct memory *memory)
{
	uint64_t now = clock_monotonic_ns();

	if (now - memory->sweep_ts < SWEEP_NS)
		return;
	memory->sweep_ts = now;
	for (size_t i = 0; i < memory->known.len; i++) {
		pid_t pid = memory->known.data[i].pid;

		if (pid && kill(pid, 0) && errno == ESRCH)
			memory_forget(memory, pid);
	}
}

static struct known_memory *known_of(struct memory *memory, pid_t pid)
{
	uint32_t index = map_get(&memory->pids, (uint64_t)pid);

	if (index != MAP_NONE)
		return &memory->known.data[index];
	if (!memory->unused.len)
		forget_gone(memory);
	if (memory->unused.len) {
		index = memory->unused.data[--memory->unused.len];
	} else {
		index = (uint32_t)memory->known.len;
		if (index >= PROCESSES_MAX || !vec_push(&memory->known, (struct known_memory){0}))
			return NULL;
	}
	memory->known.data[index] = (struct known_memory){.pid = pid, .gap_ns = RESCAN_MIN_NS};
	map_set(&memory->pids, (uint64_t)pid, index);
	return &memory->known.data[index];
}

int memory_need(struct memory *memory, pid_t pid, uint64_t ts, const uint64_t *addresses,
		uint32_t count, struct error *err)
{
	struct known_memory *known = known_of(memory, pid);
	bool missing = !count, news;
	uint64_t now;
	int result;

	if (!known || ts < known->begin_ts)
		return 0;
	for (uint32_t i = 0; i < count && !missing; i++)
		missing = !address_space_at(&known->mappings, addresses[i]);
	if (!missing)
		return 0;
	now = clock_monotonic_ns();
	if (now < known->next_ts)
		return 0;
	result = scan(memory, known, pid, ts, &news, err);
	known->gap_ns = news ? RESCAN_MIN_NS : known->gap_ns * 2;
	if (known->gap_ns > RESCAN_MAX_NS)
		known->gap_ns = RESCAN_MAX_NS;
	known->next_ts = now + known->gap_ns;
	return result;
}

uint32_t memory_code(const struct memory *memory, pid_t pid, uint64_t ts, const uint64_t *addresses,
		     uint32_t count)
{
	uint32_t index = map_get(&memory->pids, (uint64_t)pid);
	const struct known_memory *known = index == MAP_NONE ? NULL : &memory->known.data[index];

	if (!known || !known->whole || !known->mappings.list.len || ts < known->begin_ts)
		return count;
	for (uint32_t i = 0; i < count; i++) {
		const struct mapping *range = address_space_at(&known->mappings, addresses[i]);

		if (i && (!range || !range->executable))
			return i;
	}
	return count;
}

void memory_fork(struct memory *memory, pid_t parent, pid_t child)
{
	uint32_t index = map_get(&memory->pids, (uint64_t)child);

	/* A stack of the child may have preceded this record and found nothing, if the child is
	 * gone. Now its parent's mappings are used. */
	if (index != MAP_NONE)
		memory->known.data[index].next_ts = 0;
	if (memory->parents.len < PROCESSES_MAX)
		map_set(&memory->parents, (uint64_t)child, (uint32_t)parent);
}

/* ---- mapping events ---- */

static int told_mapping(struct memory *memory, struct known_memory *known,
			const struct mmap_event *event, struct error *err)
{
	const struct mapping *mapping = &event->mapping;
	int result = mapping_write(memory, known, mapping,
				   (struct sighting){event->pid, event->ts, true}, err);

	/* If there is no room, a file that comes back keeps its previous name. */
	address_space_map(&known->told, mapping);
	if (event->ts <= known->read_ts)
		return result;
	known->told_ts = event->ts;
	if (!address_space_map(&known->mappings, mapping))
		known->whole = false;
	return result;
}

/* Whether an event belongs to a program that may still turn out to be privileged. If the mappings
 * could be read since the program began, it is not. */
static bool must_wait(const struct known_memory *known, const struct mmap_event *event)
{
	bool was_read = known->read_ts > known->begun_ts && event->ts > known->read_ts;

	return known->begun_ts && !was_read;
}

/* An event without room is not lost: its mapping is found when the mappings are read. */
static void told_hold(struct known_memory *known, const struct mmap_event *event)
{
	struct mmap_event held = *event;

	held.mapping.path = known->held.len < HELD_MAX ? strdup(event->mapping.path) : NULL;
	if (!held.mapping.path || !vec_push(&known->held, held)) {
		free(held.mapping.path);
		known->whole = false;
	}
}

/* The first mappings of a new program precede the record of its exec. */
static void told_exec(struct memory *memory, struct known_memory *known,
		      const struct mmap_event *event)
{
	held_free(known);
	known->begun_ts = event->ts;
	known->begun = true;
	map_remove(&memory->parents, (uint64_t)event->pid);
	if (event->ts > known->begin_ts)
		known->begin_ts = event->ts;
	forget_all(memory, &known->told, event->pid);
	if (event->ts <= known->read_ts)
		return;
	forget_all(memory, &known->mappings, event->pid);
	known->whole = true;
}

int memory_told(struct memory *memory, const struct mmap_event *event, bool may_get_rights,
		struct error *err)
{
	struct known_memory *known;

	if (event->kind == MMAP_LOST) {
		for (size_t i = 0; i < memory->known.len; i++)
			memory->known.data[i].whole = memory->known.data[i].begun = false;
		return 0;
	}
	known = known_of(memory, event->pid);
	if (!known)
		return 0;
	if (event->kind == MMAP_EXEC)
		told_exec(memory, known, event);
	else if (may_get_rights && must_wait(known, event))
		told_hold(known, event);
	else
		return told_mapping(memory, known, event, err);
	return 0;
}

int memory_exec(struct memory *memory, pid_t pid, uint64_t ts, bool has_rights, struct error *err)
{
	uint32_t index = map_get(&memory->pids, (uint64_t)pid);
	struct known_memory *known = index == MAP_NONE ? NULL : &memory->known.data[index];
	int result = 0;

	for (size_t i = 0; known && !has_rights && i < known->held.len && !result; i++)
		result = told_mapping(memory, known, &known->held.data[i], err);
	if (!known || has_rights || !(known->begun || known->read_ts > ts)) {
		memory_forget(memory, pid);
		return result;
	}
	held_free(known);
	map_remove(&memory->parents, (uint64_t)pid);
	known->begun = false;
	known->next_ts = 0;
	known->gap_ns = RESCAN_MIN_NS;
	return result;
}

void memory_forget(struct memory *memory, pid_t pid)
{
	uint32_t index = map_remove(&memory->pids, (uint64_t)pid);

	map_remove(&memory->parents, (uint64_t)pid);
	if (index == MAP_NONE)
		return;
	forget_all(memory, &memory->known.data[index].mappings, pid);
	forget_all(memory, &memory->known.data[index].told, pid);
	held_free(&memory->known.data[index]);
	memory->known.data[index].pid = 0;
	if (!vec_push(&memory->unused, index))
		memory->known.data[index] = (struct known_memory){0}; /* the entry stays unused */
}
