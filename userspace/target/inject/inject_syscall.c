// SPDX-License-Identifier: Apache-2.0
/* In which system calls a thread can be interrupted to do something else. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "target/inject/inject_internal.h"

/* What the kernel leaves in the result of a system call that it will make again (linux/errno.h). */
#define ERESTARTSYS 512
#define ERESTARTNOINTR 513
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516

#ifdef __x86_64__

bool inject_call_is_safe(uint64_t number, const uint64_t arguments[6])
{
	switch (number) {
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_accept:
	case SYS_accept4:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_pause:
	case SYS_rt_sigsuspend:
	case SYS_rt_sigtimedwait:
	case SYS_msgrcv:
	case SYS_semtimedop:
	case SYS_io_getevents:
	case SYS_read:            /* not of files: inject_thread.c */
	case SYS_nanosleep:       /* not for a short time: inject_thread.c */
	case SYS_clock_nanosleep: /* the same */
		return true;
	case SYS_futex:
		/* Waits of glibc for conditions, semaphores and ends of threads. Its locks, also
		 * those of malloc() and of the loader, wait with FUTEX_WAIT. */
		return (arguments[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
	default:
		return false;
	}
}

static bool was_interrupted(int64_t result)
{
	/* epoll_wait() and some others report it to the program. That is because of us: a signal
	 * would not be delivered before the thread goes on. */
	return result == -ERESTARTSYS || result == -ERESTARTNOINTR || result == -ERESTARTNOHAND ||
	       result == -ERESTART_RESTARTBLOCK || result == -EINTR;
}

bool inject_call_rewind(struct user_regs_struct *registers)
{
	const uint64_t arguments[6] = {registers->rdi, registers->rsi, registers->rdx,
				       registers->r10, registers->r8,  registers->r9};

	if ((int64_t)registers->orig_rax < 0 || !was_interrupted((int64_t)registers->rax) ||
	    !inject_call_is_safe(registers->orig_rax, arguments))
		return false;
	registers->rax = registers->orig_rax;
	registers->rip -= 2; /* the length of its instruction */
	return true;
}

#endif
