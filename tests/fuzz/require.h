/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions that must hold for every input. */
#ifndef WAFFLE_FUZZ_REQUIRE_H
#define WAFFLE_FUZZ_REQUIRE_H

#include <stdlib.h>

#define require(condition)                                                                         \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

#endif
