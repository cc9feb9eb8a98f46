// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/functions.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture/enrich/handles.h"
#include "capture/enrich/hit_image_internal.h"
#include "capture/enrich/spaces_internal.h"
#include "target/elf/demangle.h"
#include "target/elf/symbols.h"
#include "target/process/mapping_file.h"
#include "target/process/process.h"
#include "util/clock.h"
#include "util/hash.h"
#include "util/keymap.h"
#include "util/map.h"
#include "util/vec.h"

#define VALUES_MAX (1u << 20)    /* different values of a process, named or not */
#define MODULES_MAX 4096         /* open files with code */
#define PENDING_MAX 4096         /* unfinished calls that will return handles */
#define QUESTIONS_MAX (1u << 17) /* until all of them are answered */
#define KNOWN_SLOTS 256
#define RESCAN_NS 20000000ull /* between two scans of a process's mappings */

/* A request to name a value, either by a mangled name or by the function at an offset of a file.
 * Without a value, it requests the handles in a file's variables; then the byte at that offset is
 * at `address`. */
struct question {
	char *mangled; /* NULL: named by offset */
	uint64_t value, since, offset, address;
	uint64_t ts; /* time of the record with the value */
	uint32_t pid;
	int fd;
};

struct function_answer {
	uint64_t value, since;
	uint32_t pid;
	char *name;
};

/* A call that will return a handle. */
struct pending_function {
	uint32_t pid;
	uint64_t id;
	uint64_t host;
	char *text;
};

/* A value that was seen while the current mappings were in place. */
struct known_function {
	uint64_t value;
	uint32_t pid;
};

struct functions {
	const struct kernel *kernel;
	struct store_writer *writer;
	const struct told *told;
	/* Files with code whose addresses must be named. They stay open, since the process may end
	 * and a file may be deleted. */
	struct keymap modules; /* inode and device → descriptor */
	VEC(int) fds;          /* these descriptors */
	bool modules_full;     /* and there were more files */
	struct spaces spaces;
	struct known_function known[KNOWN_SLOTS];
	struct map pending_index; /* span id → index in `pending` */
	VEC(struct pending_function) pending;
	/* The thread for lookups. */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake, idle;
	bool started, stop, busy;
	VEC(struct question) questions;
	size_t next;
	VEC(struct function_answer) answers;
};

int functions_open(struct functions **functions, const struct kernel *kernel,
		   struct store_writer *writer, const struct told *told, struct error *err)
{
	struct functions *made = calloc(1, sizeof(*made));
	pthread_condattr_t clock;

	*functions = made;
	if (!made)
		return error_set(err, ENOMEM, "out of memory");
	made->kernel = kernel;
	made->writer = writer;
	made->told = told;
	pthread_mutex_init(&made->lock, NULL);
	pthread_cond_init(&made->wake, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&made->idle, &clock);
	pthread_condattr_destroy(&clock);
	return 0;
}

static void thread_stop(struct functions *functions)
{
	if (!functions->started)
		return;
	pthread_mutex_lock(&functions->lock);
	functions->stop = true;
	pthread_cond_signal(&functions->wake);
	pthread_mutex_unlock(&functions->lock);
	pthread_join(functions->thread, NULL);
}

void functions_close(struct functions *functions)
{
	if (!functions)
		return;
	thread_stop(functions);
	for (size_t i = 0; i < functions->fds.len; i++)
		close(functions->fds.data[i]);
	spaces_free(&functions->spaces);
	for (size_t i = 0; i < functions->pending.len; i++)
		free(functions->pending.data[i].text);
	for (size_t i = 0; i < functions->answers.len; i++)
		free(functions->answers.data[i].name);
	for (size_t i = functions->next; i < functions->questions.len; i++)
		free(functions->questions.data[i].mangled);
	vec_free(&functions->fds);
	keymap_free(&functions->modules);
	vec_free(&functions->pending);
	vec_free(&functions->questions);
	vec_free(&functions->answers);
	map_free(&functions->pending_index);
	pthread_cond_destroy(&functions->wake);
	pthread_cond_destroy(&functions->idle);
	pthread_mutex_destroy(&functions->lock);
	free(functions);
}

/* ---- the lookup thread ---- */

/* The name of the function that starts at exactly this place. The caller frees it. NULL: there is
 * none, or the table only has exported names and the place lies after one. */
static char *function_at(struct symbolizer *symbolizer, const struct question *question)
{
	char path[64], text[DEMANGLE_MAX];
	struct symbol_frames frames;
	const char *name;
	uint32_t number;

	/* Not "self", since a worker may open the path (target/worker/worker.h). */
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), question->fd);
	if (symbolizer_add(symbolizer, &(struct symbol_module){.path = path}, &number) ||
	    symbolizer_offset(symbolizer, number, question->offset, &frames) || !frames.count)
		return NULL;
	/* The outermost function, not one that is inlined into its first instruction. */
	name = frames.list[frames.count - 1].function;
	if (!name || frames.list[frames.count - 1].offset)
		return NULL;
	if (strncmp(name, HANDLES_STUB, strlen(HANDLES_STUB)))
		return strdup(name);
	/* "__device_stub__Z5saxpyif(int, float)", or "__device_stub__saxpy(int, float)" */
	name += strlen(HANDLES_STUB);
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(name, "("), name);
	if (!strncmp(text, "_Z", 2)) {
		char plain[DEMANGLE_MAX];

		return strdup(demangle(text, plain) ?: text);
	}
	return strdup(*name == '_' ? name + 1 : name);
}

static void answer_add(struct functions *functions, struct function_answer answer)
{
	if (!answer.name)
		return;
	pthread_mutex_lock(&functions->lock);
	if (!vec_push(&functions->answers, answer))
		free(answer.name);
	pthread_mutex_unlock(&functions->lock);
}

struct handle_search {
	struct functions *functions;
	uint64_t since;
	uint32_t pid;
};

static void handle_found(uint64_t handle, const char *name, void *arg)
{
	const struct handle_search *search = arg;

	answer_add(search->functions,
		   (struct function_answer){handle, search->since, search->pid, strdup(name)});
}

static void handles_answer(struct functions *functions, const struct question *question)
{
	struct handle_search search = {functions, question->since, question->pid};
	struct image image;

	if (hit_image_open(&image, functions->kernel, (pid_t)question->pid, question->ts))
		return;
	handles_find(question->fd, &image, question->address, question->offset, handle_found,
		     &search);
	image_close(&image);
}

static char *plain_name(const char *mangled)
{
	char plain[DEMANGLE_MAX];

	return strdup(demangle(mangled, plain) ?: mangled);
}

static void question_answer(struct functions *functions, struct symbolizer *symbolizer,
			    const struct question *question)
{
	if (question->mangled)
		answer_add(functions,
			   (struct function_answer){question->value, question->since, question->pid,
						    plain_name(question->mangled)});
	else if (!question->value)
		handles_answer(functions, question);
	else if (symbolizer)
		answer_add(functions,
			   (struct function_answer){question->value, question->since, question->pid,
						    function_at(symbolizer, question)});
}

static void *look_up(void *arg)
{
	struct functions *functions = arg;
	struct symbolizer *symbolizer = NULL;

	if (symbolizer_open(&symbolizer, &(struct symbolizer_options){0}))
		symbolizer = NULL;
	pthread_mutex_lock(&functions->lock);
	while (!functions->stop) {
		struct question question;

		if (functions->next == functions->questions.len) {
			functions->next = functions->questions.len = 0;
			functions->busy = false;
			pthread_cond_signal(&functions->idle);
			pthread_cond_wait(&functions->wake, &functions->lock);
			continue;
		}
		question = functions->questions.data[functions->next++];
		pthread_mutex_unlock(&functions->lock);
		question_answer(functions, symbolizer, &question);
		free(question.mangled);
		pthread_mutex_lock(&functions->lock);
	}
	pthread_mutex_unlock(&functions->lock);
	symbolizer_close(symbolizer);
	return NULL;
}

/* Takes ownership of the mangled name. Without a thread or room the value stays a number. */
static void ask(struct functions *functions, const struct question *question)
{
	bool asked = false;

	if (!functions->started)
		functions->started = !pthread_create(&functions->thread, NULL, look_up, functions);
	if (functions->started) {
		pthread_mutex_lock(&functions->lock);
		asked = functions->questions.len < QUESTIONS_MAX &&
			vec_push(&functions->questions, *question);
		functions->busy |= asked;
		pthread_cond_signal(&functions->wake);
		pthread_mutex_unlock(&functions->lock);
	}
	if (!asked)
		free(question->mangled);
}

bool functions_wait(struct functions *functions, uint64_t until_ns)
{
	const struct timespec until = {(time_t)(until_ns / 1000000000),
				       (long)(until_ns % 1000000000)};
	bool idle;

	pthread_mutex_lock(&functions->lock);
	while (functions->busy &&
	       !pthread_cond_timedwait(&functions->idle, &functions->lock, &until))
		;
	idle = !functions->busy;
	pthread_mutex_unlock(&functions->lock);
	return idle;
}

int functions_write(struct functions *functions, struct error *err)
{
	int result = 0;

	if (!functions->started)
		return 0;
	pthread_mutex_lock(&functions->lock);
	for (size_t i = 0; i < functions->answers.len; i++) {
		struct function_answer *answer = &functions->answers.data[i];
		struct store_name name = {answer->value, answer->pid, answer->name, answer->since};

		if (!result)
			result = store_writer_add_name(functions->writer, &name, err);
		free(answer->name);
	}
	functions->answers.len = 0;
	pthread_mutex_unlock(&functions->lock);
	return result;
}

/* ---- addresses ---- */

/* Opens the file of a mapping. -1: it cannot be opened. */
static int module_fd(struct functions *functions, const struct mapping *mapping, pid_t pid)
{
	const uint64_t key[] = {mapping->ino, mapping->dev};
	uint32_t known = keymap_get(&functions->modules, key, sizeof(key));
	char path[4096];
	int fd;

	if (known != MAP_NONE)
		return (int)known;
	if (!mapping->ino)
		return -1;
	functions->modules_full |= functions->fds.len >= MODULES_MAX;
	if (functions->modules_full)
		return -1;
	fd = mapping_open_same(mapping, pid, path, sizeof(path));
	if (fd < 0)
		return fd;
	if (!vec_push(&functions->fds, fd)) {
		close(fd);
		return -1;
	}
	keymap_set(&functions->modules, key, sizeof(key), (uint32_t)fd);
	return fd;
}

const char *functions_warning(const struct functions *functions)
{
	return functions->modules_full
		       ? "functions that are arguments of calls have no names in some files: "
			 "too many different files have code"
		       : NULL;
}

static bool see(struct space *space, uint64_t key)
{
	return space->seen.len < VALUES_MAX && map_get(&space->seen, key) == MAP_NONE &&
	       map_set(&space->seen, key, 1);
}

static uint64_t value_key(uint32_t pid, uint64_t value)
{
	return value ^ hash_number(pid);
}

/* Whether the value is seen for the first time since the mapping there changed. *again: it was also
 * seen before that. */
static bool see_first(struct space *space, uint64_t value, uint64_t since, bool *again)
{
	uint64_t key = value_key((uint32_t)space->pid, value);

	*again = false;
	if (!value || !see(space, hash_number(key ^ since)))
		return false;
	*again = !see(space, key);
	return true;
}

/* Fast path: most values were seen just before. */
static bool was_seen(struct functions *functions, uint32_t pid, uint64_t value)
{
	struct known_function *known =
		&functions->known[(value_key(pid, value) >> 3) % KNOWN_SLOTS];
	bool same = known->value == value && known->pid == pid;

	*known = (struct known_function){value, pid};
	return same;
}

/* A value that is not an address may be a handle from before the capture. Searches the process for
 * all handles that it keeps, once. */
static void find_handles(struct functions *functions, struct space *space, uint64_t ts)
{
	struct mappings now;
	uint64_t ino = 0;

	if (space->handles || hit_image_mappings(&now, functions->kernel, space->pid, ts, false))
		return;
	space->handles = true;
	for (size_t i = 0; i < now.list.len; i++) {
		const struct mapping *mapping = &now.list.data[i];
		struct question question = {.offset = mapping->offset,
					    .address = mapping->start,
					    .since = space->begin_ts,
					    .ts = ts,
					    .pid = (uint32_t)space->pid};

		if (!mapping->ino || mapping->ino == ino)
			continue; /* another part of the same file */
		ino = mapping->ino;
		question.fd = module_fd(functions, mapping, space->pid);
		if (question.fd >= 0)
			ask(functions, &question);
	}
	mappings_free(&now);
}

/* The code at an address of the process. */
static struct space_place place_at(const struct functions *functions, struct space *space,
				   uint64_t address, uint64_t ts)
{
	struct space_place place = space_place(space, functions->told, address);

	if (place.mapping || clock_monotonic_ns() - space->tried_ts < RESCAN_NS)
		return place;
	space_read(space, functions->kernel, ts);
	return space_place(space, functions->told, address);
}

/* Requests to name a value by the function at an address of the process. False: there is none. */
static bool name_by_place(struct functions *functions, const struct question *asked,
			  const struct space_place *place, uint64_t address)
{
	struct question question = *asked;

	if (!place->mapping)
		return false;
	question.offset = address - place->mapping->start + place->mapping->offset;
	question.fd = module_fd(functions, place->mapping, (pid_t)question.pid);
	if (question.fd >= 0)
		ask(functions, &question);
	return question.fd >= 0;
}

static void value_name(struct functions *functions, uint32_t pid, uint64_t value, uint64_t ts,
		       bool may_be_handle)
{
	struct question question = {.value = value, .pid = pid};
	struct space *space;
	struct space_place place;
	bool again;

	if (was_seen(functions, pid, value))
		return;
	space = spaces_get(&functions->spaces, (pid_t)pid);
	if (!space)
		return;
	place = place_at(functions, space, value, ts);
	if (!see_first(space, value, place.since, &again))
		return;
	question.since = place.since;
	/* The old name is wrong now. Clear it until the question is answered. */
	if (again)
		answer_add(functions,
			   (struct function_answer){value, place.since, pid, strdup("")});
	if (!name_by_place(functions, &question, &place, value) && !place.mapping && may_be_handle)
		find_handles(functions, space, ts);
}

/* ---- handles ---- */

static struct pending_function *pending_get(struct functions *functions, uint64_t id, bool make)
{
	uint32_t index = map_get(&functions->pending_index, id);

	if (index != MAP_NONE)
		return &functions->pending.data[index];
	if (!make || functions->pending.len >= PENDING_MAX ||
	    !vec_push(&functions->pending, (struct pending_function){.id = id}))
		return NULL;
	index = (uint32_t)functions->pending.len - 1;
	if (!map_set(&functions->pending_index, id, index)) {
		functions->pending.len--;
		return NULL;
	}
	return &functions->pending.data[index];
}

static void pending_remove(struct functions *functions, struct pending_function *pending)
{
	struct pending_function *last = &functions->pending.data[functions->pending.len - 1];

	free(pending->text);
	map_remove(&functions->pending_index, pending->id);
	if (pending != last) {
		*pending = *last;
		map_set(&functions->pending_index, pending->id,
			(uint32_t)(pending - functions->pending.data));
	}
	functions->pending.len--;
}

/* The text at an address that the program passed at time `ts`. NULL: it is gone. */
static char *text_at(const struct functions *functions, pid_t pid, uint64_t ts, uint64_t address)
{
	struct image image;
	char *text;

	if (hit_image_open(&image, functions->kernel, pid, ts))
		return NULL;
	text = handles_text(&image, address);
	image_close(&image);
	return text;
}

/*
 * Finds the first text and the first function among the values. If the page of a kernel's name was
 * not in memory, the BPF program could not read it, and the value is its address.
 */
static void values_find(const struct functions *functions, struct value_walk walk, uint32_t pid,
			uint64_t ts, char **text, uint64_t *code)
{
	struct value value;

	while (value_walk_next(&walk, &value)) {
		if (value.type == WAFFLE_KEY_STR && !*text && value.text_len)
			*text = strndup(value.text, value.text_len);
		if (value.type == WAFFLE_KEY_PTR && !*text && !strcmp(value.key->name, "kernel"))
			*text = text_at(functions, (pid_t)pid, ts, value.u64);
		if (value.type == WAFFLE_KEY_CODE && !*code)
			*code = value.u64;
	}
}

static void handle_begins(struct functions *functions, const struct site_info *site,
			  const struct waffle_rec_hit *hit)
{
	struct waffle_frame head;
	struct pending_function *pending;

	if (hit->frame_bytes < sizeof(head))
		return;
	memcpy(&head, hit + 1, sizeof(head));
	pending = pending_get(functions, head.id, true);
	if (!pending)
		return;
	pending->pid = hit->tgid;
	values_find(functions, value_walk_begin(site, hit + 1, hit->frame_bytes), hit->tgid,
		    hit->rec.ts, &pending->text, &pending->host);
}

/* A call has returned a handle. False: the call is unknown. */
static bool handle_seen(struct functions *functions, const struct waffle_rec_return *end,
			uint64_t handle, uint64_t host, enum site_role role)
{
	struct question question = {.value = handle, .since = end->rec.ts, .pid = end->tgid};
	struct space *space = spaces_get(&functions->spaces, (pid_t)end->tgid);
	struct space_place place;
	bool again, first;

	if (!space)
		return false;
	place = space_place(space, functions->told, handle);
	first = see_first(space, handle, place.since, &again);
	if (role == SITE_ROLE_HANDLE && host) {
		place = place_at(functions, space, host, end->rec.ts);
		name_by_place(functions, &question, &place, host);
	}
	return !first || again;
}

static int handle_named(struct functions *functions, const struct site_info *site, unsigned first,
			const struct waffle_rec_return *end, struct error *err)
{
	struct pending_function *pending = pending_get(functions, end->span_id, false);
	uint64_t handle = 0;
	bool known = false;
	int result = 0;

	if (!pending)
		return 0; /* it began before the capture */
	values_find(functions, value_walk_from(site, first, end + 1, end->frame_bytes), end->tgid,
		    end->rec.ts, &pending->text, &handle);
	/* A function can be registered under a name; then it is an argument of the call. */
	if (!handle && site->role == SITE_ROLE_NAME)
		handle = pending->host;
	if (handle)
		known = handle_seen(functions, end, handle, pending->host, site->role);
	/* The same number may have been the handle of another function before. */
	if (handle && site->role == SITE_ROLE_NAME && (pending->text || known)) {
		const char *text = pending->text ?: "";
		const struct store_name name = {handle, end->tgid, text, end->rec.ts};

		if (strncmp(text, "_Z", 2)) {
			result = store_writer_add_name(functions->writer, &name, err);
		} else {
			const struct question question = {.mangled = strdup(text),
							  .value = handle,
							  .since = end->rec.ts,
							  .pid = end->tgid};

			if (question.mangled)
				ask(functions, &question);
		}
	}
	pending_remove(functions, pending);
	return result;
}

/* ---- records ---- */

static bool gives_handles(const struct site_info *site)
{
	return site->role == SITE_ROLE_NAME || site->role == SITE_ROLE_HANDLE;
}

bool functions_concern(const struct site_info *site)
{
	for (unsigned i = 0; i < site->key_count; i++)
		if (site->keys[i].type == WAFFLE_KEY_CODE)
			return true;
	return gives_handles(site);
}

static void values_name(struct functions *functions, const struct site_info *site,
			struct value_walk walk, uint32_t pid, uint64_t ts)
{
	struct value value;

	while (value_walk_next(&walk, &value))
		if (value.type == WAFFLE_KEY_CODE)
			value_name(functions, pid, value.u64, ts, !gives_handles(site));
}

int functions_record(struct functions *functions, const struct site_info *site, unsigned first,
		     const struct waffle_rec *rec, struct error *err)
{
	const struct waffle_rec_hit *hit = (const struct waffle_rec_hit *)rec;
	const struct waffle_rec_return *end = (const struct waffle_rec_return *)rec;

	if (rec->kind == WAFFLE_REC_HIT) {
		values_name(functions, site, value_walk_begin(site, hit + 1, hit->frame_bytes),
			    hit->tgid, rec->ts);
		if (gives_handles(site))
			handle_begins(functions, site, hit);
	} else if (rec->kind == WAFFLE_REC_RETURN) {
		if (gives_handles(site))
			return handle_named(functions, site, first, end, err);
		values_name(functions, site,
			    value_walk_from(site, first, end + 1, end->frame_bytes), end->tgid,
			    rec->ts);
	}
	return 0;
}

void functions_process(struct functions *functions, pid_t pid)
{
	struct space *space = spaces_get(&functions->spaces, pid);

	if (!space)
		return;
	space_read(space, functions->kernel, clock_monotonic_ns());
	/* Open the files now, since the process may end soon. */
	for (size_t i = 0; i < space->mappings.list.len; i++)
		module_fd(functions, &space->mappings.list.data[i], pid);
}

void functions_told(struct functions *functions, const struct mmap_event *event)
{
	memset(functions->known, 0, sizeof(functions->known));
	spaces_told(&functions->spaces, event);
}

static void values_forget(struct functions *functions, pid_t pid)
{
	memset(functions->known, 0, sizeof(functions->known));
	for (size_t i = functions->pending.len; i > 0; i--)
		if (functions->pending.data[i - 1].pid == (uint32_t)pid)
			pending_remove(functions, &functions->pending.data[i - 1]);
}

void functions_exec(struct functions *functions, pid_t pid, uint64_t ts)
{
	values_forget(functions, pid);
	spaces_begin(&functions->spaces, pid, ts);
}

void functions_forget(struct functions *functions, pid_t pid)
{
	values_forget(functions, pid);
	spaces_forget(&functions->spaces, pid);
}
