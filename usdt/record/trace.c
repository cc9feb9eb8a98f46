// SPDX-License-Identifier: Apache-2.0
/*
 * Begin and end of a recording: the functions of waffle_trace.h, the environment, fork() and exit.
 */
#include "waffle_trace.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "export/process/chain.h"
#include "target/process/output_name.h"
#include "usdt/frame/backtrace.h"
#include "usdt/sink/callbacks.h"
#include "usdt/sink/sink.h"
#include "usdt/record/collector.h"
#include "usdt/record/crash.h"
#include "usdt/record/ends.h"
#include "usdt/record/owner.h"
#include "usdt/record/request.h"
#include "usdt/record/sites.h"
#include "usdt/record/stack.h"
#include "usdt/frame/mode.h"
#include "usdt/name/names.h"
#include "usdt/ring/hit.h"
#include "usdt/ring/rings.h"
#include "usdt/ring/signals.h"
#include "usdt/ring/ticks.h"
#include "usdt/ring/tracer.h"
#include "usdt/say/say.h"
#include "usdt/say/standard_error.h"
#include "usdt/name/tracks.h"
#include "util/source.h"
#include "util/units.h"
#include "waffle/context.h"
#include "waffle_process.h"

#define API __attribute__((visibility("default")))
/* A program that dies waits for its file at most so long. */
#define DEATH_NS 1000000000ull
/* In the part of a thread's storage that exists from its start, so that access allocates nothing.
 */
#define THREAD_OWN __thread __attribute__((tls_model("initial-exec")))

static struct {
	/* Protects all members. It is taken before the loader's lock, with signals blocked
	 * (usdt/ring/signals.h). A thread that has the loader's lock may fork or exit, so those
	 * take it by sites_lock(). While a recording ends it is free, since callbacks of the
	 * program run meanwhile. */
	pthread_mutex_t lock;
	struct collector *collector; /* NULL: nothing is recorded, or it ends */
	bool ending;
	pid_t ender;            /* tid of the thread that ends it */
	struct collector *last; /* not freed at exit, and reachable for leak checkers */
	bool abandoned;         /* a collector could not end, and may still run */
	pthread_cond_t ended;
	/* Pid of the process that records; a flush reads it without the lock. In a child of any
	 * kind that has a copy of the memory it is 0: another pid namespace may have the same. */
	pid_t *pid;
	char pattern[PATH_MAX]; /* the name as it was given */
	char *filter, *process;
	const struct recording_names *names;
	bool keep_children;
	bool overwrite;
	size_t ring_bytes;
	unsigned execs; /* how often this process has executed another program that recorded */
	bool recorded;  /* this process or a parent has made a record; read without the lock */
	size_t ring_bytes_usual; /* of WAFFLE_RING_SIZE, for all recordings without options */
	bool begins_late;        /* in a child: fork_child_late() begins a recording */
	pid_t pid_plain;         /* where the kernel can't clear it in a child */
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER,
	   .pid = &trace.pid_plain,
	   .ended = PTHREAD_COND_INITIALIZER,
	   .ring_bytes_usual = RING_BYTES_DEFAULT};

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
		say_line("%s%s", err->message, is_recorded() ? "" : "; the program runs untraced");
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

static bool is_recorder(void)
{
	const pid_t *pid = __atomic_load_n(&trace.pid, __ATOMIC_ACQUIRE);

	return __atomic_load_n(pid, __ATOMIC_RELAXED) == getpid();
}

/* With the lock. */
static void recorder_set(void)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *page = MAP_FAILED;

	if (trace.pid == &trace.pid_plain)
		page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	if (page != MAP_FAILED && !madvise(page, bytes, MADV_WIPEONFORK))
		__atomic_store_n(&trace.pid, page, __ATOMIC_RELEASE);
	else if (page != MAP_FAILED)
		munmap(page, bytes);
	__atomic_store_n(trace.pid, getpid(), __ATOMIC_RELAXED);
}

/* A child that was made without fork() has the parent's state and no collector. */
static bool is_served(void)
{
	return request_is_served() && is_recorder();
}

/* Async-signal-safe. */
static void flush_dying(void)
{
	if (is_served() && !request_is_self()) {
		sink_process_hurry();
		request_wait(DEATH_NS);
	}
}

static const struct crash_actions crash_actions = {flush_dying, backtrace_tell};

/* With the lock. Signals other than faults are left alone until there is a record that could be
 * lost: programs, such as Python, look at them when they start. */
static void crash_update(void)
{
	bool recording = trace.collector || trace.ending;
	bool recorded = __atomic_load_n(&trace.recorded, __ATOMIC_RELAXED);

	crash_watch(recording && recorded         ? CRASH_ALL
		    : recording || mode_is_full() ? CRASH_FAULTS
						  : CRASH_NONE,
		    &crash_actions);
}

/* A thread has its first ring for the collector. It runs inside of a site. */
static void first_record(void)
{
	if (__atomic_exchange_n(&trace.recorded, true, __ATOMIC_RELAXED) || !is_served())
		return;
	crash_watch(CRASH_ALL, &crash_actions);
}

static void arm_again_work(void *arg)
{
	(void)arg;
	collector_arm_again(trace.collector);
}

static void mode_changed(void)
{
	uint64_t signals = signals_lock(&trace.lock);

	if (trace.collector)
		stack_run(arm_again_work, NULL);
	crash_update();
	signals_unlock(&trace.lock, signals);
}

static void file_loaded(void);
static void program_recorded(void);

/* Only the copy that takes the hits has a recording. */
static void collect(bool on)
{
	rings_collect(on);
	hit_choose(on ? RINGS_COLLECTOR : RINGS_TRACER);
}

static int begin(struct error *err)
{
	struct collector_options options = {trace.names,     trace.filter,  trace.keep_children,
					    trace.overwrite, trace.process, program_recorded};
	struct collector *collector;
	char path[PATH_MAX];
	uint32_t rank;
	int result;

	result = output_name_expand(path, sizeof(path), trace.names->file, trace.pattern, getpid(),
				    &rank, err)
			 ?: owner_name(path, sizeof(path), trace.execs, err);
	if (result)
		return result;
	recorder_set();
	rings_configure(RINGS_COLLECTOR, trace.ring_bytes, (uint32_t)ticks_choose(),
			trace.overwrite);
	result = collector_open(&collector, *path ? path : NULL, &options, err);
	if (result)
		return result;
	trace.collector = collector;
	collect(true);
	__atomic_store_n(&waffle_process_get_()->loaded_, file_loaded, __ATOMIC_RELEASE);
	collector_arm(collector);
	crash_update();
	return 0;
}

/* With the lock, which is released meanwhile. `signals` is the mask that was found when it was
 * taken, and then what was found last. */
static int end(bool exits, uint64_t *signals, struct error *err)
{
	struct waffle_process_ *process = waffle_process_get_();
	struct collector *collector = trace.collector;
	int result;

	__atomic_store_n(&process->loaded_, NULL, __ATOMIC_RELEASE);
	collect(false);
	trace.collector = NULL;
	trace.ending = true;
	trace.ender = (pid_t)syscall(SYS_gettid);
	trace.last = collector;
	signals_unlock(&trace.lock, *signals);
	result = collector_close(collector, exits, err);
	*signals = signals_lock(&trace.lock);
	trace.ending = false;
	trace.abandoned = result == -EDEADLK;
	pthread_cond_broadcast(&trace.ended);
	crash_update();
	return result;
}

/* ---- fork() ---- */

/*
 * Handlers of a child run in the order of their registration. fork_child() is the first of all, so
 * that no other one runs with the parent's rings. But to record needs memory, and allocators that
 * were registered later have their locks until their handlers have run. So the last of our handlers
 * begins the recording of the child. It is registered by each of the first files with sites that
 * are loaded, of which the program's own come last, and again after the first record.
 */
#define FORK_LATE_MAX 16

/* State of the fork() that this thread is executing. */
static THREAD_OWN struct {
	bool locked;
	uint64_t signals;
	unsigned late; /* how many of the late handlers are yet to run */
} forking;

/* Whoever forks has the locks, so that the child finds a whole state. A handler that interrupts the
 * fork() may fork, too. */
static void fork_before(void)
{
	forking.signals = signals_block();
	forking.locked = sites_lock(&trace.lock);
	sites_fork_before();
	names_fork_before();
	tracks_fork_before();
}

static void fork_parent(void)
{
	tracks_fork_parent();
	names_fork_parent();
	sites_fork_parent();
	if (forking.locked)
		pthread_mutex_unlock(&trace.lock);
	signals_restore(forking.signals);
}

static void child_begin_work(void *arg)
{
	struct error err = ERROR_INIT;

	(void)arg;
	if (!is_shareable(trace.pattern, trace.process))
		return;
	owner_fork_child();
	pthread_mutex_lock(&trace.lock); /* signals are blocked: this is the work of stack_run() */
	trace.execs = 0;
	complain(begin(&err), &err);
	pthread_mutex_unlock(&trace.lock);
}

/* The collector's thread and the rings are the parent's. The child only forgets them: to free them
 * could wait for a lock that a thread of the parent has. */
static void recording_forget(void)
{
	struct waffle_process_ *process = waffle_process_get_();
	bool traced = trace.collector != NULL;

	pthread_mutex_init(&trace.lock, NULL);
	pthread_cond_init(&trace.ended, NULL);
	sites_fork_child();
	names_fork_child();
	callbacks_fork_child();
	tracks_fork_child();
	rings_forget();
	request_forget();
	crash_fork_child();
	if (!traced && !trace.ending)
		return;
	__atomic_store_n(&process->loaded_, NULL, __ATOMIC_RELEASE);
	collect(false);
	trace.collector = NULL;
	trace.ending = trace.abandoned = false;
	crash_update();
	trace.begins_late = traced && forking.late;
	if (traced && !forking.late)
		stack_run(child_begin_work, NULL);
}

static void fork_child(void)
{
	recording_forget();
	signals_restore(forking.signals);
}

static void fork_before_late(void)
{
	forking.late++;
}

static void fork_parent_late(void)
{
	forking.late--;
}

static void fork_child_late(void)
{
	if (--forking.late || !trace.begins_late)
		return;
	trace.begins_late = false;
	stack_run(child_begin_work, NULL);
}

static void fork_late_register(void)
{
	pthread_atfork(fork_before_late, fork_parent_late, fork_child_late);
}

static void arm_work(void *arg)
{
	(void)arg;
	collector_arm(trace.collector);
}

/* A file with sites has been loaded. */
static void file_loaded(void)
{
	static unsigned count;
	uint64_t signals = signals_lock(&trace.lock);

	if (trace.collector)
		stack_run(arm_work, NULL);
	signals_unlock(&trace.lock, signals);
	if (__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED) < FORK_LATE_MAX)
		fork_late_register();
}

/* In the collector's thread, after the first record of the recording. */
static void program_recorded(void)
{
	static bool registered;

	if (!__atomic_exchange_n(&registered, true, __ATOMIC_RELAXED))
		fork_late_register();
}

/* ---- the functions of waffle_trace.h ---- */

static const struct recording_names names_environment = {"WAFFLE_TRACE", "WAFFLE_FILTER",
							 "WAFFLE_PROCESS"};
static const struct recording_names names_program = {"waffle_trace_start()", "filter",
						     "processors"};

static int start(const char *path, const struct waffle_trace_options *options,
		 const struct recording_names *names, unsigned execs, struct error *err)
{
	size_t ring_bytes = options->ring_bytes;
	int result;

	if (path ? !*path : !options->process)
		return error_set(err, EINVAL, "%s: the name of the file is empty", names->file);
	path = path ? path : "";
	result = options->process ? chain_prepare(options->process, names->process, err) : 0;
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
	if (is_recorded() || trace.ending || trace.abandoned) {
		result = error_set(err, EBUSY, "%s: this process records already%s",
				   *path ? path : names->process,
				   is_first_copy() ? "" : ", by another copy of libwaffle");
	} else if (!is_first_copy()) {
		result = error_set(err, EBUSY,
				   "%s: another copy of libwaffle was loaded before and takes all "
				   "hits; link only one",
				   *path ? path : names->process);
	} else {
		trace.names = names;
		free(trace.filter);
		free(trace.process);
		trace.filter = options->filter ? strdup(options->filter) : NULL;
		trace.process = options->process ? strdup(options->process) : NULL;
		trace.keep_children = options->keep_children;
		trace.overwrite = options->overwrite;
		snprintf(trace.pattern, sizeof(trace.pattern), "%s", path);
		trace.ring_bytes = ring_bytes;
		trace.execs = execs;
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
		call->result = start(call->path, &all, &names_program, 0, &err);
	complain(call->result, &err);
}

API int waffle_trace_start(const char *path, const struct waffle_trace_options *options)
{
	struct start_call call = {path, options, 0};

	ticks_look();
	stack_run(start_work, &call);
	return call.result;
}

/* At exit, while malloc() may wait for a lock that this thread has. */
static void say_stuck(void)
{
	static const char line[] =
		"waffle: " COLLECTOR_STUCK
		" or in a signal handler that calls exit(); the file is cut off\n";
	struct pollfd error = {.fd = STDERR_FILENO, .events = POLLOUT};

	if (standard_error_is_there() && poll(&error, 1, 0) == 1 &&
	    write(STDERR_FILENO, line, sizeof(line) - 1) < 0)
		return; /* nobody reads it */
}

/* Whoever comes while another thread ends the recording waits for it, too: the process may be about
 * to exit. */
static int stop_locked(bool exits, struct error *err)
{
	uint64_t signals = signals_block();
	bool interrupted;
	int result = -ESRCH;

	if (!sites_lock(&trace.lock)) {
		signals_restore(signals);
		return error_set(err, EDEADLK, COLLECTOR_STUCK);
	}
	if (trace.collector)
		result = end(exits, &signals, err);
	while (trace.ending && trace.ender != (pid_t)syscall(SYS_gettid))
		pthread_cond_wait(&trace.ended, &trace.lock);
	interrupted = trace.ending;
	signals_unlock(&trace.lock, signals);
	/* A handler that has interrupted end() calls exit(). */
	if (interrupted && !request_wait_end(sites_wait_for_loader, false))
		result = -EDEADLK;
	return result;
}

static int stop(bool exits)
{
	struct error err = ERROR_INIT;
	int result, cancels;

	if (!is_recorder())
		return -ESRCH;
	if (request_is_self()) /* a callback, during which the recording can't end */
		return -EDEADLK;
	/* To wait is a cancellation point. Nobody else would end the recording. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancels);
	result = stop_locked(exits, &err);
	pthread_setcancelstate(cancels, NULL);
	if (exits && result == -EDEADLK)
		say_stuck();
	else if (*err.message)
		say_line("%s", err.message);
	return result;
}

API int waffle_trace_stop(void)
{
	return stop(false);
}

API int waffle_trace_flush(void)
{
	if (!is_served())
		return -ESRCH;
	if (request_is_self())
		return -EDEADLK;
	return request_wait(DEATH_NS) ? 0 : -ETIMEDOUT;
}

API int waffle_process_start(const char *text)
{
	struct waffle_trace_options options = {.size = sizeof(options), .process = text};

	return text ? waffle_trace_start(NULL, &options) : -EINVAL;
}

API int waffle_process_stop(void)
{
	return stop(false);
}

/* ---- the environment ---- */

/* Whether another recording uses this file already: that of the program that executed this one, or
 * of another copy of libwaffle in this process. */
static bool is_of_another(const char *path, const char *process)
{
	enum owner owner = owner_of(path);

	if ((owner != OWNER_OTHER && owner != OWNER_COPY) || is_shareable(path, process))
		return false;
	if (owner == OWNER_COPY)
		say_line(
			"%s: another copy of libwaffle in this process records already; sites that "
			"find only this one are not recorded; link only one",
			*path ? path : "WAFFLE_PROCESS");
	return true;
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
	rings_on_record(first_record);
	if (__atomic_compare_exchange_n(&process->ring_, &none, rings_hit, false, __ATOMIC_RELEASE,
					__ATOMIC_RELAXED))
		hit_choose(RINGS_TRACER);
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
	unsigned execs = 0;
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
	/* A process that executes another program keeps its pid. */
	if (path && output_name_has_pid(path) &&
	    (owner_of(path) == OWNER_SELF || owner_of(path) == OWNER_COPY))
		execs = owner_execs() + 1;
	result = environment_read(&options, &err)
			 ?: start(path, &options, &names_environment, execs, &err);
	if (!result)
		owner_set(path ? path : "", execs);
	complain(result, &err);
}

/* A thread with a small stack may have opened the library that brings libwaffle. */
static __attribute__((constructor)) void trace_load(void)
{
	pthread_atfork(fork_before, fork_parent, fork_child);
	ends_watch(flush_dying);
	ticks_look();
	tracer_heed_sandbox();
	hits_take();
	stack_run(environment_work, NULL);
}

/* Runs after the destructors of the program and of libraries that use this one. waffle_trace_stop()
 * could be that of another copy of this library. A child that was made without fork(), by _Fork()
 * or clone(), has no collector: its thread is the parent's. */
static __attribute__((destructor)) void trace_unload(void)
{
	if (is_served())
		stop(true);
}
