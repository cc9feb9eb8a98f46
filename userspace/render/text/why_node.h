/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of links, which are spans and events, as text and as JSON. */
#ifndef WAFFLE_RENDER_TEXT_WHY_NODE_H
#define WAFFLE_RENDER_TEXT_WHY_NODE_H

#include "render/text/why_put_internal.h"
#include "util/json.h"

/* Prints "span load 00000000000000b2 of loader-2 (12), at 3.21 s". `index` MODEL_NONE: not in the
 * capture. */
void why_put_node(const struct why_printer *printer, uint8_t kind, uint32_t index, uint64_t id);

/* Writes kind, name, id, start_ns and thread to an open object; null if unknown. */
void why_node_fields(struct json *json, const struct model *model, uint8_t kind, uint32_t index,
		     uint64_t id);

/* Writes pid, tid and comm, or null for no thread, so that readers need not test for missing
 * members. */
void why_thread_fields(struct json *json, const struct model *model, uint32_t thread);
/* Adds an object with these fields; null if the thread is unknown. */
void why_thread_json(struct json *json, const struct model *model, const char *key,
		     uint32_t thread);

#endif
