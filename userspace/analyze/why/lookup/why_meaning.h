/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel stack of a blocked thread says about its wait: a table of functions.
 *
 * Of each class, the first matching row counts: what it waits for ("a commit of the journal"), what
 * the kernel was doing ("memory reclaim"), and whose code it is ("ext4"). docs/why.md shows the
 * table, and tests/unit/test_why_meaning.c checks that both agree.
 */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_MEANING_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_MEANING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum meaning_class {
	MEANING_WAIT,   /* what it waits for */
	MEANING_WORK,   /* what the kernel was doing */
	MEANING_SYSTEM, /* whose code it is: a file system or driver */
	MEANING_CLASS_COUNT
};

/* How a row affects the cause; see why_blocked.c. */
enum meaning_rule {
	MEANING_TELLS,  /* no effect: its text is only shown */
	MEANING_LOCK,   /* the waker held a lock */
	MEANING_THREAD, /* the waker did the awaited work */
	MEANING_CHILD,  /* the waker is a child that had to run or end */
	MEANING_PIPE,   /* the waker has opened the other end of a pipe */
	MEANING_STOPPED,
	MEANING_FROZEN, /* its cgroup was frozen */
	MEANING_GPU,
	MEANING_SERVER,  /* possibly another machine */
	MEANING_READ,    /* reads a device */
	MEANING_WRITE,   /* writes a device */
	MEANING_DIRTY,   /* the kernel throttles writers of dirty pages */
	MEANING_SWAP,    /* a page comes from the swap device */
	MEANING_RECLAIM, /* a page fault must free memory first */
	MEANING_RULE_COUNT
};
/* The causes that a rule leads to, for people; "" if none. */
extern const char *const meaning_rule_texts[MEANING_RULE_COUNT];

/* Lists of function names have a space behind each name; * matches any text. A compiler's suffix
 * behind a dot (".constprop.0") is ignored. */
struct meaning_row {
	enum meaning_class class;
	enum meaning_rule rule;
	const char *text;
	const char *functions;
	/* Its caller, past the wrappers of locks; NULL: any. */
	const char *caller;
	/* One of these must be the function or further out on the stack; NULL: not needed. */
	const char *with;
};
extern const struct meaning_row meaning_rows[];
extern const size_t meaning_row_count;

/* The matching row of each class, or NULL. */
struct meaning {
	const struct meaning_row *rows[MEANING_CLASS_COUNT];
	enum meaning_rule rule; /* of the first row that affects the cause */
};

/* Returns whether a list contains a function. No list contains NULL, an unknown function. */
bool meaning_is_listed(const char *function, const char *list);

/* `functions`: innermost first; NULL for unknown names. */
struct meaning meaning_of(const char *const *functions, size_t count);

#define MEANING_TEXT 192
/* "waits for dirty pages to be written, page fault, ext4"; "" if nothing matches. */
const char *meaning_text(char text[MEANING_TEXT], const struct meaning *meaning);

#endif
