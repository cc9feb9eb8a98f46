/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of containers. The kernel knows containers only by their cgroups, whose paths have ids. The
 * names are in the files in which Docker and Podman keep their state, in folders of root. We ask no
 * daemon, since anybody who may answer in its place would choose what is traced.
 */
#ifndef WAFFLE_TARGET_PROCESS_CONTAINER_NAME_INTERNAL_H
#define WAFFLE_TARGET_PROCESS_CONTAINER_NAME_INTERNAL_H

#include "target/process/container_id.h"

/* The id of the container of this name. False: no container has the name, or its files could be
 * written by others than root. `root` is where the file system begins: "/", other values are for
 * tests. */
bool container_by_name(const char *root, const char *name, char id[CONTAINER_ID_BYTES]);

#endif
