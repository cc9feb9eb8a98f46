/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of a client to one server, and those of a server at one address. */
#ifndef WAFFLE_ANALYZE_WHY_PARTS_WHY_CONNECTIONS_H
#define WAFFLE_ANALYZE_WHY_PARTS_WHY_CONNECTIONS_H

#include "util/strtab.h"

/* "connections to 10.0.0.2:80 (tcp)", if the object is a connection; 0: it is none. Both are among
 * `texts`. */
uint32_t why_connections_to(struct strtab *texts, uint32_t object);

/* "connections at 10.0.0.1:80 (tcp)", by the object's own end. */
uint32_t why_connections_at(struct strtab *texts, uint32_t object);

#endif
