/* SPDX-License-Identifier: Apache-2.0 */
/* Takes a thread's time apart and follows its waits; inside of why.c. */
#ifndef WAFFLE_ANALYZE_WHY_WALK_H
#define WAFFLE_ANALYZE_WHY_WALK_H

#include "analyze/why.h"
#include "analyze/why_gpu.h"
#include "analyze/why_intervals.h"
#include "analyze/why_meaning.h"
#include "analyze/why_wait.h"

/* Longer chains end as unknown. */
#define WHY_DEPTH_MAX 32

/* What made a thread's time somebody's wait: the last wait on the way to it. */
struct why_link {
	enum wait_kind kind;
	enum why_grade grade; /* of the way so far */
	uint32_t object;
	uint64_t from_ts, until_ts; /* of that wait; 0: not known */
};

#define WHY_SUM_BITS 9
#define WHY_SUM_PROBES 8

/* Where a sum is, by its hash. */
struct why_sum_slot {
	uint32_t instance; /* else it is free */
	uint32_t sum;
};

/* A part of an instance in the making. */
struct why_sum {
	struct why_part part;
	uint32_t site; /* of its span: spans of one site are one culprit */
	uint64_t longest_ns;
	uint64_t grade_ns[WHY_GRADE_CERTAIN + 1];
	uint32_t chain; /* in why_walk.chains */
};

struct why_steps {
	struct why_step steps[WHY_DEPTH_MAX + 1];
};

/* In walk->goes. */
#define WHY_GO UINT16_MAX

/* What is known of a stack of the kernel. */
struct why_stack {
	struct meaning meaning;
	uint32_t text; /* in why.texts; 0: nothing */
};

/* What a wait was for, and its text. */
struct why_object_text {
	const struct store_object *object; /* NULL: a futex that has no name */
	uint64_t address;                  /* of the futex */
	uint32_t text;                     /* in why.texts; 0: nothing here yet */
};
#define WHY_OBJECT_TEXTS 256

/* The model, what of it is looked up often, and the instance at hand. */
struct why_walk {
	struct why *why;
	const struct model *model;
	const struct why_names *names; /* NULL: not at hand */
	struct why_intervals intervals;
	struct windows losses;        /* of switches, merged */
	struct map kernel_hints;      /* kernel address → enum why_hint */
	struct map kernel_symbols;    /* kernel address → index of the reader's symbol */
	struct map stack_at;          /* number of a stack → in stacks */
	VEC(struct why_stack) stacks; /* those looked up so far */
	struct map pythons;           /* pid → enum wait_python */
	struct map told;              /* number of a user's stack → enum wait_told */
	struct map goes;    /* pid → WHY_GO, or how many of its stacks are none of Go's */
	bool has_go;        /* one of the processes is Go's */
	struct map peers;   /* object → thread at the other end, or NO_PEER */
	struct map cgroups; /* inode → text */
	struct why_object_text object_texts[WHY_OBJECT_TEXTS];
	uint32_t own_text, held_text;        /* of what the capture itself did */
	const struct store_mapping *mapping; /* that was found last */
	const struct why_interval *interval; /* that is taken apart; NULL: nothing is known */
	uint8_t calls[WHY_SYSCALLS];         /* enum wait_call of each number */
	uint32_t *by_pid;                    /* threads, by their process */
	size_t switch_found;                 /* the last one that was looked up */
	uint64_t end_ts;                     /* of the instance */
	uint32_t depth;                      /* steps on the path */
	struct why_step path[WHY_DEPTH_MAX + 1];
	uint64_t span_until; /* the innermost span of the last step stays so */
	VEC(struct why_sum) sums;
	VEC(struct why_steps) chains;                  /* of sums */
	struct why_sum_slot slots[1u << WHY_SUM_BITS]; /* of sums */
	uint32_t instances;                            /* so far */
	bool no_chains;                                /* nobody wants them */
	struct why_gpu gpu;
	struct why_instance *instance;
};

/* What functions of the kernel on the stack of a wake-up tell of it. */
enum why_hint {
	WHY_HINT_INTERRUPT = 1,
	WHY_HINT_TIMER = 2,
	WHY_HINT_SOCKET = 4,
	WHY_HINT_PIPE = 8,
	WHY_HINT_TERMINAL = 16,
	WHY_HINT_SIGNAL = 32,
	WHY_HINT_CHILD = 64, /* a child's end */
	WHY_HINT_DISK = 128, /* a block device is done */
	WHY_HINT_THAW = 256, /* a cgroup's freezer lets go */
};

void why_walk_free(struct why_walk *walk);

static inline enum why_grade why_grade_least(enum why_grade a, enum why_grade b)
{
	return a < b ? a : b;
}

/* Takes apart all of a thread's time from `from` to `to`. Returns 0 or -ENOMEM. */
int why_walk_time(struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to,
		  const struct why_link *link);

/* The sum of an instance that time in a state of its own thread counts to. */
uint64_t *why_walk_state(struct why_instance *instance, unsigned state);

/* All of an instance that another thread ended; in why_handed.c. */
int why_walk_handed_over(struct why_walk *walk, struct why_instance *instance);

/* Of time on a CPU; in why_running.c. */
int why_walk_running(struct why_walk *walk, uint32_t thread, const struct why_interval *interval,
		     uint64_t from, uint64_t to, const struct why_link *link,
		     const struct why_await *await);

/* Of time that was blocked; in why_blocked.c. */
int why_walk_blocked(struct why_walk *walk, uint32_t thread, size_t index, uint64_t from,
		     uint64_t to, const struct why_link *link, const struct why_await *await);

/* Adds the time of the last step of the path to a cause. */
int why_walk_add(struct why_walk *walk, enum why_cause cause, enum why_grade grade, uint32_t thread,
		 uint32_t object);
/* The same, of a culprit in that span. */
int why_walk_add_in(struct why_walk *walk, enum why_cause cause, enum why_grade grade,
		    uint32_t thread, uint32_t span, uint32_t object);
/* The same, with a last step of its own; nothing if it has no length. */
int why_walk_leaf(struct why_walk *walk, uint32_t thread, enum waffle_thread_state state,
		  uint64_t from, uint64_t to, enum why_cause cause, enum why_grade grade,
		  uint32_t object);
struct why_step *why_walk_push(struct why_walk *walk, uint32_t thread,
			       enum waffle_thread_state state, uint64_t from, uint64_t to);

/* The first switch at or after ts. */
size_t why_switch_after(const struct model *model, uint64_t ts);
/* The one that brought the thread in at ts, or NULL; `first`: the first switch at or after ts. */
const struct model_switch *why_switch_in(const struct model *model, size_t first, uint32_t thread,
					 uint64_t ts);

/* What a series is looked for of; in why_series.c. */
struct why_waiting {
	enum wait_kind kind;
	bool uninterruptible;
	bool ends;                  /* every wake-up ends it: a barrier, a join */
	bool writes;                /* it waits for room, and any room will do */
	uint64_t from_ts, until_ts; /* waits outside do not concern it */
};

/* The waits for the same that one is among; valid until the next call. */
const struct why_series *why_series_of(struct why_walk *walk, const struct why_waiting *waiting,
				       uint32_t thread, size_t index);
/* Fills in the series of a step. */
void why_series_tell(const struct why_walk *walk, struct why_step *step);
/* Whether no record shows that the thread waited for what ended this wait, or its series. */
bool why_is_doubtful(struct why_walk *walk, const struct why_waiting *waiting, uint32_t thread,
		     size_t index);
/* Whether a signal ended a wait at ts. */
bool why_by_signal(const struct why_walk *walk, uint32_t thread, uint64_t ts,
		   const struct why_ender *ender, enum wait_kind kind);

/* Evidence; in why_evidence.c. */
int why_evidence_init(struct why_walk *walk);
/* When a thread was back on a CPU after the wait of that interval; 0: not in the capture. */
uint64_t why_switched_in(const struct why_walk *walk, uint32_t thread, size_t index);
struct why_ender why_ender_of(const struct why_walk *walk, uint32_t thread, size_t index);
struct wait_facts why_facts_of(const struct why_walk *walk, uint32_t thread,
			       const struct why_interval *interval, const struct model_wait **wait);
/* What functions say of the futex that it waits for; in why_futex.c. */
enum wait_told why_futex_told(struct why_walk *walk, uint32_t thread,
			      const struct why_interval *interval, const struct model_wait *wait);
/* Whether a thread is one of Go's runtime, which runs now this and now that goroutine. */
bool why_is_go(const struct why_walk *walk, uint32_t thread);
/* The first thread of a process in walk->by_pid. */
size_t why_threads_of(const struct why_walk *walk, uint32_t pid);
/* Index of the first signal after ts. */
size_t why_signals_after(const struct model *model, uint64_t ts);
/* The last signal at or before ts that stopped a thread's process; NULL: not recorded. */
const struct model_signal *why_stopper(const struct model *model, uint32_t thread, uint64_t ts);
/* A request to a device that was under way in that time: of this thread, of any, or none. */
enum why_io { WHY_IO_NONE, WHY_IO_OTHERS, WHY_IO_OWN };
enum why_io why_io_during(const struct model *model, uint32_t thread, uint64_t from, uint64_t to,
			  bool write);
/* The same with the first `room` requests of the thread, or else one of others; `count` of them. */
enum why_io why_io_list(const struct model *model, uint32_t thread, uint64_t from, uint64_t to,
			bool write, uint32_t *list, uint32_t room, uint32_t *count);
/* The first record of throttling of a thread that is later than ts; an index. */
size_t why_quota_after(const struct model *model, uint32_t thread, uint64_t ts);
/* A page fault of a thread that was recorded in that time. */
const struct model_fault *why_fault_during(const struct model *model, uint32_t thread,
					   uint64_t from, uint64_t to);
/* What a stack of the kernel says of a wait. False: out of memory. */
bool why_stack_meaning(struct why_walk *walk, uint32_t stack, struct why_stack *meaning);
/* The text of a cgroup by its inode. */
uint32_t why_cgroup(struct why_walk *walk, uint64_t ino);
/* The text of the file mapped at an address; 0: none. */
uint32_t why_mapped_file(struct why_walk *walk, uint32_t pid, uint64_t address, uint64_t ts);
/* The thread at the other end of a connection on this machine, or MODEL_NONE. */
uint32_t why_socket_peer(struct why_walk *walk, const struct store_object *object);

#endif
