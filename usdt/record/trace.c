// SPDX-License-Identifier: Apache-2.0
/*
 * Begin and end of a recording: the functions of waffle_trace.h, the environment, fork() and exit.
 */
#undef WAFFLE_THREAD_EXTERN_ /* this file defines the state of a thread, for all of libwaffle */
#include "waffle_trace.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "export/process/chain.h"
#include "target/process/output_name.h"
#include "usdt/frame/backtrace.h"
#include "usdt/sink/callbacks.h"
#include "usdt/sink/sink.h"
#include "usdt/record/collector.h"
#include "usdt/record/crash.h"
#include "usdt/frame/mode.h"
#include "usdt/name/names.h"
#include "usdt/record/stack.h"
#include "usdt/ring/rings.h"
#include "usdt/ring/ticks.h"
#include "usdt/ring/tracer.h"
#include "usdt/name/tracks.h"
#include "util/source.h"
#include "util/units.h"
#include "waffle/context.h"
#include "waffle_process.h"

#define API __attribute__((visibility("default")))
/* A program that dies waits for its file at most so long. */
#define DEATH_NS 1000000000ull
/* Names the process and the file that WAFFLE_TRACE began, for programs that it executes. */
#define OWNER "WAFFLE_TRACE_OWNER"

static struct {
	/* Of everything here, but a flush reads `collector` without it. It is taken before the
	 * loader's lock. */
	pthread_mutex_t lock;
	struct collector *collector;
	pid_t pid;              /* of the process that records */
	char pattern[PATH_MAX]; /* the name as it was given */
	char *filter, *process;
	bool keep_children;
	bool overwrite;
	size_t ring_bytes;
	size_t ring_bytes_usual; /* of WAFFLE_RING_SIZE, for all recordings without options */
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER, .ring_bytes_usual = RING_BYTES_DEFAULT};

static struct collector *collector_now(void)
{
	return __atomic_load_n(&trace.collector, __ATOMIC_ACQUIRE);
}

/* Several files of a process may have a copy of this library. The one that was first takes all hits
 * and reads the environment. */
static bool is_first_copy(void)
{
	return __atomic_load_n(&waffle_process_get_()->ring_, __ATOMIC_RELAXED) == rings_hit;
}

/* Whether this process records, perhaps by another copy of this library. */
static bool is_recorded(void)
{
	return __atomic_load_n(&waffle_process_get_()->loaded_, __ATOMIC_RELAXED) != NULL;
}

/* Prints the one line of an error. */
static int complain(int code, struct error *err)
{
	source_fault_one_line(err);
	if (*err->message)
		fprintf(stderr, "waffle: %s%s\n", err->message,
			is_recorded() ? "" : "; the program runs untraced");
	return code;
}

/* ---- names ---- */

/* Whether a child and its parent can both have this recording. */
static bool is_shareable(const char *pattern, const char *process)
{
	return (!*pattern || output_name_has_pid(pattern)) &&
	       (!process || chain_is_shareable(process));
}

/* ---- begin and end ---- */

static void arm_work(void *arg)
{
	(void)arg;
	collector_arm(trace.collector);
}

static void file_loaded(void)
{
	pthread_mutex_lock(&trace.lock);
	if (trace.collector)
		stack_run(arm_work, NULL);
	pthread_mutex_unlock(&trace.lock);
}

static void flush_dying(void)
{
	struct collector *collector = collector_now();

	if (collector && !collector_is_self(collector)) {
		sink_process_hurry();
		collector_flush(collector, DEATH_NS);
	}
}

/* With the lock. */
static void crash_update(void)
{
	static const struct crash_actions actions = {flush_dying, backtrace_tell};

	crash_watch(trace.collector  ? CRASH_ALL
		    : mode_is_full() ? CRASH_FAULTS
				     : CRASH_NONE,
		    &actions);
}

static void arm_again_work(void *arg)
{
	(void)arg;
	collector_arm_again(trace.collector);
}

static void mode_changed(void)
{
	pthread_mutex_lock(&trace.lock);
	if (trace.collector)
		stack_run(arm_again_work, NULL);
	crash_update();
	pthread_mutex_unlock(&trace.lock);
}

static int begin(struct error *err)
{
	struct collector_options options = {trace.filter, trace.keep_children, trace.overwrite,
					    trace.process};
	struct collector *collector;
	char path[PATH_MAX];
	uint32_t rank;
	int result;

	result = output_name_expand(path, sizeof(path), "WAFFLE_TRACE", trace.pattern, getpid(),
				    &rank, err);
	if (result)
		return result;
	trace.pid = getpid();
	rings_configure(RINGS_COLLECTOR, trace.ring_bytes, (uint32_t)ticks_choose(),
			trace.overwrite);
	result = collector_open(&collector, *path ? path : NULL, &options, err);
	if (result)
		return result;
	__atomic_store_n(&trace.collector, collector, __ATOMIC_RELEASE);
	rings_collect(true);
	__atomic_store_n(&waffle_process_get_()->loaded_, file_loaded, __ATOMIC_RELEASE);
	collector_arm(collector);
	crash_update();
	return 0;
}

static int end(struct error *err)
{
	struct waffle_process_ *process = waffle_process_get_();
	struct collector *collector = trace.collector;

	__atomic_store_n(&process->loaded_, NULL, __ATOMIC_RELEASE);
	rings_collect(false);
	__atomic_store_n(&trace.collector, NULL, __ATOMIC_RELEASE);
	crash_update();
	return collector_close(collector, err);
}

/* ---- fork() ---- */

/* Whoever forks has the lock, so that the child finds a whole state. */
static void fork_before(void)
{
	pthread_mutex_lock(&trace.lock);
	names_fork_before();
	tracks_fork_before();
}

static void fork_parent(void)
{
	tracks_fork_parent();
	names_fork_parent();
	pthread_mutex_unlock(&trace.lock);
}

static void child_begin_work(void *arg)
{
	struct error err = ERROR_INIT;

	(void)arg;
	complain(begin(&err), &err);
}

/* The collector's thread and the rings are the parent's. The child only forgets them: to free them
 * could wait for a lock that a thread of the parent has. */
static void fork_child(void)
{
	struct waffle_process_ *process = waffle_process_get_();
	bool traced = trace.collector != NULL;

	pthread_mutex_init(&trace.lock, NULL);
	names_fork_child();
	callbacks_fork_child();
	tracks_fork_child();
	rings_forget();
	if (!traced)
		return;
	__atomic_store_n(&process->loaded_, NULL, __ATOMIC_RELEASE);
	rings_collect(false);
	trace.collector = NULL;
	crash_update();
	if (is_shareable(trace.pattern, trace.process))
		stack_run(child_begin_work, NULL);
}

/* ---- the functions of waffle_trace.h ---- */

static int start(const char *path, const struct waffle_trace_options *options, struct error *err)
{
	size_t ring_bytes = options->ring_bytes;
	int result;

	if (path ? !*path : !options->process)
		return error_set(err, EINVAL, "WAFFLE_TRACE: the name of the file is empty");
	path = path ? path : "";
	result = options->process ? chain_check(options->process, "WAFFLE_PROCESS", err) : 0;
	if (result)
		return result;
	if (!ring_bytes)
		ring_bytes = trace.ring_bytes_usual;
	if (ring_bytes < RING_BYTES_MIN || ring_bytes > RING_BYTES_MAX ||
	    ring_bytes & (ring_bytes - 1))
		return error_set(err, EINVAL,
				 "%s: ring_bytes is %zu; it has to be a power of two from 16384 to "
				 "1073741824",
				 path, ring_bytes);
	if (options->keep_children && !options->filter)
		return error_set(err, EINVAL, "WAFFLE_KEEP_CHILDREN needs a WAFFLE_FILTER");
	pthread_mutex_lock(&trace.lock);
	if (is_recorded()) {
		result = error_set(err, EBUSY, "%s: this process records already%s",
				   *path ? path : "WAFFLE_PROCESS",
				   is_first_copy() ? "" : ", by another copy of libwaffle");
	} else if (!is_first_copy()) {
		result = error_set(err, EBUSY,
				   "%s: another copy of libwaffle was loaded before and takes all "
				   "hits; link only one",
				   *path ? path : "WAFFLE_PROCESS");
	} else {
		free(trace.filter);
		free(trace.process);
		trace.filter = options->filter ? strdup(options->filter) : NULL;
		trace.process = options->process ? strdup(options->process) : NULL;
		trace.keep_children = options->keep_children;
		trace.overwrite = options->overwrite;
		snprintf(trace.pattern, sizeof(trace.pattern), "%s", path);
		trace.ring_bytes = ring_bytes;
		result =
			strlen(path) >= sizeof(trace.pattern)
				? error_set(err, ENAMETOOLONG, "the name of the file is too long")
			: (options->filter && !trace.filter) || (options->process && !trace.process)
				? error_set(err, ENOMEM, "out of memory")
				: begin(err);
	}
	pthread_mutex_unlock(&trace.lock);
	return result;
}

struct start_call {
	const char *path;
	const struct waffle_trace_options *options;
	int result;
};

static void start_work(void *arg)
{
	struct start_call *call = arg;
	struct waffle_trace_options all = {0};
	struct error err = ERROR_INIT;

	/* A program that was compiled with an older header has fewer members. */
	if (call->options)
		memcpy(&all, call->options,
		       call->options->size < sizeof(all) ? call->options->size : sizeof(all));
	if (call->options && !all.size)
		call->result = error_set(&err, EINVAL,
					 "waffle_trace_start(): the options have no .size; set it "
					 "to sizeof(struct waffle_trace_options)");
	else
		call->result = start(call->path, &all, &err);
	complain(call->result, &err);
}

API int waffle_trace_start(const char *path, const struct waffle_trace_options *options)
{
	struct start_call call = {path, options, 0};

	ticks_look();
	stack_run(start_work, &call);
	return call.result;
}

/* The collector's thread does the work, and this one waits for it. */
static int stop(void)
{
	struct error err = ERROR_INIT;
	int result = -ESRCH;

	pthread_mutex_lock(&trace.lock);
	if (trace.collector)
		result = end(&err);
	pthread_mutex_unlock(&trace.lock);
	if (*err.message)
		fprintf(stderr, "waffle: %s\n", err.message);
	return result;
}

API int waffle_trace_stop(void)
{
	return stop();
}

API int waffle_trace_flush(void)
{
	struct collector *collector = collector_now();

	if (!collector)
		return -ESRCH;
	return collector_flush(collector, DEATH_NS) ? 0 : -ETIMEDOUT;
}

API int waffle_process_start(const char *text)
{
	struct waffle_trace_options options = {.size = sizeof(options), .process = text};

	return text ? waffle_trace_start(NULL, &options) : -EINVAL;
}

API int waffle_process_stop(void)
{
	struct collector *collector = collector_now();

	return collector && collector_is_self(collector) ? -EDEADLK : stop();
}

/* ---- the environment ---- */

/* Whether the variables are meant for another process: this one was executed by a program that
 * records into the same file. */
static bool is_of_another(const char *path, const char *process)
{
	const char *owner = getenv(OWNER);
	char *end;

	if (!owner || is_shareable(path, process) ||
	    strtoul(owner, &end, 10) == (unsigned long)getpid())
		return false;
	return *end == ':' && !strcmp(end + 1, path);
}

static void owner_set(const char *path)
{
	char owner[PATH_MAX + 16];

	snprintf(owner, sizeof(owner), "%d:%s", (int)getpid(), path);
	setenv(OWNER, owner, 1);
}

/* Static programs do not have these. */
extern __typeof__(dladdr) dladdr __attribute__((weak));
extern __typeof__(dlopen) dlopen __attribute__((weak));

/*
 * The archive may be part of a library that the program closes. Its code has to stay: other files
 * call it, threads run it when they end, and the kernel reads the descriptions of its restartable
 * sequences. libwaffle.so is linked to stay.
 */
static void stay_loaded(void)
{
	uintptr_t headers = getauxval(AT_PHDR);
	Dl_info self;

	if (!&dladdr || !&dlopen || !dladdr(&trace, &self) || !self.dli_fname)
		return;
	/* The program itself stays anyway. Its headers are on its first page. */
	if (headers - (uintptr_t)self.dli_fbase >= 4096)
		dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

/* Another copy of this library may be here already. It goes on to take all hits. */
static void hits_take(void)
{
	struct waffle_process_ *process = waffle_process_get_();
	waffle_ring_t_ none = NULL;

	stay_loaded();
	rings_prepare();
	rings_on_open(tracer_announce);
	__atomic_compare_exchange_n(&process->ring_, &none, rings_hit, false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
}

static int environment_read(struct waffle_trace_options *options, struct error *err)
{
	const char *children = getenv("WAFFLE_KEEP_CHILDREN");

	options->filter = getenv("WAFFLE_FILTER");
	options->process = getenv("WAFFLE_PROCESS");
	if (!children || !*children || !strcmp(children, "0"))
		return 0;
	options->keep_children = 1;
	return strcmp(children, "1")
		       ? error_set(err, EINVAL, "WAFFLE_KEEP_CHILDREN: '%s': expected 0 or 1",
				   children)
		       : 0;
}

/* Sets the size of all rings that have no other one. */
static int ring_size_read(struct error *err)
{
	const char *text = getauxval(AT_SECURE) ? NULL : getenv("WAFFLE_RING_SIZE");
	uint64_t bytes;

	if (!text)
		return 0;
	if (!units_parse_bytes(text, &bytes) || bytes < RING_BYTES_MIN || bytes > RING_BYTES_MAX ||
	    bytes & (bytes - 1))
		return error_set(err, EINVAL,
				 "WAFFLE_RING_SIZE: '%s': expected a power of two from 16KiB to "
				 "1GiB",
				 text);
	trace.ring_bytes_usual = (size_t)bytes;
	rings_configure(RINGS_TRACER, bytes, (uint32_t)ticks_choose(), false);
	return 0;
}

static void environment_work(void *arg)
{
	const char *path = getenv("WAFFLE_TRACE"), *process = getenv("WAFFLE_PROCESS");
	struct waffle_trace_options options = {0};
	struct error err = ERROR_INIT;
	int result;

	(void)arg;
	if (!is_first_copy())
		return;
	result = mode_load(mode_changed, &err) ?: ring_size_read(&err);
	if (result) {
		complain(result, &err);
		return;
	}
	if ((!path && !process) || getauxval(AT_SECURE) || is_of_another(path ? path : "", process))
		return;
	result = environment_read(&options, &err) ?: start(path, &options, &err);
	if (!result)
		owner_set(path ? path : "");
	complain(result, &err);
}

/* A thread with a small stack may have opened the library that brings libwaffle. */
static __attribute__((constructor)) void trace_load(void)
{
	/* First of all handlers, so that no other one runs with the parent's rings. */
	pthread_atfork(fork_before, fork_parent, fork_child);
	ticks_look();
	hits_take();
	stack_run(environment_work, NULL);
}

/* Runs after the destructors of the program and of libraries that use this one. waffle_trace_stop()
 * could be that of another copy of this library. A child that was made without fork(), by _Fork()
 * or clone(), has no collector: its thread is the parent's. */
static __attribute__((destructor)) void trace_unload(void)
{
	if (collector_now() && trace.pid == getpid())
		stop();
}
