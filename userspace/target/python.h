/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPython in a process: the offsets by which BPF programs find the frames of its threads
 * (bpf/stack.h), and the place of a frame in the source. From 3.13 on the interpreter publishes
 * these offsets (_Py_DebugOffsets); those of 3.11 and 3.12 are known here. The process is not
 * trusted, so everything that is read of it is checked against bounds.
 */
#ifndef WAFFLE_TARGET_PYTHON_H
#define WAFFLE_TARGET_PYTHON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/stack.h"
#include "target/image.h"
#include "target/process.h"

struct python {
	struct waffle_python kernel; /* runtime 0: no interpreter, or one that is not known */
	bool found;                  /* an interpreter is there, known or not */
	uint32_t version;            /* PY_VERSION_HEX; 0: it does not say, as before 3.11 */
};

/*
 * Looks for an interpreter among the files that a process has mapped: by the section of its
 * run-time state, so a stripped one, or one inside of another program, is found as well. -EAGAIN:
 * none was found, and some files are still being parsed.
 */
int python_find(struct python *python, const struct image *image, pid_t pid,
		const struct mappings *mappings);

/*
 * The interpreter whose run-time state (_PyRuntime) is at an address, and whose version is in a
 * word at another one; 0: there is none. False: there is no such memory.
 */
bool python_at(struct python *python, const struct image *image, uint64_t runtime,
	       uint64_t version_at);

#define PYTHON_NAME_MAX 192
#define PYTHON_FILE_MAX 512

struct python_frame {
	char function[PYTHON_NAME_MAX]; /* qualified: "Trainer.step", "main.<locals>.<lambda>" */
	char file[PYTHON_FILE_MAX];
	uint32_t line; /* 0: not known */
};

/* What a code object is, read from the process, and where its instructions begin. False: it can't
 * be read. */
bool python_code_read(const struct python *python, const struct image *image, uint64_t address,
		      struct waffle_rec_code *code);

/* A frame of a code object that stands at an instruction. False: it has no name. */
bool python_frame_of(const struct python *python, const struct waffle_rec_code *code,
		     uint64_t instruction, struct python_frame *frame);

/*
 * The line of the instruction at a byte offset in a code object whose table of lines this is
 * (Objects/locations.md in CPython's sources); 0: it has none.
 */
uint32_t python_line(const unsigned char *table, size_t size, uint32_t first_line, uint64_t offset);

#endif
