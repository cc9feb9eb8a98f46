/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of waffle_process_callback(), by name. */
#ifndef WAFFLE_USDT_SINK_CALLBACKS_H
#define WAFFLE_USDT_SINK_CALLBACKS_H

#include <stdbool.h>

#include "waffle_process.h"

/* Runs a callback; true if there is none. The signature is that of struct chain_host. */
bool callbacks_call(const char *name, const struct waffle_record *record, void *arg);
/* In a new child: the thread that may have run one is the parent's. */
void callbacks_fork_child(void);

#endif
