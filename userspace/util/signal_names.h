/* SPDX-License-Identifier: Apache-2.0 */
/* Names of signals. */
#ifndef WAFFLE_UTIL_SIGNAL_NAMES_H
#define WAFFLE_UTIL_SIGNAL_NAMES_H

#include <stdint.h>

/* "SIGSEGV", with the numbers of x86-64 and arm64; NULL: real-time signals have none, and there are
 * no others. */
const char *signal_name(uint32_t signo);

#endif
