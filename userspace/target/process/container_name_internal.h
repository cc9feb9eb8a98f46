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

/* Finds the id of the container of this name. False: no container has the name, or a user other
 * than root and the one of this process may write its file. `root` is "/", or another folder in
 * tests. */
bool container_by_name(const char *root, const char *name, char id[CONTAINER_ID_BYTES]);

#endif
