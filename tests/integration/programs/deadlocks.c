// SPDX-License-Identifier: Apache-2.0
/*
 * A program that records itself with libwaffle, and whose threads meet where each could wait for
 * the other: "deadlocks MODE [ARGUMENT]". With -DLIBRARY this is a library that it opens. It ends
 * itself by SIGALRM if it hangs.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#ifdef LIBRARY

/* Its caller is the loader, which holds its lock meanwhile. */
void (*library_opens(void))(void);

static __attribute__((constructor)) void library_opened(void)
{
	library_opens()();
}

#else

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <waffle.h>
#include <waffle_named.h>
#include <waffle_process.h>
#include <waffle_trace.h>
#include <waffle_track.h>

static const char *how;

static void fork_one(void)
{
	int status = -1;
	pid_t child = fork();

	if (!child)
		_exit(0);
	waitpid(child, &status, 0);
	printf("child %d\n", status);
}

/* ---- a signal handler that forks while its thread holds a lock of libwaffle ---- */

static __thread int interrupting;
static int interrupted;

/* Each unlock of the thread is preceded by a signal. */
int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	static int (*unlock)(pthread_mutex_t *);

	if (!unlock)
		unlock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
	if (interrupting) {
		interrupting = 0;
		raise(SIGUSR2);
		interrupting = 1;
	}
	return unlock(mutex);
}

static void on_signal(int signo)
{
	int before = interrupting;
	pid_t child;

	(void)signo;
	interrupting = 0;
	interrupted++;
	child = fork();
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	interrupting = before;
}

static void handler_forks(void)
{
	static const waffle_key_t key = {WAFFLE_KEY_I64, "i"};
	struct waffle_name_spec spec = {.size = sizeof(spec),
					.name = "new",
					.kind = WAFFLE_SITE_EVENT,
					.keys = &key,
					.key_count = 1};
	pid_t child = 1;

	waffle_trace_flush();
	signal(SIGUSR2, on_signal);
	interrupting = 1;
	if (!strcmp(how, "mode"))
		waffle_mode_set(WAFFLE_MODE_FULL);
	else if (!strcmp(how, "load"))
		waffle_process_get_()->loaded_();
	else if (!strcmp(how, "stop"))
		waffle_trace_stop();
	else if (!strcmp(how, "name"))
		waffle_name(&spec);
	else if (!strcmp(how, "track"))
		waffle_track("track", "group", waffle_clock("clock"));
	else if (!strcmp(how, "pair"))
		waffle_clock_pair(waffle_clock("clock"), 1, 1);
	else if (!strcmp(how, "callback"))
		waffle_process_callback("callback", NULL, NULL);
	else
		child = fork();
	interrupting = 0;
	if (!child)
		_exit(0);
	printf("interrupted %d\n", interrupted > 0);
}

/* ---- a signal handler that calls exit() while its thread ends the recording ---- */

static pthread_t main_thread;

static void on_exit_signal(int signo)
{
	(void)signo;
	exit(3);
}

static bool interrupt(const struct waffle_record *record, void *arg)
{
	struct timespec while_it_waits = {.tv_nsec = 100000000};

	(void)record;
	(void)arg;
	pthread_kill(main_thread, SIGUSR2);
	nanosleep(&while_it_waits, NULL);
	return true;
}

static void handler_exits(void)
{
	struct waffle_trace_options options = {.size = sizeof(options),
					       .process = "call(interrupt)"};

	main_thread = pthread_self();
	signal(SIGUSR2, on_exit_signal);
	waffle_process_callback("interrupt", interrupt, NULL);
	waffle_trace_start(how, &options);
	(void)WAFFLE_BEGIN("open"); /* it reaches the callback when the recording ends */
	waffle_trace_stop();
}

/* ---- a thread that has the loader's lock, and one that wants it ---- */

static int opening, started;

/* libwaffle opens libcurl. */
void *dlopen(const char *path, int flags)
{
	static void *(*open)(const char *, int);

	if (!open)
		open = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
	if (path && strstr(path, "curl"))
		__atomic_store_n(&opening, 1, __ATOMIC_SEQ_CST);
	return open(path, flags);
}

static const char exporter[] = "export(otlp=http://localhost:9)";

static void *start_main(void *arg)
{
	struct waffle_trace_options options = {.size = sizeof(options), .process = exporter};

	printf("%s %d\n", (const char *)arg, waffle_trace_start("started.waffle", &options));
	return NULL;
}

static void constructor_meets_start(void)
{
	__atomic_store_n(&started, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&opening, __ATOMIC_SEQ_CST))
		sched_yield();
	if (!strcmp(how, "fork"))
		fork_one();
	else if (!strcmp(how, "mode"))
		waffle_mode_set(WAFFLE_MODE_FULL);
	else
		start_main("constructor");
}

void (*library_opens(void))(void)
{
	return constructor_meets_start;
}

static void *open_main(void *arg)
{
	dlopen(arg, RTLD_NOW);
	return NULL;
}

static void constructor_waits(char *library)
{
	pthread_t opener;

	pthread_create(&opener, NULL, open_main, library);
	while (!__atomic_load_n(&started, __ATOMIC_SEQ_CST))
		sched_yield();
	start_main("thread");
	pthread_join(opener, NULL);
}

/* ---- a thread in a callback of dl_iterate_phdr(), which has another lock of the loader ---- */

static int mode_tid;

static void *mode_main(void *arg)
{
	(void)arg;
	__atomic_store_n(&mode_tid, gettid(), __ATOMIC_SEQ_CST);
	waffle_mode_set(WAFFLE_MODE_FULL);
	return NULL;
}

/* Waits until that thread sleeps, which it does for a lock alone. */
static void mode_wait(void)
{
	char path[64], state = 0;

	while (state != 'S') {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%d/stat",
			 __atomic_load_n(&mode_tid, __ATOMIC_SEQ_CST));
		file = fopen(path, "r");
		if (file && fscanf(file, "%*[^)]) %c", &state) != 1)
			state = 0;
		if (file)
			fclose(file);
		sched_yield();
	}
}

static int walk_meets(struct dl_phdr_info *info, size_t size, void *arg)
{
	pthread_t *thread = arg;

	(void)info;
	(void)size;
	pthread_create(thread, NULL, mode_main, NULL);
	mode_wait();
	if (!strcmp(how, "exit"))
		exit(3);
	if (!strcmp(how, "stop"))
		printf("stop %d\n", waffle_trace_stop());
	else
		fork_one();
	return 1;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	pthread_t thread;

	how = argc > 2 ? argv[2] : "";
	signal(SIGUSR2, SIG_IGN);
	alarm(30);
	WAFFLE_EVENT("kept", KV_I64("i", 0));
	if (!strcmp(mode, "handler_forks"))
		handler_forks();
	else if (!strcmp(mode, "handler_exits"))
		handler_exits();
	else if (!strcmp(mode, "constructor_waits") && argc > 3)
		constructor_waits(argv[3]);
	else if (!strcmp(mode, "walk")) {
		dl_iterate_phdr(walk_meets, &thread);
		pthread_join(thread, NULL);
	} else
		return 9;
	printf("end\n");
	return 0;
}

#endif
