/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of containers. The kernel knows containers only by their cgroups, whose paths have ids. The
 * names are in the files in which Docker and Podman keep their state, in folders of root. We ask no
 * daemon, since anybody who may answer in its place would choose what is traced.
 */
#ifndef WAFFLE_TARGET_PROCESS_CONTAINER_INTERNAL_H
#define WAFFLE_TARGET_PROCESS_CONTAINER_INTERNAL_H

#include <stdbool.h>

#define CONTAINER_ID_MAX 65 /* 64 hexadecimal digits, and the end */

/* The id of the container of this name. False: no container has the name, or its files could be
 * written by others than root. `root` is where the file system begins: "/", other values are for
 * tests. */
bool container_id(const char *root, const char *name, char id[CONTAINER_ID_MAX]);

#endif
