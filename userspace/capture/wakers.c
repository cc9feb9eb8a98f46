// SPDX-License-Identifier: Apache-2.0
#include "capture/wakers_internal.h"

#include <stdlib.h>
#include <sys/syscall.h>

#include "kernel/kernel.h"
#include "util/map.h"
#include "util/vec.h"

#define STRANGERS_MAX 65536 /* threads that are not recorded */
#define WAKERS_MAX 1024
#define LEFT_MAX 4096 /* a power of two */

struct waker {
	struct waker_key key;
	bool done;      /* see wakers_decide() */
	uint64_t ino;   /* of a descriptor, when it was returned last */
	uint32_t waits; /* since then */
	uint64_t waited_ns;
};

/* When a thread left its CPU to wait. */
struct left {
	uint64_t ts;
	uint32_t tid; /* 0: none has this place yet */
	int fd;       /* for this descriptor; -1: for something else, or it waits no longer */
	bool writes;
};

struct wakers {
	struct map strangers; /* tid → pid; 0: a thread of the kernel */
	struct map at;        /* map_key() → index in `list` */
	VEC(struct waker) list;
	uint64_t added_ts; /* see wakers_added(); 0: none was */
	/* By tid. Of two threads with the same place, the waits of one are not known: this is read
	 * and written at each switch, and has to be quick. */
	struct left left[LEFT_MAX];
};

struct wakers *wakers_open(void)
{
	return calloc(1, sizeof(struct wakers));
}

void wakers_close(struct wakers *wakers)
{
	if (!wakers)
		return;
	map_free(&wakers->strangers);
	map_free(&wakers->at);
	vec_free(&wakers->list);
	free(wakers);
}

void wakers_added(struct wakers *wakers, uint64_t ts)
{
	wakers->added_ts = ts;
}

static void task_note(struct wakers *wakers, const struct waffle_rec_task *task)
{
	if (task->flags & (WAFFLE_TASK_TRACED_FLAG | WAFFLE_TASK_OWN_FLAG))
		map_remove(&wakers->strangers, task->rec.tid);
	else if (wakers->strangers.len < STRANGERS_MAX ||
		 map_get(&wakers->strangers, task->rec.tid) != MAP_NONE)
		(void)map_set(&wakers->strangers, task->rec.tid,
			      task->flags & WAFFLE_TASK_KERNEL_FLAG ? 0 : task->tgid);
}

static uint64_t map_key(const struct waker_key *key)
{
	return (uint64_t)((uint32_t)key->fd + 1) << 32 | (uint32_t)key->writes << 31 |
	       (uint32_t)key->pid;
}

/* NULL: there are too many, or no memory. Descriptors leave room for processes. */
static struct waker *waker_of(struct wakers *wakers, const struct waker_key *key)
{
	uint32_t index = map_get(&wakers->at, map_key(key));
	uint32_t most = key->fd < 0 ? WAKERS_MAX : WAKERS_MAX / 2;

	if (index != MAP_NONE)
		return &wakers->list.data[index];
	index = (uint32_t)wakers->list.len;
	if (index >= most || !vec_reserve(&wakers->list, 1) ||
	    !map_set(&wakers->at, map_key(key), index))
		return NULL;
	wakers->list.data[wakers->list.len++] =
		(struct waker){.key = {.pid = key->pid, .fd = key->fd, .writes = key->writes}};
	return &wakers->list.data[index];
}

static struct waker_key key_of(const struct left *left)
{
	return (struct waker_key){.pid = (pid_t)left->tid, .fd = left->fd, .writes = left->writes};
}

/* What ended a wait that began at `left`; pid 0: it is not known, or recorded itself. */
static struct waker_key ended_by(const struct wakers *wakers, const struct waffle_rec_switch *sw,
				 const struct left *left)
{
	uint32_t pid = map_get(&wakers->strangers, sw->waker_tid);

	if (pid && !(sw->flags & WAFFLE_SWITCH_WAKER_INTERRUPT))
		return (struct waker_key){.pid = pid == MAP_NONE ? 0 : (pid_t)pid, .fd = -1};
	return left->tid == sw->next_tid && left->fd >= 0 ? key_of(left)
							  : (struct waker_key){.fd = -1};
}

/* A recorded thread gets a CPU after something has woken it. */
static void wait_note(struct wakers *wakers, const struct waffle_rec_switch *sw, uint64_t begin_ts)
{
	const struct left *left = &wakers->left[sw->next_tid & (LEFT_MAX - 1)];
	const struct waker_key key = ended_by(wakers, sw, left);
	bool known = left->tid == sw->next_tid;
	uint64_t since_ts = known ? left->ts : wakers->added_ts;
	uint64_t from_ts = since_ts > begin_ts ? since_ts : begin_ts;
	struct waker *waker;

	if (!key.pid || (left->tid && !known) || sw->wake_ts <= from_ts)
		return;
	waker = waker_of(wakers, &key);
	if (!waker)
		return;
	waker->waits++;
	waker->waited_ns += sw->wake_ts - from_ts;
}

static bool is_write(int syscall)
{
	return syscall == SYS_write || syscall == SYS_writev || syscall == SYS_sendto ||
	       syscall == SYS_sendmsg || syscall == SYS_sendmmsg || syscall == SYS_sendfile;
}

/* `arg`: the first one of the system call, which may be for several descriptors, or none. A thread
 * waits for the other end of a connection so that signals can end that; otherwise it is stopped, or
 * waits for a disk or a lock. */
static struct left left_at(const struct waffle_rec *rec, uint16_t task_state, int syscall,
			   uint64_t arg)
{
	bool one = task_state == WAFFLE_TASK_INTERRUPTIBLE &&
		   kernel_waits_for_descriptor(syscall) && arg <= INT32_MAX;

	return (struct left){rec->ts, rec->tid, one ? (int)arg : -1, is_write(syscall)};
}

static void switch_note(struct wakers *wakers, const struct waffle_rec_switch *sw,
			uint64_t begin_ts)
{
	struct left *left = &wakers->left[sw->rec.tid & (LEFT_MAX - 1)];

	if (sw->flags & WAFFLE_SWITCH_PREV_TRACED)
		*left = left_at(&sw->rec, sw->prev_state, sw->syscall, sw->args[0]);
	if (!(sw->flags & WAFFLE_SWITCH_NEXT_TRACED))
		return;
	if (sw->flags & WAFFLE_SWITCH_WOKEN && !(sw->flags & WAFFLE_SWITCH_NEW))
		wait_note(wakers, sw, begin_ts);
	left = &wakers->left[sw->next_tid & (LEFT_MAX - 1)];
	if (left->tid == sw->next_tid)
		left->fd = -1;
}

static void state_note(struct wakers *wakers, const struct waffle_rec_state *state)
{
	struct left *left = &wakers->left[state->rec.tid & (LEFT_MAX - 1)];

	if (state->state == WAFFLE_THREAD_BLOCKED && !state->at_end && !left->tid)
		*left = left_at(&state->rec, state->task_state, state->syscall, state->args[0]);
}

void wakers_record(struct wakers *wakers, const struct waffle_rec *rec, uint64_t begin_ts)
{
	if (rec->kind == WAFFLE_REC_SWITCH)
		switch_note(wakers, (const struct waffle_rec_switch *)rec, begin_ts);
	else if (rec->kind == WAFFLE_REC_TASK)
		task_note(wakers, (const struct waffle_rec_task *)rec);
	else if (rec->kind == WAFFLE_REC_STATE)
		state_note(wakers, (const struct waffle_rec_state *)rec);
}

static bool counts(const struct waker *waker, uint64_t elapsed_ns)
{
	return (waker->key.fd >= 0 || !waker->done) && waker->waited_ns >= WAKERS_LEAST_NS &&
	       waker->waited_ns >= elapsed_ns / WAKERS_PARTS &&
	       (waker->waits > 1 || waker->waited_ns >= WAKERS_LONG_NS);
}

/* Whether a wait goes on that counts. */
static bool is_stuck(const struct left *left, uint64_t begin_ts, uint64_t now)
{
	uint64_t since_ts = left->ts > begin_ts ? left->ts : begin_ts;

	return left->tid && left->fd >= 0 && now >= since_ts + WAKERS_LONG_NS &&
	       now - since_ts >= (now - begin_ts) / WAKERS_PARTS;
}

bool wakers_next(const struct wakers *wakers, uint64_t begin_ts, uint64_t now,
		 struct waker_key *key)
{
	for (size_t i = 0; i < wakers->list.len; i++) {
		if (!counts(&wakers->list.data[i], now - begin_ts))
			continue;
		*key = wakers->list.data[i].key;
		return true;
	}
	for (size_t i = 0; i < LEFT_MAX; i++) {
		if (!is_stuck(&wakers->left[i], begin_ts, now))
			continue;
		*key = key_of(&wakers->left[i]);
		key->goes_on = true;
		return true;
	}
	return false;
}

bool wakers_decide(struct wakers *wakers, const struct waker_key *key, uint64_t ino)
{
	struct left *left = &wakers->left[(uint32_t)key->pid & (LEFT_MAX - 1)];
	struct waker *waker = waker_of(wakers, key);
	bool same, decided;

	if (key->goes_on && left->tid == (uint32_t)key->pid)
		left->fd = -1;
	if (!waker) /* nothing is known of that descriptor */
		return true;
	same = waker->ino == ino;
	decided = same ? !waker->done : key->goes_on;
	*waker = (struct waker){.key = waker->key, .ino = ino, .done = same || key->goes_on};
	return decided;
}
