/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of links, spans and events, in words and as JSON. */
#ifndef WAFFLE_EXPORT_WHY_NODE_H
#define WAFFLE_EXPORT_WHY_NODE_H

#include "export/why_chain.h"
#include "util/json.h"

/* "span load 00000000000000b2 of loader-2 (12), at 3.21 s"; `index` MODEL_NONE: not there. */
void why_put_node(const struct why_printer *printer, uint8_t kind, uint32_t index, uint64_t id);

/* kind, name, id, start_ns and thread, of an open object; null for what is not there. */
void why_node_fields(struct json *json, const struct model *model, uint8_t kind, uint32_t index,
		     uint64_t id);

/* pid, tid and comm, null for no thread: fields that are always there need no test for them. */
void why_thread_fields(struct json *json, const struct model *model, uint32_t thread);

#endif
