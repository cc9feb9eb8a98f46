// SPDX-License-Identifier: Apache-2.0
#include "target/process/cpu_limits.h"

#include <sched.h>
#include <sys/resource.h>

#define CPUS_MAX 8192 /* the maximum of NR_CPUS */

bool cpus_are_limited(uint64_t *count, uint32_t *lowest, pid_t tid, long online)
{
	cpu_set_t allowed[CPUS_MAX / CPU_SETSIZE];
	int found;

	if (sched_getaffinity(tid, sizeof(allowed), allowed))
		return false;
	found = CPU_COUNT_S(sizeof(allowed), allowed);
	if (found < 1 || found >= online)
		return false;
	*count = (uint64_t)found;
	for (*lowest = 0; !CPU_ISSET_S(*lowest, sizeof(allowed), allowed); ++*lowest)
		;
	return true;
}

bool thread_is_nice(uint64_t *nice, uint32_t *policy, pid_t tid)
{
	int found = sched_getscheduler(tid), value = getpriority(PRIO_PROCESS, (id_t)tid);

	if (found < 0)
		return false;
	found &= ~SCHED_RESET_ON_FORK;
	if (found != SCHED_IDLE && ((found != SCHED_OTHER && found != SCHED_BATCH) || value <= 0))
		return false;
	*nice = value > 0 ? (uint64_t)value : 0;
	*policy = (uint32_t)found;
	return true;
}
