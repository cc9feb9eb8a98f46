// SPDX-License-Identifier: Apache-2.0
/*
 * A program whose names are made at run time, as an interpreter's are: "named MODE [ARGUMENT…]". It
 * prints what it knows of its own records.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
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
#include <waffle_named.h>
#include <waffle_trace.h>

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static waffle_name_t *name_of(int kind, const char *text, const waffle_key_t *keys, unsigned count)
{
	return waffle_name(&(struct waffle_name_spec){
		.size = sizeof(struct waffle_name_spec),
		.kind = kind,
		.name = text,
		.category = "script",
		.file = "lib/script.py",
		.function = "main",
		.line = 42,
		.keys = keys,
		.key_count = count,
	});
}

#define KEYS(keys) (keys), sizeof(keys) / sizeof((keys)[0])

/* Values of all types; what the test expects is in test_named.py. */
static void values(void)
{
	static const waffle_key_t keys[] = {
		{WAFFLE_KEY_I64, "i"},    {WAFFLE_KEY_U64, "u"},    {WAFFLE_KEY_F64, "d"},
		{WAFFLE_KEY_BOOL, "b"},   {WAFFLE_KEY_PTR, "p"},    {WAFFLE_KEY_STR, "s"},
		{WAFFLE_KEY_STR, "part"}, {WAFFLE_KEY_STR, "null"}, {WAFFLE_KEY_STR, "long"},
	};
	static char text[300];
	waffle_name_t *name = name_of(WAFFLE_SITE_EVENT, "values", KEYS(keys));

	memset(text, 'x', sizeof(text) - 1);
	waffle_event_named(name, WAFFLE_VALUES(waffle_i64(-5), waffle_u64(~0ull), waffle_f64(0.25),
					       waffle_bool(true), waffle_ptr((void *)0x1234),
					       waffle_str("näme"), waffle_str_of("prefix", 3),
					       waffle_str(NULL), waffle_str(text)));
	/* Of other types: numbers are converted, all else is unknown. The last keys have none. */
	waffle_event_named(name, WAFFLE_VALUES(waffle_f64(-7.9), waffle_i64(-1), waffle_i64(3),
					       waffle_i64(9), waffle_str("no"), waffle_i64(1)));
}

/* A script: spans in spans, events, a counter and causes. */
static void script(long count)
{
	static const waffle_key_t call_keys[] = {{WAFFLE_KEY_I64, "i"}, {WAFFLE_KEY_I64, "before"}};
	static const waffle_key_t cause_keys[] = {{WAFFLE_KEY_CAUSE_SPAN, NULL},
						  {WAFFLE_KEY_CAUSE_EVENT, NULL},
						  {WAFFLE_KEY_I64, "i"}};
	waffle_name_t *call = name_of(WAFFLE_SITE_SPAN, "call", KEYS(call_keys));
	waffle_name_t *inner = name_of(WAFFLE_SITE_SPAN, "inner", KEYS(call_keys));
	waffle_name_t *caused = name_of(WAFFLE_SITE_LOG_WARN, "caused", KEYS(cause_keys));
	waffle_name_t *size = name_of(WAFFLE_SITE_COUNTER, "size", NULL, 0);

	for (long i = 0; i < count; i++) {
		waffle_scope_t scope;
		waffle_span_t span;
		waffle_event_id_t event;

		waffle_scope_begin_named(&scope, call,
					 WAFFLE_VALUES(waffle_i64(i), waffle_i64(now_ns())));
		span = waffle_span_begin_named(inner, WAFFLE_VALUES(waffle_i64(i)));
		event = WAFFLE_EVENT("literal", KV_I64("i", i));
		waffle_span_end(span);
		waffle_event_named(caused, WAFFLE_VALUES(waffle_cause_span(waffle_span_id(span)),
							 waffle_cause_event(event), waffle_i64(i)));
		waffle_counter_named(size, i % 2 ? waffle_f64(i + 0.5) : waffle_i64(-i));
		waffle_scope_end(&scope);
	}
	if (WAFFLE_SPAN_ID().value)
		printf("a span is still current\n");
}

/* Each thread makes the same names at the same time, and some of its own. */
static pthread_barrier_t together;
static waffle_name_t *made[16][200];

static void *maker(void *arg)
{
	long number = (long)arg;

	pthread_barrier_wait(&together);
	for (int i = 0; i < 200; i++) {
		static const waffle_key_t keys[] = {{WAFFLE_KEY_I64, "thread"}};
		char text[32];

		snprintf(text, sizeof(text), "made %d", i);
		made[number][i] = name_of(WAFFLE_SITE_EVENT, text, KEYS(keys));
		waffle_event_named(made[number][i], WAFFLE_VALUES(waffle_i64(number)));
	}
	return NULL;
}

static void makers(void)
{
	pthread_t all[16];

	pthread_barrier_init(&together, NULL, 16);
	for (long i = 0; i < 16; i++)
		pthread_create(&all[i], NULL, maker, (void *)i);
	for (long i = 0; i < 16; i++)
		pthread_join(all[i], NULL);
	for (int i = 0; i < 200; i++)
		for (int thread = 1; thread < 16; thread++)
			if (made[thread][i] != made[0][i])
				printf("two names\n");
}

static void bad(void)
{
	static const waffle_key_t key = {'x', "x"};
	char text[2 * WAFFLE_NAME_MAX];

	for (int i = 0; i < 2; i++) {
		waffle_name_t *name = name_of(WAFFLE_SITE_EVENT, "bad key", &key, 1);

		printf("armed %d id %llu\n", waffle_name_armed(name),
		       waffle_event_named(name, NULL, 0).value);
	}
	printf("armed %d\n", waffle_name_armed(name_of(99, "bad kind", NULL, 0)));
	/* It is cut before the character that crosses the limit. */
	memset(text, 'y', sizeof(text));
	memcpy(text + WAFFLE_NAME_MAX - 2, "\xe2\x82\xac", 3);
	text[sizeof(text) - 1] = '\0';
	waffle_event_named(name_of(WAFFLE_SITE_EVENT, text, NULL, 0), NULL, 0);
	waffle_event_named(name_of(WAFFLE_SITE_EVENT, "odd \x1b[31m\n\xff", NULL, 0), NULL, 0);
	/* A span's function with an event's name does nothing. */
	printf("span %llu\n",
	       waffle_span_begin_named(name_of(WAFFLE_SITE_EVENT, "event", NULL, 0), NULL, 0).id);
}

static void many(void)
{
	for (int i = 0; i < WAFFLE_NAMES_MAX + 10; i++) {
		char text[32];

		snprintf(text, sizeof(text), "many %d", i);
		waffle_event_named(name_of(WAFFLE_SITE_EVENT, text, NULL, 0), NULL, 0);
	}
}

static waffle_name_t *handler_name;
static volatile long handled;

static void on_timer(int signo)
{
	(void)signo;
	waffle_event_named(handler_name, WAFFLE_VALUES(waffle_i64(handled)));
	handled++;
}

/* Events of a handler that interrupts events. */
static void handler(long count)
{
	static const waffle_key_t keys[] = {{WAFFLE_KEY_I64, "i"}};
	struct itimerspec often = {{0, 100000}, {0, 100000}};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	waffle_name_t *name = name_of(WAFFLE_SITE_EVENT, "between", KEYS(keys));
	timer_t timer;

	handler_name = name_of(WAFFLE_SITE_EVENT, "handled", KEYS(keys));
	signal(SIGUSR1, on_timer);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &often, NULL);
	for (long i = 0; i < count; i++)
		waffle_event_named(name, WAFFLE_VALUES(waffle_i64(i)));
	timer_delete(timer);
	signal(SIGUSR1, SIG_IGN);
	printf("handled %ld\n", handled);
}

/* Names that are older than the recording, which begins and ends twice. */
static void again(const char *first, const char *second)
{
	static const waffle_key_t keys[] = {{WAFFLE_KEY_I64, "i"}};
	waffle_name_t *name = name_of(WAFFLE_SITE_EVENT, "again", KEYS(keys));
	long i = 0;

	for (int part = 0; part < 5; part++) {
		if (part == 1 || part == 3)
			waffle_trace_start(part == 1 ? first : second, NULL);
		printf("armed %d\n", waffle_name_armed(name));
		waffle_event_named(name, WAFFLE_VALUES(waffle_i64(i++)));
		if (part == 1 || part == 3)
			waffle_trace_stop();
	}
}

static void forks(long wait_ms)
{
	static const waffle_key_t keys[] = {{WAFFLE_KEY_I64, "i"}};
	waffle_name_t *name = name_of(WAFFLE_SITE_EVENT, "forks", KEYS(keys));
	pid_t child = fork();

	if (!child) {
		usleep((unsigned)wait_ms * 1000); /* a tracer arms it */
		waffle_event_named(name, WAFFLE_VALUES(waffle_i64(1)));
		waffle_event_named(name_of(WAFFLE_SITE_EVENT, "of the child", NULL, 0), NULL, 0);
		usleep((unsigned)wait_ms * 1000);
		exit(0);
	}
	waffle_event_named(name, WAFFLE_VALUES(waffle_i64(0)));
	waitpid(child, NULL, 0);
	printf("child %d\n", child);
}

static void in_scope(waffle_name_t *name, long i)
{
	WAFFLE_MODE_SCOPE(WAFFLE_MODE_FULL);
	waffle_event_named(name, WAFFLE_VALUES(waffle_i64(i)));
}

/* Events in a scope of another mode than that of the process. */
static void modes(void)
{
	static const waffle_key_t keys[] = {{WAFFLE_KEY_I64, "i"}};
	waffle_name_t *name = name_of(WAFFLE_SITE_EVENT, "named", KEYS(keys));

	in_scope(name, 0);
	waffle_mode_set(WAFFLE_MODE_FAST);
	in_scope(name, 1);
	waffle_mode_set(WAFFLE_MODE_OFF);
	in_scope(name, 2);
	in_scope(name_of(WAFFLE_SITE_EVENT, "other", KEYS(keys)), 3);
	waffle_mode_set(WAFFLE_MODE_FULL);
	in_scope(name, 4);
	in_scope(name_of(WAFFLE_SITE_EVENT, "other", KEYS(keys)), 5);
}

/* Denies or kills for memfd_create(), and forks. The child of a program that is killed for it uses
 * no names; the other one does. */
static void sandboxed(bool kill)
{
	static const waffle_key_t keys[] = {{WAFFLE_KEY_I64, "i"}};
	waffle_name_t *name = name_of(WAFFLE_SITE_EVENT, "sandboxed", KEYS(keys));
	struct sock_filter rows[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K,
			 kill ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof(rows) / sizeof(rows[0]), rows};
	int status = 0;
	pid_t child;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		exit(6);
	child = fork();
	if (!child && !kill) {
		waffle_event_named(name, WAFFLE_VALUES(waffle_i64(-1)));
		name_of(WAFFLE_SITE_EVENT, "of the child", NULL, 0);
	}
	if (!child)
		_exit(0);
	waitpid(child, &status, 0);
	for (long i = 0; i < 100; i++)
		waffle_event_named(name, WAFFLE_VALUES(waffle_i64(i)));
	printf("status %d\n", status);
}

/* Does what it is asked for: as many steps, each with a name of an earlier request, and with one
 * that is new in this one. */
static void requests(long wait_ms)
{
	static const waffle_key_t keys[] = {{WAFFLE_KEY_I64, "i"}};
	waffle_name_t *first = name_of(WAFFLE_SITE_SPAN, "first", KEYS(keys));
	char line[64], text[32];
	long i = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	for (int request = 0; fgets(line, sizeof(line), stdin);) {
		waffle_name_t *fresh;

		if (!strcmp(line, "armed\n")) {
			printf("armed %d\n", waffle_name_armed(first));
			continue;
		}
		snprintf(text, sizeof(text), "fresh %d", request++);
		fresh = name_of(WAFFLE_SITE_EVENT, text, KEYS(keys));
		for (long end = i + atol(line); i < end; i++) {
			waffle_scope_t scope;

			waffle_scope_begin_named(&scope, first, WAFFLE_VALUES(waffle_i64(i)));
			waffle_event_named(fresh, WAFFLE_VALUES(waffle_i64(i)));
			WAFFLE_EVENT("literal", KV_I64("i", i));
			waffle_scope_end(&scope);
		}
		printf("done %ld\n", i);
	}
	usleep((unsigned)wait_ms * 1000); /* a tracer has to map its rings */
}

/* What a program has that nobody records. */
static void dormant(void)
{
	FILE *maps = fopen("/proc/self/maps", "r"), *status = fopen("/proc/self/status", "r");
	int threads = 0, rings = 0;
	char line[512];

	script(10);
	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long from = 0, to = 0;

		sscanf(line, "%lx-%lx", &from, &to);
		/* The memory with the names has the same name, but is smaller. */
		rings += strstr(line, "waffle-ring") && to - from > 256ul << 10;
	}
	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "Threads: %d", &threads);
	printf("threads %d rings %d\n", threads, rings);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	long count = argc > 2 ? atol(argv[2]) : 0;

	if (!strcmp(mode, "values"))
		values();
	else if (!strcmp(mode, "script"))
		script(count);
	else if (!strcmp(mode, "requests"))
		requests(count);
	else if (!strcmp(mode, "dormant"))
		dormant();
	else if (!strcmp(mode, "makers"))
		makers();
	else if (!strcmp(mode, "bad"))
		bad();
	else if (!strcmp(mode, "many"))
		many();
	else if (!strcmp(mode, "handler"))
		handler(count);
	else if (!strcmp(mode, "again"))
		again(argv[2], argv[3]);
	else if (!strcmp(mode, "modes"))
		modes();
	else if (!strcmp(mode, "sandboxed"))
		sandboxed(argc > 2);
	else if (!strcmp(mode, "forks"))
		forks(count);
	else
		return 2;
	puts("end");
	return 0;
}
