/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that are read from the file of every executable mapping, by a worker if there is one
 * (target/worker/worker.h). */
#ifndef WAFFLE_TARGET_PROCESS_PROGRAM_FACTS_H
#define WAFFLE_TARGET_PROCESS_PROGRAM_FACTS_H

#include "target/elf/buildid.h"
#include "target/elf/elffile.h"
#include "util/wire.h"

struct program_facts {
	struct build_id build_id; /* size 0: none */
	struct elf_segments segments;
	uint64_t python_runtime;       /* link-time address of CPython's _PyRuntime; 0: none */
	uint64_t python_runtime_bytes; /* its size, by its symbol; 0: unknown */
	uint64_t python_version;       /* link-time address of Py_Version; 0: unknown */
	uint64_t python_code_type;     /* link-time address of PyCode_Type; 0: unknown */
	uint64_t python_eval, python_eval_bytes; /* _PyEval_EvalFrameDefault(); 0: unknown */
	/* Link-time addresses of the JVM's gHotSpotVMStructs and gHotSpotVMTypes; 0: none. */
	uint64_t jvm_structs, jvm_types;
};

/* Takes ownership of the descriptor. -ENOEXEC: not a program or library; -EPROTO: a worker exited;
 * -ENOMEM; -EAGAIN: as worker_ask(). */
int program_facts_read(struct program_facts *facts, int fd, const char *path);

/* The worker's side, a worker_handler. */
int program_facts_serve(struct wire_in *request, int fd, struct wire_out *reply, void *arg);
/* Parses the reply. False: it is malformed. */
bool program_facts_decode(struct program_facts *facts, struct wire_in *in);

#endif
