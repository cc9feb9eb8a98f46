/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids and the current context of a thread.
 *
 * Ids are 64 bits: a random base a thread plus a count, so no counter is shared and ids of
 * different threads, processes and hosts do not meet but with a probability of about 1e-9 for a
 * thousand threads with a million ids each. A child made by fork() draws new bases. Zero is the
 * null id.
 *
 * The context lives in one thread-local variable a process, made of weak definitions. A library
 * opened with dlopen() shares it if the program exports its symbols (-rdynamic) or another library
 * brought it in; else spans of that library start traces of their own.
 */
#ifndef WAFFLE_CONTEXT_H
#define WAFFLE_CONTEXT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/random.h>
#include <time.h>

typedef struct {
	unsigned long long value;
} waffle_span_id_t;

typedef struct {
	unsigned long long value;
} waffle_event_id_t;

/* Where new spans and events belong. All zero: outside any span. */
typedef struct {
	unsigned long long trace_hi, trace_lo;
	unsigned long long span_id;
} waffle_context_t;

/* A span between WAFFLE_BEGIN and WAFFLE_END. id 0: it was not active at its begin. */
typedef struct {
	unsigned long long id;
	unsigned long long trace_hi, trace_lo;
	const void *probe; /* of its begin: names the span at its end */
} waffle_span_t;

#ifndef WAFFLE_DISABLE

#ifdef __cplusplus
extern "C" {
#endif

struct waffle_thread_ {
	waffle_context_t context;
	unsigned long long id_base;
	unsigned long long id_count;
	unsigned process; /* waffle_process_.forks when id_base was drawn */
};

struct waffle_process_ {
	volatile unsigned forks;
	volatile unsigned char watching;
};

__attribute__((weak)) __thread struct waffle_thread_ waffle_thread_;
__attribute__((weak)) struct waffle_process_ waffle_process_;

#ifdef __GLIBC__
/* What pthread_atfork() calls; unlike it, it needs no library in old versions of glibc. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
			     void *dso) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden"), weak)); /* none with -nostdlib */
#endif

static __attribute__((unused)) void waffle_forked_(void)
{
	waffle_process_.forks = waffle_process_.forks + 1;
}

static __attribute__((unused, noinline, cold)) void
waffle_thread_seed_(struct waffle_thread_ *thread)
{
	int saved_errno = errno;
	unsigned long long base = 0;
	struct timespec now = {0, 0};

#ifdef __GLIBC__
	if (!waffle_process_.watching && __register_atfork) {
		waffle_process_.watching = 1;
		__register_atfork(NULL, NULL, waffle_forked_, &__dso_handle);
	}
#endif
	if (getrandom(&base, sizeof(base), GRND_NONBLOCK) != (ssize_t)sizeof(base)) {
		/* Early boot: mix what differs between threads and processes (splitmix64). */
		timespec_get(&now, TIME_UTC);
		base = (unsigned long long)now.tv_nsec ^ (unsigned long long)now.tv_sec << 30 ^
		       (unsigned long long)(__UINTPTR_TYPE__)thread;
		base = (base ^ base >> 30) * 0xbf58476d1ce4e5b9ull;
		base = (base ^ base >> 27) * 0x94d049bb133111ebull;
	}
	thread->id_base = base | 1;
	thread->process = waffle_process_.forks;
	errno = saved_errno;
}

static __attribute__((unused)) unsigned long long waffle_new_id_(void)
{
	struct waffle_thread_ *thread = &waffle_thread_;
	unsigned long long id;

	if (!thread->id_base || thread->process != waffle_process_.forks)
		waffle_thread_seed_(thread);
	/* Atomic for the sake of signal handlers only. */
	do
		id = thread->id_base + __atomic_fetch_add(&thread->id_count, 1, __ATOMIC_RELAXED);
	while (!id);
	return id;
}

#ifdef __cplusplus
}
#endif

/* The current context of this thread, to be handed to another thread or process. */
static inline waffle_context_t waffle_context_extract(void)
{
	return waffle_thread_.context;
}

#else

static inline __attribute__((always_inline)) waffle_context_t waffle_context_extract(void)
{
	waffle_context_t none = {0, 0, 0};

	return none;
}

#endif /* WAFFLE_DISABLE */

/* The context inside a span that was begun with WAFFLE_BEGIN, to be made current by WAFFLE_INJECT.
 */
static inline waffle_context_t waffle_span_context(waffle_span_t span)
{
	waffle_context_t context = {span.trace_hi, span.trace_lo, span.id};

	return context;
}

#define WAFFLE_TRACEPARENT_SIZE 56 /* with its NUL */

/*
 * Writes a W3C traceparent ("00-<32 hex>-<16 hex>-01", https://www.w3.org/TR/trace-context/) into a
 * buffer of WAFFLE_TRACEPARENT_SIZE bytes. Returns false and an empty string for the null context.
 */
static inline bool waffle_context_to_traceparent(waffle_context_t context,
						 char text[WAFFLE_TRACEPARENT_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	unsigned long long words[3];
	size_t at = 0;
	int word, shift;

	words[0] = context.trace_hi;
	words[1] = context.trace_lo;
	words[2] = context.span_id;
	text[0] = '\0';
	if (!(words[0] | words[1]) || !words[2])
		return false;
	text[at++] = '0';
	text[at++] = '0';
	for (word = 0; word < 3; word++) {
		if (word != 1)
			text[at++] = '-';
		for (shift = 60; shift >= 0; shift -= 4)
			text[at++] = digits[words[word] >> shift & 15];
	}
	text[at++] = '-';
	text[at++] = '0';
	text[at++] = '1'; /* sampled: it exists, so it was recorded */
	text[at] = '\0';
	return true;
}

/* Reads `count` lower-case hexadecimal digits; false if one is not. */
static inline bool waffle_hex_(const char *text, int count, unsigned long long *value)
{
	int i;

	*value = 0;
	for (i = 0; i < count; i++) {
		char c = text[i];

		if (c >= '0' && c <= '9')
			*value = *value << 4 | (unsigned)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*value = *value << 4 | (unsigned)(c - 'a' + 10);
		else
			return false;
	}
	return true;
}

/*
 * Reads a W3C traceparent into *context. Returns false and leaves the null context if it is not
 * valid: wrong length or digits, version ff, or an id of zero. Later versions may carry more behind
 * the flags.
 */
static inline bool waffle_context_from_traceparent(const char *text, waffle_context_t *context)
{
	unsigned long long version = 0, hi = 0, lo = 0, span = 0, flags = 0;
	size_t length = 0;

	context->trace_hi = context->trace_lo = context->span_id = 0;
	while (text && length < WAFFLE_TRACEPARENT_SIZE && text[length])
		length++;
	if (length < WAFFLE_TRACEPARENT_SIZE - 1 || !waffle_hex_(text, 2, &version) ||
	    text[2] != '-' || !waffle_hex_(text + 3, 16, &hi) || !waffle_hex_(text + 19, 16, &lo) ||
	    text[35] != '-' || !waffle_hex_(text + 36, 16, &span) || text[52] != '-' ||
	    !waffle_hex_(text + 53, 2, &flags))
		return false;
	if (version == 0xff || (length >= WAFFLE_TRACEPARENT_SIZE && (!version || text[55] != '-')))
		return false;
	if (!(hi | lo) || !span)
		return false;
	context->trace_hi = hi;
	context->trace_lo = lo;
	context->span_id = span;
	return true;
}

#endif
