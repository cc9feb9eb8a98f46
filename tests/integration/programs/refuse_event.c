// SPDX-License-Identifier: Apache-2.0
/* Preloaded into a tracer: the kernel seems to refuse the perf events of one CPU, REFUSED_CPU, but
 * for those that report mappings. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>

long syscall(long number, ...)
{
	static long (*next)(long, ...);
	const char *refused = getenv("REFUSED_CPU");
	long a[6];
	va_list rest;

	va_start(rest, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(rest, long);
	va_end(rest);
	if (number == SYS_perf_event_open && refused && (int)a[2] == atoi(refused) &&
	    ((const struct perf_event_attr *)a[0])->config != PERF_COUNT_SW_DUMMY) {
		errno = EACCES;
		return -1;
	}
	if (!next)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
