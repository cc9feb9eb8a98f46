/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a walk: the model, indexes and caches, and the sums of the current instance. */
#ifndef WAFFLE_ANALYZE_WHY_WHY_WALK_TYPES_H
#define WAFFLE_ANALYZE_WHY_WHY_WALK_TYPES_H

#include "analyze/why/lookup/why_intervals.h"
#include "analyze/why/lookup/why_meaning.h"
#include "analyze/why/lookup/why_shares.h"
#include "analyze/why/lookup/why_wait.h"
#include "analyze/why/why_await_types.h"
#include "analyze/why/why_types.h"
#include "symbolize/stack_mappings.h"
#include "symbolize/stack_names.h"
#include "util/keymap.h"

/* Longer chains end with the cause unknown. */
#define WHY_DEPTH_MAX 32

/* The wait from which a chain came to a thread. The thread's time explains that wait. */
struct why_link {
	enum wait_kind kind;
	enum why_grade grade; /* of the chain so far */
	uint32_t object;
	uint64_t from_ts, until_ts; /* time of that wait; until_ts 0: unknown */
	/* It was for an answer of this thread, which had not come when a timeout, a signal or the
	 * end of the capture ended it. */
	bool unanswered;
	bool open; /* it was the end of the capture */
};

/* How many locks of an instance are told apart; others are left out. */
#define WHY_LOCKS_MAX 64

/* A struct why_lock_time while it is built: of threads, and of user stacks. */
struct why_lock_times {
	uint32_t lock;
	uint64_t ns, idle_ns;
	why_shares holders, awaited, stacks;
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
	/* Known while sums are folded: the culprit is the instance's thread; its object is a futex
	 * without a name, or a file; what wait_unnamed() says of its object; text of the place
	 * where it waited longest, or 0; text of all connections to the same server, or 0; and of
	 * all with the same local end, or 0. */
	bool own, futex, file;
	uint32_t unnamed, place, server, accepted;
	uint64_t longest_ns;
	/* The time of all stretches whose wait has a stack, and the votes that the one of part.wait
	 * has left: others took theirs from it (Boyer-Moore). It has at least as much time. */
	uint64_t placed_ns, votes_ns;
	uint64_t grade_ns[WHY_GRADE_CERTAIN + 1];
	uint64_t relation_ns[WHY_RELATIONS]; /* known while sums are folded */
	uint32_t chain;                      /* index in why_walk.chains */
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

/* What waits of a thread for an object are for, of which the stack is known. */
struct why_lock_votes {
	uint32_t lock;  /* the text of why_program_lock(), if it is the same in all; else 0 */
	uint32_t count; /* of the waits */
};

/* Time in which a thread was busy, as a thread of a pool is (why_full_pool.c). */
struct why_pool_time {
	uint32_t thread;
	uint32_t stack; /* of waits at a futex, if it shows a job; 0: it was busy in any case */
	uint64_t ts;    /* of the first one with this stack */
	uint64_t ns;
};

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

/* A throttled thread and a cgroup that it was throttled by; or the main thread of another process
 * in that, which stands for all of its name. */
struct why_quota_user {
	uint64_t cgroup;
	uint32_t thread;
	/* It was never throttled itself, but all throttled threads of its process were by that. */
	bool maybe;
	uint64_t ran_ns; /* scratch: in the period that is examined */
	/* Other processes of its name: they ran outside_ns of outside_ms, and this one longest_ns,
	 * which is the most. Otherwise 0. */
	uint64_t outside_ns, longest_ns;
	uint32_t outside_ms, outside_count;
};

/* A request of a Go program, which is known to be the client, and its answer: meanwhile, a
 * goroutine waits. */
struct why_go_answer {
	uint64_t from_ts, to_ts;           /* when the request was sent and when the answer came */
	uint32_t pid;                      /* of the program */
	uint32_t thread;                   /* that answered, of another process */
	const struct store_object *object; /* the connection, the program's end */
};

/* A time in which at least one thread of a Go program runs or waits for a CPU, and the sum of those
 * of its process before it. */
struct why_go_busy {
	uint64_t from_ts, to_ts, before_ns;
};

/* Those of a process, in why_walk.go_busy. */
struct why_go_busy_range {
	size_t first, count;
};

/* The state of the walk: the model, indexes and caches, and the current instance. */
struct why_walk {
	struct why *why;
	const struct model *model;
	struct stack_names *names; /* NULL: no symbolizer */
	bool shared; /* go_answers, cpu_switches and cpu_begins belong to another walk */
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
	struct map locks_at; /* thread and object → struct why_lock_votes of waits with a stack;
				thread and 0: those of the thread are known */
	VEC(struct why_lock_votes) lock_votes;
	struct map places;         /* user stack → text of the place where a thread slept */
	struct map go_idle_stacks; /* user stack number → whether Go's runtime waits for work */
	struct map go_idle;        /* what is waited for, as a hash → the same */
	struct map go_of; /* pid → WHY_GO, or the number of stacks without Go functions */
	bool has_go;      /* one of the processes is a Go program */
	VEC(struct why_go_answer) go_answers; /* by pid, then to_ts */
	VEC(struct why_go_busy) go_busy;      /* cache: of each process by time, disjoint */
	VEC(struct why_go_busy_range) go_busy_ranges;
	struct map go_busy_of;    /* pid → index in go_busy_ranges */
	uint64_t go_busy_load;    /* intervals.loads when they were made */
	VEC(uint32_t) sockets;    /* objects with two ends, sorted by them */
	VEC(uint32_t) owned;      /* indexes in `sockets`, sorted by process */
	VEC(uint32_t) listeners;  /* sockets of TCP with one end */
	struct map socket_at;     /* inode → number of one of `sockets` or `listeners` */
	struct map peers;         /* object → thread at the other end, or NO_PEER */
	struct keymap servers;    /* of a connection (why_peers.c) → its thread, or NO_PEER */
	struct map socket_users;  /* object → the first thread that waited for it */
	struct map main_threads;  /* pid → thread */
	struct map only_children; /* pid → main thread of its only child, or NO_PEER */
	struct map killed; /* pid → main thread of its only child that a signal ended, or NO_PEER */
	struct map killed_shared; /* such a thread → whether others show that it may have a lock */
	struct map
		missing_ranks; /* pid → main thread of the rank that it waits for (why_ranks.c) */
	struct map sessions; /* of PostgreSQL (why_peers.c) → main thread of the only idle one, or
				NO_PEER */
	struct map askers;   /* pid → 1: it is the client of a connection */
	bool askers_known;
	uint32_t network; /* the namespace of a process; 0: none is known */
	bool several_networks;
	struct map wakers; /* woken thread, waker of its process (why_pool.c) → 1 */
	bool wakers_known;
	struct map full_pools; /* thread → text of its pool (why_full_pool.c) */
	struct map full_known; /* pid → 1: those of its threads are in full_pools */
	VEC(struct why_pool_time) pool_times; /* of all traced threads, by thread */
	bool pool_times_known;
	struct map managers;   /* thread → text of why_manager_text() */
	struct map commands;   /* user stack → whether it is of a session of PostgreSQL that waits
				  for its next command */
	struct map signals_to; /* thread → number of signals to it */
	struct keymap cgroups; /* inode and detail of an object → text */
	struct map files; /* inode and device of a file without a name → object that has one */
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
	VEC(struct why_quota_user) quota_users; /* by cgroup, then thread */
	VEC(struct why_sampled) sampled;
	VEC(struct why_neighbour_node) neighbours;
	sample_counts sample_counts; /* scratch */
	size_t sample_found;         /* cache: the last sample looked up */
	size_t switch_found;         /* cache: the last switch looked up */
	uint64_t end_ts;             /* where the instance ends */
	uint32_t depth;              /* number of steps on the path */
	struct why_step path[WHY_DEPTH_MAX + 1];
	uint64_t span_until;                        /* end of the last step's innermost span */
	struct why_lock_times locks[WHY_LOCKS_MAX]; /* of the instance */
	uint32_t lock_count;
	VEC(struct why_sum) sums;
	VEC(struct why_steps) chains;                  /* one per sum */
	struct why_sum_slot slots[1u << WHY_SUM_BITS]; /* hash table of sums */
	struct map more_sums; /* hash → the newest sum with it for which no slot was free */
	uint32_t instances;   /* number of instances so far */
	bool no_chains;       /* the caller wants no chains */
	uint32_t through_tid; /* as in struct why_query */
	bool unsure;          /* the thread may not be the one that explains the time */
	struct why_awaits awaits;
	struct why_instance *instance;
};

#endif
