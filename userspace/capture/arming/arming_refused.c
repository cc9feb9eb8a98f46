// SPDX-License-Identifier: Apache-2.0
/* Files that could not be armed. Those that are refused because some process keeps its mmap_lock,
 * or may do so (kernel/mmap_lock.c), are armed later. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "capture/arming/arming_internal.h"

int loading_add_refused(struct arming *arming, uint32_t index, pid_t pid, struct error *err)
{
	uint64_t next_ns = kernel_locks_look_ts(arming->kernel);
	const struct loading loading = {
		.pid = pid, .file = index, .reason = LOADING_REFUSED, .next_ns = next_ns};

	/* All others would be refused as well before that. */
	for (size_t i = 0; i < arming->loading.len; i++)
		if (arming->loading.data[i].reason == LOADING_REFUSED)
			arming->loading.data[i].next_ns = next_ns;
	return loading_keep(arming, &loading, err);
}

/* Names a thread that keeps a lock once, although many files are refused. */
static void holder_report(struct arming *arming, const struct error *problem)
{
	uint32_t holder = kernel_locks_holder(arming->kernel);

	if (holder != arming->reported_holder)
		notice_add(arming, problem->message);
	arming->reported_holder = holder;
}

int file_arm_failed(struct arming *arming, uint32_t index, pid_t pid, int result,
		    const struct error *problem, struct error *err)
{
	if (result == -ESRCH || (kill(pid, 0) && errno == ESRCH))
		return error_set(err, ESRCH, "pid %d: it exited while being armed", pid);
	if (result == -EBUSY)
		holder_report(arming, problem);
	if (result == -EBUSY || result == -EAGAIN)
		return loading_add_refused(arming, index, pid, err);
	if (!arming->warning[0])
		snprintf(arming->warning, sizeof(arming->warning), "%s", problem->message);
	return 0;
}
