/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's frames of the calling thread, by the unwind tables of its files.
 *
 * A stack may be damaged and a table may be wrong, so that unwinding reads what is not there. While
 * a thread unwinds, the handler of SIGSEGV and SIGBUS (crash.c) calls machine_catch(), which ends
 * the unwinding with the frames that were found. Where the program has replaced that handler,
 * nothing is unwound. Only in full mode and while it records the program has it at all: in the
 * others a backtrace is what the program asks for itself, of a stack that it trusts.
 */
#ifndef WAFFLE_USDT_FRAME_MACHINE_H
#define WAFFLE_USDT_FRAME_MACHINE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct machine_frame {
	uintptr_t pc;  /* an address within the instruction that is in progress */
	uintptr_t low; /* the lowest address of its part of the stack */
};

/* Makes the first use of the unwinder, which may allocate memory and take locks. */
void machine_prime(void);

/*
 * Unwinds the frames whose part of the stack is at or above `from`, innermost first. If `context`
 * is not NULL, it is the ucontext_t of a signal handler, and the first frame is the interrupted
 * one. Returns their number; `max`: perhaps there are more. Async-signal-safe.
 */
size_t machine_unwind(struct machine_frame *frames, size_t max, uintptr_t from,
		      const void *context);

/* Says which handler of SIGSEGV and SIGBUS calls machine_catch(). NULL: none was installed. */
void machine_guard_by(void (*handler)(int, siginfo_t *, void *));
/* In a handler of a fault: does not return if this thread is unwinding. */
void machine_catch(void);

/* Program counter and stack pointer of a ucontext_t. */
uintptr_t machine_context_pc(const void *context);
uintptr_t machine_context_sp(const void *context);

#endif
