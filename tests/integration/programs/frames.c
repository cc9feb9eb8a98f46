// SPDX-License-Identifier: Apache-2.0
/*
 * A program that writes its backtraces: "frames WHAT". The numbers behind LINE in comments name
 * lines for the test, which compares them with what is written.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include <waffle_macros.h>
#include <waffle_named.h>

#define NOINLINE __attribute__((noinline))

/* Keeps a call from being a jump. */
static volatile int after;

/* gdb stops here and lists the same frames. */
NOINLINE void look(void)
{
	waffle_backtrace_fd(STDOUT_FILENO); /* LINE look */
	after++;
}

/* ---- nested scopes ---- */

NOINLINE void unmarked(int n);

NOINLINE void inner(int n)
{
	FRAME(); /* LINE inner */
	{
		SPAN("inner span", KV_I64("n", n)); /* LINE inner span */
		FRAME();                            /* LINE second */
		if (n)
			unmarked(n - 1); /* LINE inner call */
		else
			look();
		after++;
	}
}

NOINLINE void unmarked(int n)
{
	SPAN("unmarked span"); /* LINE unmarked span */
	inner(n);              /* LINE unmarked call */
	after++;
}

static void nested(void)
{
	FRAME(); /* LINE nested */
	inner(1);
	LOG_ERROR("nested error", KV_I64("code", 5));
	after++;
}

/* ---- threads ---- */

static waffle_context_t handed_over;

static void *third_main(void *arg)
{
	INJECT(handed_over);
	FRAME(); /* LINE third_main */
	look();
	LOG_ERROR("third error");
	return arg;
}

static void *second_main(void *arg)
{
	pthread_t thread;

	FRAME(); /* LINE second_main */
	INJECT(handed_over);
	FRAME();             /* LINE second inside */
	SPAN("second span"); /* LINE second span */
	{
		FRAME(); /* LINE second extract */
		handed_over = waffle_context_extract();
	}
	pthread_create(&thread, NULL, third_main, arg);
	pthread_join(thread, NULL);
	return arg;
}

static NOINLINE void submit(pthread_t *thread)
{
	FRAME(); /* LINE submit */
	handed_over = waffle_context_extract();
	pthread_create(thread, NULL, second_main, NULL);
}

static void threads(void)
{
	pthread_t thread;

	FRAME();           /* LINE threads */
	SPAN("root span"); /* LINE root span */
	submit(&thread);
	{
		FRAME(); /* not there any more when the context is used */
	}
	pthread_join(thread, NULL);
}

/* A span that another thread begins, and whose context is taken without an extract. */
static void *begun_main(void *arg)
{
	waffle_span_t *span = arg;

	FRAME();
	*span = WAFFLE_BEGIN("begun span"); /* LINE begun span */
	return NULL;
}

static void begun(void)
{
	waffle_span_t span;
	pthread_t thread;

	FRAME(); /* LINE begun */
	pthread_create(&thread, NULL, begun_main, &span);
	pthread_join(thread, NULL);
	{
		INJECT(waffle_span_context(span));
		look();
	}
	WAFFLE_END(span);
}

/* ---- a library that is closed ---- */

static void *closed_main(void *arg)
{
	INJECT(handed_over);
	FRAME(); /* LINE closed_main */
	look();
	LOG_ERROR("closed error");
	return arg;
}

/* The library has extracted a context, with frames of its own. */
static void closed(void)
{
	void *library = dlopen(getenv("FRAMES_LIBRARY"), RTLD_NOW);
	void (*extract)(waffle_context_t *) = NULL;
	pthread_t thread;

	FRAME();             /* LINE closed */
	SPAN("closed span"); /* LINE closed span */
	if (!library)
		return;
	*(void **)&extract = dlsym(library, "library_extract");
	extract(&handed_over);
	pthread_create(&thread, NULL, closed_main, NULL);
	pthread_join(thread, NULL);
	dlclose(library);
	pthread_create(&thread, NULL, closed_main, NULL);
	pthread_join(thread, NULL);
}

/* ---- coroutines ---- */

#define STACK (256 << 10)

static ucontext_t main_context, first_context, second_context;

static void first_coroutine(void)
{
	FRAME(); /* LINE first_coroutine */
	swapcontext(&first_context, &main_context);
	look();
	after++;
}

static void second_coroutine(void)
{
	FRAME(); /* LINE second_coroutine */
	look();
	after++;
	swapcontext(&second_context, &main_context);
}

static void coroutine_make(ucontext_t *context, void (*run)(void))
{
	getcontext(context);
	context->uc_stack.ss_sp = malloc(STACK);
	context->uc_stack.ss_size = STACK;
	context->uc_link = &main_context;
	makecontext(context, run, 0);
}

static void coroutines(void)
{
	FRAME(); /* LINE coroutines */
	coroutine_make(&first_context, first_coroutine);
	coroutine_make(&second_context, second_coroutine);
	swapcontext(&main_context, &first_context); /* pushes and suspends */
	look();
	swapcontext(&main_context, &second_context); /* looks and suspends */
	{
		FRAME(); /* LINE resume */
		swapcontext(&main_context, &first_context);
	}
	look();
}

/* ---- signals and jumps ---- */

static sigjmp_buf back;
static volatile int jumps;

static void on_signal(int signo)
{
	FRAME(); /* LINE on_signal */
	(void)signo;
	look();
	if (jumps)
		siglongjmp(back, 1);
}

static NOINLINE void interrupted(void)
{
	FRAME(); /* LINE interrupted */
	raise(SIGUSR1);
	after++;
}

static void signals(void)
{
	FRAME(); /* LINE signals */
	signal(SIGUSR1, on_signal);
	interrupted();
	look();
	jumps = 1;
	if (!sigsetjmp(back, 1))
		interrupted();
	look(); /* nothing of what was left */
}

static NOINLINE void recurse(int n)
{
	FRAME(); /* LINE recurse */
	if (n)
		recurse(n - 1);
	else
		look();
	after++;
}

static void deep(void)
{
	FRAME(); /* LINE deep */
	recurse(100);
	look();
}

static int count_entry(const waffle_entry_t *entry, void *arg)
{
	(void)entry;
	return ++*(int *)arg == 2;
}

static void callback(void)
{
	int count = 0;

	FRAME();
	SPAN("a span");
	printf("counted %d\n", waffle_backtrace(count_entry, &count));
}

static volatile int handled;

static void on_timer(int signo)
{
	FRAME();
	(void)signo;
	LOG_ERROR("handled", KV_I64("i", handled));
	handled++;
}

/* Errors interrupt the making of others. */
static void errors(void)
{
	struct itimerval often = {{0, 700}, {0, 700}}, never = {{0, 0}, {0, 0}};
	int i = 0;

	FRAME(); /* LINE errors */
	signal(SIGALRM, on_timer);
	setitimer(ITIMER_REAL, &often, NULL);
	for (; handled < 200; i++) {
		SPAN("busy");
		LOG_ERROR("between", KV_I64("i", i));
	}
	setitimer(ITIMER_REAL, &never, NULL);
	printf("%d %d\n", i, handled);
}

/* Names that are made at run time, one without a place. */
static void named(void)
{
	waffle_name_t *place =
		waffle_name(&(struct waffle_name_spec){.size = sizeof(struct waffle_name_spec),
						       .kind = WAFFLE_SITE_SPAN,
						       .name = "placed span",
						       .category = "a category",
						       .file = "script.py",
						       .line = 7});
	waffle_name_t *none =
		waffle_name(&(struct waffle_name_spec){.size = sizeof(struct waffle_name_spec),
						       .kind = WAFFLE_SITE_SPAN,
						       .name = "bare span"});
	waffle_scope_t outer, inner_scope;

	waffle_scope_begin_named(&outer, place, NULL, 0);
	FRAME(); /* LINE named */
	waffle_scope_begin_named(&inner_scope, none, NULL, 0);
	look();
	waffle_scope_end(&inner_scope);
	waffle_scope_end(&outer);
	look();
}

/* ---- faults ---- */

static int *volatile null;
static void (*volatile null_function)(void);

static NOINLINE int fault(const char *how)
{
	FRAME();            /* LINE fault */
	SPAN("fault span"); /* LINE fault span */
	if (!strcmp(how, "null"))
		*null = 1; /* LINE null */
	else if (!strcmp(how, "call"))
		null_function();
	else
		abort();
	return after;
}

/* What the registers say of the stack is wrong when the fault comes. */
static NOINLINE int damaged(void)
{
	FRAME(); /* LINE damaged */
	memset((char *)__builtin_frame_address(0) - 8 * after, 0x41, 64);
	*null = 1;
	return after;
}

static NOINLINE int endless(int n)
{
	volatile char some[100];

	FRAME(); /* LINE endless */
	some[0] = (char)n;
	return endless(n + 1) + some[0];
}

static void *fault_main(void *arg)
{
	INJECT(handed_over);
	fault(arg);
	return NULL;
}

/* The fault is that of a thread which works for this one. */
static void fault_elsewhere(void)
{
	pthread_t thread;

	FRAME();          /* LINE fault_elsewhere */
	SPAN("far span"); /* LINE far span */
	handed_over = waffle_context_extract();
	pthread_create(&thread, NULL, fault_main, "null");
	pthread_join(thread, NULL);
}

static void on_fault(int signo)
{
	printf("handled %d\n", signo);
	fflush(stdout);
	siglongjmp(back, 1);
}

/* Twice, since a program may live on. libwaffle watches signals from here on. */
static void survive(void)
{
	signal(SIGSEGV, on_fault);
	waffle_mode_set(WAFFLE_MODE_FULL);
	for (volatile int i = 0; i < 2; i++)
		if (!sigsetjmp(back, 1))
			fault("null");
	printf("survived\n");
}

static void alternate_stack(size_t bytes)
{
	stack_t stack = {.ss_sp = malloc(bytes), .ss_size = bytes};

	if (sigaltstack(&stack, NULL))
		perror("sigaltstack");
}

static const struct {
	const char *name;
	void (*run)(void);
} all[] = {
	{"nested", nested}, {"threads", threads},       {"begun", begun},
	{"closed", closed}, {"coroutines", coroutines}, {"signals", signals},
	{"deep", deep},     {"callback", callback},     {"errors", errors},
	{"named", named},   {"survive", survive},       {"elsewhere", fault_elsewhere},
};

int main(int argc, char **argv)
{
	FRAME(); /* LINE main */
	if (argc != 2)
		return 2;
	setvbuf(stdout, NULL, _IONBF, 0);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(argv[1], all[i].name)) {
			all[i].run();
			return 0;
		}
	/* Not more than the kernel needs at least for a handler, and a little. */
	alternate_stack(getauxval(AT_MINSIGSTKSZ) + 8192);
	return !strcmp(argv[1], "overflow")  ? endless(0)
	       : !strcmp(argv[1], "damaged") ? damaged()
					     : fault(argv[1]);
}
