// SPDX-License-Identifier: Apache-2.0
#include "capture/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/drain.h"
#include "capture/hit_image.h"
#include "target/buildid.h"
#include "target/program_facts.h"
#include "target/mapping_file.h"
#include "target/process.h"
#include "target/worker_queue.h"
#include "util/map.h"
#include "util/vec.h"

#define PROCESSES_MAX 16384
#define RANGES_MAX 65536       /* per process; vm.max_map_count */
#define HELD_MAX 32            /* the kernel maps a program, its loader and the vDSO */
#define WRITTEN_MAX (1u << 21) /* mappings of all living processes, and files */
#define RESCAN_MIN_NS 20000000ull
#define SWEEP_NS 5000000000ull
#define RESCAN_MAX_NS 10000000000ull
#define LATE_MAX 256 /* mappings whose file is still being parsed */
#define LATE_NS 50000000ull

struct known {
	pid_t pid;                /* 0: unused */
	struct mappings mappings; /* sorted by address */
	struct mappings told;     /* the same, but only those that the kernel reported */
	uint64_t next_ts;         /* do not read them again before */
	uint64_t gap_ns;
	uint64_t read_ts;            /* time of the last read; 0: never */
	uint64_t told_ts;            /* the last event since then */
	bool whole;                  /* no code is missing, as far as is known */
	bool begun;                  /* a new program was reported; its exec record is pending */
	uint64_t begun_ts;           /* time of that, even if events were lost since; 0: none */
	VEC(struct mmap_event) held; /* mappings of that program; paths are copies */
};

/* The facts of a program or library that tell where its code is. */
struct program {
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

/* A mapping that is written when its file has been parsed. */
struct late {
	struct mapping mapping;
	struct sighting seen;
	int fd;
};

struct memory {
	const struct kernel *kernel;
	struct store_writer *writer;
	struct map pids;    /* pid → index in `known` */
	struct map parents; /* of processes that run their parent's program */
	VEC(struct known) known;
	VEC(uint32_t) unused;  /* indexes in `known` */
	uint64_t sweep_ts;     /* time of the last search for processes that are gone */
	struct map written;    /* hashes of mappings */
	struct map program_of; /* hash of a file → index in `programs` */
	VEC(struct program) programs;
	VEC(struct late) late;
	uint64_t late_ts; /* time of their last check */
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

static void held_free(struct known *known)
{
	for (size_t i = 0; i < known->held.len; i++)
		free(known->held.data[i].mapping.path);
	vec_free(&known->held);
	known->begun_ts = 0;
}

static void known_free(struct known *known)
{
	mappings_free(&known->mappings);
	mappings_free(&known->told);
	held_free(known);
}

static void late_free(const struct late *late)
{
	free(late->mapping.path);
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
	map_free(&memory->written);
	map_free(&memory->program_of);
	free(memory);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

/* Index of the first mapping that ends after an address. */
static size_t first_behind(const struct mappings *mappings, uint64_t address)
{
	size_t low = 0, high = mappings->list.len;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (address >= mappings->list.data[middle].end)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const struct mapping *mapping_in(const struct mappings *mappings, uint64_t address)
{
	size_t at = first_behind(mappings, address);

	if (at == mappings->list.len || address < mappings->list.data[at].start)
		return NULL;
	return &mappings->list.data[at];
}

/* Everything up to this time is known. */
static uint64_t last_ts(const struct known *known)
{
	return known->told_ts > known->read_ts ? known->told_ts : known->read_ts;
}

/* Whether a mapping replaces a mapping of a file. */
static bool replaces_file(const struct known *known, const struct mapping *mapping)
{
	const struct mapping *list = known->mappings.list.data;

	for (size_t i = first_behind(&known->mappings, mapping->start);
	     i < known->mappings.list.len && list[i].start < mapping->end; i++)
		if (list[i].ino)
			return true;
	return false;
}

/* -EAGAIN: it is still being parsed. */
static int program_read(struct program *program, int fd, const char *path)
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

static uint64_t program_key(const struct mapping *mapping)
{
	return mix(mix(1, mapping->ino), mapping->dev);
}

/* NULL: it was not read yet. */
static const struct program *program_known(const struct memory *memory,
					   const struct mapping *mapping)
{
	uint32_t index = map_get(&memory->program_of, program_key(mapping));

	return index == MAP_NONE ? NULL : &memory->programs.data[index];
}

/* The same, read now. *result: -EAGAIN: it is still being parsed. */
static const struct program *program_add(struct memory *memory, const struct mapping *mapping,
					 int fd, const char *path, int *result)
{
	struct program program = {0};

	*result = program_read(&program, fd, path);
	if (*result || memory->programs.len >= WRITTEN_MAX || !vec_push(&memory->programs, program))
		return NULL;
	map_set(&memory->program_of, program_key(mapping), (uint32_t)memory->programs.len - 1);
	return &memory->programs.data[memory->programs.len - 1];
}

/* Takes ownership of the descriptor. Without room or memory, nothing is known of the file. */
static int late_add(struct memory *memory, const struct mapping *mapping, struct sighting seen,
		    int fd)
{
	struct late late = {*mapping, seen, fd};

	late.mapping.path = strdup(mapping->path);
	if (late.mapping.path && memory->late.len < LATE_MAX && vec_push(&memory->late, late))
		return -EAGAIN;
	late_free(&late);
	return 0;
}

/* The facts of an executable file, read once per file. NULL: none. *result -EAGAIN: it is still
 * being parsed, and the mapping was added to `late`. */
static const struct program *program_of(struct memory *memory, const struct mapping *mapping,
					struct sighting seen, int *result)
{
	const struct program *program = program_known(memory, mapping);
	char path[4096];
	int fd;

	*result = 0;
	if (program)
		return program;
	/* An event may be old, so the process may have other mappings by now. */
	fd = seen.told ? mapping_open_same(mapping, seen.pid, path, sizeof(path))
		       : mapping_open(mapping, seen.pid, path, sizeof(path));
	if (fd < 0)
		return NULL;
	program = program_add(memory, mapping, fd, path, result);
	if (*result == -EAGAIN)
		*result = late_add(memory, mapping, seen, fd);
	else
		close(fd);
	return program;
}

static void mapping_describe(struct store_mapping *row, const struct program *program)
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
static uint64_t mapping_key(pid_t pid, const struct mapping *mapping, bool told)
{
	uint64_t key = mix(mix(told ? 3 : 2, (uint32_t)pid), mapping->start);

	return mix(mix(mix(mix(key, mapping->end), mapping->offset), mapping->ino), mapping->dev);
}

static void forget_written(struct memory *memory, pid_t pid, const struct mapping *mapping)
{
	map_remove(&memory->written, mapping_key(pid, mapping, false));
	map_remove(&memory->written, mapping_key(pid, mapping, true));
}

/* Forgets replaced mappings, so that they are written again if they come back. */
static void forget_replaced(struct memory *memory, const struct mappings *mappings, pid_t pid,
			    const struct mapping *mapping)
{
	const struct mapping *list = mappings->list.data;

	for (size_t i = first_behind(mappings, mapping->start);
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
		     const struct program *program, struct error *err)
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
static int mapping_write(struct memory *memory, const struct known *known,
			 const struct mapping *mapping, struct sighting seen, struct error *err)
{
	struct store_mapping row = row_of(mapping, seen);
	uint64_t key = mapping_key(seen.pid, mapping, seen.told);
	const struct program *program = NULL;
	int parsed = 0;

	forget_replaced(memory, seen.told ? &known->told : &known->mappings, seen.pid, mapping);
	if ((!mapping->ino && !mapping->executable) || map_get(&memory->written, key) != MAP_NONE ||
	    memory->written.len >= WRITTEN_MAX)
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
	} else if (!map_set(&memory->written, key, 1) ||
		   !map_set(&memory->written, mapping_key(seen.pid, mapping, false), 1)) {
		return 0;
	}
	return parsed ? 0 : row_write(memory, &row, program, err);
}

/* Writes a mapping if its file has been parsed, or in any case with `anyway`. Returns whether it
 * did. */
static bool late_write(struct memory *memory, const struct late *late, bool anyway, int *failed,
		       struct error *err)
{
	struct store_mapping row = row_of(&late->mapping, late->seen);
	const struct program *program = program_known(memory, &late->mapping);
	int result = 0;

	if (!program)
		program =
			program_add(memory, &late->mapping, late->fd, late->mapping.path, &result);
	if (result == -EAGAIN && !anyway)
		return false;
	*failed = row_write(memory, &row, program, err);
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
		late_free(late);
		*late = memory->late.data[--memory->late.len];
	}
	worker_queue_wait_until(wait_until_ns);
	return failed;
}

/*
 * The mappings of a process. If it is gone and ran its parent's program: the last known mappings of
 * the parent. False: unknown. During an exec the program may gain privileges, so the mappings only
 * count if they certainly belong to an unprivileged program.
 */
static bool mappings_now(const struct memory *memory, pid_t pid, struct mappings *mappings,
			 const struct mappings **seen)
{
	uint32_t parent = map_get(&memory->parents, (uint64_t)pid);
	uint32_t index = parent == MAP_NONE ? MAP_NONE : map_get(&memory->pids, parent);
	uint64_t begin_ts = clock_monotonic_ns();
	struct error gone = ERROR_INIT;

	*seen = mappings;
	if (!process_mappings_all(mappings, pid, &gone)) {
		if (mappings->list.len && /* not a zombie */
		    hit_image_is_same(memory->kernel, pid, begin_ts))
			return true;
		mappings_free(mappings);
	}
	*mappings = (struct mappings){0};
	if (index == MAP_NONE)
		return false;
	*seen = &memory->known.data[index].mappings;
	return true;
}

/* Reads the mappings. *news: some of the ranges are new. */
static int scan(struct memory *memory, struct known *known, pid_t pid, bool *news,
		struct error *err)
{
	uint64_t now = clock_monotonic_ns();
	const struct mappings *seen;
	struct mappings mappings;
	int result = 0;

	*news = false;
	if (!mappings_now(memory, pid, &mappings, &seen))
		return 0;
	for (size_t i = 0; i < seen->list.len && i < RANGES_MAX && !result; i++) {
		result = mapping_write(memory, known, &seen->list.data[i],
				       (struct sighting){pid, now, false}, err);
		*news = *news || !mapping_in(&known->mappings, seen->list.data[i].start);
	}
	if (seen == &mappings) {
		mappings_free(&known->mappings);
		known->mappings = mappings;
		known->read_ts = now;
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

static struct known *known_of(struct memory *memory, pid_t pid)
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
		if (index >= PROCESSES_MAX || !vec_push(&memory->known, (struct known){0}))
			return NULL;
	}
	memory->known.data[index] = (struct known){.pid = pid, .gap_ns = RESCAN_MIN_NS};
	map_set(&memory->pids, (uint64_t)pid, index);
	return &memory->known.data[index];
}

int memory_need(struct memory *memory, pid_t pid, const uint64_t *addresses, uint32_t count,
		struct error *err)
{
	struct known *known = known_of(memory, pid);
	bool missing = !count, news;
	uint64_t now;
	int result;

	if (!known)
		return 0;
	for (uint32_t i = 0; i < count && !missing; i++)
		missing = !mapping_in(&known->mappings, addresses[i]);
	if (!missing)
		return 0;
	now = clock_monotonic_ns();
	if (now < known->next_ts)
		return 0;
	result = scan(memory, known, pid, &news, err);
	known->gap_ns = news ? RESCAN_MIN_NS : known->gap_ns * 2;
	if (known->gap_ns > RESCAN_MAX_NS)
		known->gap_ns = RESCAN_MAX_NS;
	known->next_ts = now + known->gap_ns;
	return result;
}

uint32_t memory_code(const struct memory *memory, pid_t pid, const uint64_t *addresses,
		     uint32_t count)
{
	uint32_t index = map_get(&memory->pids, (uint64_t)pid);
	const struct known *known = index == MAP_NONE ? NULL : &memory->known.data[index];

	if (!known || !known->whole || !known->mappings.list.len)
		return count;
	for (uint32_t i = 0; i < count; i++) {
		const struct mapping *range = mapping_in(&known->mappings, addresses[i]);

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

/* The part of a mapping in [start, end), with its own copy of the path. False: out of memory. */
static bool mapping_part(struct mapping *part, const struct mapping *of, uint64_t start,
			 uint64_t end)
{
	*part = *of;
	part->start = start;
	part->end = end;
	part->offset += start - of->start;
	part->path = strdup(of->path);
	return part->path;
}

/* Inserts a mapping in place of whatever it overlaps. False: out of memory. */
static bool mapping_insert(struct mappings *mappings, const struct mapping *mapping)
{
	struct mapping parts[3];
	struct mapping *list;
	size_t from = first_behind(mappings, mapping->start), to, count = 0;
	bool done = vec_reserve(&mappings->list, 2);

	list = mappings->list.data;
	for (to = from; to < mappings->list.len && list[to].start < mapping->end;)
		to++;
	if (done && from < to && list[from].start < mapping->start)
		done = mapping_part(&parts[count], &list[from], list[from].start, mapping->start) &&
		       ++count;
	if (done)
		done = mapping_part(&parts[count], mapping, mapping->start, mapping->end) &&
		       ++count;
	if (done && from < to && list[to - 1].end > mapping->end)
		done = mapping_part(&parts[count], &list[to - 1], mapping->end, list[to - 1].end) &&
		       ++count;
	for (size_t i = 0; !done && i < count; i++)
		free(parts[i].path);
	if (!done)
		return false;
	for (size_t i = from; i < to; i++)
		free(list[i].path);
	memmove(list + from + count, list + to, (mappings->list.len - to) * sizeof(*list));
	memcpy(list + from, parts, count * sizeof(*list));
	mappings->list.len += count - (to - from);
	return true;
}

static bool is_same(const struct mapping *a, const struct mapping *b)
{
	return a && a->start == b->start && a->end == b->end && a->offset == b->offset &&
	       a->ino == b->ino && a->dev == b->dev && a->executable == b->executable;
}

/* The same within the limit of ranges, unless the mapping is there already. False: no room. */
static bool mapping_put(struct mappings *mappings, const struct mapping *mapping)
{
	return is_same(mapping_in(mappings, mapping->start), mapping) ||
	       (mappings->list.len < RANGES_MAX && mapping_insert(mappings, mapping));
}

static int told_mapping(struct memory *memory, struct known *known, const struct mmap_event *event,
			struct error *err)
{
	const struct mapping *mapping = &event->mapping;
	int result = mapping_write(memory, known, mapping,
				   (struct sighting){event->pid, event->ts, true}, err);

	/* If there is no room, a file that comes back keeps its previous name. */
	mapping_put(&known->told, mapping);
	if (event->ts <= known->read_ts)
		return result;
	known->told_ts = event->ts;
	if (!mapping_put(&known->mappings, mapping))
		known->whole = false;
	return result;
}

/* Whether an event belongs to a program that may still turn out to be privileged. If the mappings
 * could be read since the program began, it is not. */
static bool must_wait(const struct known *known, const struct mmap_event *event)
{
	bool was_read = known->read_ts > known->begun_ts && event->ts > known->read_ts;

	return known->begun_ts && !was_read;
}

/* An event without room is not lost: its mapping is found when the mappings are read. */
static void told_hold(struct known *known, const struct mmap_event *event)
{
	struct mmap_event held = *event;

	held.mapping.path = known->held.len < HELD_MAX ? strdup(event->mapping.path) : NULL;
	if (!held.mapping.path || !vec_push(&known->held, held)) {
		free(held.mapping.path);
		known->whole = false;
	}
}

/* The first mappings of a new program precede the record of its exec. */
static void told_exec(struct memory *memory, struct known *known, const struct mmap_event *event)
{
	held_free(known);
	known->begun_ts = event->ts;
	known->begun = true;
	map_remove(&memory->parents, (uint64_t)event->pid);
	forget_all(memory, &known->told, event->pid);
	if (event->ts <= known->read_ts)
		return;
	forget_all(memory, &known->mappings, event->pid);
	known->whole = true;
}

int memory_told(struct memory *memory, const struct mmap_event *event, bool may_get_rights,
		struct error *err)
{
	struct known *known;

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
	struct known *known = index == MAP_NONE ? NULL : &memory->known.data[index];
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
		memory->known.data[index] = (struct known){0}; /* the entry stays unused */
}
