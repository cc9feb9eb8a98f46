/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that Python's module threading gave to threads: threading.Thread(name="loader"). The
 * kernel does not know them before Python 3.14, and then only their first 15 bytes.
 *
 *	thread state ─ innermost frame ─ … ─ outermost frame ─ its first local ─ the Thread
 *
 * The outermost frame of such a thread runs Thread._bootstrap(self). The object's attributes
 * _native_id and _name say whose it is and how it is called. All this is in memory that the process
 * changes meanwhile, and it may hold anything. So a name counts only if a second reading of
 * everything finds the same, and the caller has to find a living thread with that id.
 */
#ifndef WAFFLE_TARGET_PROCESS_PYTHON_THREADS_H
#define WAFFLE_TARGET_PROCESS_PYTHON_THREADS_H

#include "target/process/python.h"

#define PYTHON_THREAD_NAME_MAX 64
#define PYTHON_THREADS_STEP 8 /* the most threads that a step finds */

struct image_pages;

struct python_thread {
	uint32_t seen_tid;                 /* as the process sees it */
	char name[PYTHON_THREAD_NAME_MAX]; /* UTF-8, not empty; a longer one is cut */
};

/* A search of the threads of a process. Zero: none. */
struct python_threads {
	struct python python;
	struct image image;
	struct image_pages *pages; /* NULL: no search */
	uint64_t state;            /* the next thread state; 0: none is left */
	uint32_t count;            /* of those that were read */
};

typedef void python_thread_fn(const struct python_thread *thread, void *arg);

/* Begins a search, and takes ownership of the image. False: there is nothing to search. */
bool python_threads_begin(struct python_threads *threads, const struct python *python,
			  const struct image *image);
/* Reads a few threads, which takes about a millisecond. Returns whether some are left. */
bool python_threads_step(struct python_threads *threads, python_thread_fn *each, void *arg);
void python_threads_end(struct python_threads *threads);

#endif
