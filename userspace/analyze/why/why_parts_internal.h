/* SPDX-License-Identifier: Apache-2.0 */
/* Private to why.c and its parts: splits a thread's time and follows its waits. */
#ifndef WAFFLE_ANALYZE_WHY_WHY_PARTS_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_WHY_PARTS_INTERNAL_H

#include "analyze/why/why_await_types_internal.h"
#include "analyze/why/why_intervals_internal.h"
#include "analyze/why/why_meaning_internal.h"
#include "analyze/why/why_wait_internal.h"
#include "analyze/why/why_types.h"
#include "symbolize/stack_mappings.h"
#include "symbolize/stack_names.h"

/* Longer chains end with the cause unknown. */
#define WHY_DEPTH_MAX 32

/* The wait from which a chain came to a thread. The thread's time explains that wait. */
struct why_link {
	enum wait_kind kind;
	enum why_grade grade; /* of the chain so far */
	uint32_t object;
	uint64_t from_ts, until_ts; /* time of that wait; until_ts 0: unknown */
};

#define WHY_SUM_BITS 9
#define WHY_SUM_PROBES 8

/* Slot of the hash table of sums. */
struct why_sum_slot {
	uint32_t instance; /* free unless this is why_walk.instances */
	uint32_t sum;
};

/* A part of an instance while it is built. */
struct why_sum {
	struct why_part part;
	uint32_t site; /* of the culprit's span: spans of one site count as one culprit */
	/* Known while sums are folded: the culprit is the instance's thread; text of the place
	 * where it slept longest, or 0; text of all connections to the same server, or 0. */
	bool own;
	uint32_t place, server;
	uint64_t longest_ns;
	uint64_t grade_ns[WHY_GRADE_CERTAIN + 1];
	uint32_t chain; /* index in why_walk.chains */
	/* Its samples: a linked list in why_walk.sampled; MODEL_NONE: none. */
	uint32_t sampled_first, sampled_last;
	/* Its neighbours at the disk: a linked list in why_walk.neighbours; MODEL_NONE: none. */
	uint32_t neighbours;
	uint64_t disk_own_bytes; /* that the disk moved for the waiting threads themselves */
	uint32_t next;           /* sum with the same key in why_walk.more_sums, or MODEL_NONE */
};

/* A sample of a sum, and the next one of the same sum, or MODEL_NONE. */
struct why_sampled {
	uint32_t sample; /* in model.samples */
	uint32_t next;
};

/* What a disk did in a wait for it. */
struct why_disk_use {
	struct why_neighbour neighbour; /* the one with the most bytes */
	uint64_t own_bytes;             /* that it moved for the waiting thread */
};

/* What it did for one neighbour in the waits of a sum, and the next one, or MODEL_NONE. */
struct why_neighbour_node {
	struct why_neighbour neighbour;
	uint32_t next;
};

struct why_steps {
	struct why_step steps[WHY_DEPTH_MAX + 1];
};

/* Value in walk->go_of of a Go process. */
#define WHY_GO UINT16_MAX

/* What is known about a kernel stack. */
struct why_stack {
	struct meaning meaning;
	uint32_t text; /* in why.texts; 0: none */
};

/* Cache entry: the text of what a wait was for. */
struct why_object_text {
	const struct store_object *object; /* NULL: a futex without a name */
	uint64_t address;                  /* of the futex */
	uint32_t text;                     /* in why.texts; 0: empty entry */
};
#define WHY_OBJECT_TEXT_BITS 8

/* A throttled thread and a cgroup that it was throttled by. */
struct why_quota_user {
	uint64_t cgroup;
	uint32_t thread;
	uint64_t ran_ns; /* scratch: in the period that is examined */
};

/* A request of a Go program and its answer: meanwhile, a goroutine waits. */
struct why_go_answer {
	uint64_t from_ts, to_ts;           /* when the request was sent and when the answer came */
	uint32_t pid;                      /* of the program */
	uint32_t thread;                   /* that answered, of another process */
	const struct store_object *object; /* the connection, the program's end */
	bool client;                       /* the program is known to be the client */
};

/* The state of the walk: the model, indexes and caches, and the current instance. */
struct why_walk {
	struct why *why;
	const struct model *model;
	struct stack_names *names; /* NULL: no symbolizer */
	struct why_intervals intervals;
	struct windows losses;        /* of scheduler records, merged */
	struct windows all_losses;    /* of all records, merged */
	struct map kernel_hints;      /* kernel address → enum why_hint */
	struct map kernel_symbols;    /* kernel address → index of the reader's symbol */
	struct map stack_at;          /* stack number → index in stacks */
	VEC(struct why_stack) stacks; /* cache */
	struct map python_of;         /* pid → enum wait_python */
	struct map futex_uses;        /* user stack number → enum futex_use */
	struct map program_locks;     /* user stack → text of why_program_lock() */
	struct map places;            /* user stack → text of the place where a thread slept */
	struct map go_idle_stacks; /* user stack number → whether Go's runtime waits for work */
	struct map go_idle;        /* what is waited for, as a hash → the same */
	struct map go_of; /* pid → WHY_GO, or the number of stacks without Go functions */
	bool has_go;      /* one of the processes is a Go program */
	VEC(struct why_go_answer) go_answers; /* by pid, then to_ts */
	VEC(uint32_t) sockets;                /* objects with two ends, sorted by them */
	struct map socket_at;                 /* inode → number of one of `sockets` */
	struct map peers;                     /* object → thread at the other end, or NO_PEER */
	struct map socket_users;              /* object → the first thread that waited for it */
	struct map main_threads;              /* pid → thread */
	struct map cgroups;                   /* inode → text */
	struct why_object_text object_texts[1u << WHY_OBJECT_TEXT_BITS];
	uint32_t *worker_texts; /* cache of why_worker_text(): of each thread; NULL: empty */
	/* Texts for what the capture itself caused: by using a CPU, and by holding a program. */
	uint32_t own_cpu_text, own_hold_text;
	struct stack_mappings *mappings;
	const struct why_interval *interval; /* current interval; NULL: unknown state */
	uint8_t calls[WHY_SYSCALLS];         /* system call number → enum wait_call */
	uint32_t *by_pid;                    /* thread indexes, sorted by process */
	VEC(uint32_t) traced;                /* the same of traced threads only */
	uint32_t *cpu_switches;              /* indexes of switches, by CPU, then ts */
	uint32_t *cpu_begins;                /* of each CPU in cpu_switches */
	uint32_t *cpu_found; /* cache: of each CPU, the last place in its switches */
	uint32_t cpu_count;  /* no CPU with this number or a higher one has switches */
	bool cpus_shared;    /* cpu_switches and cpu_begins belong to another walk */
	VEC(struct why_quota_user) quota_users; /* by cgroup, then thread */
	VEC(struct why_sampled) sampled;
	VEC(struct why_neighbour_node) neighbours;
	sample_counts sample_counts; /* scratch */
	size_t sample_found;         /* cache: the last sample looked up */
	size_t switch_found;         /* cache: the last switch looked up */
	uint64_t end_ts;             /* where the instance ends */
	uint32_t depth;              /* number of steps on the path */
	struct why_step path[WHY_DEPTH_MAX + 1];
	uint64_t span_until; /* end of the last step's innermost span */
	VEC(struct why_sum) sums;
	VEC(struct why_steps) chains;                  /* one per sum */
	struct why_sum_slot slots[1u << WHY_SUM_BITS]; /* hash table of sums */
	struct map more_sums; /* hash → the newest sum with it for which no slot was free */
	uint32_t instances;   /* number of instances so far */
	bool no_chains;       /* the caller wants no chains */
	struct why_awaits awaits;
	struct why_instance *instance;
};

/* What the kernel functions on the stack of a wake-up show about it. */
enum why_hint {
	WHY_HINT_INTERRUPT = 1,
	WHY_HINT_TIMER = 2,
	WHY_HINT_SOCKET = 4,
	WHY_HINT_PIPE = 8,
	WHY_HINT_TERMINAL = 16,
	WHY_HINT_SIGNAL = 32,
	WHY_HINT_CHILD = 64,      /* a child ended */
	WHY_HINT_DISK = 128,      /* a block request is done */
	WHY_HINT_THAW = 256,      /* the cgroup's freezer thaws it */
	WHY_HINT_RECEIVE = 512,   /* packets are received */
	WHY_HINT_BACKLOG = 1024,  /* packets that this machine sent are received */
	WHY_HINT_READERS = 2048,  /* one or more readers hold or held a lock */
	WHY_HINT_WRITER = 4096,   /* it waits to write under a lock that readers may hold */
	WHY_HINT_TRANSMIT = 8192, /* packets are sent */
	WHY_HINT_TIMERS = 16384,  /* a timer of the kernel expired; whose it is is not known */
	WHY_HINT_ALARM = 32768,   /* a timer of a process expired and sent its signal */
	WHY_HINT_TCP = 65536,     /* a packet for an established TCP connection */
};

void why_walk_free(struct why_walk *walk);

static inline enum why_grade why_grade_least(enum why_grade a, enum why_grade b)
{
	return a < b ? a : b;
}

/* Explains a thread's time from `from` to `to`, and adds it to the sums of walk->instance. The time
 * explains the wait of `link`. NULL: the thread is the instance's own. */
void why_walk_time(struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to,
		   const struct why_link *link);

/* Adds the states of a thread from `from` to `to` to the instance's totals, if the path is empty:
 * then the thread is the instance's own. Returns the state that took most of the time. */
unsigned why_walk_count_states(struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to);

/* Explains an instance whose span ended on another thread; in why_handoff.c. */
void why_walk_handed_over(struct why_walk *walk, struct why_instance *instance);

/* ---- verdicts ---- */

enum why_verdict_kind {
	WHY_VERDICT_NONE,   /* undecided: another rule decides */
	WHY_VERDICT_END,    /* the chain ends here */
	WHY_VERDICT_FOLLOW, /* what `thread` did during the last step explains it */
};

/* What a classifier decides about the last step of the path. The classifier makes that step and
 * adds its evidence. It never follows another thread: if the verdict says so, why_walk.c does. */
struct why_verdict {
	enum why_verdict_kind kind;
	uint32_t thread; /* the culprit, or the thread to follow */
	/* WHY_VERDICT_END */
	enum why_cause cause;
	enum why_grade grade;
	uint32_t span; /* the culprit's */
	uint32_t object;
	bool idle; /* as in struct why_part */
	struct why_polls polls;
	struct why_disk_use disk;
	/* WHY_VERDICT_FOLLOW */
	struct why_link link;
};
/* Adds up sleeps; in why_polls.c. */
void why_polls_add(struct why_polls *to, const struct why_polls *polls);
/* Whether so many sleeps, of all stretches of a part and its time, mean that the thread polls. */
bool why_polls_are(const struct why_polls *polls, uint64_t stretches, uint64_t ns);

#define WHY_UNDECIDED ((struct why_verdict){.kind = WHY_VERDICT_NONE})

/* The time of a thread in one state that is explained at once. */
struct why_stretch {
	uint32_t thread;
	size_t index; /* of the interval */
	const struct why_interval *interval;
	uint64_t from, to;           /* within the interval */
	const struct why_link *link; /* NULL: the instance's own thread */
	enum why_grade grade;        /* of the chain so far */
	struct why_await await;
};

/* Explains blocked time; in why_blocked.c. */
struct why_verdict why_blocked_verdict(struct why_walk *walk, const struct why_stretch *stretch);

/* ---- why_running.c ---- */
/* The cause of the running time of a thread that another one waits for in this way. NULL: nobody
 * does. */
enum why_cause why_cause_behind(const struct why_link *link);
/* Running time, which is explained in pieces. */
struct why_running {
	const struct why_stretch *of;
	uint64_t at;                     /* begin of the next piece */
	const struct model_fault *fault; /* the next one, or NULL */
	uint64_t stolen_until;           /* after `at`: the time until then is stolen */
	enum why_grade stolen_grade;
};
struct why_running why_running_begin(const struct why_walk *walk,
				     const struct why_stretch *stretch);
/* Explains the next piece. False: all of the stretch is explained. */
bool why_running_next(struct why_walk *walk, struct why_running *running,
		      struct why_verdict *verdict);

/* ---- why_sums.c ---- */
struct why_step *why_walk_push(struct why_walk *walk, uint32_t thread,
			       enum waffle_thread_state state, uint64_t from, uint64_t to);
bool why_walk_is_on_path(const struct why_walk *walk, uint32_t thread);
/* The chain ends at the thread's innermost span. */
struct why_verdict why_verdict_end(const struct why_walk *walk, enum why_cause cause,
				   enum why_grade grade, uint32_t thread, uint32_t object);
/* Adds the time of the path's last step, at which the chain ends. */
void why_walk_add(struct why_walk *walk, const struct why_verdict *verdict);

/* ---- why_sampled.c ---- */
/* Adds the samples of the path's last step to a sum, if a thread's code ran in that step. */
void why_sampled_add(struct why_walk *walk, struct why_sum *sum, const struct why_verdict *verdict);
/* Appends the samples of `from` to those of `to`. */
void why_sampled_join(struct why_walk *walk, struct why_sum *to, const struct why_sum *from);
/* Sums up the samples of a sum by place. Writes them to why.places, and the range to `part`. */
void why_sampled_take(struct why_walk *walk, const struct why_sum *sum, struct why_part *part);

/* ---- why_neighbours.c ---- */
/* Adds what the disk did in a wait to a sum. */
void why_neighbours_add(struct why_walk *walk, struct why_sum *sum, const struct why_disk_use *use);
/* Adds the neighbours of `from` to those of `to`. */
void why_neighbours_join(struct why_walk *walk, struct why_sum *to, const struct why_sum *from);
/* The neighbour that the disk was shared with in the waits of a sum; bytes 0: there is none. */
struct why_neighbour why_neighbours_most(const struct why_walk *walk, const struct why_sum *sum);

/* ---- why_switches.c ---- */
/* Index of the first switch at or after ts. */
size_t why_switch_after(const struct model *model, uint64_t ts);
/* The switch at ts that brought the thread in, or NULL. `first` is why_switch_after() of ts. */
const struct model_switch *why_switch_in(const struct model *model, size_t first, uint32_t thread,
					 uint64_t ts);

/* ---- why_series.c ---- */
/* Describes the wait whose series is wanted. */
struct why_waiting {
	enum wait_kind kind;
	bool uninterruptible;
	bool ends;                  /* any wake-up ends it: a barrier, a join */
	bool writes;                /* it waits for room, and any room will do */
	bool lists;                 /* the awaited descriptors are in a list, as of poll(2) */
	bool any;                   /* any wake-up ends it, as for idle threads of Go's runtime */
	bool outside;               /* it is in no span, so nothing shows what it waits for */
	bool idle;                  /* outside, for whatever comes: any event ends it */
	uint64_t from_ts, until_ts; /* waits outside this time do not matter */
};

/* Whether a wake-up ends a wait although the thread then waits for the same thing again. */
enum why_end_rule {
	WHY_END_ALWAYS, /* it does */
	WHY_END_SIGNAL, /* it does unless a signal caused it */
	WHY_END_LOCK,   /* it does if a thread released the lock: another may have it since */
	WHY_END_LAST,   /* only the last one of the series does */
};
enum why_end_rule why_end_rule_of(const struct why_waiting *waiting);
/* Whether the thread can be woken by events of which it awaits only some, so that the same wait
 * follows. Locks and futexes have rules of their own. */
bool why_waits_for_any(enum wait_kind kind);
/* The series of waits that an interval belongs to; valid until the next call. */
const struct why_series *why_series_of(struct why_walk *walk, const struct why_waiting *waiting,
				       uint32_t thread, size_t index);
/* Fills in the fields of a step that describe its series. */
void why_series_describe(const struct why_walk *walk, struct why_step *step);

/* ---- why_doubt.c ---- */
/* Whether the thread may have waited for something else than what ended this wait or its series:
 * the records do not exclude it. */
bool why_is_doubtful(struct why_walk *walk, const struct why_waiting *waiting, uint32_t thread,
		     size_t index);

/* ---- why_signals.c ---- */
/* Whether a signal that the thread did not wait for ended a wait at ts. */
bool why_ended_by_signal(const struct why_walk *walk, uint32_t thread, uint64_t ts,
			 const struct why_waker *waker, enum wait_kind kind);
/* Whether the waker sent the thread a signal that a program may wait for. */
bool why_is_signalled(const struct why_walk *walk, uint32_t thread, uint64_t ts,
		      const struct why_waker *waker);

/* ---- why_evidence.c ---- */
/* Makes the walk ready. `like`: another walk of the model, which lives longer and shares what never
 * changes and is large; or NULL. */
void why_evidence_init(struct why_walk *walk, const struct why_walk *like);
/* When the thread was back on a CPU after the wait of an interval; 0: not in the capture. */
uint64_t why_switched_in(const struct why_walk *walk, uint32_t thread, size_t index);
/* Returns the object that a thread waited for in an interval. NULL: it is unknown. */
const struct store_object *why_wait_object(const struct why_walk *walk, uint32_t thread,
					   const struct why_interval *interval);
struct why_waker why_waker_of(const struct why_walk *walk, uint32_t thread, size_t index);
/* What woke the thread that a switch brought in. */
struct why_waker why_waker_in(const struct why_walk *walk, const struct model_switch *sw);
struct wait_facts why_facts_of(const struct why_walk *walk, uint32_t thread,
			       const struct why_interval *interval, const struct model_wait **wait);
/* What the program's functions show about the futex of a wait; in why_futex.c. */
enum futex_use why_futex_use(struct why_walk *walk, uint32_t thread,
			     const struct why_interval *interval, const struct model_wait *wait);
/* Index in walk->by_pid of the first thread of a process. */
size_t why_threads_of(const struct why_walk *walk, uint32_t pid);
/* Whether the process of a thread has no other thread. */
bool why_is_only_thread(const struct why_walk *walk, uint32_t thread);
/* Index in walk->traced of the first thread of a process. */
size_t why_traced_of(const struct why_walk *walk, uint32_t pid);
/* Looks up what a kernel stack says about a wait. */
void why_stack_meaning(struct why_walk *walk, uint32_t stack, struct why_stack *meaning);
/* Returns the text of what a thread of the kernel does, by its name, such as "kernel: memory
 * reclaim"; 0: unknown. */
uint32_t why_worker_text(struct why_walk *walk, uint32_t thread);
/* The same of the kernel's thread that woke a thread at ts, also by its stack. `writes`: it writes
 * to a device. 0: another thread did, or it is unknown what it does. */
uint32_t why_worker_of_wake(struct why_walk *walk, uint32_t thread, uint64_t ts, bool *writes);
/* The text of a cgroup by its inode number. */
uint32_t why_cgroup(struct why_walk *walk, uint64_t ino);
/* why_instance.memory, by the sums of the instance; in why_pressure.c. */
uint32_t why_pressure_memory(struct why_walk *walk, const struct why_instance *instance);
/* The text of the file that is mapped at an address; 0: none. */
uint32_t why_mapped_file(struct why_walk *walk, uint32_t pid, uint64_t address, uint64_t ts);

/* ---- why_lookup.c ---- */
/* Makes the indexes that look-ups need. */
void why_lookup_init(struct why *why);
/* Index of the first signal after ts. */
size_t why_signals_after(const struct model *model, uint64_t ts);
/* The last signal at or before ts that stopped the thread's process; NULL: not recorded. */
const struct model_signal *why_stopper(struct why *why, uint32_t thread, uint64_t ts);
/* A wait that may be for requests to a device. */
struct why_io_wait {
	uint32_t thread;
	uint32_t dev; /* of the awaited file; 0: unknown */
	uint64_t from, to;
	bool write;
};
/* Whose requests were in flight meanwhile: nobody's, only others', or the thread's own. */
enum why_io { WHY_IO_NONE, WHY_IO_OTHERS, WHY_IO_OWN };
#define WHY_IO_LISTED 16
struct why_io_list {
	uint32_t count;
	uint32_t ios[WHY_IO_LISTED]; /* indexes in model.ios */
	enum why_io whose;
	/* One of them ended in the wait, and it is the thread's own or is known to be for the
	 * file's device. */
	bool sure;
};
/* Fills the list: the thread's first requests, or one of another thread. Requests to other devices
 * than the file's do not count. */
void why_io_find(struct why *why, const struct why_io_wait *wait, struct why_io_list *list);
/* Index of the thread's first throttling record after ts. */
size_t why_quota_after(const struct model *model, uint32_t thread, uint64_t ts);
/* A page fault of the thread that overlaps a time, or NULL. */
const struct model_fault *why_fault_during(const struct model *model, uint32_t thread,
					   uint64_t from, uint64_t to);

/* ---- why_cpus.c ---- */
/* `like` is that of why_evidence_init(). */
void why_cpus_init(struct why_walk *walk, const struct why_walk *like);
void why_cpus_free(struct why_walk *walk);
/* Index in walk->cpu_switches of a CPU's first switch at or after ts. */
size_t why_cpu_after(struct why_walk *walk, uint16_t cpu, uint64_t ts);
/* The switch at an index of walk->cpu_switches; NULL: it is not one of that CPU. */
const struct model_switch *why_cpu_switch(const struct why_walk *walk, uint16_t cpu, size_t at);

/* ---- why_quota.c ---- */
void why_quota_init(struct why_walk *walk);
void why_quota_free(struct why_walk *walk);
/* Finds out who used up the quota for which a thread was throttled from from_ts to to_ts. Changes
 * the culprit, the grade and the meaning of `throttled` if the records show them. */
void why_quota_users(struct why_walk *walk, const struct model_quota *quota, uint64_t from_ts,
		     uint64_t to_ts, struct why_throttled *throttled);

/* ---- why_go.c ---- */
void why_go_init(struct why_walk *walk);
/* Whether a thread belongs to a Go program, whose runtime runs changing goroutines on it. */
bool why_is_go(const struct why_walk *walk, uint32_t thread);
/* The same of a process, by the files that were mapped. */
bool why_go_is_process(const struct model *model, struct stack_names *names, uint32_t pid);

/* ---- why_go_idle.c ---- */
/* Learns what idle threads of Go's runtime wait for. */
void why_go_idle_init(struct why_walk *walk);

/* ---- why_connections.c ---- */
/* "connections to 10.0.0.2:80 (tcp)", if the object, a text, is a connection; 0: it is none. */
uint32_t why_connections_to(struct why_walk *walk, uint32_t object);

/* ---- why_peers.c ---- */
void why_peers_init(struct why_walk *walk);
void why_peers_free(struct why_walk *walk);
/* The thread at the other end of a connection on this machine, of a terminal, or of a pipe of an
 * open wait; or MODEL_NONE. */
uint32_t why_socket_peer(struct why_walk *walk, const struct store_object *object);
/* Whose end of a connection it is, as far as its addresses and those of other connections show. */
enum why_tcp_side { WHY_SIDE_UNKNOWN, WHY_SIDE_CLIENT, WHY_SIDE_SERVER };
enum why_tcp_side why_socket_side(const struct why_walk *walk, const struct store_object *object);
/* Whether the capture has a wait of a thread at the other end. If not, why_socket_peer() knows only
 * the process, and returns its main thread. */
bool why_has_socket_waiter(struct why_walk *walk, const struct store_object *object);
/* Whether it is a terminal that the capture describes as such. */
bool why_is_terminal(const struct store_object *object);
/* Whether the other end of a connection may be on another machine. */
bool why_may_be_remote(const struct store_object *object);
/* The number of the socket at the other end; MODEL_NONE: it is not known. */
uint32_t why_socket_other_end(struct why_walk *walk, const struct store_object *object);
/* Whether an object is the other end of a connection, and TCP has sent something again there during
 * a wait. */
bool why_socket_resent(const struct store_object *object, const struct store_object *end);

/* ---- why_peers_wait.c ---- */
/* Whether all TCP connections that an epoll instance watches have had a thread waiting at their
 * other end for a while before ts. Then nobody sent what made one of them ready. False: of more
 * than one of them, that is not known. The one may be the socket that listens. */
bool why_peers_wait(struct why_walk *walk, const struct store_object *epoll, uint64_t ts);

#endif
