// SPDX-License-Identifier: Apache-2.0
#include "usdt/frame/machine.h"

#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>
#include <unwind.h>

/* In the part of a thread's storage that exists from its start, so that access allocates nothing.
 */
static __thread sigjmp_buf *machine_back __attribute__((tls_model("initial-exec")));

static void (*machine_guard)(int, siginfo_t *, void *);

void machine_guard_by(void (*handler)(int, siginfo_t *, void *))
{
	__atomic_store_n(&machine_guard, handler, __ATOMIC_RELAXED);
}

static bool is_replaced(int signo)
{
	void (*guard)(int, siginfo_t *, void *) = __atomic_load_n(&machine_guard, __ATOMIC_RELAXED);
	struct sigaction now;

	return guard && !sigaction(signo, NULL, &now) &&
	       (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != guard);
}

struct unwinding {
	struct machine_frame *frames;
	size_t max;
	volatile size_t count; /* it is read after a jump */
	uintptr_t from, pc;    /* `pc`: where the first frame is, or 0 */
};

static _Unwind_Reason_Code frame_take(struct _Unwind_Context *context, void *arg)
{
	struct unwinding *unwinding = arg;
	int exact = 0;
	uintptr_t pc = _Unwind_GetIPInfo(context, &exact);
	uintptr_t low = _Unwind_GetCFA(context);

	if (!pc)
		return _URC_END_OF_STACK;
	if (!unwinding->count && (low < unwinding->from || (unwinding->pc && pc != unwinding->pc)))
		return _URC_NO_REASON;
	if (unwinding->count == unwinding->max)
		return _URC_END_OF_STACK;
	/* A return address may already belong to the next function. */
	unwinding->frames[unwinding->count] =
		(struct machine_frame){.pc = exact ? pc : pc - 1, .low = low};
	unwinding->count++;
	return _URC_NO_REASON;
}

/* Faults are blocked in the handler of a fault. */
static void faults_unblock(void)
{
	sigset_t faults;

	sigemptyset(&faults);
	sigaddset(&faults, SIGSEGV);
	sigaddset(&faults, SIGBUS);
	sigprocmask(SIG_UNBLOCK, &faults, NULL);
}

size_t machine_unwind(struct machine_frame *frames, size_t max, uintptr_t from, const void *context)
{
	struct unwinding unwinding = {
		.frames = frames,
		.max = max,
		.from = context ? machine_context_sp(context) : from,
		.pc = context ? machine_context_pc(context) : 0,
	};
	sigjmp_buf back, *before = machine_back;
	sigset_t mask;

	if (is_replaced(SIGSEGV) || is_replaced(SIGBUS))
		return 0;
	sigprocmask(SIG_SETMASK, NULL, &mask);
	if (!sigsetjmp(back, 0)) {
		machine_back = &back;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (context)
			faults_unblock();
		_Unwind_Backtrace(frame_take, &unwinding);
	}
	machine_back = before;
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return unwinding.count;
}

void machine_catch(void)
{
	if (machine_back)
		siglongjmp(*machine_back, 1);
}

void machine_prime(void)
{
	struct machine_frame frame;
	struct unwinding unwinding = {.frames = &frame, .max = 1};

	/* The stack is not damaged while a library is loaded. */
	_Unwind_Backtrace(frame_take, &unwinding);
}

uintptr_t machine_context_pc(const void *context)
{
	const ucontext_t *of = context;

#ifdef __x86_64__
	return (uintptr_t)of->uc_mcontext.gregs[REG_RIP];
#else
	return (uintptr_t)of->uc_mcontext.pc;
#endif
}

uintptr_t machine_context_sp(const void *context)
{
	const ucontext_t *of = context;

#ifdef __x86_64__
	return (uintptr_t)of->uc_mcontext.gregs[REG_RSP];
#else
	return (uintptr_t)of->uc_mcontext.sp;
#endif
}
