// SPDX-License-Identifier: Apache-2.0
/* Another tool for NVTX: it counts pushed ranges, and says how many at the end. */
#include <nvtx3/nvToolsExt.h>

#include <stdatomic.h>
#include <stdio.h>

static atomic_long pushed;

static int push(const char *message)
{
	(void)message;
	pushed++;
	return 0;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
	const NvtxExportTableCallbacks *callbacks = get(NVTX_ETID_CALLBACKS);
	NvtxFunctionTable table;
	unsigned count;

	if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &count))
		return 0;
	*table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
	return 1;
}

static __attribute__((destructor)) void say(void)
{
	fprintf(stderr, "pushed %ld\n", pushed);
}
