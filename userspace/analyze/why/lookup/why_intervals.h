/* SPDX-License-Identifier: Apache-2.0 */
/* Thread states and innermost spans, loaded for fast look-up by time. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_INTERVALS_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_INTERVALS_H

#include "analyze/why/lookup/why_wait.h"
#include "model/model.h"
#include "model/windows.h"

/* A model_interval without its thread. */
struct why_interval {
	uint64_t from_ts, to_ts;
	uint32_t by, args;
	uint16_t cpu, task_state;
	int16_t syscall;
	uint8_t state;
	bool woken : 1, interrupt : 1, open : 1;
	bool continued : 1; /* the kernel continues a call that a signal interrupted */
};

/* From `ts` on, `span` is the innermost span of a thread; MODEL_NONE: none. */
struct why_mark {
	uint64_t ts;
	uint32_t span;
};

/* From `ts` on, `open` requests have begun on a thread and not ended. */
struct why_answers {
	uint64_t ts;
	int64_t open;
};

/* What woke a thread from a wait. */
struct why_waker {
	uint32_t thread; /* MODEL_NONE: unknown */
	bool reported;   /* the wake-up was recorded */
	bool interrupt;  /* an interrupt did it, and `thread` is only what it interrupted */
	bool has_stack;  /* the kernel stack of the wake-up is known, so `hints` is complete */
	bool inferred;   /* only a stack or a name shows whether an interrupt did it: not certain */
	uint32_t hints;  /* enum why_hint */
};

/* A series: successive waits for the same thing that count as one wait. In why_series.c. */
struct why_series {
	size_t first, last; /* intervals of the thread */
	uint64_t until_ts;  /* end of the search for it; 0: no series */
	enum wait_kind kind;
	struct why_waker waker; /* of the last wait */
	bool by_signal;         /* a signal ended the last wait */
	/* What was waited for came while the thread was awake: after a timeout, or after a wake-up
	 * for another request (`missed`). This thread did it, or MODEL_NONE. */
	uint32_t done_by;
	bool missed;
	bool apart;    /* the thread that answered the request had not taken it up yet */
	bool queued;   /* and the answer to another request ended this wait */
	bool served;   /* the loop served another request after the last wake-up, before this one */
	bool repeated; /* the program, not the kernel, repeated the call */
};

/* Places in a thread's cache of series. Between the waits of a series there may be waits for locks,
 * and stops. These have places of their own. Otherwise they would evict the series, and it would be
 * computed again for each of its waits. */
enum why_series_place {
	WHY_SERIES_SINGLE, /* any wake-up ends the wait */
	WHY_SERIES_MUTEX,
	WHY_SERIES_GIL,
	WHY_SERIES_FUTEX,
	WHY_SERIES_IDLE,
	WHY_SERIES_OTHER,
	WHY_SERIES,
};

/* All waits of a thread for the same thing within a time. */
struct why_again {
	size_t first, last;         /* intervals of the thread */
	bool cut;                   /* the search reached its limit before its end */
	bool mixed;                 /* several threads ended them */
	uint64_t from_ts, until_ts; /* until_ts 0: empty */
	enum wait_kind kind;
};
#define WHY_AGAIN 4

/* A runnable interval of which the thread was throttled for `ns`; to_ts 0: none. */
struct why_throttled {
	uint64_t from_ts, to_ts, ns;
	uint32_t object;  /* text of the cgroup */
	uint32_t meaning; /* text of who used its quota up; 0: not known */
	uint32_t culprit; /* the thread that used most of it; MODEL_NONE: one of no record */
	bool unsure;      /* other threads may have used it */
};

/* What woke a thread in a series; see struct why_step. last 0: empty. */
struct why_last_wakes {
	uint32_t first, last;
	uint32_t wakes, woken_by, woken_count;
};

/* More system calls than any machine has. */
#define WHY_SYSCALLS 512

struct why_thread {
	VEC(struct why_interval) intervals;
	VEC(struct why_mark) marks;
	VEC(struct why_answers) answers; /* when requests begin and end on the thread, sorted */
	struct why_series series[WHY_SERIES]; /* cache: the last ones computed */
	struct why_again again[WHY_AGAIN];
	struct why_throttled throttled;   /* cache: the last one looked up */
	struct why_last_wakes last_wakes; /* the same */
	/* It has waited for a priority-inheriting lock, for which the kernel also spins. */
	bool spins;
	size_t interval_found, mark_found; /* last results; look-ups are often close in time */
};

/* When a span without an end ends: with the enclosing one that ends first. */
struct why_left {
	uint32_t span;
	uint64_t end_ts;
};

struct why_intervals {
	const struct model *model;
	struct why_thread *threads; /* one for each thread of the model */
	size_t count;
	uint64_t loads; /* how often others were loaded */
	/* Only while loading; intervals outside the merged windows are skipped. */
	const struct windows *windows;
	VEC(struct why_left) left; /* by span */
	VEC(uint32_t) reach;       /* spans before `next` that may reach into later windows */
	uint32_t next;             /* the first span that no window has reached so far */
	int16_t restart, futex, waitid, uring, sendfile; /* system call numbers; -1: unknown */
};

void why_intervals_init(struct why_intervals *intervals, const struct model *model);
void why_intervals_free(struct why_intervals *intervals);
/* Loads the intervals and spans within the windows. */
void why_intervals_load(struct why_intervals *intervals, const struct windows *windows);
/* Loads those within one window instead of those loaded before, whose window did not begin later.
 */
void why_intervals_load_next(struct why_intervals *intervals, const struct model_marks *marks,
			     const struct windows *window);
/* Notes what an interval tells of its thread for all time. Intervals that are loaded have that
 * noted already. `intervals` is a struct why_intervals. */
int why_intervals_note(const struct model_interval *interval, void *intervals);

/* Index of the thread's first interval that ends after ts; the number of intervals if there is
 * none. */
size_t why_intervals_after(const struct why_intervals *intervals, uint32_t thread, uint64_t ts);
/* Whether a span has no end although its parent on the same thread has one. Then it may have ended
 * earlier than it seems, as by longjmp(). */
bool why_intervals_left(const struct model *model, uint32_t span);
/* The thread's innermost span at ts, or MODEL_NONE. It stays the innermost until *until at
 * least. */
uint32_t why_intervals_span(const struct why_intervals *intervals, uint32_t thread, uint64_t ts,
			    uint64_t *until);
/* Whether `span`, the innermost one of the thread at ts, is a request, and the thread may work for
 * another one then: several are open, and it may have put this one aside. */
bool why_intervals_doubts(const struct why_intervals *intervals, uint32_t thread, uint32_t span,
			  uint64_t ts);
/* Whether a request begins or ends on the thread after from_ts, until to_ts. */
bool why_intervals_answers(const struct why_intervals *intervals, uint32_t thread, uint64_t from_ts,
			   uint64_t to_ts);
/* Whether the thread serves requests at from_ts, and one begins or ends on it from then to to_ts.
 */
bool why_intervals_serves(const struct why_intervals *intervals, uint32_t thread, uint64_t from_ts,
			  uint64_t to_ts);
/* The time since when the thread has been in the innermost span that it has at ts, or in no span.
 * 0: since the thread's begin. */
uint64_t why_intervals_span_since(const struct why_intervals *intervals, uint32_t thread,
				  uint64_t ts);

#endif
