/* SPDX-License-Identifier: Apache-2.0 */
/* How the clock of a host was aligned, in words. */
#ifndef WAFFLE_RENDER_CLOCK_TEXT_H
#define WAFFLE_RENDER_CLOCK_TEXT_H

#include "store/host.h"

#define CLOCK_TEXT 192

/* "clock + 3.214157000 s, error 20.1 us to 41.2 us, drift -7.00 ppm, from 100 collectives and
 * messages". `text` has CLOCK_TEXT bytes. */
const char *clock_text(char *text, const struct store_clock *clock);

#endif
