/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the container of a process. A container engine gives each container an id, and uses the id
 * in the name of a cgroup:
 *
 *	/docker/ID                                 Docker
 *	/system.slice/docker-ID.scope              Docker with systemd
 *	/machine.slice/libpod-ID.scope/container   Podman
 *	/kubepods.slice/…/cri-containerd-ID.scope  containerd
 *	/kubepods/besteffort/podUID/ID             Kubernetes without systemd
 *
 * An ID has 64 hexadecimal digits. If this process runs in the container's own cgroup namespace, it
 * sees only "/", and finds no id.
 */
#ifndef WAFFLE_TARGET_PROCESS_CONTAINER_ID_H
#define WAFFLE_TARGET_PROCESS_CONTAINER_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CONTAINER_ID_BYTES 65

/* The id in one component of a cgroup's path, CONTAINER_ID_BYTES - 1 digits within `text`; NULL: it
 * has none. The cgroup of conmon has none: it monitors a container, outside it. */
const char *container_id_in(const char *text, size_t len);
/* The id in a line of /proc/PID/cgroup. False: there is none. */
bool container_id_parse(char id[CONTAINER_ID_BYTES], const char *line);
/* The same for a process. */
bool container_id_read(char id[CONTAINER_ID_BYTES], pid_t pid);

#endif
