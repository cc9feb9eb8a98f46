/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel's stack of a blocked thread says of its wait: a table of functions.
 *
 * Of each class of rows the first one of the table that fits is taken: what is waited for ("a
 * commit of the journal"), what the kernel was about ("memory reclaim"), and whose code it is
 * ("ext4"). docs/why.md shows the table; tests/unit/test_why_meaning.c keeps the two the same.
 */
#ifndef WAFFLE_ANALYZE_WHY_MEANING_H
#define WAFFLE_ANALYZE_WHY_MEANING_H

#include <stddef.h>
#include <stdint.h>

enum meaning_class {
	MEANING_WAIT,   /* what is waited for */
	MEANING_WORK,   /* what the kernel was about */
	MEANING_SYSTEM, /* whose code it is: a file system, a driver */
	MEANING_CLASS_COUNT
};

/* What a row decides about the cause; in why_blocked.c. */
enum meaning_rule {
	MEANING_TELLS,  /* nothing: it is shown */
	MEANING_LOCK,   /* who ended the wait held a lock */
	MEANING_THREAD, /* who ended the wait did what was waited for */
	MEANING_CHILD,  /* who ended the wait is a child that had to run or to end */
	MEANING_STOPPED,
	MEANING_GPU,
	MEANING_SERVER,  /* another machine, perhaps */
	MEANING_READ,    /* from a device */
	MEANING_WRITE,   /* to a device */
	MEANING_DIRTY,   /* a writer was held back, as too much is not written yet */
	MEANING_SWAP,    /* a page comes from the swap device */
	MEANING_RECLAIM, /* a page fault needs memory that has to be freed first */
	MEANING_RULE_COUNT
};
/* The causes that a rule speaks for, for people; "" for none. */
extern const char *const meaning_rule_texts[MEANING_RULE_COUNT];

/*
 * Names of functions have a blank behind each; * stands for any rest. What a compiler has put
 * behind a dot (".constprop.0") does not matter.
 */
struct meaning_row {
	enum meaning_class class;
	enum meaning_rule rule;
	const char *text;
	const char *functions;
	const char
		*caller;  /* who called it, with the wrappers of locks left out; NULL: no matter */
	const char *with; /* one of these is further out; NULL: no matter */
};
extern const struct meaning_row meaning_rows[];
extern const size_t meaning_row_count;

/* Of each class a row, or NULL. */
struct meaning {
	const struct meaning_row *rows[MEANING_CLASS_COUNT];
	enum meaning_rule rule; /* of the first one that decides something */
};

/* `functions`: innermost first; NULL where the name is not known. */
struct meaning meaning_of(const char *const *functions, size_t count);

#define MEANING_TEXT 192
/* "waits for dirty pages to be written, page fault, ext4"; "" if nothing is known. */
const char *meaning_text(char text[MEANING_TEXT], const struct meaning *meaning);

#endif
