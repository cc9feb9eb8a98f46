/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which thread captured the nodes of CUDA graphs, and when: `capture` events, by which a kernel of
 * a graph is attributed to the call, span and stack that captured it (docs/gpu.md).
 */
#ifndef WAFFLE_USDT_GPU_GRAPHS_H
#define WAFFLE_USDT_GPU_GRAPHS_H

#include <stdbool.h>
#include <stdint.h>

#include "usdt/gpu/cupti.h"
#include "waffle_named.h"

/* Switches the callbacks on or off. Does nothing if CUPTI can't number graphs and their nodes. */
void graphs_watch(const struct cupti *cupti, void *subscriber, bool on);

/* A callback of the domain CUPTI_RESOURCE. `name` is that of the events. */
void graphs_changed(const struct cupti *cupti, waffle_name_t *name, uint32_t cbid,
		    const struct cupti_resource *resource);

#endif
