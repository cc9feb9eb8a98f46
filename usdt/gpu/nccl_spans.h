/* SPDX-License-Identifier: Apache-2.0 */
/* Writes collectives and messages of NCCL as spans: "AllReduce" on the track of their communicator,
 * in the group "NCCL rank R" (docs/gpu.md). Only one thread may write. */
#ifndef WAFFLE_USDT_GPU_NCCL_SPANS_H
#define WAFFLE_USDT_GPU_NCCL_SPANS_H

#include <stdbool.h>

#include "usdt/gpu/nccl_tasks.h"
#include "waffle_named.h"

/* The fixed names, made at the first call. While none of them is armed, nobody records. Returns
 * their number. */
unsigned nccl_spans_names(waffle_name_t *const **names);
bool nccl_spans_wanted(void);

void nccl_spans_write(const struct nccl_task *task);
/* An event: recording begins or ends. */
void nccl_spans_session(const char *state, unsigned version, unsigned comms,
			struct nccl_losses losses);

#endif
