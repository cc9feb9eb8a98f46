/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that the program makes at run time (waffle_named.h). A name is a site without an ELF
 * file: its address identifies it as a probe's address identifies a site of a file, so hits of both
 * travel in the same way. Names are never freed, since a hit may refer to one at any time. A tracer
 * finds them in memory that it shares with the program (usdt/name/name_chunk.h).
 */
#ifndef WAFFLE_USDT_NAME_NAMES_H
#define WAFFLE_USDT_NAME_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "target/elf/site.h"
#include "usdt/name/name_chunk.h"
#include "waffle/mode.h"
#include "waffle_named.h"

struct name_site {
	struct name_entry entry; /* begins with what the program has, struct waffle_name_ */
	struct name_site *next;  /* of the same bucket */
	struct name_site *older; /* the one that was made before */
	uint64_t hash;
	bool wanted;           /* by the listener */
	bool wakes;            /* a thread waits until the name is armed */
	struct site_info site; /* its strings follow, as struct name_entry says */
};

/* Who records names in this process. At most one at a time. */
struct names_listener {
	/* Whether the name is to be armed. It is called once for each name, by the thread that
	 * makes it or that listens, and never by two at once. */
	bool (*found)(const struct name_site *name, void *arg);
	void *arg;
};

/* Offers all names there are, and from now on each new one. */
void names_listen(const struct names_listener *listener);
/* Disarms all names. `found` is not called any more. */
void names_unlisten(void);

/* After the mode of the process may have changed: in mode off all names of the listener are
 * disarmed, as the sites of files are. */
void names_follow_mode(void);

/*
 * From now on whoever arms the name wakes the threads that wait in a futex at its word. The word is
 * in memory that the tracer shares, so the futex must not be a private one.
 */
void names_wake(struct name_site *name);

/* Tells tracers of a track. */
void names_add_track(uint32_t number, const char *name, const char *group);

/* When something happened, if not now on the thread that says it. */
struct named_time {
	uint32_t track;            /* number of the track */
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; end_ns counts for spans only */
};

/*
 * The child of a fork() borrows the names of its parent, with the words that arm them, until it
 * uses one. So a child that uses none makes no system calls, which its sandbox may forbid.
 */
extern bool names_are_borrowed __attribute__((visibility("hidden")));
/* Copies borrowed names for this process, and disarms them: a tracer has yet to decide, as of new
 * ones. Async-signal-safe: if the thread was interrupted while it does that, nothing happens. */
void names_make_own(void);

/* Whether a use of the name is recorded, here and now. */
static inline bool named_is_recorded(const waffle_name_t *name)
{
	if (!waffle_name_armed(name) || waffle_mode_here_() == WAFFLE_MODE_OFF)
		return false;
	if (!__builtin_expect(__atomic_load_n(&names_are_borrowed, __ATOMIC_RELAXED), 0))
		return true;
	names_make_own();
	return waffle_name_armed(name);
}

/* Disarms a name that only a tracer has armed, which is gone: it may have been killed. Names that a
 * program does not use meanwhile stay armed until their next use. So do those that a child may
 * have borrowed, since its tracer may be another one. */
void names_disarm_one(const struct name_site *name);

/* Lays out a frame that begins with four words (struct waffle_frame), and delivers it. `time` NULL:
 * now, on this thread. Async-signal-safe. */
void named_emit(const struct name_site *name, const unsigned long long *words,
		const struct named_time *time, const waffle_value_t *values, unsigned count);

/* Around fork(): the child begins with all names, which it borrows. */
void names_fork_before(void);
void names_fork_parent(void);
void names_fork_child(void);

#endif
