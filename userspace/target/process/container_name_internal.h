/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of containers. The kernel knows containers only by their cgroups, whose paths have ids but
 * no names. Docker and Podman keep the names in state files below /var/lib. We read these files
 * instead of asking the daemons: whoever could answer in a daemon's place would choose what is
 * traced.
 */
#ifndef WAFFLE_TARGET_PROCESS_CONTAINER_NAME_INTERNAL_H
#define WAFFLE_TARGET_PROCESS_CONTAINER_NAME_INTERNAL_H

#include "target/process/container_id.h"

/* The ids of containers with a name: Docker and Podman may have one each. */
#define CONTAINERS_MAX 2
struct container_ids {
	char ids[CONTAINERS_MAX][CONTAINER_ID_BYTES];
	unsigned count;
	bool too_large; /* a file with names is too large to be read */
};

/* Finds the ids of the containers of this name. There is none if a user other than root and the one
 * of this process may write its file. `root` is "/", or another folder in tests. */
void container_by_name(const char *root, const char *name, struct container_ids *found);

#endif
