// SPDX-License-Identifier: Apache-2.0
/*
 * Any memory of a process as that of its libc: what an injection looks up there, and what it takes
 * for function pointers of NVTX, is bounded. An address that is found lies in the memory if the
 * tables that name it do.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "require.h"
#include "target/inject/inject_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef __x86_64__

static void libc_look(const struct image *image, size_t size)
{
	struct mapping mapping = {
		.end = size, .executable = true, .path = (char *)(uintptr_t) "/lib/libc.so.6"};
	struct mappings mappings = {.list = {.data = &mapping, .len = 1}};
	struct error err = ERROR_INIT;
	struct inject_libc libc;

	if (inject_libc_find(&libc, image, &mappings, &err))
		require(*err.message);
	else
		require(libc.open && libc.copy && libc.restorer < size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image image = {.process = -1, .memory = memfd_create("memory", 0)};

	require(image.memory >= 0);
	require(write(image.memory, data, size) == (ssize_t)size);
	inject_symbol(&image, 0, "dlopen");
	if (size > 64)
		inject_symbol(&image, 64, "no_such_function");
	libc_look(&image, size);
	close(image.memory);
	return 0;
}

#else

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	(void)data;
	(void)size;
	return 0; /* it is done on x86-64 only */
}

#endif
