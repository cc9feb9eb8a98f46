// SPDX-License-Identifier: Apache-2.0
#include "util/own_thread.h"

#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Address space that is only touched as far as it is used. libcurl and TLS libraries need some
 * tens of KiB, and large static TLS of the program takes a part. */
#define STACK_BYTES (2u << 20)
#define SIGNAL_SET_BYTES 8 /* as the kernel has it */

int own_thread_start(pthread_t *thread, void *(*main)(void *), void *arg)
{
	pthread_attr_t attributes;
	pthread_t unused;
	sigset_t all, before;
	size_t bytes;
	int code;

	pthread_attr_init(&attributes);
	if (!pthread_attr_getstacksize(&attributes, &bytes) && bytes < STACK_BYTES)
		pthread_attr_setstacksize(&attributes, STACK_BYTES);
	if (!thread)
		pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	code = pthread_create(thread ? thread : &unused, &attributes, main, arg);
	/* Not with pthread_sigmask(), which would unblock signals of the libc's own, such as that
	 * of pthread_cancel(), where `attach --gpu` has blocked them. */
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, SIGNAL_SET_BYTES);
	pthread_attr_destroy(&attributes);
	return code;
}
