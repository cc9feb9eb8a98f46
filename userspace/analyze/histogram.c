// SPDX-License-Identifier: Apache-2.0
#include "analyze/histogram.h"

unsigned histogram_bin(uint64_t ns)
{
	unsigned top;

	if (ns < 4)
		return (unsigned)ns;
	top = 63 - (unsigned)__builtin_clzll(ns);
	return 4 * (top - 1) + (unsigned)(ns >> (top - 2) & 3);
}

uint64_t histogram_bin_from(unsigned bin)
{
	return bin < 4 ? bin : (4ull + bin % 4) << (bin / 4 - 1);
}
