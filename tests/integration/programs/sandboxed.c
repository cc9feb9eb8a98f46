// SPDX-License-Identifier: Apache-2.0
/*
 * A process in seccomp's strict mode: the kernel kills it for any system call but read(), write()
 * and exit(). It also may not read the time stamp counter. For each byte of its input it passes a
 * site of each kind.
 */
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/seccomp.h>

#include "waffle.h"

static void pass(long n)
{
	WAFFLE_SPAN("sandboxed", KV_I64("n", n), KV_STR("text", "in a box"));
	waffle_span_t begun = WAFFLE_BEGIN("begun", KV_I64("n", n));
	waffle_event_id_t event = WAFFLE_EVENT("event", KV_STR("text", "in a box"));

	WAFFLE_COUNTER("counter", n);
	WAFFLE_LOG_WARN("log", KV_CAUSE_EVENT(event));
	WAFFLE_END(begun);
}

int main(void)
{
	long n = 0;
	char byte;

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		return 1;
	if (write(1, "ready\n", 6) != 6)
		syscall(SYS_exit, 1);
	while (read(0, &byte, 1) == 1) {
		pass(n++);
		if (write(1, "did\n", 4) != 4)
			syscall(SYS_exit, 1);
	}
	syscall(SYS_exit, 0);
}
