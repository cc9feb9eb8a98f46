/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of an armed site: number the span or event, lay out the frame (abi.h), call the probe.
 * All functions are out of line and cold; a dormant site never gets here.
 *
 * `words_` points to four words for struct waffle_frame, followed by the keys' values as the *_WORD
 * macros of kv.h made them. `types_` has one letter per key, or is NULL if no value needs copying.
 * Name and line of the site are behind its probe (site.h).
 */
#ifndef WAFFLE_EMIT_H
#define WAFFLE_EMIT_H

#include "abi.h"
#include "arch.h"
#include "context.h"
#include "mode.h"
#include "site.h"

#define WAFFLE_COLD_ static __attribute__((__unused__, __noinline__, __cold__))

/*
 * Delivers a hit to libwaffle in this process, and to the kernel at the probe, unless a tracer gets
 * it from libwaffle. Otherwise the kernel is always asked, since a call of the nop is cheaper than
 * to find out whether it armed the site. A macro, since without optimisation a function would need
 * more stack. It evaluates its arguments twice.
 */
#define WAFFLE_HIT_(probe, id, name, frame, size)                                                  \
	do {                                                                                       \
		waffle_ring_t_ ring_ =                                                             \
			__atomic_load_n(&waffle_process_get_()->ring_, __ATOMIC_RELAXED);          \
		if (!ring_ || !ring_(probe, id, name, frame, size))                                \
			waffle_probe_call_(probe, id, name, frame, size);                          \
	} while (0)

/* Stores a word of a key. A function, since without optimisation an assignment takes more stack. */
static __inline__ void waffle_put_(unsigned long long *word_, unsigned long long value_)
{
	*word_ = value_;
}

static __inline__ unsigned long long waffle_word_f64_(double value_)
{
	unsigned long long word_;

	__builtin_memcpy(&word_, &value_, sizeof(word_));
	return word_;
}

static __inline__ unsigned long long waffle_word_str_(const char *text_)
{
	return (unsigned long long)(__UINTPTR_TYPE__)text_;
}

static __inline__ unsigned long long waffle_word_span_(waffle_span_id_t id_)
{
	return id_.value;
}

static __inline__ unsigned long long waffle_word_event_(waffle_event_id_t id_)
{
	return id_.value;
}

/* The value of the key "frames" that each WAFFLE_LOG_ERROR has: it is made where it is copied to.
 */
#define WAFFLE_FRAMES_TEXT_ ((const char *)1)

WAFFLE_COLD_ size_t waffle_copy_frames_(unsigned long long *out_)
{
	const struct waffle_full_ *full_ = waffle_process_get_()->full_;
	size_t length_ = full_ ? full_->line_((char *)(out_ + 1), WAFFLE_STR_MAX) : 0;

	out_[0] = length_ ? length_ : WAFFLE_STR_NULL;
	if (length_ % 8) /* zero is the padding */
		out_[1 + length_ / 8] &= (1ull << length_ % 8 * 8) - 1;
	return 1 + (length_ + 7) / 8;
}

/* Copies a string into the frame and returns the words used. It avoids the libc, since a first call
 * may take 3 KiB of stack (waffle_watch_()). The empty asm keeps the compiler from replacing the
 * loop by a call. */
static __attribute__((__unused__, __noinline__)) size_t
waffle_copy_string_(unsigned long long *out_, const char *text_)
{
	size_t length_ = 0, at_;

	if (text_ == WAFFLE_FRAMES_TEXT_)
		return waffle_copy_frames_(out_);
	if (!text_) {
		out_[0] = WAFFLE_STR_NULL;
		return 1;
	}
	while (length_ < WAFFLE_STR_MAX && text_[length_])
		length_++;
	out_[0] = length_;
	if (length_ == WAFFLE_STR_MAX && text_[length_])
		out_[0] |= WAFFLE_STR_CUT;
	for (at_ = 0; at_ + 8 <= length_; at_ += 8) {
		__builtin_memcpy(++out_, text_ + at_, 8);
		__asm__ __volatile__("" : : : "memory");
	}
	if (at_ < length_)
		*++out_ = 0; /* the padding */
	for (; at_ < length_; at_++)
		*out_ |= (unsigned long long)(unsigned char)text_[at_] << at_ % 8 * 8;
	return 1 + (length_ + 7) / 8;
}

/* Builds a new frame with room for the strings that it really has, since the stack may be small. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Walloca"
WAFFLE_COLD_ void waffle_emit_strings_(const void *probe_, const char *name_,
				       const unsigned long long *words_, const char *types_)
{
	size_t used_ = sizeof(struct waffle_frame) / 8, room_ = used_, i_;
	unsigned long long *frame_;

	for (i_ = 0; types_[i_]; i_++)
		room_ += types_[i_] == WAFFLE_KEY_STR ? 1 + WAFFLE_STR_MAX / 8 : 1;
	frame_ = (unsigned long long *)__builtin_alloca(room_ * sizeof(*frame_));
	__builtin_memcpy(frame_, words_, sizeof(struct waffle_frame));
	words_ += used_;
	for (i_ = 0; types_[i_]; i_++) {
		if (types_[i_] == WAFFLE_KEY_STR)
			used_ += waffle_copy_string_(frame_ + used_,
						     (const char *)(__UINTPTR_TYPE__)words_[i_]);
		else
			frame_[used_++] = words_[i_];
	}
	WAFFLE_HIT_(probe_, frame_[0], name_, frame_, used_ * 8);
}
#pragma GCC diagnostic pop

static __inline__ __attribute__((__always_inline__)) void
waffle_emit_(const void *probe_, const char *name_, const unsigned long long *words_, size_t count_,
	     const char *types_)
{
	/* Touch the name: a tracer that reads it cannot fault a page in (bpf_probe_read_user). */
	(void)*(const volatile char *)name_;
	if (types_)
		waffle_emit_strings_(probe_, name_, words_, types_);
	else
		WAFFLE_HIT_(probe_, words_[0], name_, words_, count_ * 8);
}

/* Loads a word that was stored a moment ago. Compilers would load two at once, for which a
 * processor has to wait until both stores are done. */
static __inline__ unsigned long long waffle_word_(const unsigned long long *word_)
{
	unsigned long long value_ = *word_;

	__asm__("" : "+r"(value_));
	return value_;
}

/* Fills in the parent. A span outside any trace starts a new trace. */
static __inline__ void waffle_fill_frame_(unsigned long long *words_,
					  const waffle_context_t *context_)
{
	words_[1] = context_->span_id;
	words_[2] = context_->trace_hi;
	words_[3] = context_->trace_lo;
}

/* All but the parent, which follows in waffle_span_opened_(). Returns the thread. */
static __attribute__((__unused__)) struct waffle_thread_ *
waffle_number_span_(struct waffle_thread_ *thread_, unsigned long long *words_)
{
	words_[0] = waffle_new_id_(thread_);
	words_[2] = thread_->context_.trace_hi;
	words_[3] = thread_->context_.trace_lo;
	if (!(words_[2] | words_[3])) {
		words_[2] = words_[0] * 0x9e3779b97f4a7c15ull;
		words_[3] = words_[0];
	}
	return thread_;
}

/* Prepares the frame for waffle_span_opened_(): in full mode the second word gets the line of the
 * span's site and a bit that is always set, in other modes 0. */
static __attribute__((__unused__)) void waffle_put_line_(unsigned long long *words_,
							 const void *probe_)
{
	words_[1] = 0;
	if (waffle_mode_here_() == WAFFLE_MODE_FULL)
		words_[1] = 1ull << 32 | waffle_probe_line_(probe_);
}

/*
 * Fills in the parent, in place of what waffle_put_line_() left. In full mode it tells libwaffle of
 * the span first, so that backtraces can name it, and returns WAFFLE_KNOWN_; else 0. `scope_` may
 * be NULL.
 */
static __attribute__((__unused__)) unsigned
waffle_span_opened_(const struct waffle_thread_ *thread_, const char *meta_,
		    unsigned long long *words_, const struct waffle_scope_ *scope_)
{
	unsigned known_ = 0;

	if (__builtin_expect(words_[1] != 0, 0) && waffle_process_get_()->full_) {
		waffle_process_get_()->full_->opened_(meta_, words_, scope_);
		known_ = WAFFLE_KNOWN_;
	}
	words_[1] = thread_->context_.span_id;
	return known_;
}

WAFFLE_COLD_ waffle_span_t waffle_span_begin_(const void *probe_, unsigned long long *words_,
					      size_t count_, const char *types_)
{
	waffle_span_t span_;

	/* The parameter becomes the name, since one more variable would take stack, too. */
	span_.probe = probe_;
	waffle_put_line_(words_, probe_);
	probe_ = waffle_probe_meta_(probe_);
	waffle_span_opened_(waffle_number_span_(waffle_thread_ready_(), words_),
			    (const char *)probe_, words_, NULL);
	span_.id = words_[0];
	span_.trace_hi = words_[2];
	span_.trace_lo = words_[3];
	waffle_emit_(span_.probe, (const char *)probe_, words_, count_, types_);
	return span_;
}

/* Libwaffle forgets a span that it has heard of. */
static __inline__ void waffle_span_closed_(unsigned long long id_)
{
	void (*closed_)(unsigned long long) =
		__atomic_load_n(&waffle_process_get_()->closed_, __ATOMIC_RELAXED);

	if (__builtin_expect(closed_ != NULL, 0) && waffle_mode_here_() == WAFFLE_MODE_FULL)
		closed_(id_);
}

WAFFLE_COLD_ void waffle_span_hit_end_(unsigned long long id_, const void *begin_probe_)
{
	const void *probe_;

	WAFFLE_SITE_BARE_(probe_, WAFFLE_SITE_SPAN_END, "span_end", WAFFLE_META_HEAD_(""));
	WAFFLE_HIT_(probe_, id_, begin_probe_, NULL, 0);
}

WAFFLE_COLD_ void waffle_span_end_(unsigned long long id_, const void *begin_probe_)
{
	waffle_span_closed_(id_);
	waffle_span_hit_end_(id_, begin_probe_);
}

/*
 * A step is libwaffle's fast path, and a function "rest" for what that leaves and for programs
 * without libwaffle. Compilers that do not optimise only make the latter, since each function takes
 * much stack then.
 */
WAFFLE_COLD_ struct waffle_scope_ *waffle_scope_enter_rest_(const void *probe_,
							    unsigned long long *words_,
							    size_t count_, const char *types_,
							    struct waffle_scope_ *scope_)
{
	struct waffle_thread_ *thread_ = waffle_thread_ready_();
	waffle_context_t context_;

	/* Parameters are used twice, since more variables would take stack, too. */
	scope_->probe_ = probe_;
	waffle_put_line_(words_, probe_);
	probe_ = waffle_probe_meta_(probe_);
	waffle_scope_prune_(thread_, scope_);
	waffle_number_span_(thread_, words_);
	scope_->depth_ = waffle_span_opened_(thread_, (const char *)probe_, words_, scope_);
	waffle_emit_(scope_->probe_, (const char *)probe_, words_, count_, types_);
	count_ = scope_->depth_;
	context_.trace_hi = waffle_word_(words_ + 2);
	context_.trace_lo = waffle_word_(words_ + 3);
	context_.span_id = waffle_word_(words_);
	waffle_scope_push_(thread_, scope_, &context_);
	scope_->depth_ |= (unsigned)count_;
	return scope_;
}

/* `mode_` is that of the site. In full mode the fast path is not taken, since it does not tell
 * libwaffle of the span. */
#ifdef __OPTIMIZE__
WAFFLE_COLD_ struct waffle_scope_ *
waffle_scope_enter_in_(const void *probe_, unsigned long long *words_, size_t count_,
		       const char *types_, struct waffle_scope_ *scope_, unsigned mode_)
{
	waffle_ring_enter_t_ fast_ =
		__atomic_load_n(&waffle_process_get_()->enter_, __ATOMIC_RELAXED);

	if (__builtin_expect(fast_ && !types_ && mode_ != WAFFLE_MODE_FULL, 1))
		return fast_(probe_, words_, count_, waffle_scope_enter_rest_, scope_);
	return waffle_scope_enter_rest_(probe_, words_, count_, types_, scope_);
}
#define WAFFLE_SCOPE_ENTER_(mode, ...) waffle_scope_enter_in_(__VA_ARGS__, mode)
#else
#define WAFFLE_SCOPE_ENTER_(mode, ...) waffle_scope_enter_rest_(__VA_ARGS__)
#endif

WAFFLE_COLD_ void waffle_scope_leave_rest_(const struct waffle_scope_ *scope_)
{
	if (scope_->depth_ & WAFFLE_KNOWN_)
		waffle_process_get_()->closed_(scope_->id_);
	waffle_span_hit_end_(scope_->id_, scope_->probe_);
	waffle_scope_pop_(scope_);
}

#ifdef __OPTIMIZE__
WAFFLE_COLD_ void waffle_scope_leave_(const struct waffle_scope_ *scope_)
{
	waffle_ring_leave_t_ fast_ =
		__atomic_load_n(&waffle_process_get_()->leave_, __ATOMIC_RELAXED);

	if (__builtin_expect(fast_ != NULL, 1))
		fast_(scope_, waffle_scope_leave_rest_);
	else
		waffle_scope_leave_rest_(scope_);
}
#else
#define waffle_scope_leave_ waffle_scope_leave_rest_
#endif

static __inline__ __attribute__((__always_inline__)) void
waffle_scope_end_(struct waffle_scope_ *const *open_)
{
	if (__builtin_expect(*open_ != NULL, 0))
		waffle_scope_leave_(*open_);
}

WAFFLE_COLD_ waffle_event_id_t waffle_event_rest_(const void *probe_, unsigned long long *words_,
						  size_t count_, const char *types_)
{
	struct waffle_thread_ *thread_ = waffle_thread_ready_();
	waffle_event_id_t id_;

	waffle_fill_frame_(words_, &thread_->context_);
	id_.value = words_[0] = waffle_new_id_(thread_);
	waffle_emit_(probe_, waffle_probe_meta_(probe_), words_, count_, types_);
	return id_;
}

#ifdef __OPTIMIZE__
WAFFLE_COLD_ waffle_event_id_t waffle_event_(const void *probe_, unsigned long long *words_,
					     size_t count_, const char *types_)
{
	waffle_ring_event_t_ fast_ =
		__atomic_load_n(&waffle_process_get_()->event_, __ATOMIC_RELAXED);

	if (__builtin_expect(fast_ && !types_, 1))
		return fast_(probe_, words_, count_, waffle_event_rest_);
	return waffle_event_rest_(probe_, words_, count_, types_);
}
#else
#define waffle_event_ waffle_event_rest_
#endif

WAFFLE_COLD_ void waffle_counter_(const void *probe_, unsigned long long *words_, size_t count_)
{
	waffle_fill_frame_(words_, &waffle_thread_get_()->context_);
	words_[0] = 0;
	waffle_emit_(probe_, waffle_probe_meta_(probe_), words_, count_, NULL);
}

/* WAFFLE_INJECT: a null context changes nothing. */
static __attribute__((__unused__)) struct waffle_scope_ *
waffle_inject_(struct waffle_scope_ *scope_, waffle_context_t context_)
{
	struct waffle_thread_ *thread_ = waffle_thread_get_();

	waffle_scope_prune_(thread_, scope_);
	waffle_scope_push_(thread_, scope_, context_.span_id ? &context_ : &thread_->context_);
	return scope_;
}

static __inline__ void waffle_inject_end_(struct waffle_scope_ *const *open_)
{
	waffle_scope_pop_(*open_);
}

#endif
