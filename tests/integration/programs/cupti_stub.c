// SPDX-License-Identifier: Apache-2.0
/* A libcupti that waffle must not use: VERSION is what it says of itself, and without WHOLE it
 * lacks cuptiFinalize(). A call of anything else than its version ends the program. */
#include <stdint.h>
#include <stdlib.h>

int cuptiGetVersion(uint32_t *version);
int cuptiGetVersion(uint32_t *version)
{
	*version = VERSION;
	return 0;
}

#define STUB(name)                                                                                 \
	int cupti##name(void);                                                                     \
	int cupti##name(void)                                                                      \
	{                                                                                          \
		abort();                                                                           \
	}
STUB(GetResultString)
STUB(GetTimestamp)
STUB(GetCallbackName)
STUB(Subscribe)
STUB(Unsubscribe)
STUB(EnableCallback)
STUB(ActivityEnable)
STUB(ActivityDisable)
STUB(ActivityFlushAll)
STUB(ActivityGetNextRecord)
STUB(ActivityGetNumDroppedRecords)
STUB(ActivityRegisterCallbacks)
STUB(ActivityRegisterTimestampCallback)
#ifdef WHOLE
STUB(Finalize)
#endif
