/* SPDX-License-Identifier: Apache-2.0 */
/* What descriptions of calls find in a file, and what is said of those that find nothing. */
#ifndef TESTS_UNIT_CALL_FOUND_H
#define TESTS_UNIT_CALL_FOUND_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "call/call.h"

#define SELF "/proc/self/exe"

struct found {
	struct call_set *set;
	struct object *object;
	struct error err;
	char said[4096]; /* lines */
	bool missing;    /* one of them is of what will not be found */
};

static void found_say(const char *line, bool missing, void *arg)
{
	struct found *found = arg;

	found->missing |= missing;
	strncat(found->said, line, sizeof(found->said) - strlen(found->said) - 1);
	strncat(found->said, "\n", sizeof(found->said) - strlen(found->said) - 1);
}

/* A file, under a name of its own; the texts end with NULL. */
static struct found find_in(const char *path, const char *shown, const char *const *texts)
{
	struct found found = {.err = ERROR_INIT};
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(call_set_open(&found.set, &found.err), 0);
	for (; *texts; texts++) {
		if (call_set_add(found.set, *texts, "--probe", &found.err))
			fail_msg("%s", found.err.message);
	}
	assert_int_equal(object_read(&found.object, fd, shown, &found.err), 0);
	if (call_set_find(found.set, found.object, fd, &found.err))
		fail_msg("%s", found.err.message);
	close(fd);
	call_set_unfound(found.set, CALL_SCOPE_TRACED, found_say, &found);
	return found;
}
#define FIND_IN(path, shown, ...) find_in(path, shown, (const char *const[]){__VA_ARGS__, NULL})

static void done(struct found *found)
{
	call_set_free(found->set);
	object_free(found->object);
}

#endif
