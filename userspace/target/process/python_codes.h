/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the code objects of a process of Python. An object begins with its number of references and
 * the address of its type, so the search looks for the address of PyCode_Type in the memory that
 * the interpreter allocates. It works for all versions and reads only pages that are in memory.
 * Most objects are dismissed by their name. The search goes on in steps, since it may be long.
 */
#ifndef WAFFLE_TARGET_PROCESS_PYTHON_CODES_H
#define WAFFLE_TARGET_PROCESS_PYTHON_CODES_H

#include "target/process/python.h"

struct image_pages;

struct python_code {
	uint64_t address;
	uint64_t first; /* address of its first instruction */
	uint64_t name;  /* address of its name, a str */
	uint32_t first_line;
	bool suspends; /* of a generator or coroutine, whose calls are no intervals of a thread */
	struct python_frame function; /* with the line where it begins */
};

/* Zero: no search runs. */
struct python_codes {
	const char *const *names; /* of the functions to find, not qualified: "step" */
	size_t name_count;
	struct mappings mappings;
	struct image_pages *pages; /* those with names */
	size_t next;               /* index of the current mapping */
	uint64_t address;          /* where the search goes on in it */
	uint64_t bytes;            /* searched so far */
};

typedef void python_code_fn(const struct python_code *code, void *arg);

/* Begins a search for functions with one of these names, which must outlive it. -ESRCH: the process
 * is gone; -ENOMEM. */
int python_codes_begin(struct python_codes *codes, pid_t pid, const char *const *names,
		       size_t name_count);
/* Searches about `bytes` of memory, and calls `each` for each code object. Returns whether memory
 * is left. */
bool python_codes_step(struct python_codes *codes, const struct python *python,
		       const struct image *image, uint64_t bytes, python_code_fn *each, void *arg);
void python_codes_free(struct python_codes *codes);

/* Reads the code object at an address. False: there is none. */
bool python_code_at(struct python_code *code, const struct python *python,
		    const struct image *image, uint64_t address);

#endif
