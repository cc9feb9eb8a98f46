// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/code_names.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture/address_space/hit_image.h"
#include "capture/address_space/hit_text.h"
#include "capture/enrich/handles.h"
#include "target/elf/demangle.h"
#include "target/elf/symbol_module.h"
#include "target/elf/symbols.h"
#include "target/process/mapping_file.h"
#include "target/process/process.h"
#include "util/hash.h"
#include "util/keymap.h"
#include "util/map.h"
#include "util/vec.h"

#define VALUES_MAX (1u << 20)    /* different values of a process, named or not */
#define MODULES_MAX 4096         /* open files with code */
#define PENDING_MAX 4096         /* unfinished calls that will return handles */
#define QUESTIONS_MAX (1u << 17) /* until all of them are answered */
#define KNOWN_SLOTS 256

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

struct code_names {
	const struct kernel *kernel;
	struct store_writer *writer;
	struct address_spaces *spaces;
	struct hit_text *texts;
	/* Files with code whose addresses must be named. They stay open, since the process may end
	 * and a file may be deleted. */
	struct keymap modules; /* inode and device → descriptor */
	VEC(int) fds;          /* these descriptors */
	bool modules_full;     /* and there were more files */
	struct known_function known[KNOWN_SLOTS];
	uint64_t known_version;   /* address_spaces_version() of `known` */
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

int code_names_open(struct code_names **names, const struct kernel *kernel,
		    struct address_spaces *spaces, struct store_writer *writer, struct error *err)
{
	struct code_names *made = calloc(1, sizeof(*made));
	pthread_condattr_t clock;

	*names = NULL;
	if (!made)
		return error_set(err, ENOMEM, "out of memory");
	made->texts = hit_text_new(kernel);
	if (!made->texts) {
		free(made);
		return error_set(err, ENOMEM, "out of memory");
	}
	*names = made;
	made->kernel = kernel;
	made->writer = writer;
	made->spaces = spaces;
	pthread_mutex_init(&made->lock, NULL);
	pthread_cond_init(&made->wake, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&made->idle, &clock);
	pthread_condattr_destroy(&clock);
	return 0;
}

static void thread_stop(struct code_names *names)
{
	if (!names->started)
		return;
	pthread_mutex_lock(&names->lock);
	names->stop = true;
	pthread_cond_signal(&names->wake);
	pthread_mutex_unlock(&names->lock);
	pthread_join(names->thread, NULL);
}

void code_names_close(struct code_names *names)
{
	if (!names)
		return;
	thread_stop(names);
	for (size_t i = 0; i < names->fds.len; i++)
		close(names->fds.data[i]);
	for (size_t i = 0; i < names->pending.len; i++)
		free(names->pending.data[i].text);
	for (size_t i = 0; i < names->answers.len; i++)
		free(names->answers.data[i].name);
	for (size_t i = names->next; i < names->questions.len; i++)
		free(names->questions.data[i].mangled);
	hit_text_free(names->texts);
	vec_free(&names->fds);
	keymap_free(&names->modules);
	vec_free(&names->pending);
	vec_free(&names->questions);
	vec_free(&names->answers);
	map_free(&names->pending_index);
	pthread_cond_destroy(&names->wake);
	pthread_cond_destroy(&names->idle);
	pthread_mutex_destroy(&names->lock);
	free(names);
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

static void answer_add(struct code_names *names, struct function_answer answer)
{
	if (!answer.name)
		return;
	pthread_mutex_lock(&names->lock);
	if (!vec_push(&names->answers, answer))
		free(answer.name);
	pthread_mutex_unlock(&names->lock);
}

struct handle_search {
	struct code_names *names;
	uint64_t since;
	uint32_t pid;
};

static void handle_found(uint64_t handle, const char *name, void *arg)
{
	const struct handle_search *search = arg;

	answer_add(search->names,
		   (struct function_answer){handle, search->since, search->pid, strdup(name)});
}

static void handles_answer(struct code_names *names, const struct question *question)
{
	struct handle_search search = {names, question->since, question->pid};
	struct image image;
	bool there = !hit_image_open(&image, names->kernel, (pid_t)question->pid, question->ts);

	handles_find(question->fd, there ? &image : NULL, question->address, question->offset,
		     handle_found, &search);
	if (there)
		image_close(&image);
}

/* Answers questions that have mangled names. Takes ownership of these names. */
static void mangled_answer(struct code_names *names, const struct question *questions, size_t count)
{
	const char *mangled[DEMANGLE_BATCH];
	char *plain[DEMANGLE_BATCH];

	for (size_t i = 0; i < count; i++)
		mangled[i] = questions[i].mangled;
	demangle_batch(mangled, count, plain);
	for (size_t i = 0; i < count; i++) {
		const struct question *question = &questions[i];

		if (plain[i])
			free(question->mangled);
		else
			plain[i] = question->mangled;
		answer_add(names, (struct function_answer){question->value, question->since,
							   question->pid, plain[i]});
	}
}

/* Answers a question without a mangled name. */
static void question_answer(struct code_names *names, struct symbolizer *symbolizer,
			    const struct question *question)
{
	if (!question->value)
		handles_answer(names, question);
	else if (symbolizer)
		answer_add(names,
			   (struct function_answer){question->value, question->since, question->pid,
						    function_at(symbolizer, question)});
}

/* Takes the next question. If that has a mangled name, also takes those after it that have one, to
 * demangle them with one request. The caller holds the lock. */
static size_t questions_take(struct code_names *names, struct question taken[DEMANGLE_BATCH])
{
	size_t count = 0;

	do
		taken[count++] = names->questions.data[names->next++];
	while (taken[0].mangled && count < DEMANGLE_BATCH && names->next < names->questions.len &&
	       names->questions.data[names->next].mangled);
	return count;
}

static void *look_up(void *arg)
{
	struct code_names *names = arg;
	struct symbolizer *symbolizer = NULL;

	if (symbolizer_open(&symbolizer, &(struct symbolizer_options){0}))
		symbolizer = NULL;
	pthread_mutex_lock(&names->lock);
	while (!names->stop) {
		struct question taken[DEMANGLE_BATCH];
		size_t count;

		if (names->next == names->questions.len) {
			names->next = names->questions.len = 0;
			names->busy = false;
			pthread_cond_signal(&names->idle);
			pthread_cond_wait(&names->wake, &names->lock);
			continue;
		}
		count = questions_take(names, taken);
		pthread_mutex_unlock(&names->lock);
		if (taken[0].mangled)
			mangled_answer(names, taken, count);
		else
			question_answer(names, symbolizer, &taken[0]);
		pthread_mutex_lock(&names->lock);
	}
	pthread_mutex_unlock(&names->lock);
	symbolizer_close(symbolizer);
	return NULL;
}

/* Takes ownership of the mangled name. Without a thread or room the value stays a number. */
static void ask(struct code_names *names, const struct question *question)
{
	bool queued = false;

	if (!names->started)
		names->started = !pthread_create(&names->thread, NULL, look_up, names);
	if (names->started) {
		pthread_mutex_lock(&names->lock);
		queued = names->questions.len < QUESTIONS_MAX &&
			 vec_push(&names->questions, *question);
		names->busy |= queued;
		pthread_cond_signal(&names->wake);
		pthread_mutex_unlock(&names->lock);
	}
	if (!queued)
		free(question->mangled);
}

bool code_names_wait(struct code_names *names, uint64_t until_ns)
{
	const struct timespec until = {(time_t)(until_ns / 1000000000),
				       (long)(until_ns % 1000000000)};
	bool idle;

	pthread_mutex_lock(&names->lock);
	while (names->busy && !pthread_cond_timedwait(&names->idle, &names->lock, &until))
		;
	idle = !names->busy;
	pthread_mutex_unlock(&names->lock);
	return idle;
}

int code_names_write(struct code_names *names, struct error *err)
{
	int result = 0;

	if (!names->started)
		return 0;
	pthread_mutex_lock(&names->lock);
	for (size_t i = 0; i < names->answers.len; i++) {
		struct function_answer *answer = &names->answers.data[i];
		struct store_name name = {answer->value, answer->pid, answer->name, answer->since};

		if (!result)
			result = store_writer_add_name(names->writer, &name, err);
		free(answer->name);
	}
	names->answers.len = 0;
	pthread_mutex_unlock(&names->lock);
	return result;
}

/* ---- addresses ---- */

/* Opens the file of a mapping. -1: it cannot be opened. */
static int module_fd(struct code_names *names, const struct mapping *mapping, pid_t pid)
{
	const uint64_t key[] = {mapping->ino, mapping->dev};
	uint32_t known = keymap_get(&names->modules, key, sizeof(key));
	char path[4096];
	int fd;

	if (known != MAP_NONE)
		return (int)known;
	if (!mapping->ino)
		return -1;
	names->modules_full |= names->fds.len >= MODULES_MAX;
	if (names->modules_full)
		return -1;
	fd = mapping_open_same(mapping, pid, path, sizeof(path));
	if (fd < 0)
		return fd;
	if (!vec_push(&names->fds, fd)) {
		close(fd);
		return -1;
	}
	keymap_set(&names->modules, key, sizeof(key), (uint32_t)fd);
	return fd;
}

const char *code_names_warning(const struct code_names *names)
{
	return names->modules_full
		       ? "functions that are arguments of calls have no names in some files: "
			 "too many different files have code"
		       : NULL;
}

static bool see(struct map *values, uint64_t key)
{
	return values->len < VALUES_MAX && map_get(values, key) == MAP_NONE &&
	       map_set(values, key, 1);
}

static uint64_t value_key(uint32_t pid, uint64_t value)
{
	return value ^ hash_number(pid);
}

/* Whether the value is new since the mapping at it changed. *again: the value was seen before
 * that change. */
static bool see_first(struct map *values, uint32_t pid, uint64_t value, uint64_t since, bool *again)
{
	uint64_t key = value_key(pid, value);

	*again = false;
	if (!value || !see(values, hash_number(key ^ since)))
		return false;
	*again = !see(values, key);
	return true;
}

/* Fast path: most values were seen just before. */
static bool was_seen(struct code_names *names, uint32_t pid, uint64_t value)
{
	struct known_function *known = &names->known[(value_key(pid, value) >> 3) % KNOWN_SLOTS];
	uint64_t version = address_spaces_version(names->spaces);
	bool same;

	if (names->known_version != version)
		memset(names->known, 0, sizeof(names->known));
	names->known_version = version;
	same = known->value == value && known->pid == pid;
	*known = (struct known_function){value, pid};
	return same;
}

static void find_handles_in(struct code_names *names, const struct mappings *mappings, pid_t pid,
			    uint64_t since, uint64_t ts)
{
	uint64_t ino = 0;

	for (size_t i = 0; i < mappings->list.len; i++) {
		const struct mapping *mapping = &mappings->list.data[i];
		struct question question = {.offset = mapping->offset,
					    .address = mapping->start,
					    .since = since,
					    .ts = ts,
					    .pid = (uint32_t)pid};

		if (!mapping->ino || !mapping->executable || mapping->ino == ino)
			continue; /* another part of the same file */
		ino = mapping->ino;
		question.fd = module_fd(names, mapping, pid);
		if (question.fd >= 0)
			ask(names, &question);
	}
}

/* A value that is not an address of code may be a handle from before the capture. Searches the
 * process for all handles that it keeps, once. If the process is gone, the files that it had mapped
 * still tell the handles that are addresses. */
static void find_handles(struct code_names *names, struct address_space_notes *notes, pid_t pid,
			 uint64_t since, uint64_t ts)
{
	const struct mappings *known = address_spaces_now(names->spaces, pid);
	struct mappings now;

	if (notes->handles_since == since)
		return;
	if (!hit_image_mappings(&now, names->kernel, pid, ts, false)) {
		find_handles_in(names, &now, pid, since, ts);
		mappings_free(&now);
	} else if (known) {
		find_handles_in(names, known, pid, since, ts);
	} else {
		return;
	}
	notes->handles_since = since;
}

/* Requests to name a value by the function at an address of the process. False: there is none. */
static bool name_by_place(struct code_names *names, const struct question *request,
			  const struct code_place *place, uint64_t address)
{
	struct question question = *request;

	if (!place->mapping)
		return false;
	question.offset = address - place->mapping->start + place->mapping->offset;
	question.fd = module_fd(names, place->mapping, (pid_t)question.pid);
	if (question.fd >= 0)
		ask(names, &question);
	return question.fd >= 0;
}

static void value_name(struct code_names *names, uint32_t pid, uint64_t value, uint64_t ts,
		       bool may_be_handle)
{
	struct question question = {.value = value, .pid = pid};
	struct address_space_notes *notes;
	struct code_place place;
	bool again;

	if (was_seen(names, pid, value))
		return;
	place = address_spaces_code(names->spaces, (pid_t)pid, ts, value, true);
	notes = address_spaces_notes(names->spaces, (pid_t)pid);
	if (!notes || !see_first(&notes->values, pid, value, place.since, &again))
		return;
	question.since = place.since;
	/* The old name is wrong now. Clear it until the question is answered. */
	if (again)
		answer_add(names, (struct function_answer){value, place.since, pid, strdup("")});
	if (!name_by_place(names, &question, &place, value) && !place.mapping && may_be_handle)
		find_handles(names, notes, (pid_t)pid, place.program_since, ts);
}

/* ---- handles ---- */

static struct pending_function *pending_get(struct code_names *names, uint64_t id, bool make)
{
	uint32_t index = map_get(&names->pending_index, id);

	if (index != MAP_NONE)
		return &names->pending.data[index];
	if (!make || names->pending.len >= PENDING_MAX ||
	    !vec_push(&names->pending, (struct pending_function){.id = id}))
		return NULL;
	index = (uint32_t)names->pending.len - 1;
	if (!map_set(&names->pending_index, id, index)) {
		names->pending.len--;
		return NULL;
	}
	return &names->pending.data[index];
}

static void pending_remove(struct code_names *names, struct pending_function *pending)
{
	struct pending_function *last = &names->pending.data[names->pending.len - 1];

	free(pending->text);
	map_remove(&names->pending_index, pending->id);
	if (pending != last) {
		*pending = *last;
		map_set(&names->pending_index, pending->id,
			(uint32_t)(pending - names->pending.data));
	}
	names->pending.len--;
}

/*
 * Finds the first text and the first function among the values. If the page of a kernel's name was
 * not in memory, the BPF program could not read it, and the value is its address.
 */
static void values_find(struct code_names *names, struct value_walk walk, uint32_t pid, uint64_t ts,
			char **text, uint64_t *code)
{
	struct value value;

	while (value_walk_next(&walk, &value)) {
		if (value.type == WAFFLE_KEY_STR && !*text && value.text_len)
			*text = strndup(value.text, value.text_len);
		if (value.type == WAFFLE_KEY_PTR && !*text && !strcmp(value.key->name, "kernel"))
			*text = hit_text_read(names->texts, (pid_t)pid, ts, value.u64);
		if (value.type == WAFFLE_KEY_CODE && !*code)
			*code = value.u64;
	}
}

static void handle_begins(struct code_names *names, const struct site_info *site,
			  const struct waffle_rec_hit *hit)
{
	struct waffle_frame head;
	struct pending_function *pending;

	if (hit->frame_bytes < sizeof(head))
		return;
	memcpy(&head, hit + 1, sizeof(head));
	pending = pending_get(names, head.id, true);
	if (!pending)
		return;
	pending->pid = hit->tgid;
	values_find(names, value_walk_begin(site, hit + 1, hit->frame_bytes), hit->tgid,
		    hit->rec.ts, &pending->text, &pending->host);
}

/* A call has returned a handle. False: the call is unknown. */
static bool handle_seen(struct code_names *names, const struct waffle_rec_return *end,
			uint64_t handle, uint64_t host, enum site_role role)
{
	struct question question = {.value = handle, .since = end->rec.ts, .pid = end->tgid};
	struct address_space_notes *notes = address_spaces_notes(names->spaces, (pid_t)end->tgid);
	struct code_place place;
	bool again, first;

	if (!notes)
		return false;
	place = address_spaces_code(names->spaces, (pid_t)end->tgid, end->rec.ts, handle, false);
	first = see_first(&notes->values, end->tgid, handle, place.since, &again);
	if (role == SITE_ROLE_HANDLE && host) {
		place = address_spaces_code(names->spaces, (pid_t)end->tgid, end->rec.ts, host,
					    true);
		name_by_place(names, &question, &place, host);
	}
	return !first || again;
}

/* Adds the name of the function with this handle, at once or when it is demangled. */
static int handle_name_add(struct code_names *names, const struct waffle_rec_return *end,
			   uint64_t handle, const char *text, struct error *err)
{
	const struct store_name name = {handle, end->tgid, text, end->rec.ts};
	struct question question = {.value = handle, .since = end->rec.ts, .pid = end->tgid};

	if (strncmp(text, "_Z", 2))
		return store_writer_add_name(names->writer, &name, err);
	question.mangled = strdup(text);
	if (question.mangled)
		ask(names, &question);
	return 0;
}

static int handle_named(struct code_names *names, const struct site_info *site, unsigned first,
			const struct waffle_rec_return *end, struct error *err)
{
	struct pending_function *pending = pending_get(names, end->span_id, false);
	uint64_t handle = 0;
	bool known = false;
	int result = 0;

	if (!pending)
		return 0; /* it began before the capture */
	values_find(names, value_walk_from(site, first, end + 1, end->frame_bytes), end->tgid,
		    end->rec.ts, &pending->text, &handle);
	/* A function can be registered under a name; then it is an argument of the call. */
	if (!handle && site->role == SITE_ROLE_NAME)
		handle = pending->host;
	if (handle)
		known = handle_seen(names, end, handle, pending->host, site->role);
	/* The same number may have been the handle of another function before. */
	if (handle && site->role == SITE_ROLE_NAME && (pending->text || known))
		result = handle_name_add(names, end, handle, pending->text ?: "", err);
	pending_remove(names, pending);
	return result;
}

/* ---- records ---- */

static bool gives_handles(const struct site_info *site)
{
	return site->role == SITE_ROLE_NAME || site->role == SITE_ROLE_HANDLE;
}

bool code_names_concern(const struct site_info *site)
{
	for (unsigned i = 0; i < site->key_count; i++)
		if (site->keys[i].type == WAFFLE_KEY_CODE)
			return true;
	return gives_handles(site);
}

static void values_name(struct code_names *names, const struct site_info *site,
			struct value_walk walk, uint32_t pid, uint64_t ts)
{
	struct value value;

	while (value_walk_next(&walk, &value))
		if (value.type == WAFFLE_KEY_CODE)
			value_name(names, pid, value.u64, ts, !gives_handles(site));
}

int code_names_record(struct code_names *names, const struct site_info *site, unsigned first,
		      const struct waffle_rec *rec, struct error *err)
{
	const struct waffle_rec_hit *hit = (const struct waffle_rec_hit *)rec;
	const struct waffle_rec_return *end = (const struct waffle_rec_return *)rec;

	if (rec->kind == WAFFLE_REC_HIT) {
		values_name(names, site, value_walk_begin(site, hit + 1, hit->frame_bytes),
			    hit->tgid, rec->ts);
		if (gives_handles(site))
			handle_begins(names, site, hit);
	} else if (rec->kind == WAFFLE_REC_RETURN) {
		if (gives_handles(site))
			return handle_named(names, site, first, end, err);
		values_name(names, site, value_walk_from(site, first, end + 1, end->frame_bytes),
			    end->tgid, rec->ts);
	}
	return 0;
}

void code_names_process(struct code_names *names, pid_t pid)
{
	const struct mappings *now = address_spaces_now(names->spaces, pid);

	for (size_t i = 0; now && i < now->list.len; i++)
		if (mapping_is_program(&now->list.data[i]))
			module_fd(names, &now->list.data[i], pid);
}

void code_names_forget(struct code_names *names, pid_t pid)
{
	hit_text_forget(names->texts, pid);
	for (size_t i = names->pending.len; i > 0; i--)
		if (names->pending.data[i - 1].pid == (uint32_t)pid)
			pending_remove(names, &names->pending.data[i - 1]);
}
