/* SPDX-License-Identifier: Apache-2.0 */
/* The ELF files of a process, a command or a list of paths. Each file occurs once. */
#ifndef WAFFLE_TARGET_ELF_OBJECTS_H
#define WAFFLE_TARGET_ELF_OBJECTS_H

#include "target/elf/object.h"

struct objects {
	/* Called for each file that was read, while it is open at `fd`; may add to the object. Its
	 * errors count as errors of reading the file. NULL: nothing is added. */
	int (*more)(struct object *object, int fd, void *arg, struct error *err);
	void *arg;
	VEC(struct object *) list;
	uint64_t bad_notes;  /* total of malformed notes */
	struct error denied; /* a mapped file that could not be read without a permission */
};

/* -ENOEXEC: not an ELF file. */
int objects_add_file(struct objects *objects, const char *path, struct error *err);
/* Adds the files that a process has mapped, including deleted files and files of another mount
 * namespace. Mapped data that is not ELF is no error. */
int objects_add_process(struct objects *objects, pid_t pid, struct error *err);
/* Adds the program that a command would run, searched in PATH, and the libraries that it will load.
 * For a script ("#!") this is the interpreter. Programs that it starts are only known when they
 * start. */
int objects_add_command(struct objects *objects, const char *command, struct error *err);
bool objects_command_is_script(const char *command);
void objects_free(struct objects *objects);

#endif
