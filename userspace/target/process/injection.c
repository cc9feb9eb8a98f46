// SPDX-License-Identifier: Apache-2.0
#include "target/process/injection.h"

#include <stddef.h>
#include <string.h>

const char *const injection_variables[INJECTION_VARIABLES] = {
	"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "NCCL_PROFILER_PLUGIN"};

bool injection_sets(const char *assignment)
{
	for (size_t i = 0; i < INJECTION_VARIABLES; i++) {
		size_t length = strlen(injection_variables[i]);

		if (!strncmp(assignment, injection_variables[i], length) &&
		    assignment[length] == '=')
			return true;
	}
	return false;
}

bool injection_is_ours(const char *value)
{
	const char *slash = strrchr(value, '/');

	return slash && !strcmp(slash, "/libwaffle-gpu.so");
}
