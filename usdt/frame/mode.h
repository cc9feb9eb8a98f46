/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mode of the process (waffle/mode.h): the variable WAFFLE_MODE, and what changes with the
 * mode.
 */
#ifndef WAFFLE_USDT_FRAME_MODE_H
#define WAFFLE_USDT_FRAME_MODE_H

#include <stdbool.h>

#include "util/error.h"
#include "waffle/mode.h"

/*
 * Reads WAFFLE_MODE, unless the program is set-user-ID, and offers libwaffle's part of full mode to
 * the macros. From now on `changed` is called whenever the program has set the mode. Returns
 * -EINVAL with a message if the variable has a bad value.
 */
int mode_load(void (*changed)(void), struct error *err);

/* Whether sites may be armed from inside: not while the mode of the process is off. */
static inline bool mode_arms(void)
{
	return __atomic_load_n(&waffle_process_get_()->mode_, __ATOMIC_RELAXED) != WAFFLE_MODE_OFF;
}
/* Whether the mode of the process is full. */
bool mode_is_full(void);

#endif
