/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls: functions, USDT probes and tracepoints that users describe (docs/probes.md) instead of
 * marking them with waffle's macros. This module finds them in ELF files and adds them to an object
 * as sites and probes. So the code that arms, numbers and filters sites also handles calls.
 *
 *	uprobe:libcudart:cudaMemcpy(ptr dst, ptr src, u64 bytes, enum:copy kind) -> i32 ret
 *
 * The tables of CUDA and NCCL consist of such descriptions, one row per function.
 */
#ifndef WAFFLE_PROBE_SPEC_CALL_H
#define WAFFLE_PROBE_SPEC_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/elf/object.h"
#include "util/error.h"
#include "util/wire.h"

struct call_set;

/* The set of descriptions that a session searches for. */
int call_set_open(struct call_set **set, struct error *err);
void call_set_free(struct call_set *set);

/*
 * Adds one description. `where` names its origin in messages: "--probe", "mpi.probes:7". -EINVAL
 * with a message and a caret under the error.
 */
int call_set_add(struct call_set *set, const char *text, const char *where, struct error *err);
/* Adds the descriptions of a file, one per line; '#' begins a comment. A plain name, "mpi", is a
 * set that ships with waffle. */
int call_set_add_file(struct call_set *set, const char *path, struct error *err);

/* Tables that ship with waffle. They are used unless --sources excludes them, but CALL_TABLE_MPI
 * only by `why`, where it is always. Adding one returns 0 or a negative errno with a message. */
enum call_table {
	CALL_TABLE_CUDA,
	CALL_TABLE_HIP,
	CALL_TABLE_NCCL,
	CALL_TABLE_TORCH,
	CALL_TABLE_JAX,
	CALL_TABLE_MPI,
	CALL_TABLE_COUNT
};
int call_set_add_table(struct call_set *set, enum call_table table, struct error *err);

/* Sets the process whose files are searched from now on. The paths in descriptions are then
 * resolved below its root as well as below ours. 0: no process. */
void call_set_process(struct call_set *set, pid_t pid);

/* Whether any description may apply to a file with this path. Most files are not even opened. */
bool call_set_wants(const struct call_set *set, const char *path);

/* Whether a description requests stacks itself. */
bool call_set_wants_stacks(const struct call_set *set);

/* The worker's side of call_set_find(): a worker_handler, whose `arg` is the set. */
int call_set_serve(struct wire_in *request, int fd, struct wire_out *reply, void *arg);

/*
 * Searches the ELF file open at `fd`, which `object` was read from, and adds sites, calls and
 * probes to the object. A table probes each address once, even if it has several names (ncclX and
 * pncclX). A file without any is no error. -E2BIG: more than WAFFLE_FETCH_PROGRAMS_MAX; -EAGAIN: as
 * object_read().
 */
int call_set_find(struct call_set *set, struct object *object, int fd, struct error *err);

/*
 * The libraries that descriptions name, "libcudart" or a path, without patterns. They belong to the
 * set.
 */
struct call_library {
	const char *name;
	bool asked; /* requested by the user, not only by a table or a set */
	bool table; /* of CUDA or NCCL */
};
size_t call_set_libraries(struct call_set *set, const struct call_library **list);
/* Whether there are descriptions besides those tables. */
bool call_set_is_described(const struct call_set *set);
bool call_library_is(const struct call_library *library, const char *path);

/*
 * As call_set_find(), for a file that no process has mapped yet. Its results count once a process
 * maps it (call_set_mapped()). Uses at most half of the fetch_programs. After an error nothing is
 * kept.
 */
struct call_pending;
int call_set_find_pending(struct call_set *set, struct object *object, int fd,
			  struct call_pending **pending, struct error *err);
void call_set_mapped(struct call_set *set, const struct call_pending *pending);
void call_pending_free(struct call_pending *pending);

/* Which files were searched. Traced processes may map more files later. */
enum call_scope {
	CALL_SCOPE_TRACED,
	CALL_SCOPE_FOLLOWED, /* traced processes, and programs that they start later */
	CALL_SCOPE_PROCESS,
	CALL_SCOPE_FILES,
};

/* Suffix for messages about what a program that starts later may contain. */
#define CALL_MAY_COME "; it is looked for in programs that begin later"

/*
 * Receives one line per description that has found nothing so far, with the reason: "no function
 * 'cudaLaunchKernl' in libcudart.so.12; did you mean cudaLaunchKernel", or "libfoo.so is stripped:
 * …". `missing` is set if the description is a single one (not from a file of descriptions) and can
 * no longer match. Then its library was searched, or no library can follow.
 */
typedef void (*call_say)(const char *line, bool missing, void *arg);
void call_set_unfound(const struct call_set *set, enum call_scope scope, call_say say, void *arg);

/* The sites of tracepoints, which are in no file, in order. Each has its fetch program and a name
 * such as "sched:sched_switch". */
struct call_tracepoint {
	struct site_info site;
	struct waffle_fetch_program fetch_program;
	const char *name;
	uint64_t id; /* for perf_event_open(2) */
};
typedef VEC(struct call_tracepoint) tracepoint_list;
size_t call_set_tracepoints(const struct call_set *set, const struct call_tracepoint **list);

/* The tables of names to which the fetch programs refer, [0, *count). */
const struct waffle_enum *call_set_enums(const struct call_set *set, uint32_t *count);

#endif
