/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether descriptor 2 is standard error. A daemon may close it, and the next file or socket that
 * it opens gets this number. A line that was written there would damage the program's data.
 */
#ifndef WAFFLE_USDT_SAY_STANDARD_ERROR_H
#define WAFFLE_USDT_SAY_STANDARD_ERROR_H

#include <stdbool.h>

/*
 * True if descriptor 2 is what it was when this library was loaded and looked like standard error
 * then, or if it is also descriptor 1, as after a daemon has redirected both to its log.
 * Async-signal-safe; leaves errno as it was.
 */
bool standard_error_is_there(void);

#endif
