// SPDX-License-Identifier: Apache-2.0
/*
 * Signal handlers can unwind the stack from every instruction of an armed site. pthread_cancel()
 * does so in threads that can be cancelled at any time. A trap after each instruction unwinds to
 * the test. aarch64 has no call that moves the stack pointer, and no trap that a program can set.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>
#include <unwind.h>

#include <cmocka.h>

#include <waffle.h>

#ifdef __x86_64__

#define TRAP_FLAG 0x100

/* A landing pad, a probe, a return, and what follows it in a site (waffle/site.h). */
__asm__(".text\ntest_landing: endbr64\n\tnop\n\tret\n\t.long 0, 1f - ., 0, 1\n"
	"1: .asciz \"event\"\n\t.balign 16\n");
extern const char test_landing[];

static struct {
	unsigned instructions, unwound, without_rules;
	uintptr_t first_bad; /* an instruction from which the caller was not found */
} seen;

static void event_make(void);

static _Unwind_Reason_Code frame_look(struct _Unwind_Context *context, void *arg)
{
	bool *found = arg;

	*found |= _Unwind_FindEnclosingFunction((void *)_Unwind_GetIP(context)) ==
		  (void *)(uintptr_t)event_make;
	return *found ? _URC_NORMAL_STOP : _URC_NO_REASON;
}

static void trapped(int signo, siginfo_t *info, void *arg)
{
	const ucontext_t *context = arg;
	uintptr_t at = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
	bool found = false;

	(void)signo;
	(void)info;
	seen.instructions++;
	if (!_Unwind_FindEnclosingFunction((void *)(at + 1))) {
		seen.without_rules++; /* unwinding ends there */
		return;
	}
	_Unwind_Backtrace(frame_look, &found);
	seen.unwound += found;
	if (!found && !seen.first_bad)
		seen.first_bad = at;
}

static __attribute__((noinline)) void event_make(void)
{
	unsigned long long words[4];

	__asm__ __volatile__("pushfq\n\torq %0, (%%rsp)\n\tpopfq"
			     :
			     : "i"(TRAP_FLAG)
			     : "memory", "cc");
	waffle_event_(test_landing + WAFFLE_LANDING_, words, 4, NULL);
	__asm__ __volatile__("pushfq\n\tandq %0, (%%rsp)\n\tpopfq"
			     :
			     : "i"(~TRAP_FLAG)
			     : "memory", "cc");
}

static void test_every_instruction_of_an_armed_event_leads_to_its_caller(void **state)
{
	struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO}, before;

	(void)state;
	assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
	event_make();
	sigaction(SIGTRAP, &before, NULL);

	assert_true(seen.instructions > 20);
	/* The landing pad, the probe and the return are in no function. */
	assert_int_equal(seen.without_rules, 3);
	if (seen.first_bad)
		fail_msg("no caller from %#lx", (unsigned long)seen.first_bad);
	assert_int_equal(seen.unwound, seen.instructions - seen.without_rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_instruction_of_an_armed_event_leads_to_its_caller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	return 0;
}

#endif
