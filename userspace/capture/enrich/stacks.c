// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/stacks_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "capture/address_space/hit_image.h"
#include "capture/enrich/frame_names_internal.h"
#include "capture/enrich/jvm_frames_internal.h"
#include "capture/enrich/tables_internal.h"
#include "target/dwarf/unwind.h"
#include "target/process/mapping_file.h"
#include "target/process/process.h"
#include "target/process/python.h"
#include "util/clock.h"
#include "util/input.h"
#include "util/keymap.h"
#include "util/map.h"
#include "util/vec.h"

/* The table of a file in the kernel. */
struct stack_file {
	struct waffle_inode inode;
	bool pending; /* its table is being made */
	struct elf_segments segments;
	struct cfi_table table; /* without rows, which are in the kernel's pages */
	uint32_t page, pages;
};

/* Pages in the kernel that hold the mappings of a process. */
struct stack_run {
	uint32_t page, pages;
};

struct stack_process {
	pid_t pid;         /* 0: unused */
	bool waits;        /* it has to be examined again */
	bool pending;      /* some tables of its files are not finished yet */
	uint64_t since_ts; /* nothing of it was read before */
	uint64_t ready_ts; /* since then all have been in the kernel */
	struct stack_run run;
	struct python python;
	struct jvm_frames jvm;
	uint32_t program; /* differs for each program that a pid runs */
	uint32_t code;    /* index in `codes` of the last code object; NO_CODE: none */
};

/* A code object of Python, truncated after its table of lines. */
struct code {
	struct waffle_rec_code *rec; /* NULL: unused */
	uint32_t next;               /* next code object of the process, or next unused one */
};
#define NO_CODE UINT32_MAX

/* Limits of the wait for tables: while programs are traced, and before that. */
#define WAIT_NS 50000000ull
#define READY_NS 60000000000ull
#define RUNTIME_WAIT_NS                                                                            \
	100000000ull /* between two searches for Python or the JVM in parsed files */
#define PYTHON_TEXT_MAX (PYTHON_NAME_MAX + PYTHON_FILE_MAX + 32)
#define PYTHON_CODES_MAX (1u << 16)
#define FILES_MAX WAFFLE_STACK_FILES_MAX

struct stacks {
	struct kernel *kernel;
	struct table_maker *maker;
	struct keymap file_at; /* inode and device → index in `files` */
	VEC(struct stack_file) files;
	bool news; /* tables were loaded, and processes that wait were not examined since */
	struct map process_at; /* pid → index in `processes` */
	VEC(struct stack_process) processes;
	VEC(uint32_t) unused;       /* indexes in `processes` */
	VEC(struct stack_run) free; /* pages that were returned */
	uint32_t programs;
	struct frame_names names;
	struct keymap code_at; /* a program and an address → the latest code object */
	VEC(struct code) codes;
	uint32_t unused_code; /* NO_CODE: none */
	bool runtime_waits;   /* files that may be Python's or the JVM's are still being parsed */
	uint64_t runtime_ts;  /* time of the last search */
	uint64_t early;       /* see stacks_early() */
	char warning[256];
};

int stacks_open(struct stacks **stacks, struct kernel *kernel, struct store_writer *writer,
		struct error *err)
{
	*stacks = calloc(1, sizeof(**stacks));
	if (!*stacks)
		return error_set(err, ENOMEM, "out of memory");
	(*stacks)->unused_code = NO_CODE;
	(*stacks)->kernel = kernel;
	(*stacks)->names.writer = writer;
	return table_maker_open(&(*stacks)->maker, err);
}

void stacks_free(struct stacks *stacks)
{
	if (!stacks)
		return;
	table_maker_close(stacks->maker);
	keymap_free(&stacks->file_at);
	map_free(&stacks->process_at);
	vec_free(&stacks->files);
	vec_free(&stacks->processes);
	vec_free(&stacks->unused);
	vec_free(&stacks->free);
	for (size_t i = 0; i < stacks->codes.len; i++)
		free(stacks->codes.data[i].rec);
	vec_free(&stacks->codes);
	keymap_free(&stacks->code_at);
	frame_names_free(&stacks->names);
	free(stacks);
}

/* ---- files ---- */

static uint32_t table_pages(const struct cfi_table *table)
{
	return (uint32_t)((table->count + WAFFLE_UNWIND_PAGE_ROWS - 1) / WAFFLE_UNWIND_PAGE_ROWS);
}

/* Copies a table into the kernel's pages. Without room the file has no table. */
static void table_publish(struct stacks *stacks, struct stack_file *file)
{
	const struct waffle_unwind_row *rows = file->table.rows;
	size_t left = file->table.count;
	uint32_t pages = table_pages(&file->table);
	int64_t first = pages ? kernel_unwind_pages(stacks->kernel, pages) : -1;

	if (first < 0) {
		if (pages)
			snprintf(stacks->warning, sizeof(stacks->warning),
				 "stacks: no room for the unwinding tables of all files (%s): "
				 "stacks end in some code without frame pointers",
				 strerror((int)-first));
		return;
	}
	file->page = (uint32_t)first;
	file->pages = pages;
	for (uint32_t i = 0; i < pages; i++) {
		struct waffle_unwind_page *page =
			kernel_unwind_page(stacks->kernel, file->page + i);
		size_t count = left < WAFFLE_UNWIND_PAGE_ROWS ? left : WAFFLE_UNWIND_PAGE_ROWS;

		memcpy(page->rows, rows, count * sizeof(*rows));
		for (size_t k = count; k < WAFFLE_UNWIND_PAGE_ROWS; k++)
			page->rows[k] = (struct waffle_unwind_row){.pc = UINT32_MAX};
		rows += count;
		left -= count;
	}
}

/* For files with one executable segment, as linkers write them, the kernel locates the tables by
 * itself. */
static void file_publish(struct stacks *stacks, const struct stack_file *file,
			 const struct waffle_inode *inode)
{
	const struct elf_segment *segment = &file->segments.list[0];
	struct waffle_stack_file sent = {.page = file->page, .pages = file->pages};

	if (file->segments.count != 1 || !file->pages)
		return;
	sent.shift = file->table.base + segment->offset - segment->address;
	kernel_stack_file(stacks->kernel, inode, &sent);
}

static void table_take(struct stacks *stacks, const struct table_made *made)
{
	struct stack_file *file = &stacks->files.data[made->file];

	file->pending = false;
	file->segments = made->segments;
	file->table = made->table;
	if (made->no_memory)
		file->table.cut = true;
	if (file->table.cut && !stacks->warning[0])
		snprintf(stacks->warning, sizeof(stacks->warning),
			 "stacks: they are cut in %s: its unwinding table is too large",
			 made->path);
	if (!made->no_memory) {
		table_publish(stacks, file);
		file_publish(stacks, file, &file->inode);
	}
	cfi_table_free_rows(&file->table);
	free(made->path);
	stacks->news = true;
}

/* Loads the tables that were finished since the last call. */
static void tables_take(struct stacks *stacks)
{
	VEC(struct table_made) list = {0};
	struct table_made made;
	uint64_t pages = 0;

	while (table_maker_take(stacks->maker, &made)) {
		if (vec_push(&list, made))
			pages += table_pages(&made.table);
		else
			table_take(stacks, &made);
	}
	if (pages) /* if there is none for all, some may fit */
		(void)kernel_unwind_reserve(stacks->kernel, pages);
	for (size_t i = 0; i < list.len; i++)
		table_take(stacks, &list.data[i]);
	vec_free(&list);
}

/* The index of a file. -ENOENT: it is new. -EAGAIN: it is new, and too many others wait for their
 * tables. -ENOSPC: there are too many files. */
static int64_t file_find(struct stacks *stacks, const struct waffle_inode *inode)
{
	const uint64_t key[] = {inode->ino, inode->dev};
	uint32_t known = keymap_get(&stacks->file_at, key, sizeof(key));

	if (known != MAP_NONE)
		return known;
	if (stacks->files.len < FILES_MAX)
		return table_maker_has_room(stacks->maker) ? -ENOENT : -EAGAIN;
	if (!stacks->warning[0])
		snprintf(stacks->warning, sizeof(stacks->warning),
			 "stacks: more than %d files have code: in the others, stacks end in code "
			 "without frame pointers",
			 FILES_MAX);
	return -ENOSPC;
}

/* Adds a new file and requests its table. Returns its index, or -ENOMEM. Takes ownership of the
 * descriptor. */
static int64_t file_add(struct stacks *stacks, const struct waffle_inode *inode, int fd,
			const char *path)
{
	const uint64_t key[] = {inode->ino, inode->dev};
	struct stack_file file = {.inode = *inode};
	uint32_t index = (uint32_t)stacks->files.len;

	if (!vec_push(&stacks->files, file) ||
	    !keymap_set(&stacks->file_at, key, sizeof(key), index)) {
		if (fd >= 0)
			close(fd);
		return -ENOMEM;
	}
	if (fd >= 0)
		stacks->files.data[index].pending = table_maker_ask(stacks->maker, index, fd, path);
	return index;
}

/* Finds the file of a mapping. If it is new, requests its table. -ENOMEM, or an error of
 * file_find(). */
static int64_t file_of(struct stacks *stacks, const struct mapping *mapping, pid_t pid)
{
	struct waffle_inode inode = {.ino = mapping->ino, .dev = mapping->dev};
	int64_t index = file_find(stacks, &inode);
	char path[4096];
	int fd;

	if (index != -ENOENT)
		return index;
	fd = mapping_open(mapping, pid, path, sizeof(path));
	return file_add(stacks, &inode, fd, path);
}

void stacks_file(struct stacks *stacks, int fd, const char *path)
{
	struct waffle_inode inode = {0};
	struct stat status;
	int kept;

	if (!input_stat(fd, &status)) {
		inode.ino = status.st_ino;
		inode.dev = major(status.st_dev) << 20 | minor(status.st_dev);
	}
	if (!inode.ino || file_find(stacks, &inode) != -ENOENT)
		return;
	kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (kept >= 0)
		file_add(stacks, &inode, kept, path);
}

/* ---- processes ---- */

static struct stack_run run_take(struct stacks *stacks, uint32_t pages)
{
	int64_t first;

	for (size_t i = 0; i < stacks->free.len; i++)
		if (stacks->free.data[i].pages == pages) {
			struct stack_run run = stacks->free.data[i];

			stacks->free.data[i] = stacks->free.data[--stacks->free.len];
			return run;
		}
	first = kernel_unwind_pages(stacks->kernel, pages);
	return first < 0 ? (struct stack_run){0} : (struct stack_run){(uint32_t)first, pages};
}

/* If memory is short, some pages are never used again. */
static void run_give(struct stacks *stacks, struct stack_run run)
{
	if (run.pages)
		(void)vec_push(&stacks->free, run);
}

static struct stack_process *process_of(struct stacks *stacks, pid_t pid)
{
	uint32_t index = map_get(&stacks->process_at, (uint64_t)pid);

	if (index != MAP_NONE)
		return &stacks->processes.data[index];
	if (stacks->unused.len)
		index = stacks->unused.data[--stacks->unused.len];
	else if (vec_push(&stacks->processes, (struct stack_process){0}))
		index = (uint32_t)stacks->processes.len - 1;
	else
		return NULL;
	if (!map_set(&stacks->process_at, (uint64_t)pid, index))
		return NULL;
	stacks->processes.data[index] = (struct stack_process){.pid = pid,
							       .since_ts = clock_monotonic_ns(),
							       .program = ++stacks->programs,
							       .code = NO_CODE};
	return &stacks->processes.data[index];
}

typedef VEC(struct waffle_unwind_mapping) placed_list;

/* Computes where the tables of the process's files lie. */
static int mappings_place(struct stacks *stacks, const struct mappings *mappings,
			  struct stack_process *process, placed_list *placed)
{
	process->waits = process->pending = false;
	for (size_t i = 0; i < mappings->list.len && placed->len < WAFFLE_STACK_MAPPINGS_MAX; i++) {
		const struct mapping *mapping = &mappings->list.data[i];
		int64_t index = file_of(stacks, mapping, process->pid);
		struct waffle_unwind_mapping row = {0};
		const struct stack_file *file;

		if (index == -ENOMEM)
			return (int)index;
		process->pending = process->pending || index == -EAGAIN;
		if (index < 0)
			continue;
		file = &stacks->files.data[index];
		process->pending = process->pending || file->pending;
		if (!file->pages || !unwind_place(&row, mapping, &file->segments, &file->table))
			continue;
		row.page = file->page;
		row.pages = file->pages;
		if (!vec_push(placed, row))
			return -ENOMEM;
	}
	process->waits = process->pending;
	return 0;
}

/* Writes them into pages that no BPF program reads yet. */
static struct stack_run mappings_publish(struct stacks *stacks, const placed_list *placed)
{
	uint32_t per_page = WAFFLE_UNWIND_PAGE_MAPPINGS;
	uint32_t pages = ((uint32_t)placed->len + per_page - 1) / per_page;
	struct stack_run run = pages ? run_take(stacks, pages) : (struct stack_run){0};

	for (uint32_t i = 0; i < run.pages; i++) {
		struct waffle_unwind_page *page = kernel_unwind_page(stacks->kernel, run.page + i);
		size_t from = (size_t)i * per_page, left = placed->len - from;

		memcpy(page->mappings, placed->data + from,
		       (left < per_page ? left : per_page) * sizeof(*page->mappings));
	}
	return run;
}

static void python_look(struct stacks *stacks, struct stack_process *process, pid_t pid,
			const struct mappings *mappings)
{
	const struct python *python = &process->python;
	struct image image;

	if (image_open(&image, pid))
		return;
	if (python_find(&process->python, &image, pid, mappings, false) == -EAGAIN)
		process->waits = stacks->runtime_waits = true;
	image_close(&image);
	if (!python->found || python->kernel.runtime)
		return;
	if (python->kernel.version)
		snprintf(stacks->warning, sizeof(stacks->warning),
			 "stacks: pid %d: Python %u.%u is not supported, so they lack its frames; "
			 "3.8 to 3.14 with the global lock are",
			 pid, python->kernel.version >> 24, python->kernel.version >> 16 & 0xff);
	else
		snprintf(stacks->warning, sizeof(stacks->warning),
			 "stacks: pid %d: they lack the frames of this Python, whose version is "
			 "unknown: 3.8 to 3.14 with the global lock are supported",
			 pid);
}

static void jvm_look(struct stacks *stacks, struct stack_process *process,
		     const struct mappings *mappings)
{
	if (jvm_find(&process->jvm.jvm, process->pid, mappings) == -EAGAIN)
		process->waits = stacks->runtime_waits = true;
}

const char *stacks_warning(const struct stacks *stacks)
{
	return stacks->warning[0] ? stacks->warning : NULL;
}

/* Sends a process's mappings, with the tables that there are, to the kernel. */
static void process_publish(struct stacks *stacks, struct stack_process *process,
			    const struct mappings *mappings, const placed_list *placed)
{
	struct waffle_stack_process sent = {0};
	struct stack_run old = process->run;

	process->run = mappings_publish(stacks, placed);
	if (!process->python.found)
		python_look(stacks, process, process->pid, mappings);
	if (!process->jvm.jvm.structs)
		jvm_look(stacks, process, mappings);
	sent.page = process->run.page;
	sent.mappings = process->run.pages ? (uint32_t)placed->len : 0;
	sent.python = process->python.kernel;
	kernel_stack_process(stacks->kernel, process->pid, &sent);
	run_give(stacks, old);
}

int stacks_process(struct stacks *stacks, pid_t pid, bool wait, struct error *err)
{
	struct stack_process *process = process_of(stacks, pid);
	struct error gone = ERROR_INIT;
	struct mappings mappings;
	placed_list placed = {0};
	bool waited;
	int result;

	if (!process)
		return error_set(err, ENOMEM, "out of memory");
	if (process_mappings(&mappings, pid, &gone))
		return 0;
	waited = process->pending;
	result = mappings_place(stacks, &mappings, process, &placed);
	waited |= process->pending;
	if (!result && process->pending && wait) {
		table_maker_wait(stacks->maker, false, WAIT_NS);
		tables_take(stacks);
		placed.len = 0;
		result = mappings_place(stacks, &mappings, process, &placed);
	}
	if (!result) {
		process_publish(stacks, process, &mappings, &placed);
		if (waited && !process->pending)
			process->ready_ts = clock_monotonic_ns();
	}
	vec_free(&placed);
	mappings_free(&mappings);
	return result ? error_set(err, -result, "out of memory") : 0;
}

int stacks_round(struct stacks *stacks, struct error *err)
{
	uint64_t now = clock_monotonic_ns();
	bool again = stacks->runtime_waits && now - stacks->runtime_ts >= RUNTIME_WAIT_NS;
	int result = 0;

	tables_take(stacks);
	if (!stacks->news && !again)
		return 0;
	stacks->news = stacks->runtime_waits = false;
	stacks->runtime_ts = now;
	for (size_t i = 0; i < stacks->processes.len && !result; i++)
		if (stacks->processes.data[i].waits)
			result = stacks_process(stacks, stacks->processes.data[i].pid, false, err);
	return result;
}

int stacks_ready(struct stacks *stacks, bool all, bool traced, struct error *err)
{
	table_maker_wait(stacks->maker, all, traced ? WAIT_NS : READY_NS);
	return stacks_round(stacks, err);
}

void stacks_cut(struct stacks *stacks, uint32_t tgid, uint64_t ts)
{
	uint32_t index = map_get(&stacks->process_at, tgid);
	const struct stack_process *process =
		index == MAP_NONE ? NULL : &stacks->processes.data[index];

	if (process && (process->pending || ts < process->ready_ts))
		stacks->early++;
}

uint64_t stacks_early(const struct stacks *stacks)
{
	return stacks->early;
}

int stacks_fork(struct stacks *stacks, pid_t parent, pid_t child, uint64_t ts, struct error *err)
{
	uint32_t index = map_get(&stacks->process_at, (uint64_t)parent);
	struct stack_process *process;
	struct python python;

	if (index == MAP_NONE || !stacks->processes.data[index].python.kernel.runtime)
		return 0;
	stacks_forget(stacks, child, ts);
	if (map_get(&stacks->process_at, (uint64_t)child) != MAP_NONE)
		return 0;
	python = stacks->processes.data[index].python;
	process = process_of(stacks, child);
	if (!process)
		return error_set(err, ENOMEM, "out of memory");
	process->since_ts = ts;
	process->python = python;
	return 0;
}

static void codes_forget(struct stacks *stacks, const struct stack_process *process)
{
	uint32_t next;

	for (uint32_t i = process->code; i != NO_CODE; i = next) {
		struct code *code = &stacks->codes.data[i];
		const uint64_t key[] = {process->program, code->rec->code};

		keymap_remove(&stacks->code_at, key, sizeof(key));
		free(code->rec);
		next = code->next;
		*code = (struct code){.next = stacks->unused_code};
		stacks->unused_code = i;
	}
}

void stacks_forget(struct stacks *stacks, pid_t pid, uint64_t ts)
{
	uint32_t index = map_get(&stacks->process_at, (uint64_t)pid);

	if (index == MAP_NONE || stacks->processes.data[index].since_ts > ts)
		return;
	map_remove(&stacks->process_at, (uint64_t)pid);
	kernel_stack_process(stacks->kernel, pid, NULL);
	run_give(stacks, stacks->processes.data[index].run);
	codes_forget(stacks, &stacks->processes.data[index]);
	stacks->processes.data[index] = (struct stack_process){0};
	(void)vec_push(&stacks->unused, index);
}

/* ---- frames of Python ---- */

/* A free slot for a code object. NO_CODE: there is none. */
static uint32_t code_take(struct stacks *stacks)
{
	uint32_t index = stacks->unused_code;

	if (index != NO_CODE)
		stacks->unused_code = stacks->codes.data[index].next;
	else if (stacks->codes.len < PYTHON_CODES_MAX && vec_push(&stacks->codes, (struct code){0}))
		index = (uint32_t)stacks->codes.len - 1;
	return index;
}

int stacks_code(struct stacks *stacks, const struct waffle_rec_code *code)
{
	uint32_t index = map_get(&stacks->process_at, code->tgid);
	struct stack_process *process = index == MAP_NONE ? NULL : &stacks->processes.data[index];
	struct waffle_rec_code *copy;
	uint64_t key[2];
	size_t size;

	if (code->table_bytes > sizeof(code->table))
		return -EINVAL;
	if (!process)
		return 0;
	size = offsetof(struct waffle_rec_code, table) + code->table_bytes;
	copy = malloc(size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, code, size);
	index = code_take(stacks);
	if (index == NO_CODE) { /* it will be read from the process */
		free(copy);
		return 0;
	}
	stacks->codes.data[index] = (struct code){.rec = copy, .next = process->code};
	process->code = index;
	key[0] = process->program;
	key[1] = code->code;
	return keymap_set(&stacks->code_at, key, sizeof(key), index) ? 0 : -ENOMEM;
}

/* The text of a frame. `known`: index of its code object. MAP_NONE: the kernel has not reported
 * it. */
static void frame_text(const struct stacks *stacks, const struct stack_process *process,
		       const struct waffle_rec_frames *frames, uint32_t known,
		       const uint64_t words[2], char *text, size_t size)
{
	const struct waffle_rec_code *code =
		known == MAP_NONE ? NULL : stacks->codes.data[known].rec;
	struct waffle_rec_code *read = NULL;
	struct python_frame frame;
	struct image image;

	if (!code && !hit_image_open(&image, stacks->kernel, (pid_t)frames->tgid, frames->rec.ts)) {
		read = malloc(sizeof(*read));
		if (read && python_code_read(&process->python, &image, words[0], read))
			code = read;
		image_close(&image);
	}
	if (code && python_frame_of(&process->python, code, words[1], &frame))
		snprintf(text, size, "%s (%s:%u)", frame.function, frame.file, frame.line);
	else
		snprintf(text, size, "? (?:0)");
	free(read);
}

int stacks_python(struct stacks *stacks, const struct waffle_rec_frames *frames,
		  const uint64_t *words, uint64_t *addresses, struct error *err)
{
	pid_t pid = (pid_t)frames->tgid;
	uint32_t index = map_get(&stacks->process_at, (uint64_t)pid), number;
	const struct stack_process *process =
		index == MAP_NONE ? NULL : &stacks->processes.data[index];
	char text[PYTHON_TEXT_MAX];

	if (!process || !frame_names_begin(&stacks->names))
		return 0;
	for (uint32_t i = 0; i < frames->python_count; i++, words += 2) {
		const uint64_t code[] = {process->program, words[0]};
		uint32_t known = keymap_get(&stacks->code_at, code, sizeof(code));
		const frame_key key = {process->program, words[0], words[1], known};
		int result;

		number = frame_names_find(&stacks->names, key);
		if (number == MAP_NONE) {
			frame_text(stacks, process, frames, known, words, text, sizeof(text));
			result = frame_names_add(&stacks->names, key, frames->tgid, text, &number,
						 err);
			if (result)
				return result;
		}
		addresses[i] = STORE_NAMED | number;
	}
	return (int)frames->python_count;
}

const struct python *stacks_interpreter(const struct stacks *stacks, uint32_t tgid)
{
	uint32_t index = map_get(&stacks->process_at, tgid);

	return index == MAP_NONE ? NULL : &stacks->processes.data[index].python;
}

/* ---- frames of Java ---- */

static struct jvm_frames *jvm_of(const struct stacks *stacks, uint32_t tgid)
{
	uint32_t index = map_get(&stacks->process_at, tgid);

	return index == MAP_NONE ? NULL : &stacks->processes.data[index].jvm;
}

int stacks_jvm(struct stacks *stacks, struct store_stack *stack, uint64_t ts, uint64_t *addresses,
	       struct error *err)
{
	uint32_t index = map_get(&stacks->process_at, stack->pid);
	struct stack_process *process = index == MAP_NONE ? NULL : &stacks->processes.data[index];

	return process ? jvm_frames_name(&process->jvm, &stacks->names, stacks->kernel,
					 process->program, stack, ts, addresses, err)
		       : 0;
}

bool stacks_jvm_ready(struct stacks *stacks, uint32_t tgid, const struct image *image)
{
	struct jvm_frames *frames = jvm_of(stacks, tgid);

	return frames && jvm_frames_ready(frames, image);
}

bool stacks_jvm_has(const struct stacks *stacks, uint32_t tgid, uint64_t address)
{
	const struct jvm_frames *frames = jvm_of(stacks, tgid);

	return frames && address >= frames->from && address < frames->to;
}

bool stacks_jvm_step(struct stacks *stacks, uint32_t tgid, const struct image *image,
		     struct jvm_frame *frame, uint64_t *address)
{
	return jvm_frames_step(jvm_of(stacks, tgid), &stacks->names, image, tgid, frame, address);
}
