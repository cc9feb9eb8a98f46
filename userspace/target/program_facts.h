/* SPDX-License-Identifier: Apache-2.0 */
/* The facts that are read of every executable mapping's file, by a worker if there is one
 * (target/worker.h). */
#ifndef WAFFLE_TARGET_PROGRAM_FACTS_H
#define WAFFLE_TARGET_PROGRAM_FACTS_H

#include "target/buildid.h"
#include "target/elffile.h"
#include "util/wire.h"

struct program_facts {
	struct build_id build_id; /* of size 0: it has none */
	struct elf_segments segments;
	uint64_t python_runtime; /* link-time address of CPython's state; 0: it is not in there */
	uint64_t python_version; /* of its Py_Version; 0: not known */
};

/* The descriptor is taken over. -ENOEXEC: not a program or library; -EPROTO: a worker ended;
 * -ENOMEM; -EAGAIN: as worker_ask(). */
int program_facts_read(struct program_facts *facts, int fd, const char *path);

/* The worker's side: a worker_handler. */
int program_facts_serve(struct wire_in *request, int fd, struct wire_out *reply, void *arg);
/* Parses its reply; false: it is malformed. */
bool program_facts_decode(struct program_facts *facts, struct wire_in *in);

#endif
