/* SPDX-License-Identifier: Apache-2.0 */
/* What the function pointers of NVTX point to: functions that record ranges and marks. */
#ifndef WAFFLE_USDT_GPU_NVTX_RANGES_H
#define WAFFLE_USDT_GPU_NVTX_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "usdt/gpu/nvtx_abi.h"

/* Why a function is there, which decides when its pointer is set. A set of bits. */
enum nvtx_purpose {
	NVTX_RECORDS = 1,
	NVTX_ENDS = 2,      /* it ends a range */
	NVTX_REGISTERS = 4, /* it gives names to what ranges refer to */
};

struct nvtx_tool {
	nvtx_function function; /* NULL: we have none */
	enum nvtx_purpose purpose;
};
extern const struct nvtx_tool nvtx_core_tools[NVTX_CORE_COUNT];
extern const struct nvtx_tool nvtx_core2_tools[NVTX_CORE2_COUNT];

/* The functions of the payload extension. They stay set while nobody records. */
extern const nvtx_function nvtx_extension_tools[NVTX_SLOTS];

/* Levels of pushed ranges in a thread. Deeper ones are not recorded. */
#define NVTX_DEPTH_MAX 128
/* Ranges of RangeStart that are open at a time in the process. Further ones are not recorded. */
#define NVTX_STARTED_MAX 16384

/* Forgets ranges that are open, since their ends will not come. After the pointers were reset. */
void nvtx_ranges_forget(void);
/* Whether any range is open whose end is to come. */
bool nvtx_ranges_are_open(void);
/* Ranges that were not recorded because of the limits above, since the last nvtx_ranges_forget().
 */
uint64_t nvtx_ranges_left_out(void);

#endif
