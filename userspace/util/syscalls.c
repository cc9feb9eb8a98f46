// SPDX-License-Identifier: Apache-2.0
#include "util/syscalls.h"

#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#define ROW(name) [SYS_##name] = #name

/* The calls of syscalls(2) that can block, as this machine numbers them. */
static const char *const names[] = {
	ROW(read),
	ROW(write),
	ROW(readv),
	ROW(writev),
	ROW(pread64),
	ROW(pwrite64),
	ROW(preadv),
	ROW(pwritev),
	ROW(preadv2),
	ROW(pwritev2),
	ROW(openat),
	ROW(openat2),
	ROW(close),
	ROW(fcntl),
	ROW(flock),
	ROW(ioctl),
	ROW(fsync),
	ROW(fdatasync),
	ROW(sync),
	ROW(syncfs),
	ROW(sync_file_range),
	ROW(fallocate),
	ROW(ftruncate),
	ROW(truncate),
	ROW(getdents64),
	ROW(newfstatat),
	ROW(statx),
	ROW(unlinkat),
	ROW(renameat),
	ROW(renameat2),
	ROW(mkdirat),
	ROW(sendfile),
	ROW(splice),
	ROW(tee),
	ROW(vmsplice),
	ROW(copy_file_range),
	ROW(readahead),
	ROW(mmap),
	ROW(munmap),
	ROW(mremap),
	ROW(mprotect),
	ROW(madvise),
	ROW(msync),
	ROW(mlock),
	ROW(brk),
	ROW(execve),
	ROW(execveat),
	ROW(clone),
	ROW(clone3),
	ROW(exit),
	ROW(exit_group),
	ROW(wait4),
	ROW(waitid),
	ROW(futex),
	ROW(nanosleep),
	ROW(clock_nanosleep),
	ROW(sched_yield),
	ROW(ppoll),
	ROW(pselect6),
	ROW(epoll_pwait),
	ROW(epoll_pwait2),
	ROW(io_uring_enter),
	ROW(io_getevents),
	ROW(io_submit),
	ROW(accept),
	ROW(accept4),
	ROW(connect),
	ROW(recvfrom),
	ROW(recvmsg),
	ROW(recvmmsg),
	ROW(sendto),
	ROW(sendmsg),
	ROW(sendmmsg),
	ROW(shutdown),
	ROW(rt_sigtimedwait),
	ROW(rt_sigsuspend),
	ROW(msgrcv),
	ROW(msgsnd),
	ROW(semop),
	ROW(semtimedop),
	ROW(mq_timedreceive),
	ROW(mq_timedsend),
	ROW(membarrier),
	ROW(restart_syscall),
#ifdef SYS_poll /* calls that newer architectures no longer have */
	ROW(open),
	ROW(stat),
	ROW(lstat),
	ROW(unlink),
	ROW(rename),
	ROW(mkdir),
	ROW(getdents),
	ROW(poll),
	ROW(select),
	ROW(epoll_wait),
	ROW(pause),
	ROW(fork),
	ROW(vfork),
#endif
#ifdef SYS_futex_waitv
	ROW(futex_waitv),
#endif
};

#if defined(__x86_64__)
static const char this_machine[] = "x86_64";
#elif defined(__aarch64__)
static const char this_machine[] = "aarch64";
#else
static const char this_machine[] = "?";
#endif

const char *syscall_name(const char *machine, int number)
{
	if (strcmp(machine, this_machine) || number < 0 ||
	    (size_t)number >= sizeof(names) / sizeof(*names))
		return NULL;
	return names[number];
}
