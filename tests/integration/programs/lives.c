// SPDX-License-Identifier: Apache-2.0
/*
 * A program that records itself with libwaffle: "lives MODE [ARGUMENT…]". It forks, executes
 * programs, handles signals and ends in the ways of real programs. What it prints and counts is
 * compared with what was recorded.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <waffle.h>
#include <waffle_process.h>
#include <waffle_trace.h>
#include <waffle_track.h>

static void nap(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void events(long from, long count)
{
	for (long i = from; i < from + count; i++)
		WAFFLE_EVENT("kept", KV_I64("i", i));
}

/* Prints how a child ended, which hangs for ten seconds at most. */
static void child_wait(pid_t child)
{
	int status = -1;

	waitpid(child, &status, 0);
	printf("child %d\n", status);
}

/* ---- an allocator whose handlers of fork() are registered after those of libwaffle ---- */

#ifndef STATIC /* a static program has one allocator and one loader */

static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
static int memory_is_locked;

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

#define LOCKED(call)                                                                               \
	do {                                                                                       \
		if (!memory_is_locked)                                                             \
			return call;                                                               \
		pthread_mutex_lock(&memory_lock);                                                  \
		memory = call;                                                                     \
		pthread_mutex_unlock(&memory_lock);                                                \
		return memory;                                                                     \
	} while (0)

void *malloc(size_t size)
{
	void *memory;

	LOCKED(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
	void *memory;

	LOCKED(__libc_calloc(count, size));
}

void *realloc(void *old, size_t size)
{
	void *memory;

	LOCKED(__libc_realloc(old, size));
}

void free(void *memory)
{
	if (memory_is_locked)
		pthread_mutex_lock(&memory_lock);
	__libc_free(memory);
	if (memory_is_locked)
		pthread_mutex_unlock(&memory_lock);
}

static void memory_before(void)
{
	pthread_mutex_lock(&memory_lock);
}

static void memory_parent(void)
{
	pthread_mutex_unlock(&memory_lock);
}

static void memory_child(void)
{
	pthread_mutex_init(&memory_lock, NULL);
}

static void allocator(void)
{
	pid_t child;

	pthread_atfork(memory_before, memory_parent, memory_child);
	memory_is_locked = 1;
	events(0, 1);
	waffle_trace_flush(); /* so libwaffle knows that the program has begun */
	nap(50);
	child = fork();
	if (!child) {
		alarm(10);
		events(100, 10);
		exit(0);
	}
	child_wait(child);
}

/* ---- walks of the loader's files that take long ---- */

static volatile int walk_is_slow;

struct walk {
	int (*each)(struct dl_phdr_info *, size_t, void *);
	void *arg;
};

static int walk_slowly(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct walk *walk = arg;

	nap(10);
	return walk->each(info, size, walk->arg);
}

/* That of the libc, which has the loader's lock meanwhile. */
int dl_iterate_phdr(int (*each)(struct dl_phdr_info *, size_t, void *), void *arg)
{
	static __typeof__(dl_iterate_phdr) *real;
	struct walk walk = {each, arg};

	if (!real)
		real = (__typeof__(real))dlsym(RTLD_NEXT, "dl_iterate_phdr");
	return walk_is_slow ? real(walk_slowly, &walk) : real(each, arg);
}

static int file_count(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)info;
	(void)size;
	(*(int *)arg)++;
	return 0;
}

static void walks(long count)
{
	events(0, 1);
	walk_is_slow = 1;
	for (long i = 0; i < count; i++) {
		int files = 0;
		pid_t child;

		nap(37);
		child = fork();
		if (!child) {
			alarm(10);
			walk_is_slow = 0;
			dl_iterate_phdr(file_count, &files);
			_exit(!files);
		}
		child_wait(child);
	}
}

#endif

/* ---- callbacks ---- */

static const char *callback_what;
static volatile int callback_runs;

static bool callback(const struct waffle_record *record, void *arg)
{
	(void)record;
	(void)arg;
	if (callback_runs++)
		return true;
	if (!strcmp(callback_what, "mode")) {
		waffle_mode_set(WAFFLE_MODE_FULL);
	} else if (!strcmp(callback_what, "trace_stop")) {
		printf("%d\n", waffle_trace_stop());
	} else if (!strcmp(callback_what, "process_stop")) {
		printf("%d\n", waffle_process_stop());
	} else if (!strcmp(callback_what, "flush")) {
		printf("%d\n", waffle_trace_flush());
	} else if (!strcmp(callback_what, "fork")) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		child_wait(child);
	} else {
		nap(300);
	}
	return true;
}

static void callbacks(const char *what, bool early)
{
	callback_what = what;
	waffle_process_callback("callback", callback, NULL);
	if (waffle_process_start("call(callback)"))
		exit(5);
	events(0, 1);
	if (early)
		nap(100);
	alarm(10);
	printf("stop %d\n", waffle_process_stop());
	printf("runs %d\n", callback_runs);
}

static void *flush_main(void *arg)
{
	*(int *)arg = waffle_trace_flush();
	return NULL;
}

/* A flush is waited for while another thread ends the recording. */
static void flush_and_stop(long count)
{
	waffle_process_callback("callback", callback, NULL);
	callback_what = "nap";
	for (long i = 0; i < count; i++) {
		int result = 1;
		pthread_t thread;

		callback_runs = 0;
		if (waffle_process_start("call(callback)"))
			exit(5);
		events(0, 1);
		nap(50); /* the callback runs */
		pthread_create(&thread, NULL, flush_main, &result);
		nap(50);
		waffle_process_stop();
		pthread_join(thread, NULL);
		printf("flush %d\n", result);
	}
}

/* ---- ends ---- */

static void on_term(int signo)
{
	(void)signo;
	_exit(7);
}

static void *last_main(void *arg)
{
	nap(300);
	events(100, 100);
	return arg;
}

static void end(const char *how)
{
	static char output[1]; /* no buffer: only some ways flush it */
	pthread_t thread;

	setvbuf(stdout, output, _IONBF, 0);
	events(0, 100);
	if (!strcmp(how, "_exit")) {
		_exit(3);
	} else if (!strcmp(how, "_Exit")) {
		_Exit(3);
	} else if (!strcmp(how, "quick_exit")) {
		quick_exit(3);
	} else if (!strcmp(how, "handler")) {
		raise(SIGTERM);
	} else if (!strcmp(how, "vfork")) {
		pid_t child = vfork();

		if (!child)
			_exit(0); /* in the memory of its parent, which goes on to record */
		child_wait(child);
		events(100, 100);
		_exit(3);
	} else if (!strcmp(how, "daemon")) {
		if (daemon(1, 1))
			exit(9);
		events(100, 100);
		printf("daemon %d %d\n", getsid(0) == getpid(), (int)getpid());
		_exit(4);
	} else if (!strcmp(how, "thread")) {
		pthread_create(&thread, NULL, last_main, NULL);
		pthread_detach(thread);
		pthread_exit(NULL);
	} else {
		raise(atoi(how));
	}
}

/* ---- what the program sees ---- */

/* Prints how many signals have a handler (without those of faults), before and after the program
 * records, and whether its own dispositions stay. */
static void dispositions(void)
{
	for (int turn = 0; turn < 2; turn++) {
		int defaults = 0, all = 0;

		for (int signo = 1; signo <= SIGRTMAX; signo++) {
			struct sigaction now;
			bool fault = signo == SIGSEGV || signo == SIGBUS || signo == SIGILL ||
				     signo == SIGFPE || signo == SIGABRT || signo == SIGSYS ||
				     signo == SIGTRAP;

			if (fault || sigaction(signo, NULL, &now))
				continue;
			all++;
			defaults += now.sa_handler == SIG_DFL;
		}
		printf("%d\n", all - defaults);
		signal(SIGINT, SIG_IGN);
		events(0, 1);
		printf("ignored %d\n", signal(SIGINT, SIG_DFL) == SIG_IGN);
		printf("%d\n", signal(SIGTERM, SIG_DFL) == SIG_DFL);
	}
}

/* Standard error is a pipe that is full. */
static void full_pipe(void)
{
	waffle_name_t *name = waffle_name(&(struct waffle_name_spec){
		.size = sizeof(struct waffle_name_spec), .kind = WAFFLE_SITE_SPAN, .name = "n"});
	waffle_track_t *track = waffle_track("t", "g", NULL);
	static char page[4096];
	int ends[2];

	if (pipe(ends) || dup2(ends[1], 2) < 0)
		exit(5);
	fcntl(2, F_SETFL, O_NONBLOCK);
	while (write(2, page, sizeof(page)) > 0)
		;
	fcntl(2, F_SETFL, 0);
	alarm(10);
	/* A time so far away that libwaffle reports it. */
	waffle_span_complete(track, name, 1ull << 62, 5, NULL, 0);
	waffle_trace_flush();
	waffle_trace_start("other.waffle", NULL); /* it records already */
	waffle_name(&(struct waffle_name_spec){.size = sizeof(struct waffle_name_spec)});
}

static int entry_print(const waffle_entry_t *entry, void *arg)
{
	(void)arg;
	printf("%s\n", entry->kind == WAFFLE_ENTRY_MACHINE ? "machine" : "other");
	return 0;
}

/* A damaged stack is not unwound where the program has its own handler of SIGSEGV. */
static __attribute__((noinline)) void damaged(void)
{
	void **frame = __builtin_frame_address(0);
	void *before[2] = {frame[0], frame[1]};

	WAFFLE_FRAME();
	signal(SIGSEGV, SIG_DFL);
	frame[0] = frame[1] = (void *)0x4141414141414141;
	waffle_backtrace(entry_print, NULL);
	frame[0] = before[0];
	frame[1] = before[1];
}

static char other_stack[65536];

static void on_trap(int signo)
{
	(void)signo;
	printf("on the other stack: %d\n",
	       (char *)__builtin_frame_address(0) - other_stack < (long)sizeof(other_stack) &&
		       (char *)__builtin_frame_address(0) >= other_stack);
}

/* A handler that does not want the alternate stack, which may have no room for it. */
static void plain_handler(void)
{
	stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof(other_stack)};
	struct sigaction action = {.sa_handler = on_trap};

	sigaltstack(&stack, NULL);
	sigaction(SIGTRAP, &action, NULL);
	waffle_trace_start("stack.waffle", NULL);
	events(0, 1);
	raise(SIGTRAP);
}

#ifndef STATIC

static void on_usr1(int signo)
{
	(void)signo;
	printf("handled\n");
}

static volatile int sets_meanwhile;

/* As if another thread installed its handler just after libwaffle has found that there is none. */
int sigaction(int signo, const struct sigaction *action, struct sigaction *before)
{
	static __typeof__(sigaction) *real;
	int result;

	if (!real)
		real = (__typeof__(real))dlsym(RTLD_NEXT, "sigaction");
	result = real(signo, action, before);
	if (signo == SIGUSR1 && !action && sets_meanwhile) {
		sets_meanwhile = 0;
		real(signo, &(struct sigaction){.sa_handler = on_usr1}, NULL);
	}
	return result;
}

static void sets_handler_meanwhile(void)
{
	sets_meanwhile = 1;
	events(0, 1);
	raise(SIGUSR1);
}

#endif

/* A thread that must not read the counter any more has no site, and needs the file. */
static void no_counter(const char *how)
{
	events(0, 100);
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	if (!strcmp(how, "_exit"))
		_exit(0);
	if (!strcmp(how, "flush"))
		exit(waffle_trace_flush() ? 7 : 0);
	raise(atoi(how));
}

/* The first process of a pid namespace, which the kernel spares, makes another namespace. */
static void first_process(void)
{
	pid_t child = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);

	if (!child)
		exit(0); /* it has no collector, and the pid of its parent */
	alarm(10);
	child_wait(child);
	events(0, 1);
	child = fork();
	if (!child) {
		nap(100);
		kill(getppid(), SIGTERM);
		_exit(0);
	}
	printf("poll %d\n", poll(NULL, 0, 500));
	child_wait(child);
}

static void namespaces(void)
{
	pid_t child;
	int status = 0;

	if (unshare(CLONE_NEWPID)) {
		printf("not permitted\n");
		return;
	}
	child = fork();
	if (!child) {
		first_process();
		exit(0);
	}
	for (int i = 0; i < 100 && waitpid(child, &status, WNOHANG) != child; i++)
		nap(100);
	kill(child, SIGKILL);
	printf("status %d\n", status);
}

static void on_exit_signal(int signo)
{
	(void)signo;
	exit(3);
}

/* The handler comes while the thread is in malloc(), mostly. */
static void exits_in_malloc(void)
{
	void *all[64] = {0};
	struct itimerspec soon = {.it_value.tv_nsec = 20000000};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
	timer_t timer;

	events(0, 100);
	signal(SIGUSR2, on_exit_signal);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &soon, NULL);
	for (size_t i = 0;; i++) {
		free(all[i % 64]);
		all[i % 64] = malloc(1000 + i * 7919 % 200000);
	}
}

static const char *loader_how;

static int in_loader(struct dl_phdr_info *info, size_t size, void *arg)
{
	pid_t child;

	(void)info;
	(void)size;
	(void)arg;
	nap(300); /* the collector looks for new files meanwhile */
	if (!strcmp(loader_how, "exit"))
		exit(3);
	if (!strcmp(loader_how, "stop")) {
		printf("stop %d\n", waffle_trace_stop());
		printf("start %d\n", waffle_trace_start("again.waffle", NULL));
		return 1;
	}
	child = fork();
	if (!child)
		_exit(0);
	child_wait(child);
	return 1;
}

static void executes(const char *self, long count)
{
	char left[24];

	events(count * 100, 100);
	snprintf(left, sizeof(left), "%ld", count - 1);
	waffle_trace_flush();
	if (count)
		execl(self, self, "executes", left, NULL);
}

/* ---- a sandbox ---- */

#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                     \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Kills the process for any call but those that docs/inprocess.md lists, and those that a libc
 * makes to start and end threads and to print. */
static void sandbox(void)
{
	struct sock_filter rows[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(mmap),
		ALLOW(munmap),
		ALLOW(mprotect),
		ALLOW(madvise),
		ALLOW(brk),
		ALLOW(futex),
		ALLOW(clone),
		ALLOW(clone3),
		ALLOW(set_robust_list),
		ALLOW(rseq),
		ALLOW(exit),
		ALLOW(exit_group),
		ALLOW(rt_sigprocmask),
		ALLOW(rt_sigaction),
		ALLOW(getpid),
		ALLOW(gettid),
		ALLOW(prctl),
		ALLOW(write),
		ALLOW(fstat),
		ALLOW(newfstatat),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof(rows) / sizeof(rows[0]), rows};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		exit(6);
}

static pthread_barrier_t together;

static void *together_main(void *arg)
{
	events((long)arg * 100, 100);
	pthread_barrier_wait(&together);
	return NULL;
}

/* Threads that record at the same time, again and again, so that there are rings to use again. */
static void sandboxed(long count, long turns)
{
	pthread_t all[64];

	sandbox();
	pthread_barrier_init(&together, NULL, (unsigned)count);
	for (long turn = 0; turn < turns; turn++) {
		for (long i = 0; i < count; i++)
			pthread_create(&all[i], NULL, together_main, (void *)(turn * count + i));
		for (long i = 0; i < count; i++)
			pthread_join(all[i], NULL);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "", *what = argc > 2 ? argv[2] : "";
	long count = atol(what);

	if (!strcmp(mode, "end"))
		end(what);
#ifndef STATIC
	else if (!strcmp(mode, "allocator"))
		allocator();
	else if (!strcmp(mode, "walks"))
		walks(count);
#endif
	else if (!strcmp(mode, "callback"))
		callbacks(what, argc > 3);
	else if (!strcmp(mode, "flush_and_stop"))
		flush_and_stop(count);
	else if (!strcmp(mode, "dispositions"))
		dispositions();
	else if (!strcmp(mode, "full_pipe"))
		full_pipe();
	else if (!strcmp(mode, "damaged"))
		damaged();
	else if (!strcmp(mode, "plain_handler"))
		plain_handler();
#ifndef STATIC
	else if (!strcmp(mode, "sets_handler_meanwhile"))
		sets_handler_meanwhile();
#endif
	else if (!strcmp(mode, "no_counter"))
		no_counter(what);
	else if (!strcmp(mode, "namespaces"))
		namespaces();
	else if (!strcmp(mode, "exits_in_malloc"))
		exits_in_malloc();
	else if (!strcmp(mode, "in_loader")) {
		events(0, 100);
		loader_how = what;
		dl_iterate_phdr(in_loader, NULL);
	} else if (!strcmp(mode, "executes"))
		executes(argv[0], count);
	else if (!strcmp(mode, "sandboxed"))
		sandboxed(count, 20);
	else
		return 9;
	printf("end\n");
	return 0;
}

/* It comes after the constructor of libwaffle.so and before the first record. */
static __attribute__((constructor)) void handler_install(void)
{
	const char *wanted = getenv("LIVES_HANDLER");

	if (wanted)
		signal(SIGTERM, on_term);
}
