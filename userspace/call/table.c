// SPDX-License-Identifier: Apache-2.0
#include "call/table.h"

#include "call/call.h"

const struct call_rows call_tables[] = {
	[CALL_TABLE_CUDA] = {.name = "cuda"},
	[CALL_TABLE_NCCL] = {.name = "nccl"},
};
_Static_assert(sizeof(call_tables) / sizeof(call_tables[0]) == CALL_TABLE_COUNT, "all tables");
