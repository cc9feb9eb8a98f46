/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a capture, shared by session.c and the session_*.c. */
#ifndef WAFFLE_CAPTURE_SESSION_INTERNAL_H
#define WAFFLE_CAPTURE_SESSION_INTERNAL_H

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "capture/arming/arming.h"
#include "capture/drain_internal.h"
#include "capture/enrich/enrich.h"
#include "capture/enrich/code_names.h"
#include "capture/holds_internal.h"
#include "capture/launch_internal.h"
#include "capture/recorder_internal.h"
#include "capture/drain_interval_internal.h"
#include "capture/session.h"
#include "capture/stages_internal.h"
#include "capture/transport/name_set.h"
#include "capture/transport/transport.h"
#include "kernel/gate.h"
#include "target/process/mmap_watch.h"
#include "util/clock.h"
#include "util/keymap.h"
#include "util/map.h"
#include "util/vec.h"

/* Source of a wake-up of the loop. For the exit of a process: TAG_PROCESS + its pid. */
enum { TAG_TIMER, TAG_SIGNAL, TAG_RING, TAG_MMAP, TAG_FILE, TAG_GATE, TAG_PARSED, TAG_PROCESS };

struct target {
	pid_t pid;
	int pidfd;         /* -1: too many processes for one each */
	uint64_t exit_ts;  /* it had exited at this time; 0: it lives */
	bool exec_pending; /* runs a new program whose mappings were not read yet */
	bool exec_moved;   /* another thread than the main one called exec: its links are void */
	uint64_t fork_ts;  /* nothing was armed in it since this time; 0: not known */
	struct holds holds;
	bool maps_changed;
	bool is_waker;    /* recorded only since it ends waits of others; nothing is armed in it */
	bool parsing;     /* some of its files are still being parsed */
	bool begun_first; /* its program began before these were armed */
	uint64_t scan_ts; /* end of the last scan of its mappings */
	uint64_t scan_ns; /* duration of that scan */
};

#define NAMES_MAX 200

/* Programs and children that ran before they were armed. */
struct unarmed {
	uint64_t programs;
	char names[NAMES_MAX]; /* the first ones: "a, b" */
	uint64_t ended;        /* programs that nobody knows of whether they had anything to arm */
	char ended_names[NAMES_MAX];
	uint64_t forks;
	uint64_t fork_ns; /* the longest time that a child ran unarmed */
};

struct session {
	const struct session_options *options;
	const struct session_events *events;
	struct session_result *result;
	struct error *err;
	struct kernel *kernel;
	struct drain *drain;
	struct address_spaces *spaces;
	struct enrich *enrich;
	struct plan *plan; /* NULL: no filter */
	struct arming *arming;
	struct code_names *names;
	struct stages stages; /* the path of records from the drain to the file */
	struct mmap_watch *watch;
	struct wakers *wakers;    /* NULL: what wakes the targets is not recorded */
	unsigned wakers_recorded; /* processes */
	uint64_t peers_ns;        /* spent on searches for other ends of connections */
	VEC(struct waffle_rec_state) waker_states; /* not passed to the file yet */
	struct ring_set *rings;                    /* NULL: spans are not recorded */
	struct transport *transport;               /* the same */
	struct name_set *named;                    /* names that programs make; the same */
	uint64_t filter_lost;                      /* what the filter of rings has lost until … */
	uint64_t filter_lost_ts;                   /* … this time */
	VEC(const char *) told;                    /* reasons against rings that were told */
	pid_t no_rings_pid;       /* with --transport ring, a process that can't use them; … */
	const char *no_rings_why; /* … why */
	struct store_writer *writer;
	struct recorder *recorder; /* NULL: the writer has a file */
	bool tables_reported;      /* it was reported that its tables are full */
	struct launch launch;
	struct gate *gate;           /* NULL: programs are not held until they are armed */
	VEC(struct gate_event) held; /* held programs whose files are still being parsed */
	struct unarmed unarmed;
	VEC(struct target) targets;
	struct map target_at; /* pid → index in `targets` */
	size_t unwatched;     /* number of targets without a pidfd */
	struct map ended;     /* pid → 0, of processes that had ended before and are recorded */
	uint64_t look_ts;     /* time of their last check for exits */
	size_t files_max;     /* our limit of descriptors */
	size_t next_target;   /* where the next scan of the targets begins */
	bool busy;            /* continue at once, since the last round used up its time */
	int epoll, timer, signals;
	sigset_t old_mask;
	uint64_t begin_ts, start_ts, armed_ts, end_ts, flush_ts, progress_ts;
	struct drain_interval interval;
	struct rlimit files;    /* original limit of open files */
	bool warned;            /* a file that could not be armed was reported */
	struct keymap reported; /* messages about calls that were not found */
	bool full;              /* the file has reached its size limit */
	bool published;         /* the file was given its final name, or the writer was asked to */
	uint64_t awaited_ts;    /* start of the final wait for the file; 0: not waiting */
	bool await_reported;    /* it was reported that this takes long */
	bool gave_up;           /* a signal ended that wait, or it took too long */
	bool stuck;             /* the file accepts no data at the moment */
	bool stuck_reported;    /* that was reported */
	bool parsed;            /* files were parsed since this was set to false */
	unsigned interrupts;
	bool child_done;
};

/* Limit of waiting for files to be parsed before the capture starts without them. */
#define PARSE_START_NS 60000000000ull
/* At the end of the capture, the limit of waiting for the files of the last mappings. */
#define PARSE_END_NS 100000000ull

/* session_state.c: sets the error to "what: errno's text". Returns a negative errno. */
int session_fail(struct session *session, const char *what);
/* Prints one line; session_report() prints it even if there is no `notify`. */
void session_notify(struct session *session, const char *line);
void session_report(struct session *session, const char *line);
bool session_wants_sched(const struct session_options *options);
/* Whether files must be searched for probes. */
bool session_wants_probes(const struct session_options *options);
/* Whether stacks of spans and events are recorded. */
bool session_wants_node_stacks(const struct session_options *options);
/* The same, or whether user stacks of waits are unwound by tables. */
bool session_wants_stacks(const struct session_options *options);
/* What is armed now. */
struct armed_counts session_armed(const struct session *session);
/* The requested sources that this kernel has. */
uint32_t session_sources(const struct session *session);
/* Runs a round of the drain. */
int session_drain(struct session *session);
/* Gives the file its final name, once there is certainly something to capture. */
int session_publish(struct session *session);
/* Lets the loop wait for a descriptor, too. */
int session_watch(struct session *session, int fd, uint32_t events, uint64_t tag);

/* session_loop.c */
int loop_open(struct session *session);
/* Waits for a reply to worker_ask(), at most until `until_ns`, and drains meanwhile. 1: there is
 * one; 0: there is none, or a signal arrived; negative errno. */
int loop_await(struct session *session, uint64_t until_ns);
/* Runs until the time is up, the targets are gone or a signal arrives. */
int loop_run(struct session *session);
/* Whether a signal arrived since the last check. */
bool loop_impatient(struct session *session);
/* At the end: waits until at most `most` bytes are unwritten; 0: until the file is complete. False:
 * no progress for a while, or a signal arrived; later calls then wait hardly any longer. */
bool loop_await_writer(struct session *session, size_t most);
/* More unwritten bytes mean that the file is slow. The rings are not read meanwhile. */
#define WRITER_BEHIND_BYTES (16u << 20)
/* At the end: writes the files of the flight recorder that were triggered. False: one of them takes
 * too long, or a signal arrived. */
bool loop_await_flight(struct session *session);
void loop_close(struct session *session);

/* session_recorder.c, which has the flight recorder of a capture: */
int flight_open(struct session *session, const struct store_meta *meta);
/* SIGUSR1. */
void flight_request(struct session *session);
/* Call it after each round of the drain. */
int flight_turn(struct session *session);
/* Whether the capture ends, because it may write no more files. */
bool flight_is_over(const struct session *session);
/* Whether a file is being written. */
bool flight_is_writing(struct session *session);
/* At the end: begins to write what was triggered, unless a file is still being written. */
void flight_flush(struct session *session);
/* Returns a negative errno if a file was not written. `done`: none is being written any more. */
int flight_close(struct session *session, bool done);

/* session_late.c */
/* Record that something was armed late: */
/* A child had nothing armed since its fork. */
void child_was_late(struct session *session, uint64_t fork_ts);
/* A program began before it was armed: that of a hold of the target or, with NULL, the one that it
 * runs now. Counts each held program once. */
void program_was_late(struct session *session, struct target *target, struct hold *hold);
/* A process ended before the program that it ran was examined. */
void program_ended(struct session *session, const struct target *target);
/* At the end, reports new processes that were armed late, or not at all. */
void programs_report(struct session *session);

/* session_target.c */
struct target *target_find(struct session *session, pid_t pid);
/* Follows a process until it exits. Returns 0 if the process is gone already. */
int target_add(struct session *session, pid_t pid);
/* Writes facts of /proc about a process to the file. */
int target_describe(struct session *session, pid_t pid);
void target_remove(struct session *session, struct target *target);

/* session_targets.c */
/* Starts the command, which waits for its program. */
int targets_prepare(struct session *session);
int targets_open(struct session *session);
/* Adds processes that began after the options were read and before the kernel followed forks. */
int targets_find(struct session *session);
/* Starts watching for new mappings. Call it before the first scan, so that no library is missed. */
void targets_watch(struct session *session);
/* Arms what a process has mapped, as far as the options ask for it. */
int process_arm(struct session *session, pid_t pid, struct error *err);
/* Files were parsed that targets wait for. */
void targets_parsed(struct session *session);
/* The maximum time to wait until the next target must be scanned. */
int targets_wait_ms(const struct session *session, int most);
/* Arms new programs and libraries, for as many processes as time permits. A process that is gone is
 * no error. */
int targets_rearm(struct session *session);
/* Passes on records of the targets that have as many descriptors open as they may, or processes and
 * threads in their cgroup, and of what may keep their threads from a CPU. */
int targets_pass_limits(struct session *session, int (*pass)(struct waffle_rec *rec, void *arg),
			void *arg);
/* Looks which of the targets are at the other ends of the connections that threads waited for. */
int targets_name_peers(struct session *session, bool at_end);
/* For drain_open(): handles new processes and programs. Called during a drain. */
void targets_notice(const struct waffle_rec *rec, void *arg);
/* Also for drain_open(): handles new mappings. Records before `before_ts` follow. */
int targets_mappings(uint64_t before_ts, void *arg);
void target_exited(struct session *session, pid_t pid);
/* Removes targets that have exited, once their last records were delivered. */
void targets_remove(struct session *session);
void targets_close(struct session *session);

/* session_programs.c */
/* Forks the process that holds programs. Call it before anything is attached. */
int programs_open(struct session *session);
/* Arms held programs and lets them continue, or keeps them while their files are being parsed. */
int programs_held(struct session *session);
/* For arming_program(): prepares what is written about a file. `arg` is the session. */
void file_prepare(int fd, const char *path, void *arg);
/* Files were parsed: tries again. */
void programs_again(struct session *session);
/* Stops holding programs. */
void programs_let_go(struct session *session);
/* A target has a child: arms it at once, and follows it. */
void program_forked(struct session *session, const struct waffle_rec_fork *fork);

/* session_wakers.c */
int wakers_begin(struct session *session);
/* Begins to record processes that end waits of the targets. Call it after each round of the drain.
 */
int wakers_round(struct session *session, uint64_t now);

/* session_filter.c */
/* Opens the filter of records that come through rings; stages.filter is NULL if there is none. */
int session_filter_open(struct session *session);
/* The counts so far of the drain and of the filter behind it. */
void session_counts(struct session *session);
/* Records what the filter of rings has lost since the last call. */
int session_filter_losses(struct session *session);

/* session_transport.c */
/* Call it when the arming and the drain are open, and before anything is armed. */
int session_transport_open(struct session *session);
void session_transport_close(struct session *session);
/* With --transport ring: an error if a target can't use rings. */
int session_transport_check(struct session *session);
/* For drain_open(): a thread has made a ring. */
void session_ring(const struct waffle_rec_ring *rec, void *arg);

/* session_start.c */
/* Arms the traced processes. */
int targets_arm(struct session *session);
/* Arms the command's own program, before it may begin. */
int programs_first(struct session *session);

/* session_warn.c */
/* Reports, once and without delay, a file that stays dormant or changes. */
void warn_of_arming(struct session *session);
/* Warns of a filter that nothing can pass, which is most likely a mistake in a name, unless the
 * filter concerns switches. Also warns of names in --stacks that match nothing. */
void warn_of_names(struct session *session);
void warn_after_arming(struct session *session);
/* Reports the described calls that were not found yet, each once. -ENOENT with `strict`, if one
 * can never be found: its library is present and has no such function. */
int warn_of_unfound(struct session *session, bool strict);
/* At the end: reports keys of --redact that no site has. */
void warn_of_redaction(struct session *session);
/* At the end: reports what could not be followed, recorded or read. */
void warn_of_faults(struct session *session);
/* At the begin: reports CPUs whose perf events the kernel refused. */
void warn_of_events(struct session *session);
void warn_of_early_stacks(struct session *session);
/* At the end: `result` is that of enrich_halted_examine(). */
void warn_of_holders(struct session *session, int result);

#endif
