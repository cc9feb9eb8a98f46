/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The container of a process, by the id that its engine gave it. Engines name a cgroup after it:
 *
 *	/docker/ID                                 Docker
 *	/system.slice/docker-ID.scope              Docker with systemd
 *	/machine.slice/libpod-ID.scope/container   Podman
 *	/kubepods.slice/…/cri-containerd-ID.scope  containerd
 *	/kubepods/besteffort/podUID/ID             Kubernetes without systemd
 *
 * An ID has 64 hexadecimal digits. A process in the container's own cgroup namespace sees "/", and
 * has none then.
 */
#ifndef WAFFLE_TARGET_PROCESS_CONTAINER_ID_H
#define WAFFLE_TARGET_PROCESS_CONTAINER_ID_H

#include <stdbool.h>
#include <sys/types.h>

#define CONTAINER_ID_BYTES 65

/* The id in a line of /proc/PID/cgroup. False: there is none. */
bool container_id_parse(char id[CONTAINER_ID_BYTES], const char *line);
/* The same for a process. */
bool container_id_read(char id[CONTAINER_ID_BYTES], pid_t pid);

#endif
