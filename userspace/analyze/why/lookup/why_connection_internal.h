/* SPDX-License-Identifier: Apache-2.0 */
/* The connection that an object is, or that is the only thing a poll() waits for. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_CONNECTION_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_CONNECTION_INTERNAL_H

#include "store/store.h"

/* The text of an object that is no list of descriptors; or that of the only connection in a list
 * whose other descriptors are eventfds, by which only threads of this machine wake the one that
 * polls them, as the interpreter of Ruby does. "tcp 10.0.0.1:5000 <-> 10.0.0.2:80, SYN not
 * answered", of `len` bytes; more may follow. With the length 0: there is none. */
const char *why_connection_of(const struct store_object *object, size_t *len);

#endif
