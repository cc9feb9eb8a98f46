/* SPDX-License-Identifier: Apache-2.0 */
/* Searches a file for descriptions of calls, and collects the results and the messages about
 * descriptions without a match. */
#ifndef TESTS_UNIT_CALL_FOUND_H
#define TESTS_UNIT_CALL_FOUND_H

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "probe/spec/call.h"
#include "target/elf/object_read.h"
#include "target/elf/object_remote.h"
#include "target/worker/worker.h"

#define SELF "/proc/self/exe"

struct found {
	struct call_set *set;
	struct object *object;
	struct error err;
	char said[4096]; /* the messages, one per line */
	bool missing;    /* a description can never be found */
};

static void found_say(const char *line, bool missing, void *arg)
{
	struct found *found = arg;

	found->missing |= missing;
	strncat(found->said, line, sizeof(found->said) - strlen(found->said) - 1);
	strncat(found->said, "\n", sizeof(found->said) - strlen(found->said) - 1);
}

/* Searches a file under another name; `texts` ends with NULL. `worker`: a worker reads it. */
static struct found found_make(const char *path, const char *shown, const char *const *texts,
			       bool worker)
{
	struct found found = {.err = ERROR_INIT};
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(call_set_open(&found.set, &found.err), 0);
	for (; *texts; texts++) {
		if (call_set_add(found.set, *texts, "--probe", &found.err))
			fail_msg("%s", found.err.message);
	}
	if (worker) {
		const struct worker_table table = {
			.handlers = {[WORKER_OBJECT] = {object_serve, NULL},
				     [WORKER_CALLS] = {call_set_serve, found.set}}};

		assert_int_equal(worker_start(&table, &found.err), 0);
	}
	assert_int_equal(object_read(&found.object, fd, shown, &found.err), 0);
	if (call_set_find(found.set, found.object, fd, &found.err))
		fail_msg("%s", found.err.message);
	close(fd);
	if (worker)
		worker_stop();
	call_set_unfound(found.set, CALL_SCOPE_TRACED, found_say, &found);
	return found;
}

static void found_free(struct found *found)
{
	call_set_free(found->set);
	object_free(found->object);
}

/* A worker finds the same. */
static void found_compare(const struct object *here, const struct object *there)
{
	assert_int_equal(here->sites.len, there->sites.len);
	for (size_t i = 0; i < here->sites.len; i++) {
		const struct site_info *a = &here->sites.data[i], *b = &there->sites.data[i];

		assert_string_equal(a->name, b->name);
		assert_string_equal(a->category, b->category);
		assert_string_equal(a->func, b->func);
		assert_int_equal(a->kind, b->kind);
		assert_int_equal(a->role, b->role);
		assert_int_equal(a->call, b->call);
		assert_int_equal(a->keyed, b->keyed);
		assert_int_equal(a->laps, b->laps);
		assert_int_equal(a->simulated, b->simulated);
		assert_int_equal(a->begin_keys, b->begin_keys);
		assert_int_equal(a->key_count, b->key_count);
		for (unsigned k = 0; k < a->key_count; k++) {
			assert_int_equal(a->keys[k].type, b->keys[k].type);
			assert_string_equal(a->keys[k].name, b->keys[k].name);
		}
	}
	assert_int_equal(here->calls.len, there->calls.len);
	for (size_t i = 0; i < here->calls.len; i++) {
		assert_int_equal(here->calls.data[i].site, there->calls.data[i].site);
		assert_memory_equal(&here->calls.data[i].fetch_program,
				    &there->calls.data[i].fetch_program,
				    sizeof(here->calls.data[i].fetch_program));
	}
	assert_int_equal(here->probes.len, there->probes.len);
	for (size_t i = 0; i < here->probes.len; i++) {
		const struct object_probe *a = &here->probes.data[i], *b = &there->probes.data[i];

		assert_int_equal(a->offset, b->offset);
		assert_int_equal(a->semaphore_offset, b->semaphore_offset);
		assert_int_equal(a->site, b->site);
		assert_int_equal(a->type, b->type);
		assert_int_equal(a->cost, b->cost);
		assert_int_equal(a->shift, b->shift);
	}
}

static __attribute__((unused)) struct found find_in(const char *path, const char *shown,
						    const char *const *texts)
{
	struct found here = found_make(path, shown, texts, false), there;
	char real[PATH_MAX];

	/* In a worker, /proc/self is another process. */
	assert_non_null(realpath(path, real));
	there = found_make(real, shown, texts, true);
	found_compare(here.object, there.object);
	assert_string_equal(here.said, there.said);
	assert_int_equal(here.missing, there.missing);
	found_free(&there);
	return here;
}
#define FIND_IN(path, shown, ...) find_in(path, shown, (const char *const[]){__VA_ARGS__, NULL})

static __attribute__((unused)) void done(struct found *found)
{
	found_free(found);
}

#endif
