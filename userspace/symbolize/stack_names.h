/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbolizes a capture's stacks. A user address is looked up in the mappings of its process at that
 * time. The location in the mapped file is then symbolized with that file or its debug file, which
 * is found by build-id. A kernel address has the name that the kernel gave it during the capture.
 * Unknown addresses are shown as module+0xoffset.
 *
 *	struct stack_names *names;
 *
 *	names = stack_names_open(reader, true);
 *	stack_names_each(names, wait->user_stack, wait->from_ts, print_frame, out);
 *	stack_names_close(names);
 *
 * Strings stay valid until stack_names_close() and may contain any bytes. All functions but
 * stack_names_open() accept NULL for names that nobody opened; nothing is known then. Those that
 * take a stack, and stack_names_variable(), may be called on several threads. The functions that
 * they call for each frame must not call them.
 */
#ifndef WAFFLE_SYMBOLIZE_STACK_NAMES_H
#define WAFFLE_SYMBOLIZE_STACK_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

struct stack_names;

struct stack_frame {
	const char *function; /* NULL: unknown */
	const char *module;   /* path of the file, "[kernel]"; NULL: nothing was mapped there */
	const char *file;     /* source file; NULL: unknown */
	uint32_t line;        /* 0: unknown */
	/* In the function, or else in the module; if both are unknown, the address. */
	uint64_t offset;
	bool inlined; /* into the next frame */
	bool kernel;
	bool cut; /* not a frame: the stack is deeper, but truncated; `function` is "[cut]" */
};

/* Opens the names of a capture. With `fetch`, debug files are fetched from debuginfod servers if
 * some are configured. The reader must outlive the names. */
struct stack_names *stack_names_open(const struct store_reader *reader, bool fetch);
void stack_names_close(struct stack_names *names);

typedef void (*stack_frame_fn)(const struct stack_frame *frame, void *arg);

/* Calls `each` for every frame of a stack, innermost first and including inlined ones. If the stack
 * is known to be truncated, it calls `each` once more. Returns the number of frames. `ts` is the
 * time when the stack was taken. */
uint32_t stack_names_each(struct stack_names *names, uint32_t stack, uint64_t ts,
			  stack_frame_fn each, void *arg);

/* The same for a stack that was not unwound by frame pointers alone, so that all its frames are
 * reliable. */
uint32_t stack_names_all(struct stack_names *names, uint32_t stack, uint64_t ts,
			 stack_frame_fn each, void *arg);

/* Finds the innermost frame whose name says something about the program. It skips the C library,
 * the dynamic linker and the language's run-time. False: there is none. */
bool stack_names_inner(struct stack_names *names, uint32_t stack, uint64_t ts,
		       struct stack_frame *inner);

/* Finds the innermost function of Python that is the program's own, and not the frame of
 * stack_names_inner(): its source is in the folder, or in one below it, of the outermost function
 * of the stack that is in no library of Python. False: there is none. */
bool stack_names_own(struct stack_names *names, uint32_t stack, uint64_t ts,
		     struct stack_frame *own);

/* Finds the function of an installed package of Python that called Python's own library, in which
 * the frame of stack_names_inner() is: a wait in threading.py is that of a pool of connections.
 * False: that frame is elsewhere, or the program itself made the call. */
bool stack_names_package(struct stack_names *names, uint32_t stack, uint64_t ts,
			 struct stack_frame *package);
/* The path of a source below the folder of installed packages; NULL: it is elsewhere. */
const char *stack_source_in_packages(const char *file);

/* Whether a frame is of the C library or another one that every program has. */
bool stack_frame_is_common(const struct stack_frame *frame);
/* Whether a frame is of CPython or of a module of its standard library in C. What the program was
 * doing is better told by the function of Python that called it. */
bool stack_frame_is_interpreter(const struct stack_frame *frame);
/* Whether a frame is a function of Python. */
bool stack_frame_is_python(const struct stack_frame *frame);
/* Whether the source of a frame ends in "multiprocessing/pool.py". */
bool stack_frame_is_in(const struct stack_frame *frame, const char *source);
/* The name of a function of Python without its class, which it has from Python 3.11 on; NULL:
 * unknown. */
const char *stack_frame_plain_name(const struct stack_frame *frame);
/* Whether a frame is in code that the JVM made: a method of Java, its interpreter, or a stub. */
bool stack_frame_is_java(const struct stack_frame *frame);
/* Whether a frame is a method of Java. */
bool stack_frame_is_java_method(const struct stack_frame *frame);
/* Whether a frame is a function of Python or a method of Java. */
bool stack_frame_is_of_runtime(const struct stack_frame *frame);
/* Whether the source of a function of Python is in a folder for libraries, or in none: that of
 * Python itself, or one in which installers put packages. */
bool stack_source_is_library(const char *file);

/*
 * The run-time that may have generated the code at an address of a process: "the JVM". NULL: the
 * address is in a file, no such run-time is mapped, or the address may be that of the vDSO, which
 * lies above everything that a program maps.
 */
const char *stack_names_generator(struct stack_names *names, uint32_t pid, uint64_t address,
				  uint64_t ts);

/* Whether the code of a process has just executed PAUSE, or what other machines have for it, before
 * an address: a loop that waits for another CPU. False if the file is not available. */
bool stack_names_pauses(struct stack_names *names, uint32_t pid, uint64_t ts, uint64_t address);

/* Whether a process has mapped the JVM. */
bool stack_names_has_jvm(struct stack_names *names, uint32_t pid);

/* The variable at an address of a process, such as "table_lock" or "pool+0x40"; NULL: none. */
const char *stack_names_variable(struct stack_names *names, uint32_t pid, uint64_t ts,
				 uint64_t address);

/* Whether a mapped file has a variable of that name. If so, stack_names_variable() names its
 * addresses. */
bool stack_names_has_variable(struct stack_names *names, const struct store_mapping *mapping,
			      const char *name);

/* Whether a mapped file is a program in Go. */
bool stack_names_is_go(struct stack_names *names, const struct store_mapping *mapping);

/* So many innermost functions show what a wait is for: library functions lie between the system
 * call and the program. */
#define STACK_NAMES_FUNCTIONS 12
/* Writes the functions of a stack that are known, innermost first, at most `max` of them, and
 * returns their number. */
uint32_t stack_names_functions(struct stack_names *names, uint32_t stack, uint64_t ts,
			       const char **functions, uint32_t max);

#endif
