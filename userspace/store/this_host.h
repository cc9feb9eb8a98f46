/* SPDX-License-Identifier: Apache-2.0 */
/* What a capture says of the machine that it is recorded on. */
#ifndef WAFFLE_STORE_THIS_HOST_H
#define WAFFLE_STORE_THIS_HOST_H

#include <sys/utsname.h>

#include "store/store.h"

/* The texts of its META. */
struct this_host {
	struct utsname name;
	char hostname[256];
	char boot_id[64]; /* empty: unknown */
};

/* Starts the META of a new capture: the three clocks, now, and the texts, which stay in `host`. All
 * other members are 0. */
struct store_meta this_host_meta(struct this_host *host);

#endif
