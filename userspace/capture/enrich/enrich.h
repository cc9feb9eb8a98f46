/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Enriches records on their way from the drain to the file. The kernel's records contain the
 * kernel's stack numbers and inodes; these become entries of the file's tables. /proc is read some
 * milliseconds after a record was made. So less is known of processes that have exited by then.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_ENRICH_H
#define WAFFLE_CAPTURE_ENRICH_ENRICH_H

#include "capture/address_space/address_spaces.h"
#include "kernel/kernel.h"
#include "store/store.h"

struct enrich;

int enrich_open(struct enrich **enrich, struct kernel *kernel, struct address_spaces *spaces,
		struct store_writer *writer, struct error *err);
void enrich_close(struct enrich *enrich);

/* Call it before each round of the drain. Negative errno: writing failed. */
int enrich_round(struct enrich *enrich, struct error *err);

/*
 * The stages that enrich a record in place, in this order; capture/stages.c lists the kinds of
 * records of each. Records must come in order of time. Negative errno: writing failed; -EINVAL: the
 * record is malformed, or the file has no room for what it says.
 */
/* The unwinding tables of a process that forked, called exec or ended. */
int enrich_unwinding(struct enrich *enrich, const struct waffle_rec *rec, struct error *err);
/* The file, device or cgroup that a thread waited for. */
int enrich_object(struct enrich *enrich, struct waffle_rec *rec, struct error *err);
/* The mappings of the addresses of page faults. */
int enrich_addresses(struct enrich *enrich, const struct waffle_rec *rec, struct error *err);
/* Stacks, which get the file's numbers. */
int enrich_stacks(struct enrich *enrich, struct waffle_rec *rec, struct error *err);
/* Wake-ups by an interrupt, which only the kernel stack shows. The flags of the later switch repeat
 * those of the wake-up. */
void enrich_interrupt(struct enrich *enrich, struct waffle_rec *rec);

/* The names that threads have in Python, which are read from the memory of their processes. This
 * follows the threads. */
void enrich_threads(struct enrich *enrich, const struct waffle_rec *rec);
/* Looks for names if it is time to. `all`: in all processes, for half a second at most. */
void enrich_names_look(struct enrich *enrich, bool all);
/* Passes records of the names found since the last call. A non-zero return of `pass` stops, and is
 * returned. */
int enrich_names_each(struct enrich *enrich, int (*pass)(struct waffle_rec *rec, void *arg),
		      void *arg);

/* Prepares a file before a process maps it. */
void enrich_file(struct enrich *enrich, int fd, const char *path);
/* If stacks are recorded, prepares the libraries that a new program will map. */
void enrich_needed(struct enrich *enrich, pid_t pid);

/* A process runs a new program since `exec_ts`, whose record may come later: what was read before
 * is of another one. */
void enrich_program(struct enrich *enrich, pid_t pid, uint64_t exec_ts);

/* A process has a new program or mapping. Writes its mappings now, while it lives. `wait`: up to
 * some milliseconds for unwinding tables. */
int enrich_process(struct enrich *enrich, pid_t pid, bool wait, struct error *err);
/* Waits until the unwind tables of its files are made. While programs are traced, it waits at most
 * some milliseconds. */
int enrich_tables(struct enrich *enrich, bool traced, struct error *err);
/* Waits only for the tables that are there soon: those of small files, and those in the cache. */
int enrich_tables_soon(struct enrich *enrich, struct error *err);
/* The process has ended. Its exit record may be missing. */
void enrich_forget(struct enrich *enrich, pid_t pid);

/*
 * The waits that go on when the capture ends. First add the threads that are blocked, then examine
 * them at once: this reads locks and stacks in the memory of their processes. An error says why it
 * is unknown who holds the other ends of pipes and sockets, and locks of files
 * (open_waits_internal.h). After all other records, pass the records of these waits on, and those
 * of limits of disks, and of who used up the CPU time of a cgroup.
 */
void enrich_halted(struct enrich *enrich, const struct waffle_rec_halted *halted);
int enrich_halted_examine(struct enrich *enrich);
/* Names the other ends of connections, if one of these processes has them; at the end of the
 * capture also those that are not accepted yet, and files that were closed too early. */
int enrich_peers(struct enrich *enrich, const pid_t *pids, size_t count, bool at_end,
		 struct error *err);
/* One more process is recorded, which may have other ends that were searched before. */
void enrich_peers_again(struct enrich *enrich);
/* Names the processes at the other ends of the pipes of waits that go on. */
int enrich_pipes(struct enrich *enrich, struct error *err);
int enrich_last_each(struct enrich *enrich, uint64_t end_ts,
		     bool (*is_recorded)(pid_t pid, void *arg),
		     int (*pass)(struct waffle_rec *rec, void *arg), void *arg);

/* Number of recorded stacks (of waits, wake-ups, spans and events) that are not in the file. The
 * file's table was full, or too many others arrived while a thread waited. */
uint64_t enrich_stacks_left_out(const struct enrich *enrich);
/* Number of stacks whose records came too late. */
uint64_t enrich_stacks_late(const struct enrich *enrich);
/* Number of user stacks that are cut, and were taken before all unwinding tables of their process
 * were ready. */
uint64_t enrich_stacks_early(const struct enrich *enrich);
/* Describes what stacks of spans lack. NULL: nothing known. */
const char *enrich_stack_warning(const struct enrich *enrich);

#endif
