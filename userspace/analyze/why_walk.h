/* SPDX-License-Identifier: Apache-2.0 */
/* Private to why.c and its parts: splits a thread's time and follows its waits. */
#ifndef WAFFLE_ANALYZE_WHY_WALK_H
#define WAFFLE_ANALYZE_WHY_WALK_H

#include "analyze/why.h"
#include "analyze/why_gpu.h"
#include "analyze/why_intervals.h"
#include "analyze/why_meaning.h"
#include "analyze/why_wait.h"

/* Longer chains end with the cause unknown. */
#define WHY_DEPTH_MAX 32

/* The wait that the chain came from: the thread's time belongs to that wait. */
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
	uint64_t longest_ns;
	uint64_t grade_ns[WHY_GRADE_CERTAIN + 1];
	uint32_t chain; /* index in why_walk.chains */
};

struct why_steps {
	struct why_step steps[WHY_DEPTH_MAX + 1];
};

/* Value in walk->goes of a Go process. */
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
#define WHY_OBJECT_TEXTS 256

/* The state of the walk: the model, indexes and caches, and the current instance. */
struct why_walk {
	struct why *why;
	const struct model *model;
	const struct why_names *names; /* NULL: no symbolizer */
	struct why_intervals intervals;
	struct windows losses;        /* of scheduler records, merged */
	struct map kernel_hints;      /* kernel address → enum why_hint */
	struct map kernel_symbols;    /* kernel address → index of the reader's symbol */
	struct map stack_at;          /* stack number → index in stacks */
	VEC(struct why_stack) stacks; /* cache */
	struct map pythons;           /* pid → enum wait_python */
	struct map told;              /* user stack number → enum wait_told */
	struct map goes;    /* pid → WHY_GO, or the number of stacks without Go functions */
	bool has_go;        /* one of the processes is a Go program */
	struct map peers;   /* object → thread at the other end, or NO_PEER */
	struct map cgroups; /* inode → text */
	struct why_object_text object_texts[WHY_OBJECT_TEXTS];
	uint32_t own_text, held_text;        /* texts for what the capture itself caused */
	const struct store_mapping *mapping; /* cache: the last one found */
	const struct why_interval *interval; /* current interval; NULL: unknown state */
	uint8_t calls[WHY_SYSCALLS];         /* system call number → enum wait_call */
	uint32_t *by_pid;                    /* thread indexes, sorted by process */
	size_t switch_found;                 /* cache: the last switch looked up */
	uint64_t end_ts;                     /* of the instance */
	uint32_t depth;                      /* number of steps on the path */
	struct why_step path[WHY_DEPTH_MAX + 1];
	uint64_t span_until; /* end of the last step's innermost span */
	VEC(struct why_sum) sums;
	VEC(struct why_steps) chains;                  /* one per sum */
	struct why_sum_slot slots[1u << WHY_SUM_BITS]; /* hash table of sums */
	uint32_t instances;                            /* number of instances so far */
	bool no_chains;                                /* the caller wants no chains */
	struct why_gpu gpu;
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
	WHY_HINT_CHILD = 64, /* a child ended */
	WHY_HINT_DISK = 128, /* a block request is done */
	WHY_HINT_THAW = 256, /* the cgroup's freezer thaws it */
};

void why_walk_free(struct why_walk *walk);

static inline enum why_grade why_grade_least(enum why_grade a, enum why_grade b)
{
	return a < b ? a : b;
}

/* Explains all of a thread's time from `from` to `to`. `link` NULL: the instance's own thread.
 * Returns 0 or -ENOMEM, like all functions here that add time. */
int why_walk_time(struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to,
		  const struct why_link *link);

/* The total in the instance for a state of its own thread. */
uint64_t *why_walk_state(struct why_instance *instance, unsigned state);

/* Explains an instance whose span ended on another thread; in why_handed.c. */
int why_walk_handed_over(struct why_walk *walk, struct why_instance *instance);

/* Explains time on a CPU; in why_running.c. */
int why_walk_running(struct why_walk *walk, uint32_t thread, const struct why_interval *interval,
		     uint64_t from, uint64_t to, const struct why_link *link,
		     const struct why_await *await);

/* Explains blocked time; in why_blocked.c. */
int why_walk_blocked(struct why_walk *walk, uint32_t thread, size_t index, uint64_t from,
		     uint64_t to, const struct why_link *link, const struct why_await *await);

/* Adds the time of the path's last step to a cause. */
int why_walk_add(struct why_walk *walk, enum why_cause cause, enum why_grade grade, uint32_t thread,
		 uint32_t object);
/* The same with the culprit's span. */
int why_walk_add_in(struct why_walk *walk, enum why_cause cause, enum why_grade grade,
		    uint32_t thread, uint32_t span, uint32_t object);
/* The same with a last step of its own; does nothing if that has no length. */
int why_walk_leaf(struct why_walk *walk, uint32_t thread, enum waffle_thread_state state,
		  uint64_t from, uint64_t to, enum why_cause cause, enum why_grade grade,
		  uint32_t object);
struct why_step *why_walk_push(struct why_walk *walk, uint32_t thread,
			       enum waffle_thread_state state, uint64_t from, uint64_t to);

/* Index of the first switch at or after ts. */
size_t why_switch_after(const struct model *model, uint64_t ts);
/* The switch at ts that brought the thread in, or NULL. `first` is why_switch_after() of ts. */
const struct model_switch *why_switch_in(const struct model *model, size_t first, uint32_t thread,
					 uint64_t ts);

/* Describes the wait whose series is wanted; in why_series.c. */
struct why_waiting {
	enum wait_kind kind;
	bool uninterruptible;
	bool ends;                  /* any wake-up ends it: a barrier, a join */
	bool writes;                /* it waits for room, and any room will do */
	uint64_t from_ts, until_ts; /* waits outside this time do not matter */
};

/* The series of waits that an interval belongs to; valid until the next call. */
const struct why_series *why_series_of(struct why_walk *walk, const struct why_waiting *waiting,
				       uint32_t thread, size_t index);
/* Fills in the fields of a step that describe its series. */
void why_series_tell(const struct why_walk *walk, struct why_step *step);
/* Whether the records leave open if the thread waited for what ended this wait or its series. */
bool why_is_doubtful(struct why_walk *walk, const struct why_waiting *waiting, uint32_t thread,
		     size_t index);
/* Whether a signal ended a wait at ts. */
bool why_by_signal(const struct why_walk *walk, uint32_t thread, uint64_t ts,
		   const struct why_ender *ender, enum wait_kind kind);

/* ---- why_evidence.c ---- */
int why_evidence_init(struct why_walk *walk);
/* When the thread was back on a CPU after the wait of an interval; 0: not in the capture. */
uint64_t why_switched_in(const struct why_walk *walk, uint32_t thread, size_t index);
struct why_ender why_ender_of(const struct why_walk *walk, uint32_t thread, size_t index);
struct wait_facts why_facts_of(const struct why_walk *walk, uint32_t thread,
			       const struct why_interval *interval, const struct model_wait **wait);
/* What the program's functions show about the futex of a wait; in why_futex.c. */
enum wait_told why_futex_told(struct why_walk *walk, uint32_t thread,
			      const struct why_interval *interval, const struct model_wait *wait);
/* Whether a thread belongs to a Go program, whose runtime runs changing goroutines on it. */
bool why_is_go(const struct why_walk *walk, uint32_t thread);
/* Index in walk->by_pid of the first thread of a process. */
size_t why_threads_of(const struct why_walk *walk, uint32_t pid);
/* Index of the first signal after ts. */
size_t why_signals_after(const struct model *model, uint64_t ts);
/* The last signal at or before ts that stopped the thread's process; NULL: not recorded. */
const struct model_signal *why_stopper(const struct model *model, uint32_t thread, uint64_t ts);
/* Whose device requests were in flight during a time: none, only others', or the thread's own. */
enum why_io { WHY_IO_NONE, WHY_IO_OTHERS, WHY_IO_OWN };
enum why_io why_io_during(const struct model *model, uint32_t thread, uint64_t from, uint64_t to,
			  bool write);
/* The same, with a list: the thread's first `room` requests, or one of another thread. *count is
 * their number. */
enum why_io why_io_list(const struct model *model, uint32_t thread, uint64_t from, uint64_t to,
			bool write, uint32_t *list, uint32_t room, uint32_t *count);
/* Index of the thread's first throttling record after ts. */
size_t why_quota_after(const struct model *model, uint32_t thread, uint64_t ts);
/* A page fault of the thread that overlaps a time, or NULL. */
const struct model_fault *why_fault_during(const struct model *model, uint32_t thread,
					   uint64_t from, uint64_t to);
/* Looks up what a kernel stack says about a wait. False: out of memory. */
bool why_stack_meaning(struct why_walk *walk, uint32_t stack, struct why_stack *meaning);
/* The text of a cgroup by its inode number. */
uint32_t why_cgroup(struct why_walk *walk, uint64_t ino);
/* The text of the file that is mapped at an address; 0: none. */
uint32_t why_mapped_file(struct why_walk *walk, uint32_t pid, uint64_t address, uint64_t ts);
/* The thread at the other end of a connection on this machine, or MODEL_NONE. */
uint32_t why_socket_peer(struct why_walk *walk, const struct store_object *object);

#endif
