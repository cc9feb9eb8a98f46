/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls: functions, USDT probes and tracepoints that no macro of waffle has made, as they are
 * described (docs/probes.md), and where they are in ELF files. What is found is added to an object
 * as sites and probes, so that all that arms, numbers and filters sites does so with calls.
 *
 *	uprobe:libcudart:cudaMemcpy(ptr dst, ptr src, u64 bytes, enum:copy kind) -> i32 ret
 *
 * The tables of CUDA and NCCL are such descriptions, a row a function.
 */
#ifndef WAFFLE_CALL_CALL_H
#define WAFFLE_CALL_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/object.h"
#include "util/error.h"
#include "util/wire.h"

struct call_set;

/* What a session looks for. */
int call_set_open(struct call_set **set, struct error *err);
void call_set_free(struct call_set *set);

/*
 * Adds what one description says; `where` tells people where it stands: "--probe", "mpi.probes:7".
 * -EINVAL with what is wrong and a caret under it.
 */
int call_set_add(struct call_set *set, const char *text, const char *where, struct error *err);
/* The descriptions of a file, a line each, '#' begins a comment. A plain name, "mpi", is a set that
 * ships with waffle. */
int call_set_add_file(struct call_set *set, const char *path, struct error *err);

/* Rows that ship with waffle and are looked for unless --sources leaves them out. */
enum call_table { CALL_TABLE_CUDA, CALL_TABLE_NCCL, CALL_TABLE_COUNT };
int call_set_add_table(struct call_set *set, enum call_table table, struct error *err);

/* The process whose files are looked at from now on: paths of descriptions are followed below its
 * root as well as below ours. 0: it is no one's. */
void call_set_process(struct call_set *set, pid_t pid);

/* Whether anything can be found in a file of that path: most files are not even opened. */
bool call_set_wants(const struct call_set *set, const char *path);

/* Whether a description asks for stacks itself. */
bool call_set_wants_stacks(const struct call_set *set);

/* The worker's side of call_set_find(): a worker_handler, whose `arg` is the set. */
int call_set_serve(struct wire_in *request, int fd, struct wire_out *reply, void *arg);

/*
 * Looks in the ELF file open at `fd`, of which `object` was read, and adds sites, calls and probes
 * to it. One address is probed once for a table, whatever its names (ncclX and pncclX). A file
 * without any is no error. -E2BIG: more than WAFFLE_RECIPES_MAX; -EAGAIN: as object_read().
 */
int call_set_find(struct call_set *set, struct object *object, int fd, struct error *err);

/*
 * Libraries by the names that descriptions have for them, "libcudart" or a path; patterns are none.
 * Belong to the set.
 */
struct call_library {
	const char *name;
	bool asked; /* by a description of its own, not by rows of a table or ready set */
	bool table; /* of CUDA or NCCL */
};
size_t call_set_libraries(struct call_set *set, const struct call_library **list);
/* Whether there are descriptions besides the tables of CUDA and NCCL. */
bool call_set_is_described(const struct call_set *set);
bool call_library_is(const struct call_library *library, const char *path);

/*
 * As call_set_find(), in a file that no process has mapped: what is found there counts when it
 * comes (call_set_came). Takes at most half of the recipes; on an error nothing is kept.
 */
struct call_ahead;
int call_set_find_ahead(struct call_set *set, struct object *object, int fd,
			struct call_ahead **ahead, struct error *err);
void call_set_came(struct call_set *set, const struct call_ahead *ahead);
void call_ahead_free(struct call_ahead *ahead);

/* What was looked through; to traced processes more files may come. */
enum call_scope {
	CALL_SCOPE_TRACED,
	CALL_SCOPE_FOLLOWED, /* traced, and programs that are begun later will be */
	CALL_SCOPE_PROCESS,
	CALL_SCOPE_FILES,
};

/* The end of a line on what may be in a program that begins later. */
#define CALL_MAY_COME "; it is looked for in programs that begin later"

/*
 * "no function 'cudaLaunchKernl' in libcudart.so.12; near: cudaLaunchKernel": a line for each
 * description that has found nothing so far, and why, and "libfoo.so is stripped: …". `missing`:
 * its library was looked at, or can't come any more, and it was asked for by itself, not by a file
 * of descriptions.
 */
typedef void (*call_say)(const char *line, bool missing, void *arg);
void call_set_unfound(const struct call_set *set, enum call_scope scope, call_say say, void *arg);

/* Tracepoints are in no file: their sites, in order; of each its recipe and "sched:sched_switch".
 */
struct call_tracepoint {
	struct site_info site;
	struct waffle_recipe recipe;
	const char *name;
	uint64_t id; /* as perf_event_open(2) takes it */
};
size_t call_set_tracepoints(const struct call_set *set, const struct call_tracepoint **list);

/* The tables of names that the recipes refer to; [0, *count). */
const struct waffle_enum *call_set_enums(const struct call_set *set, uint32_t *count);

#endif
