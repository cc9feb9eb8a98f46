// SPDX-License-Identifier: Apache-2.0
#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernel_internal.h"
#include "waffle.skel.h"

/* "name+0x12/0x340 [module]" → "name [module]" and the offset. */
static bool symbol_split(struct kernel_symbol *symbol)
{
	char *plus = strrchr(symbol->name, '+'), *module = strstr(symbol->name, " [");
	char *end;

	if (!plus || (module && plus > module))
		return false; /* the text is cut, or an address without a name */
	symbol->offset = (uint32_t)strtoul(plus + 1, &end, 16);
	if (module)
		memmove(plus, module, strlen(module) + 1);
	else
		*plus = '\0';
	return *end == '/';
}

bool kernel_symbol_find(const struct kernel *kernel, uint64_t address, struct kernel_symbol *symbol)
{
	struct waffle_bpf__bss *memory = kernel->bpf->bss;

	_Static_assert(sizeof(memory->symbol_text) == sizeof(symbol->name), "a whole text");
	memory->symbol_address = address;
	if (bpf_prog_test_run_opts(bpf_program__fd(kernel->bpf->progs.symbolize), NULL))
		return false;
	memcpy(symbol->name, memory->symbol_text, sizeof(symbol->name));
	return symbol_split(symbol);
}
