/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPython in a process: the offsets with which BPF programs find the frames of its threads
 * (bpf/stack.h), and the source position of a frame. Since 3.13 the interpreter publishes these
 * offsets (_Py_DebugOffsets); for 3.8 to 3.12 they are built in here. The process is not trusted,
 * so all data read from it is checked against bounds.
 */
#ifndef WAFFLE_TARGET_PROCESS_PYTHON_H
#define WAFFLE_TARGET_PROCESS_PYTHON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/stack.h"
#include "target/process/image.h"
#include "target/process/process.h"

/* Code of the interpreter in the process; all 0: unknown. */
struct python_code_range {
	uint64_t start, end;           /* of the mapping with its loop */
	uint64_t eval_start, eval_end; /* of the loop: _PyEval_EvalFrameDefault() */
};

struct python {
	struct waffle_python kernel; /* runtime 0: no interpreter, or an unsupported one */
	bool found;                  /* there is an interpreter, supported or not */
	struct python_code_range code;
	uint64_t code_type; /* address of PyCode_Type; 0: unknown */
};

/*
 * Searches the files that a process has mapped for an interpreter. It looks for the section of the
 * run-time state, so it also finds an interpreter that is stripped or embedded in another program.
 * `named`: it looks only into files whose names contain "python". -EAGAIN: none was found yet, and
 * some files are still being parsed.
 */
int python_find(struct python *python, const struct image *image, pid_t pid,
		const struct mappings *mappings, bool named);

/* Where an interpreter is in memory. */
struct python_place {
	uint64_t runtime; /* address of its run-time state (_PyRuntime) */
	/* Size of that state, by which versions before 3.11 are told apart. 0: unknown. */
	uint64_t runtime_bytes;
	uint64_t version_at; /* address of the word with its version (Py_Version); 0: none */
};

/* Reads the interpreter at a place. False: the memory cannot be read. */
bool python_at(struct python *python, const struct image *image, const struct python_place *place);

#define PYTHON_NAME_MAX 192
#define PYTHON_FILE_MAX 512

struct python_frame {
	char function[PYTHON_NAME_MAX]; /* qualified: "Trainer.step", "main.<locals>.<lambda>" */
	char file[PYTHON_FILE_MAX];
	uint32_t line; /* 0: unknown */
};

/* Converts a str, as CPython stores it, to UTF-8. One that does not fit is cut between characters.
 * False: it is empty, or no str. */
bool python_text_decode(const struct waffle_code_text *from, const unsigned char *bytes,
			size_t bytes_max, char *text, size_t size);

/* Reads a code object from the process, with the address of its instructions. False: it cannot be
 * read. */
bool python_code_read(const struct python *python, const struct image *image, uint64_t address,
		      struct waffle_rec_code *code);

/* The frame of a code object at an instruction. False: it has no name. */
bool python_frame_of(const struct python *python, const struct waffle_rec_code *code,
		     uint64_t instruction, struct python_frame *frame);

/* The forms of a code object's table of lines, with their descriptions in CPython's sources. */
enum python_lines {
	PYTHON_LINES_LOCATIONS, /* co_linetable since 3.11: Objects/locations.md */
	PYTHON_LINES_3_10,      /* co_linetable of 3.10: Objects/lnotab_notes.txt */
	PYTHON_LINES_LNOTAB,    /* co_lnotab before that: Objects/lnotab_notes.txt */
};

/* The source line of the instruction at a byte offset. 0: none. */
uint32_t python_line(enum python_lines form, const unsigned char *table, size_t size,
		     uint32_t first_line, uint64_t offset);

#endif
