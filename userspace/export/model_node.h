/* SPDX-License-Identifier: Apache-2.0 */
/* Spans and events of a model as the encoders see them. */
#ifndef WAFFLE_EXPORT_MODEL_NODE_H
#define WAFFLE_EXPORT_MODEL_NODE_H

#include "export/node.h"
#include "model/model.h"

struct export_node model_span_node(const struct model *model, uint32_t index);
struct export_node model_event_node(const struct model *model, uint32_t index);

#endif
