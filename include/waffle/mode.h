/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modes: how much an armed site records. Arming is another thing: a site is dormant until a tracer
 * or WAFFLE_TRACE arms it, in every mode.
 *
 *	off    nothing: no record, no call of the probe, and no argument is evaluated
 *	fast   spans, events, counters and logs; this is the default
 *	full   also keys of KV_DEBUG (kv.h) and the frames of WAFFLE_FRAME (frame.h)
 *
 * The mode of a site is that of the innermost WAFFLE_MODE_SCOPE around it on this thread, or else
 * that of the process. It holds for all who have armed the site, libwaffle and tracers alike. Only
 * an armed site looks at it, so that dormant code is the same in each mode. While the mode of the
 * process is off, libwaffle arms nothing at all.
 *
 * WAFFLE_MODE=off|fast|full in the environment sets the mode of programs with libwaffle before
 * main(). Others call waffle_mode_set().
 */
#ifndef WAFFLE_MODE_H
#define WAFFLE_MODE_H

#include "context.h"
#include "kv.h"

typedef enum { WAFFLE_MODE_OFF = 1, WAFFLE_MODE_FAST = 2, WAFFLE_MODE_FULL = 3 } waffle_mode_t;

#ifndef WAFFLE_DISABLE

/* The mode of the code that this thread is in: one of waffle_mode_t, or 0, which counts as fast. */
static __inline__ unsigned waffle_mode_of_(const struct waffle_thread_ *thread_)
{
	unsigned mode_ = thread_->mode_;

	/* OFF is returned as a constant. So an armed site, which compares with OFF, makes one
	 * comparison only. */
	if (mode_ > WAFFLE_MODE_OFF)
		return mode_;
	if (mode_)
		return WAFFLE_MODE_OFF;
	return __atomic_load_n(&waffle_process_get_()->mode_, __ATOMIC_RELAXED);
}

static __inline__ unsigned waffle_mode_here_(void)
{
	return waffle_mode_of_(waffle_thread_get_());
}

/* The mode that an armed site would have here. */
static __inline__ waffle_mode_t waffle_mode_get(void)
{
	unsigned mode_ = waffle_mode_here_();

	return mode_ == WAFFLE_MODE_OFF    ? WAFFLE_MODE_OFF
	       : mode_ == WAFFLE_MODE_FULL ? WAFFLE_MODE_FULL
					   : WAFFLE_MODE_FAST;
}

/* Sets the mode of the process, for all threads. With libwaffle it may take locks and allocate, so
 * signal handlers must not call it. */
static __inline__ __attribute__((__unused__)) void waffle_mode_set(waffle_mode_t mode_)
{
	struct waffle_process_ *process_ = waffle_process_get_();
	const struct waffle_full_ *full_ = __atomic_load_n(&process_->full_, __ATOMIC_ACQUIRE);

	__atomic_store_n(&process_->mode_, (unsigned)mode_, __ATOMIC_RELAXED);
	if (full_)
		full_->mode_changed_();
}

static __attribute__((__unused__)) struct waffle_scope_ *
waffle_mode_enter_(struct waffle_scope_ *scope_, waffle_mode_t mode_)
{
	struct waffle_thread_ *thread_ = waffle_thread_get_();

	waffle_scope_prune_(thread_, scope_);
	waffle_scope_push_(thread_, scope_, &thread_->context_);
	if (scope_->depth_ <= WAFFLE_LINKS_)
		thread_->links_[scope_->depth_ - 1].mode_ = (unsigned)mode_;
	thread_->mode_ = (unsigned)mode_;
	return scope_;
}

static __inline__ void waffle_mode_leave_(struct waffle_scope_ *const *open_)
{
	waffle_scope_pop_(*open_);
}

/*
 * WAFFLE_MODE_SCOPE(mode): the mode of this thread to the end of the block. It ends as the context
 * of a WAFFLE_SPAN does, also with exceptions and longjmp() (docs/instrumenting.md). A span that
 * has begun before is ended in any mode. This is a declaration, as WAFFLE_SPAN.
 */
#define WAFFLE_MODE_SCOPE(mode)                                                                    \
	WAFFLE_CALL_(WAFFLE_MODE_SCOPE_, WAFFLE_CAT_(waffle_, __COUNTER__), mode)
#define WAFFLE_MODE_SCOPE_(at, mode)                                                               \
	struct waffle_scope_ at##scope;                                                            \
	struct waffle_scope_ *const at##open                                                       \
		__attribute__((__cleanup__(waffle_mode_leave_), __unused__)) =                     \
			waffle_mode_enter_(&at##scope, mode) WAFFLE_NO_JUMP_(at)

#else

static __inline__ __attribute__((__always_inline__)) waffle_mode_t waffle_mode_get(void)
{
	return WAFFLE_MODE_OFF;
}

static __inline__ __attribute__((__always_inline__)) void waffle_mode_set(waffle_mode_t mode_)
{
	(void)mode_;
}

#define WAFFLE_MODE_SCOPE(mode) ((void)(mode))

#endif

#endif
