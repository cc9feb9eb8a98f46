/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames that the program pushes itself, and backtraces of frames and spans.
 *
 *	int load(const char *path)
 *	{
 *		WAFFLE_FRAME();
 *		…
 *	}	// the frame is popped here
 *
 * Frames exist in full mode only (mode.h). A thread keeps its innermost WAFFLE_FRAMES_ frames, and
 * the stack of the thread keeps the others: a push saves what it replaces and a pop restores it.
 * Nothing is allocated, so that signal handlers may push, too.
 *
 * Backtraces are made by libwaffle. In a program without it, the functions return -ENOSYS.
 * docs/backtraces.md is the guide.
 */
#ifndef WAFFLE_FRAME_H
#define WAFFLE_FRAME_H

#include "mode.h"

enum waffle_entry_kind_ {
	WAFFLE_ENTRY_FRAME = 1,   /* pushed by WAFFLE_FRAME */
	WAFFLE_ENTRY_SPAN = 2,    /* an open span */
	WAFFLE_ENTRY_MACHINE = 3, /* found by unwinding the stack, where no frame was pushed */
};

/* One line of a backtrace. */
typedef struct waffle_entry_ {
	enum waffle_entry_kind_ kind;
	const char *name; /* function, or name of the span; NULL: unknown */
	const char
		*file; /* source file; of a machine frame its program or library; NULL: unknown */
	unsigned line; /* 0: unknown */
	/* Of a machine frame: bytes from the begin of the function, or of the file if `name` is
	 * NULL. */
	unsigned long long offset;
	unsigned long long span_id; /* of a span, else 0 */
	bool carried; /* it is of the thread from which the current context was extracted */
} waffle_entry_t;

#define WAFFLE_NO_BACKTRACE_ (-38) /* -ENOSYS */

#ifndef WAFFLE_DISABLE

/*
 * Calls `each` for each entry of the calling thread's backtrace, innermost first, until it returns
 * something else than 0. The strings live until it returns. Returns the number of entries, or
 * -ENOSYS without libwaffle. Async-signal-safe, and needs 8 KiB of stack.
 */
static __inline__ __attribute__((__unused__)) int
waffle_backtrace(int (*each_)(const waffle_entry_t *entry_, void *arg_), void *arg_)
{
	const struct waffle_full_ *full_ = waffle_process_get_()->full_;

	return full_ ? full_->backtrace_(each_, arg_) : WAFFLE_NO_BACKTRACE_;
}

/* Writes the backtrace as text, one line an entry, to a file descriptor. Returns the number of
 * entries or a negative errno. Async-signal-safe, and needs 8 KiB of stack. */
static __inline__ __attribute__((__unused__)) int waffle_backtrace_fd(int fd_)
{
	const struct waffle_full_ *full_ = waffle_process_get_()->full_;

	return full_ ? full_->backtrace_fd_(fd_) : WAFFLE_NO_BACKTRACE_;
}

/* ---- pushing ---- */

/* The address as a number, so that code analyzers do not report an escaping stack address. */
static __inline__ __UINTPTR_TYPE__ waffle_frame_place_(const struct waffle_frame_scope_ *scope_)
{
	__UINTPTR_TYPE__ place_ = (__UINTPTR_TYPE__)scope_;

	__asm__("" : "+r"(place_));
	return place_;
}

static __inline__ struct waffle_frame_slot_ *waffle_frame_at_(struct waffle_thread_ *thread_,
							      unsigned depth_)
{
	return &thread_->frames_[depth_ % WAFFLE_FRAMES_];
}

/*
 * Returns how many frames enclose a new frame at the address `place_`. A frame that has the same
 * address has ended, as have the frames within it: longjmp() has left them, or they were suspended
 * with their stack. Usually the innermost frame is further up on the stack, and the first
 * comparison ends the search.
 */
static __inline__ unsigned waffle_frame_depth_(struct waffle_thread_ *thread_,
					       __UINTPTR_TYPE__ place_)
{
	const unsigned size_ = sizeof(struct waffle_frame_scope_);
	unsigned depth_ = thread_->frame_depth_, at_ = depth_, left_ = WAFFLE_FRAMES_;

	for (; at_ && left_; at_--, left_--) {
		__UINTPTR_TYPE__ other_ = waffle_frame_at_(thread_, at_ - 1)->place_;

		if (__builtin_expect(other_ >= place_ + size_, 1))
			break;
		if (other_ + size_ > place_)
			depth_ = at_ - 1;
	}
	return depth_;
}

/* The order of the writes protects against signal handlers, which push, pop and read. */
static __inline__ void waffle_frame_push_(struct waffle_thread_ *thread_,
					  struct waffle_frame_scope_ *scope_,
					  const struct waffle_frame_site_ *site_)
{
	__UINTPTR_TYPE__ place_ = waffle_frame_place_(scope_);
	unsigned depth_ = waffle_frame_depth_(thread_, place_);
	struct waffle_frame_slot_ *slot_ = waffle_frame_at_(thread_, depth_);

	scope_->outer_ = *slot_;
	scope_->thread_ = thread_;
	scope_->depth_ = depth_ + 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	thread_->frame_depth_ = depth_ + 1;
	slot_->place_ = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	slot_->site_ = site_;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	slot_->place_ = place_;
}

/*
 * Pops a frame, and those within it that longjmp() has left. It does nothing if the frame is not
 * one of this thread any more: an enclosing one was popped first, or it belongs to a coroutine that
 * another thread began.
 */
static __inline__ void waffle_frame_pop_(const struct waffle_frame_scope_ *scope_)
{
	struct waffle_thread_ *thread_ = waffle_thread_get_();
	unsigned depth_ = scope_->depth_;
	struct waffle_frame_slot_ *slot_ = waffle_frame_at_(thread_, depth_ - 1);

	if (scope_->thread_ != thread_ || thread_->frame_depth_ < depth_)
		return;
	/* The slot has another frame. That means that this one was popped, unless it has so many
	 * frames within it that they use its slot. */
	if (slot_->place_ != waffle_frame_place_(scope_) &&
	    thread_->frame_depth_ - depth_ < WAFFLE_FRAMES_)
		return;
	slot_->place_ = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	thread_->frame_depth_ = depth_ - 1;
	slot_->site_ = scope_->outer_.site_;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	slot_->place_ = scope_->outer_.place_;
}

/* The result is always the scope: a value that depends on the mode would make gcc warn of a
 * variable that setjmp() in the same function may clobber. */
static __inline__ __attribute__((__always_inline__)) struct waffle_frame_scope_ *
waffle_frame_begin_(struct waffle_frame_scope_ *scope_, const struct waffle_frame_site_ *site_)
{
	struct waffle_thread_ *thread_ = waffle_thread_get_();

	if (__builtin_expect(waffle_mode_of_(thread_) == WAFFLE_MODE_FULL, 0))
		waffle_frame_push_(thread_, scope_, site_);
	else
		scope_->thread_ = NULL;
	return scope_;
}

static __inline__ __attribute__((__always_inline__)) void
waffle_frame_end_(struct waffle_frame_scope_ *const *open_)
{
	if (__builtin_expect((*open_)->thread_ != NULL, 0))
		waffle_frame_pop_(*open_);
}

/*
 * WAFFLE_FRAME(): in full mode, pushes a frame with this function, file and line to the end of the
 * block. What it says is one constant for each use, so that a push only stores its address. This is
 * a declaration, as WAFFLE_SPAN.
 */
#define WAFFLE_FRAME() WAFFLE_CALL_(WAFFLE_PUSH_, WAFFLE_CAT_(waffle_, __COUNTER__))
#define WAFFLE_PUSH_(at)                                                                           \
	static const struct waffle_frame_site_ at##site = {__func__, __FILE__, __LINE__};          \
	struct waffle_frame_scope_ at##scope;                                                      \
	struct waffle_frame_scope_ *const at##open                                                 \
		__attribute__((__cleanup__(waffle_frame_end_), __unused__)) =                      \
			waffle_frame_begin_(&at##scope, &at##site) WAFFLE_NO_JUMP_(at)

#else

static __inline__ __attribute__((__always_inline__)) int
waffle_backtrace(int (*each_)(const waffle_entry_t *entry_, void *arg_), void *arg_)
{
	(void)each_;
	(void)arg_;
	return WAFFLE_NO_BACKTRACE_;
}

static __inline__ __attribute__((__always_inline__)) int waffle_backtrace_fd(int fd_)
{
	(void)fd_;
	return WAFFLE_NO_BACKTRACE_;
}

#define WAFFLE_FRAME() ((void)0)

#endif

#endif
