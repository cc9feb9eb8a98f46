/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of a client to one server. */
#ifndef WAFFLE_ANALYZE_WHY_PARTS_WHY_CONNECTIONS_H
#define WAFFLE_ANALYZE_WHY_PARTS_WHY_CONNECTIONS_H

#include "util/strtab.h"

/* "connections to 10.0.0.2:80 (tcp)", if the object is a connection; 0: it is none. Both are among
 * `texts`. */
uint32_t why_connections_to(struct strtab *texts, uint32_t object);

#endif
