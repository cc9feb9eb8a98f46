/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses what to explain if the user named nothing, and spans explain nothing. */
#ifndef WAFFLE_ANALYZE_WHY_WHY_BUSIEST_H
#define WAFFLE_ANALYZE_WHY_WHY_BUSIEST_H

#include "analyze/why/why.h"

/* Makes the query, whose names the caller has set, one for the traced thread that ran longest, and
 * for the whole capture. Threads of the processes that the user named come first, if they ran or
 * could have run for half of the time. The JVM's own threads count only if they do something.
 * -ENOENT: there is no thread. */
int why_busiest_thread(struct why_query *query, const struct model *model);

/* The same, or for all threads of Go's runtime. If the thread is next to idle, the query is for one
 * that may be in a deadlock or wait for one. */
int why_busiest_program(struct why_query *query, const struct model *model);

/* Makes the query one for the thread, or the Go program, that asks for the requests of the capture,
 * which servers that it has started answer (why_asker_internal.h). False: there is none. */
bool why_busiest_asker(struct why_query *query, const struct model *model);

#endif
