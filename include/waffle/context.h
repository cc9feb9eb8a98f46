/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids and the current context of a thread. Nothing here makes a system call, takes a lock or
 * allocates memory: an armed site may run in a sandbox or in a signal handler.
 *
 * An id has 64 bits: a random base per thread plus a count, so threads share no counter. Ids of
 * different threads, processes and hosts may collide, but for a thousand threads with a million ids
 * each the probability is about 1e-9. A child made by fork() draws new bases. Zero is the null id.
 *
 * All files of a process share one struct waffle_process_. It is the program's own
 * (waffle_program_6_) if a library can see it. Otherwise it is the first that the dynamic linker
 * finds (waffle_process_6_). Both names contain a number that changes with the layout, since files
 * may be compiled with different versions of this header. The notes of sites have it, too
 * (WAFFLE_SITE_VERSION). docs/instrumenting.md describes which libraries share the struct.
 */
#ifndef WAFFLE_CONTEXT_H
#define WAFFLE_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
	unsigned long long value;
} waffle_span_id_t;

typedef struct {
	unsigned long long value;
} waffle_event_id_t;

/* The context to which new spans and events belong. All zero: outside any span. */
typedef struct {
	unsigned long long trace_hi, trace_lo;
	unsigned long long span_id;
} waffle_context_t;

/* A span between WAFFLE_BEGIN and WAFFLE_END. id 0: the site was dormant at the begin. */
typedef struct {
	unsigned long long id;
	unsigned long long trace_hi, trace_lo;
	const void *probe; /* probe of the begin, which names the span at its end */
} waffle_span_t;

#ifndef WAFFLE_DISABLE

#include <features.h> /* __GLIBC__ */

#ifdef __cplusplus
extern "C" {
#endif

/* State to restore at the end of a block in which a span or an injected context is current. */
struct waffle_scope_ {
	waffle_context_t outer_;
	unsigned long long id_;
	const void *probe_;
	unsigned depth_; /* nesting depth of this scope, from 1; and WAFFLE_KNOWN_ */
	unsigned outer_mode_;
};

/* In a scope's depth: libwaffle knows the span by name, and has to hear of its end. */
#define WAFFLE_KNOWN_ 0x80000000u

#define WAFFLE_LINKS_ 8

struct waffle_link_ {
	waffle_context_t context_;
	unsigned depth_, mode_; /* the values of struct waffle_thread_ within the scope */
};

/* Frames that the program pushes (frame.h). */
#define WAFFLE_FRAMES_ 32

struct waffle_frame_site_ {
	const char *function_, *file_;
	unsigned line_;
};

struct waffle_frame_slot_ {
	const struct waffle_frame_site_ *site_;
	__UINTPTR_TYPE__ place_; /* as that of a scope; 0: the slot is just being written */
};

struct waffle_thread_;

/* State to restore at the end of a block with a frame. */
struct waffle_frame_scope_ {
	struct waffle_frame_slot_ outer_; /* what the slot of this frame had before */
	struct waffle_thread_ *thread_;   /* NULL: no frame was pushed */
	unsigned depth_;                  /* from 1 */
};

/*
 * `places_` has the addresses of the open scopes, outermost first, and `links_` what is current in
 * each; deeper scopes are only counted. An address may be that of an earlier scope, and is never
 * dereferenced. The frame at depth d, from 1, is in frames_[(d - 1) % WAFFLE_FRAMES_].
 */
struct waffle_thread_ {
	waffle_context_t context_;
	unsigned long long id_base_;
	unsigned long long id_count_;
	unsigned long long fork_; /* number of the fork() that made this thread's process */
	unsigned depth_;
	unsigned mode_; /* of the innermost WAFFLE_MODE_SCOPE; 0: none */
	__UINTPTR_TYPE__ places_[WAFFLE_LINKS_];
	struct waffle_link_ links_[WAFFLE_LINKS_];
	unsigned frame_depth_;
	struct waffle_frame_slot_ frames_[WAFFLE_FRAMES_];
};

/* Returns true if the probe need not be called, since a tracer has got the hit. */
typedef bool (*waffle_ring_t_)(const void *probe_, unsigned long long id_, const void *name_,
			       const void *frame_, unsigned long long size_);

/*
 * Whole steps of a site without strings (emit.h), which libwaffle does at once: an event, of which
 * it returns the id, and the begin and the end of a WAFFLE_SPAN. `words_` has the frame of `count_`
 * words, of which the first four are not filled in yet. What libwaffle can't do so, it leaves to
 * `rest_`, whose `types_` are NULL then. libwaffle knows the calling thread's struct
 * waffle_thread_ itself.
 */
typedef waffle_event_id_t (*waffle_event_rest_t_)(const void *probe_, unsigned long long *words_,
						  size_t count_, const char *types_);
typedef waffle_event_id_t (*waffle_ring_event_t_)(const void *probe_, unsigned long long *words_,
						  size_t count_, waffle_event_rest_t_ rest_);
typedef struct waffle_scope_ *(*waffle_enter_rest_t_)(const void *probe_,
						      unsigned long long *words_, size_t count_,
						      const char *types_,
						      struct waffle_scope_ *scope_);
typedef struct waffle_scope_ *(*waffle_ring_enter_t_)(const void *probe_,
						      unsigned long long *words_, size_t count_,
						      waffle_enter_rest_t_ rest_,
						      struct waffle_scope_ *scope_);
typedef void (*waffle_leave_rest_t_)(const struct waffle_scope_ *scope_);
typedef void (*waffle_ring_leave_t_)(const struct waffle_scope_ *scope_,
				     waffle_leave_rest_t_ rest_);

struct waffle_entry_;

/* Functions by which libwaffle implements full mode (usdt/frame/backtrace.h). */
struct waffle_full_ {
	void (*mode_changed_)(void);
	/* A span of this thread begins: its name, and behind that in the same string its file
	 * (site.h). The first word is its id, the low half of the second its line. The scope may
	 * be NULL. */
	void (*opened_)(const char *meta_, const unsigned long long *words_,
			const struct waffle_scope_ *scope_);
	void (*extracted_)(void); /* the context of this thread */
	/* Writes a backtrace on one line, without a NUL. Returns its length. */
	size_t (*line_)(char *text_, size_t size_);
	int (*backtrace_)(int (*each_)(const struct waffle_entry_ *, void *), void *arg_);
	int (*backtrace_fd_)(int fd_);
};

struct waffle_process_ {
	struct waffle_thread_ *(*thread_)(void); /* returns the state of the calling thread */
	unsigned long long key_[2];              /* random */
	unsigned long long lineage_; /* differs between loads of this file, and after each fork() */
	unsigned long long threads_; /* number of threads that drew ids */
	unsigned long long forks_;   /* number of forks that this process and its parents began */
	unsigned char watching_;     /* 1: the handlers of fork() are registered */
	/*
	 * libwaffle (usdt/) sets `ring_` if it is linked, and `loaded_` while the program records
	 * itself. Otherwise they are NULL. `ring_` gets what the probe gets (abi.h). `loaded_` is
	 * called whenever a file with sites has been loaded, so that they can be armed before they
	 * run.
	 */
	waffle_ring_t_ ring_;
	void (*loaded_)(void);
	unsigned mode_; /* of the process (mode.h); 0: not set */
	/* Set by libwaffle when it is loaded. */
	const struct waffle_full_ *full_;
	/* Set by libwaffle as soon as it knows open spans, so that it learns of their ends. */
	void (*closed_)(unsigned long long span_id_);
	/* Set with `ring_`, where libwaffle has a fast path for them; else NULL. */
	waffle_ring_event_t_ event_;
	waffle_ring_enter_t_ enter_;
	waffle_ring_leave_t_ leave_;
};

/* Functions of the libc. Their headers would declare thousands of names. */
extern unsigned long waffle_getauxval_(unsigned long) __asm__("getauxval");
extern int waffle_dl_iterate_phdr_(int (*)(const void *, size_t, void *),
				   void *) __asm__("dl_iterate_phdr");
#ifdef __GLIBC__
/* The function behind pthread_atfork(). It needs no extra library in old versions of glibc. */
extern int waffle_register_atfork_(void (*)(void), void (*)(void), void (*)(void),
				   void *) __asm__("__register_atfork") __attribute__((__weak__));
/* Missing with -nostdlib. The C name differs from the symbol's, since a C++ compiler declares
 * __dso_handle itself as soon as a static variable has a destructor. */
extern void *waffle_dso_handle_ __asm__("__dso_handle")
	__attribute__((__visibility__("hidden"), __weak__));
#else
extern int waffle_pthread_atfork_(void (*)(void), void (*)(void),
				  void (*)(void)) __asm__("pthread_atfork");
#endif

#ifdef WAFFLE_THREAD_EXTERN_
/* In libwaffle, whose files are joined: there each definition would take room in every thread. */
extern __attribute__((__visibility__("hidden"))) struct waffle_thread_ *waffle_thread_own_(void);
#else
__attribute__((__weak__, __visibility__("hidden"))) __thread struct waffle_thread_ waffle_thread_4_;

static __attribute__((__unused__)) struct waffle_thread_ *waffle_thread_own_(void)
{
	return &waffle_thread_4_;
}
#endif

/*
 * Position-independent code that is not for an executable counts as a library's. It refers to the
 * program's struct, and defines another one for programs without it. A version script cannot hide
 * the reference, since the library does not define the symbol.
 */
#if defined(__PIC__) && !defined(__PIE__)
extern struct waffle_process_ waffle_program_6_ __attribute__((__weak__));
__attribute__((__weak__, __visibility__("default"))) struct waffle_process_ waffle_process_6_ = {
	waffle_thread_own_, {0, 0}, 0, 0, 0, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL};

static __inline__ struct waffle_process_ *waffle_process_get_(void)
{
	return &waffle_program_6_ ? &waffle_program_6_ : &waffle_process_6_;
}

static __inline__ struct waffle_thread_ *waffle_thread_get_(void)
{
	return waffle_process_get_()->thread_();
}
#else
__attribute__((__weak__, __visibility__("default"))) struct waffle_process_ waffle_program_6_ = {
	waffle_thread_own_, {0, 0}, 0, 0, 0, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL};

static __inline__ struct waffle_process_ *waffle_process_get_(void)
{
	return &waffle_program_6_;
}

static __inline__ struct waffle_thread_ *waffle_thread_get_(void)
{
	return waffle_thread_own_();
}
#endif

/* ---- ids ---- */

#define WAFFLE_ROTATE_(word, by) ((word) << (by) | (word) >> (64 - (by)))

static __attribute__((__unused__)) void waffle_sip_(unsigned long long *v_,
						    unsigned long long word_, int rounds_)
{
	v_[3] ^= word_;
	while (rounds_--) {
		v_[0] += v_[1];
		v_[2] += v_[3];
		v_[1] = WAFFLE_ROTATE_(v_[1], 13) ^ v_[0];
		v_[3] = WAFFLE_ROTATE_(v_[3], 16) ^ v_[2];
		v_[0] = WAFFLE_ROTATE_(v_[0], 32) + v_[3];
		v_[2] += v_[1];
		v_[3] = WAFFLE_ROTATE_(v_[3], 21) ^ v_[0];
		v_[1] = WAFFLE_ROTATE_(v_[1], 17) ^ v_[2];
		v_[2] = WAFFLE_ROTATE_(v_[2], 32);
	}
	v_[0] ^= word_;
}

/*
 * SipHash-2-4 of three words. Its key are the random bytes that the kernel gave this program. They
 * also seed the stack protector, and ids leave the process, so the function must not reveal its
 * key. Time is not used: a process may be forbidden to read the counter.
 */
static __inline__ __attribute__((__always_inline__)) unsigned long long
waffle_hash_(unsigned long long first_, unsigned long long second_, unsigned long long third_)
{
	const unsigned long long *key_ = waffle_process_get_()->key_;
	unsigned long long v_[4];

	v_[0] = key_[0];
	v_[1] = key_[1];
	v_[2] = v_[0] ^ 0x6c7967656e657261ull;
	v_[3] = v_[1] ^ 0x7465646279746573ull;
	v_[0] ^= 0x736f6d6570736575ull;
	v_[1] ^= 0x646f72616e646f6dull;
	waffle_sip_(v_, first_, 2);
	waffle_sip_(v_, second_, 2);
	waffle_sip_(v_, third_, 2);
	waffle_sip_(v_, 3ull * 8 << 56, 2); /* the length */
	v_[2] ^= 0xff;
	waffle_sip_(v_, 0, 4);
	return v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
}

/* No two threads hash the same words. The first word differs between the copies of struct
 * waffle_process_ in a process, the second between processes, the third between threads. */
static __attribute__((__unused__, __noinline__, __cold__)) void
waffle_thread_seed_(struct waffle_thread_ *thread_)
{
	struct waffle_process_ *process_ = waffle_process_get_();
	unsigned long long number_ = __atomic_add_fetch(&process_->threads_, 1, __ATOMIC_RELAXED);

	thread_->id_base_ = waffle_hash_((unsigned long long)(__UINTPTR_TYPE__)process_,
					 process_->lineage_, number_) |
			    1;
}

/* The state of this thread, ready to draw ids. */
static __inline__ __attribute__((__always_inline__)) struct waffle_thread_ *
waffle_thread_ready_(void)
{
	struct waffle_thread_ *thread_ = waffle_thread_get_();

	if (__builtin_expect(!thread_->id_base_, 0))
		waffle_thread_seed_(thread_);
	return thread_;
}

/* Counts. One instruction, because of signal handlers of this thread; other threads have counts of
 * their own, so that the bus need not be locked. */
static __inline__ unsigned long long waffle_count_(unsigned long long *count_)
{
#ifdef __x86_64__
	unsigned long long before_ = 1;

	/* The address in a register: clang cannot assemble its own operand for thread-local memory
	 * in the Intel dialect. */
	__asm__ __volatile__("{xaddq %[waffle_before], (%[waffle_count])|"
			     "xadd QWORD PTR [%[waffle_count]], %[waffle_before]}"
			     : [waffle_before] "+r"(before_)
			     : [waffle_count] "r"(count_)
			     : "memory", "cc");
	return before_;
#else
	return __atomic_fetch_add(count_, 1, __ATOMIC_RELAXED);
#endif
}

static __attribute__((__unused__)) unsigned long long waffle_new_id_(struct waffle_thread_ *thread_)
{
	unsigned long long id_;

	do
		id_ = thread_->id_base_ + waffle_count_(&thread_->id_count_);
	while (__builtin_expect(!id_, 0));
	return id_;
}

/* ---- fork() ---- */

static __attribute__((__unused__)) void waffle_forks_(void)
{
	waffle_thread_get_()->fork_ =
		__atomic_add_fetch(&waffle_process_get_()->forks_, 1, __ATOMIC_RELAXED);
}

/* Runs in the child, which has the number of its fork() and is the only thread. */
static __attribute__((__unused__)) void waffle_forked_(void)
{
	struct waffle_process_ *process_ = waffle_process_get_();
	struct waffle_thread_ *thread_ = waffle_thread_get_();

	process_->lineage_ = waffle_hash_(0, process_->lineage_, thread_->fork_);
	thread_->id_base_ = 0;
}

/* Number of files loaded so far: dlpi_adds of struct dl_phdr_info. */
static __attribute__((__unused__)) int waffle_loads_(const void *info_, size_t size_, void *loads_)
{
	if (size_ >= 40)
		__builtin_memcpy(loads_, (const char *)info_ + 32, sizeof(unsigned long long));
	return 1;
}

/*
 * All calls into the libc are made when a file is loaded, since they may lock or allocate. The
 * first call of a function in another file may take 3 KiB of stack to look up its address. So this
 * also makes the first call of the function that finds the thread.
 */
static __attribute__((__constructor__, __unused__)) void waffle_watch_(void)
{
	struct waffle_process_ *process_ = waffle_process_get_();
	void (*loaded_)(void) = __atomic_load_n(&process_->loaded_, __ATOMIC_ACQUIRE);
	const void *random_;

	(void)*(volatile unsigned *)&waffle_thread_own_()->depth_;
	if (loaded_)
		loaded_();
	if (__atomic_exchange_n(&process_->watching_, 1, __ATOMIC_RELAXED))
		return;
	random_ = (const void *)waffle_getauxval_(25 /* AT_RANDOM: 16 bytes */);
	if (random_)
		__builtin_memcpy(process_->key_, random_, sizeof(process_->key_));
	waffle_dl_iterate_phdr_(waffle_loads_, &process_->lineage_);
#ifdef __GLIBC__
	if (waffle_register_atfork_)
		waffle_register_atfork_(waffle_forks_, NULL, waffle_forked_, &waffle_dso_handle_);
#else
	waffle_pthread_atfork_(waffle_forks_, NULL, waffle_forked_);
#endif
}

/* ---- scopes ---- */

/* The address as a number, so that code analyzers do not report an escaping stack address. */
static __inline__ __UINTPTR_TYPE__ waffle_place_(const struct waffle_scope_ *scope_)
{
	__UINTPTR_TYPE__ place_ = (__UINTPTR_TYPE__)scope_;

	__asm__("" : "+r"(place_));
	return place_;
}

/*
 * Closes all scopes but the outermost `depth_`, and sets the context and the mode of the innermost
 * one that stays open. A signal handler may come between any two of the writes, and may leave for
 * good by longjmp(). Until the depth is written, the closed scopes keep their places, so that
 * waffle_scope_prune_() can close them later.
 *
 * Then the places beyond the open scopes are cleared. Otherwise a handler that interrupts
 * waffle_scope_push_() could find the place of an earlier scope there that had the address of its
 * own. The store is volatile, since compilers would call memset().
 */
static __inline__ void waffle_scope_close_(struct waffle_thread_ *thread_, unsigned depth_,
					   const waffle_context_t *context_, unsigned mode_)
{
	unsigned end_ = thread_->depth_;

	thread_->context_ = *context_;
	thread_->mode_ = mode_;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	thread_->depth_ = depth_;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	for (; depth_ < end_ && depth_ < WAFFLE_LINKS_; depth_++)
		*(volatile __UINTPTR_TYPE__ *)&thread_->places_[depth_] = 0;
}

/*
 * Closes abandoned scopes before a new scope is entered. If the new scope has the address of an
 * earlier one, that one and those within it have ended. They were left by longjmp(), or suspended
 * with their stack. The pointer is not to const: otherwise gcc warns of uninitialized data.
 */
static __inline__ void waffle_scope_prune_(struct waffle_thread_ *thread_,
					   struct waffle_scope_ *scope_)
{
	__UINTPTR_TYPE__ first_ = waffle_place_(scope_) - sizeof(*scope_) + 1;
	unsigned depth_ = thread_->depth_ < WAFFLE_LINKS_ ? thread_->depth_ : WAFFLE_LINKS_;
	unsigned i_;

	for (i_ = 0; i_ < depth_; i_++) {
		static const waffle_context_t none_ = {0, 0, 0};

		if (thread_->places_[i_] - first_ >= 2 * sizeof(*scope_) - 1)
			continue;
		waffle_scope_close_(thread_, i_, i_ ? &thread_->links_[i_ - 1].context_ : &none_,
				    i_ ? thread_->links_[i_ - 1].mode_ : 0);
		return;
	}
}

/*
 * Call it after waffle_scope_prune_(). The order of the writes protects against signal handlers,
 * which enter and leave scopes, and may leave for good by longjmp(). The place is written before
 * the depth counts the scope: if a handler leaves right after that, waffle_scope_prune_() can close
 * the scope. It is written again afterwards, since a scope of a handler that came in between has
 * used the same element, and cleared it at its end.
 */
static __inline__ void waffle_scope_push_(struct waffle_thread_ *thread_,
					  struct waffle_scope_ *scope_,
					  const waffle_context_t *context_)
{
	unsigned depth_ = thread_->depth_;

	scope_->outer_ = thread_->context_;
	scope_->outer_mode_ = thread_->mode_;
	scope_->id_ = context_->span_id;
	scope_->depth_ = depth_ + 1;
	if (depth_ < WAFFLE_LINKS_)
		thread_->places_[depth_] = waffle_place_(scope_);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	thread_->depth_ = depth_ + 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (depth_ < WAFFLE_LINKS_) {
		thread_->places_[depth_] = waffle_place_(scope_);
		thread_->links_[depth_].context_ = *context_;
		thread_->links_[depth_].depth_ = depth_ + 1;
		thread_->links_[depth_].mode_ = thread_->mode_;
	}
	thread_->context_ = *context_;
}

/*
 * Leaves a scope: restores the context from before it, if the scope is open on this thread. It is
 * not open if it belongs to a coroutine that another thread began, or if an enclosing scope was
 * left first. Inner scopes that are still open were left by longjmp().
 */
static __attribute__((__unused__)) void waffle_scope_pop_(const struct waffle_scope_ *scope_)
{
	struct waffle_thread_ *thread_ = waffle_thread_get_();
	unsigned depth_ = scope_->depth_ & ~WAFFLE_KNOWN_;

	if (thread_->depth_ < depth_)
		return;
	if (depth_ > WAFFLE_LINKS_) {
		if (thread_->depth_ > depth_ || thread_->context_.span_id != scope_->id_)
			return;
	} else if (thread_->places_[depth_ - 1] != waffle_place_(scope_) ||
		   thread_->links_[depth_ - 1].context_.span_id != scope_->id_) {
		return;
	}
	waffle_scope_close_(thread_, depth_ - 1, &scope_->outer_, scope_->outer_mode_);
}

#ifdef __cplusplus
}
#endif

/* The current context of this thread, for use in another thread or process. */
static inline waffle_context_t waffle_context_extract(void)
{
	const struct waffle_process_ *process_ = waffle_process_get_();

	if (__builtin_expect(__atomic_load_n(&process_->closed_, __ATOMIC_RELAXED) != NULL, 0))
		process_->full_->extracted_();
	return waffle_thread_get_()->context_;
}

#else

static inline __attribute__((__always_inline__)) waffle_context_t waffle_context_extract(void)
{
	waffle_context_t none_ = {0, 0, 0};

	return none_;
}

#endif /* WAFFLE_DISABLE */

/* The context inside a span of WAFFLE_BEGIN. WAFFLE_INJECT makes it current. */
static inline waffle_context_t waffle_span_context(waffle_span_t span_)
{
	waffle_context_t context_ = {span_.trace_hi, span_.trace_lo, span_.id};

	return context_;
}

#define WAFFLE_TRACEPARENT_SIZE 56   /* with its NUL */
#define WAFFLE_TRACEPARENT_FLAGS_ 53 /* where the two digits of its flags are */

/*
 * Writes a W3C traceparent ("00-<32 hex>-<16 hex>-01", https://www.w3.org/TR/trace-context/) into a
 * buffer of WAFFLE_TRACEPARENT_SIZE bytes. Returns false and an empty string for the null context.
 */
static inline bool waffle_context_to_traceparent(waffle_context_t context_,
						 char text_[WAFFLE_TRACEPARENT_SIZE])
{
	static const char digits_[] = "0123456789abcdef";
	unsigned long long words_[3];
	size_t at_ = 0;
	int word_, shift_;

	words_[0] = context_.trace_hi;
	words_[1] = context_.trace_lo;
	words_[2] = context_.span_id;
	text_[0] = '\0';
	if (!(words_[0] | words_[1]) || !words_[2])
		return false;
	text_[at_++] = '0';
	text_[at_++] = '0';
	for (word_ = 0; word_ < 3; word_++) {
		if (word_ != 1)
			text_[at_++] = '-';
		for (shift_ = 60; shift_ >= 0; shift_ -= 4)
			text_[at_++] = digits_[words_[word_] >> shift_ & 15];
	}
	text_[at_++] = '-';
	text_[at_++] = '0';
	text_[at_++] = '1'; /* sampled: a context only exists if it was recorded */
	text_[at_] = '\0';
	return true;
}

/* Parses `count_` lower-case hexadecimal digits. False: one is not such a digit. */
static inline bool waffle_hex_(const char *text_, int count_, unsigned long long *value_)
{
	int i_;

	*value_ = 0;
	for (i_ = 0; i_ < count_; i_++) {
		char c_ = text_[i_];

		if (c_ >= '0' && c_ <= '9')
			*value_ = *value_ << 4 | (unsigned)(c_ - '0');
		else if (c_ >= 'a' && c_ <= 'f')
			*value_ = *value_ << 4 | (unsigned)(c_ - 'a' + 10);
		else
			return false;
	}
	return true;
}

/*
 * Parses a W3C traceparent into *context_. If it is invalid, returns false and sets the null
 * context: wrong length or digits, version ff, or an id of zero. Later versions may have more data
 * after the flags.
 */
static inline bool waffle_context_from_traceparent(const char *text_, waffle_context_t *context_)
{
	unsigned long long version_ = 0, hi_ = 0, lo_ = 0, span_ = 0, flags_ = 0;
	size_t length_ = 0;

	context_->trace_hi = context_->trace_lo = context_->span_id = 0;
	while (text_ && length_ < WAFFLE_TRACEPARENT_SIZE && text_[length_])
		length_++;
	if (length_ < WAFFLE_TRACEPARENT_SIZE - 1 || !waffle_hex_(text_, 2, &version_) ||
	    text_[2] != '-' || !waffle_hex_(text_ + 3, 16, &hi_) ||
	    !waffle_hex_(text_ + 19, 16, &lo_) || text_[35] != '-' ||
	    !waffle_hex_(text_ + 36, 16, &span_) || text_[52] != '-' ||
	    !waffle_hex_(text_ + WAFFLE_TRACEPARENT_FLAGS_, 2, &flags_))
		return false;
	if (version_ == 0xff ||
	    (length_ >= WAFFLE_TRACEPARENT_SIZE && (!version_ || text_[55] != '-')))
		return false;
	if (!(hi_ | lo_) || !span_)
		return false;
	context_->trace_hi = hi_;
	context_->trace_lo = lo_;
	context_->span_id = span_;
	return true;
}

#endif
