/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What processes have mapped over time, for all who ask: arming, the names of functions, stacks and
 * page faults. The mappings are also written to the capture, if it has addresses that need names.
 *
 * There are two sources. /proc shows what is mapped when it is read, some milliseconds after the
 * record that needs it. The kernel reports executable mappings with their time
 * (target/process/mmap_watch.h), and they are applied in the order of time between the records. So
 * the mappings of a process are known even if it has exited before /proc could be read.
 *
 *	fork   The child has its parent's mappings. They are read when they are needed. If the child
 *	       is gone by then, or runs another program, those of the parent are used. What is left
 *	       of an earlier process with the same pid is forgotten.
 *	exec   The exec event precedes its mmap events in the mmap stream, but the exec's record
 *	       follows them in the record stream. Only the record says whether the program gained
 *	       privileges, so these events are deferred until then.
 *	exit   Everything is forgotten. The exit of an untraced process is not reported, so gone
 *	       processes are searched for.
 *	lost   After lost events, what was reported before may have been replaced.
 *
 * Unmapping is not reported. A library in the place of one that was closed replaces it.
 *
 *	push()* in any order → begin_round(before_ts) → for each record: advance(ts), record()
 *	→ … → finish()
 */
#ifndef WAFFLE_CAPTURE_ADDRESS_SPACE_ADDRESS_SPACES_H
#define WAFFLE_CAPTURE_ADDRESS_SPACE_ADDRESS_SPACES_H

#include "capture/address_space/processes.h"
#include "kernel/kernel.h"
#include "store/store.h"
#include "target/process/mmap_watch.h"
#include "util/map.h"

struct address_spaces;

/* Without `kernel`, assumes that no process calls exec, and writes mappings only on demand. */
int address_spaces_open(struct address_spaces **spaces, const struct kernel *kernel,
			struct store_writer *writer, struct error *err);
void address_spaces_close(struct address_spaces *spaces);

/* Whether mappings are written to the capture as they are reported. */
bool address_spaces_are_written(const struct address_spaces *spaces);
/* Which process each thread belongs to. */
struct processes *address_spaces_processes(struct address_spaces *spaces);

/* ---- events ---- */

/* Queues a mapping event of any process, in no particular order. `traced`: the process is a
 * target. */
void address_spaces_push(struct address_spaces *spaces, const struct mmap_event *event,
			 bool traced);
/* Call it before each round of the drain; the records before `before_ts` follow. */
int address_spaces_begin_round(struct address_spaces *spaces, uint64_t before_ts,
			       struct error *err);
/* Applies the queued events up to `ts`. */
int address_spaces_advance(struct address_spaces *spaces, uint64_t ts, struct error *err);
/* Applies a FORK, EXEC or EXIT record. `privileged`: the exec gave the program privileges. */
int address_spaces_record(struct address_spaces *spaces, const struct waffle_rec *rec,
			  bool privileged, struct error *err);
/* The process has ended. Its exit record may be missing. */
void address_spaces_forget(struct address_spaces *spaces, pid_t pid);
/* Call it at the end. Writes the mappings whose files are still being parsed. */
int address_spaces_finish(struct address_spaces *spaces, struct error *err);

/* ---- questions ---- */

/*
 * Reads the mappings of a process, also of a privileged one, of which nothing is written. This is
 * for arming, which is ahead of the records. *now: as address_spaces_now(). -ESRCH: it is gone.
 */
int address_spaces_scan(struct address_spaces *spaces, pid_t pid, const struct mappings **now,
			struct error *err);
/* The mappings of a process at the last read, with the reports since then. Valid until the next
 * event. NULL: unknown. */
const struct mappings *address_spaces_now(const struct address_spaces *spaces, pid_t pid);

struct code_place {
	const struct mapping *mapping; /* valid until the next event. NULL: no code of a file */
	uint64_t since;                /* it is there since then; 0: before the capture */
	uint64_t program_since;        /* start of the program, or of what is known of it */
};
/* The code that was at an address at the time `ts` of the current record. Reads the mappings if
 * they are unknown, with `may_read`. */
struct code_place address_spaces_code(struct address_spaces *spaces, pid_t pid, uint64_t ts,
				      uint64_t address, bool may_read);

/* Returns how many of the first addresses lay in code at `ts`, as far as is known. Beyond a
 * function without a frame pointer, unwinding by frame pointers yields garbage, which is to be
 * cut off. */
uint32_t address_spaces_code_count(const struct address_spaces *spaces, pid_t pid, uint64_t ts,
				   const uint64_t *addresses, uint32_t count);

/* ---- writing ---- */

/* Writes the mappings of the addresses that a record of `ts` contains. With 0 addresses, writes all
 * mappings of the process if address_spaces_are_written(). A process that is gone, privileged, or
 * runs another program by now is no error. Addresses in no mapping, as of code generated at run
 * time, are looked for less and less often. */
int address_spaces_write(struct address_spaces *spaces, pid_t pid, uint64_t ts,
			 const uint64_t *addresses, uint32_t count, struct error *err);
/* Number of mappings that were written without the facts of their files: mapping_log_unparsed(). */
uint64_t address_spaces_unparsed(const struct address_spaces *spaces);

/* ---- what others keep of a process ---- */

struct address_space_notes {
	struct map sites;  /* arming.c: address of a probe → site; empty after a change */
	uint64_t sites_ns; /* arming.c: the mappings are not read before this time for a site */
	struct map values; /* code_names.c: hashes of values, alone and with their `since` */
	/* code_names.c: handles from before the capture were searched for in the program that runs
	 * since then. UINT64_MAX: in none. */
	uint64_t handles_since;
};
/* Valid until the next event. NULL: there are too many processes. */
struct address_space_notes *address_spaces_notes(struct address_spaces *spaces, pid_t pid);
/* A number that changes with every change of any process's mappings. */
uint64_t address_spaces_version(const struct address_spaces *spaces);

#endif
