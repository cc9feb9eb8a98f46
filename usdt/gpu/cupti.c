// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/cupti.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

#include "usdt/gpu/cupti_find.h"
#include "util/library.h"

#define ROW(name)                                                                                  \
	{                                                                                          \
		"cupti" #name, offsetof(struct cupti_functions, name)                              \
	}

static const struct library_function needed[] = {
	ROW(GetVersion),
	ROW(GetResultString),
	ROW(GetTimestamp),
	ROW(GetCallbackName),
	ROW(Subscribe),
	ROW(Unsubscribe),
	ROW(EnableCallback),
	ROW(ActivityEnable),
	ROW(ActivityDisable),
	ROW(ActivityFlushAll),
	ROW(ActivityGetNextRecord),
	ROW(ActivityGetNumDroppedRecords),
	ROW(ActivityRegisterCallbacks),
	ROW(ActivityRegisterTimestampCallback),
	ROW(Finalize),
};

static const struct library_function newer[] = {
	ROW(GetGraphId),
	ROW(GetGraphExecId),
	ROW(GetGraphNodeId),
	ROW(Subscribe_v2),
	ROW(ActivityEnable_v2),
	ROW(ActivityDisable_v2),
	ROW(ActivityGetNextRecord_v2),
	ROW(ActivityGetNumDroppedRecords_v2),
	ROW(ActivityRegisterCallbacks_v2),
};

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

int cupti_open(struct cupti *cupti, char reason[CUPTI_REASON])
{
	void *handle = cupti_find(reason);
	const char *lacks;

	*cupti = (struct cupti){0};
	if (!handle)
		return -ENOENT;
	lacks = library_find(handle, needed, COUNT(needed), &cupti->call);
	if (lacks) {
		snprintf(reason, CUPTI_REASON, "the process's CUPTI has no %s", lacks);
		return -ENOTSUP;
	}
	for (size_t i = 0; i < COUNT(newer); i++)
		library_find(handle, &newer[i], 1, &cupti->call);
	cupti->simulated = dlsym(handle, "waffle_simulation_cupti") != NULL;
	if (cupti->call.GetVersion(&cupti->version) != CUPTI_OK ||
	    cupti->version < CUPTI_VERSION_OLDEST) {
		snprintf(reason, CUPTI_REASON,
			 "the process's CUPTI has version %u; waffle reads those from CUDA 12.0 on",
			 cupti->version);
		return -ENOTSUP;
	}
	return 0;
}

bool cupti_is_shared(const struct cupti *cupti)
{
	const struct cupti_functions *call = &cupti->call;

	return call->Subscribe_v2 && call->ActivityEnable_v2 && call->ActivityDisable_v2 &&
	       call->ActivityGetNextRecord_v2 && call->ActivityGetNumDroppedRecords_v2 &&
	       call->ActivityRegisterCallbacks_v2;
}

void cupti_say(const struct cupti *cupti, int result, char *text, size_t size)
{
	const char *name = NULL;

	if (cupti->call.GetResultString(result, &name) != CUPTI_OK || !name)
		name = "error of CUPTI";
	snprintf(text, size, "%s (%d)", name, result);
}
