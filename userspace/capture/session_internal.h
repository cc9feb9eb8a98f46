/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a capture, shared by session.c and the session_*.c. */
#ifndef WAFFLE_CAPTURE_SESSION_INTERNAL_H
#define WAFFLE_CAPTURE_SESSION_INTERNAL_H

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "capture/arming.h"
#include "capture/details.h"
#include "capture/drain.h"
#include "capture/functions.h"
#include "capture/launch.h"
#include "capture/pace.h"
#include "capture/session.h"
#include "probe/gate.h"
#include "target/mmap_watch.h"
#include "util/map.h"
#include "util/vec.h"

/* What woke the loop; of a process that exited, TAG_PROCESS + its pid. */
enum { TAG_TIMER, TAG_SIGNAL, TAG_RING, TAG_MMAP, TAG_FILE, TAG_GATE, TAG_PARSED, TAG_PROCESS };

struct target {
	pid_t pid;
	int pidfd;         /* -1: there are too many processes for one each */
	uint64_t exit_ts;  /* it has exited by then; 0: it lives */
	bool exec_pending; /* a new program runs; its mappings were not read yet */
	bool exec_ready;   /* that program was armed before it began */
	uint64_t fork_ts;  /* nothing was armed in it since; 0: not known to be so */
	bool hold_armed;   /* the hold below was needed: nothing was armed before it */
	bool first_armed;  /* the command: its program was armed before its first exec */
	uint64_t hold;     /* the gate's number of its last hold */
	char program[16];  /* the file's name of the last exec that was held */
	bool exec_missed;  /* the program began before all of it was armed */
	bool exec_told;    /* and that was counted already */
	bool exec_moved;   /* another thread than the main one began it: its links are of no use */
	bool maps_changed;
	bool parsing;     /* files of it are left out until they are parsed */
	bool begun_first; /* its program began before these were armed */
	uint64_t scan_ts; /* of the end of the last look at its mappings */
	uint64_t scan_ns; /* how long that took */
};

/* Programs and children that ran before they were armed. */
struct unarmed {
	uint64_t programs;
	char names[200]; /* of the first ones: "a, b" */
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
	struct details *details;
	struct plan *plan; /* NULL: no filter */
	struct arming *arming;
	struct functions *functions;
	struct mmap_watch *watch;
	struct store_writer *writer;
	struct launch launch;
	struct gate *gate;           /* NULL: programs are not held until they are armed */
	VEC(struct gate_event) held; /* programs whose files are still being parsed */
	struct unarmed unarmed;
	VEC(struct target) targets;
	struct map target_at; /* pid → index in `targets` */
	size_t unwatched;     /* targets without a pidfd */
	uint64_t look_ts;     /* when they were last looked at */
	size_t files_max;     /* our limit of descriptors */
	size_t next_target;   /* where the next look at the targets begins */
	bool busy;            /* there is more to do at once: a round has a budget */
	int epoll, timer, signals;
	sigset_t old_mask;
	uint64_t start_ts, armed_ts, end_ts, flush_ts, progress_ts;
	struct pace pace;
	struct rlimit files; /* of open files, as it was */
	bool warned;         /* of a file that could not be armed */
	struct map told;     /* hashes of what was said of calls that were not found */
	bool full;           /* the file has the size that it may have */
	uint64_t awaited_ns; /* since when the end waits for the file; 0: it does not */
	bool told_stuck;     /* it was said that the file takes nothing */
	bool parsed;         /* files were, since this was set to false */
	unsigned interrupts;
	bool child_done;
};

/* Nothing that is parsed is waited for longer than that before the capture goes on without it. */
#define PARSE_START_NS 60000000000ull
/* At its end: the files of the last mappings. */
#define PARSE_END_NS 100000000ull

/* session.c: "what: errno's text" as the error; returns a negative errno. */
int session_fail(struct session *session, const char *what);
/* Says one line; session_tell() also to who wants no notices. */
void session_notify(struct session *session, const char *line);
void session_tell(struct session *session, const char *line);
bool session_wants_sched(const struct session_options *options);
/* Whether files must be searched for probes. */
bool session_wants_probes(const struct session_options *options);
/* Whether stacks of spans and events are wanted. */
bool session_wants_stacks(const struct session_options *options);
/* The wanted sources that this kernel has. */
uint32_t session_sources(const struct session *session);
/* Runs a round of the drain. */
int session_drain(struct session *session);
/* Gives the file its name, once it is certain that there is something to capture. */
int session_publish(struct session *session);

/* session_loop.c */
int loop_open(struct session *session);
int session_watch(struct session *session, int fd, uint32_t events, uint64_t tag);
/* Waits for an answer of worker_ask(), at most until `until_ns`, and drains meanwhile. 1: there is
 * one; 0: there is none, or a signal came; negative errno. */
int loop_await(struct session *session, uint64_t until_ns);
/* Until the time is up, the targets are gone or a signal comes. */
int loop_run(struct session *session);
/* Whether a signal came since the last look. */
bool loop_impatient(struct session *session);
/* At the end: waits until no more than `most` bytes are to be written, 0: until all are in the
 * file. False: nothing moved for a while, or a signal came. */
bool loop_await_writer(struct session *session, size_t most);
/* More than this in memory means that the file is slow: the rings are not read meanwhile. */
#define WRITER_BEHIND_BYTES (16u << 20)
void loop_close(struct session *session);

/* session_targets.c */
int targets_open(struct session *session);
/* Late libraries are watched for before the first look at the mappings: none slips through. */
void targets_watch(struct session *session);
int targets_arm(struct session *session);
/* Files were parsed that targets wait for. */
void targets_parsed(struct session *session);
/* How long to wait at most until the next of them is to be looked at. */
int targets_wait_ms(const struct session *session, int most);
/* Arms new programs and libraries, of as many processes as there is time for. A process that is
 * gone is no error here. */
int targets_rearm(struct session *session);
/* For drain_open(): new processes and programs. Called from within a drain. */
void targets_notice(const struct waffle_rec *rec, void *arg);
/* For it, too: new mappings. Records before `before_ts` follow. */
int targets_mappings(struct session *session, uint64_t before_ts);
void target_exited(struct session *session, pid_t pid);
/* Removes those that have exited, once their last records were delivered. */
void targets_remove(struct session *session);
void targets_close(struct session *session);

struct target *target_find(struct session *session, pid_t pid);
/* Follows a process until it exits. A process that is gone already is none: 0. */
int target_add(struct session *session, pid_t pid);

/* session_programs.c */
/* Before anything is attached: the process that holds programs is forked. */
int programs_open(struct session *session);
/* The command's own program; before it may begin. */
int programs_first(struct session *session);
/* Arms what is held and lets it go, or keeps it while its files are being parsed. */
int programs_held(struct session *session);
/* Files were parsed: tries again. */
void programs_again(struct session *session);
/* From now on nothing is held. */
void programs_let_go(struct session *session);
/* A program that was not armed before it began has something to arm. */
/* A child had nothing armed since its fork. */
void child_was_late(struct session *session, uint64_t fork_ts);
/* A program began before it was armed. */
void program_was_late(struct session *session, pid_t pid);
/* A target has a child: arms it at once, and follows it. */
void program_forked(struct session *session, const struct waffle_rec_fork *fork);
/* At the end: what was not seen of new processes. */
void programs_say(struct session *session);

/* session_warn.c */
/* Reports a file that stays dormant, or changes: once, as soon as that is known. */
void warn_of_arming(struct session *session);
/* A filter that nothing can pass is a mistake, most likely in a name; unless it is for switches.
 * So is a name of --stacks that nothing has. */
void warn_of_names(struct session *session);
void warn_after_arming(struct session *session);
/* Calls that were described and have not been found so far, each said once. -ENOENT with `strict`,
 * if there is one that will not be found: its library is there and has no such function. */
int warn_of_unfound(struct session *session, bool strict);
/* At the end: reports keys of --redact that no site has. */
void warn_of_redaction(struct session *session);
/* At the end: reports what could not be followed, recorded or read. */
void warn_of_faults(struct session *session);

#endif
