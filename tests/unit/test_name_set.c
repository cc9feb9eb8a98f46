// SPDX-License-Identifier: Apache-2.0
/* Names of traced processes, here of this one: which are one site, and how many there may be. Needs
 * root, for /proc/PID/map_files. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/transport/name_set.h"
#include "usdt/name/name_chunk.h"

#define TEXTS_AT ((uint32_t)sizeof(struct name_entry))

static unsigned found, full;

static uint32_t site_found(const struct site_info *site, void *arg)
{
	(void)arg;
	assert_string_equal(site->file, "file");
	return found++;
}

static void is_full(void *arg)
{
	(void)arg;
	full++;
}

static uint32_t no_site(uint64_t ts, pid_t pid, uint64_t probe, void *arg)
{
	(void)ts;
	(void)pid;
	(void)probe;
	(void)arg;
	return WAFFLE_SITE_UNKNOWN;
}

struct subject {
	struct ring_set *rings;
	struct name_set *names;
};

static struct subject subject_open(void)
{
	struct ring_set_options rings = {.cpu_count = 1, .site = no_site};
	struct name_set_options names = {.found = site_found, .full = is_full};
	struct error err = ERROR_INIT;
	struct subject subject;

	found = full = 0;
	assert_int_equal(ring_set_open(&subject.rings, &rings, &err), 0);
	names.rings = subject.rings;
	assert_int_equal(name_set_open(&subject.names, &names, &err), 0);
	return subject;
}

static void subject_close(struct subject *subject)
{
	name_set_close(subject->names);
	ring_set_close(subject->rings);
}

static struct name_chunk *chunk_new(void)
{
	bool shared;
	struct name_chunk *chunk = name_chunk_new(TEXTS_AT, &shared);

	assert_true(chunk && shared);
	return chunk;
}

/* Defines an event, or a track. NULL: the chunk is full. */
static struct name_entry *define(struct name_chunk *chunk, const char *name, unsigned kind,
				 uint32_t line)
{
	char texts[300];
	int len = snprintf(texts, sizeof(texts), "%s%cfile%ccategory%cfunction", name, 0, 0, 0);
	struct name_entry *entry = name_chunk_take(chunk, TEXTS_AT + (uint32_t)len + 1);

	if (!entry)
		return NULL;
	entry->kind = (uint16_t)kind;
	entry->line = line;
	memcpy((char *)entry + TEXTS_AT, texts, (size_t)len + 1);
	name_chunk_publish(chunk, entry);
	return entry;
}

static void chunk_add(struct subject *subject, pid_t pid, struct name_chunk *chunk)
{
	assert_int_equal(name_set_add(subject->names, pid, (uintptr_t)chunk, NAME_CHUNK_BYTES), 0);
}

static void test_same_definition_in_two_processes_is_one_site(void **state)
{
	struct name_chunk *chunk = chunk_new(), *other = chunk_new();
	struct subject subject = subject_open();
	struct name_entry *entry = define(chunk, "same", WAFFLE_SITE_EVENT, 1), *again;
	pid_t child;
	int status;

	(void)state;
	define(chunk, "another line", WAFFLE_SITE_EVENT, 2);
	define(other, "another", WAFFLE_SITE_EVENT, 1);
	again = define(other, "same", WAFFLE_SITE_EVENT, 1);
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	chunk_add(&subject, getpid(), chunk);
	chunk_add(&subject, child, other);
	name_set_poll(subject.names);
	assert_int_equal(found, 3);
	assert_int_equal(name_set_site(subject.names, getpid(), (uintptr_t)entry), 0);
	assert_int_equal(name_set_site(subject.names, child, (uintptr_t)again), 0);
	assert_true(entry->armed && again->armed);
	name_set_ended(subject.names, getpid());
	assert_true(!entry->armed && again->armed);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	subject_close(&subject);
	munmap(chunk, NAME_CHUNK_BYTES);
	munmap(other, NAME_CHUNK_BYTES);
}

static void test_process_gets_at_most_half_of_all_names(void **state)
{
	struct subject subject = subject_open();
	struct name_entry *last = NULL;
	char name[16];

	(void)state;
	for (unsigned i = 0; i < 70000;) {
		struct name_chunk *chunk = chunk_new();

		do
			snprintf(name, sizeof(name), "name %u", i++);
		while ((last = define(chunk, name, WAFFLE_SITE_EVENT, 1)) && i < 70000);
		chunk_add(&subject, getpid(), chunk);
		name_set_poll(subject.names);
	}
	for (unsigned i = 0; i < 10; i++)
		name_set_poll(subject.names);
	assert_int_equal(found, 65536 / 2);
	assert_int_equal(full, 1);
	assert_false(last && last->armed);
	subject_close(&subject);
}

static void test_chunks_of_a_process_are_limited(void **state)
{
	struct subject subject = subject_open();
	unsigned added = 0;

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		struct name_chunk *chunk = chunk_new();

		added += !name_set_add(subject.names, getpid(), (uintptr_t)chunk, NAME_CHUNK_BYTES);
		munmap(chunk, NAME_CHUNK_BYTES);
	}
	assert_int_equal(added, 256);
	assert_int_equal(full, 1);
	subject_close(&subject);
}

static void test_tracks_stay_until_the_process_runs_another_program(void **state)
{
	struct name_chunk *chunk = chunk_new(), *next = chunk_new();
	struct subject subject = subject_open();
	struct name_set_track track;

	(void)state;
	define(chunk, "engine", NAME_KIND_TRACK, 7);
	define(chunk, "engine again", NAME_KIND_TRACK, 7);
	define(next, "other", NAME_KIND_TRACK, 8);
	chunk_add(&subject, getpid(), chunk);
	assert_true(name_set_track(subject.names, getpid(), 7, &track));
	assert_string_equal(track.name, "engine");
	name_set_ended(subject.names, getpid());
	assert_true(name_set_track(subject.names, getpid(), 7, &track));
	chunk_add(&subject, getpid(), next);
	assert_false(name_set_track(subject.names, getpid(), 7, &track));
	assert_true(name_set_track(subject.names, getpid(), 8, &track));
	assert_string_equal(track.name, "other");
	subject_close(&subject);
	munmap(chunk, NAME_CHUNK_BYTES);
	munmap(next, NAME_CHUNK_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_definition_in_two_processes_is_one_site),
		cmocka_unit_test(test_process_gets_at_most_half_of_all_names),
		cmocka_unit_test(test_chunks_of_a_process_are_limited),
		cmocka_unit_test(test_tracks_stay_until_the_process_runs_another_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
