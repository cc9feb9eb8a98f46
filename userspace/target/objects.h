/* SPDX-License-Identifier: Apache-2.0 */
/* The ELF files of a process, a command or a list of paths, each file once. */
#ifndef WAFFLE_TARGET_OBJECTS_H
#define WAFFLE_TARGET_OBJECTS_H

#include "target/object.h"

struct objects {
	/* May add to each file that was read and is open at `fd`; NULL: nothing is added. Its
	 * errors are those of reading the file. */
	int (*more)(struct object *object, int fd, void *arg, struct error *err);
	void *arg;
	VEC(struct object *) list;
	uint64_t bad_notes;  /* of all of them */
	struct error denied; /* of a process: a file that could not be read for want of a right */
};

/* -ENOEXEC: not an ELF file. */
int objects_add_file(struct objects *objects, const char *path, struct error *err);
/* What a process has mapped, also deleted files and those of another mount namespace. Mapped data
 * that is not ELF is no error. */
int objects_add_process(struct objects *objects, pid_t pid, struct error *err);
/* The program that a command would run, looked for in PATH, and the libraries it will load. Of a
 * script ("#!") that is its interpreter: what that starts is known only when it starts. */
int objects_add_command(struct objects *objects, const char *command, struct error *err);
bool objects_command_is_script(const char *command);
void objects_free(struct objects *objects);

#endif
