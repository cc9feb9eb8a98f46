// SPDX-License-Identifier: Apache-2.0
/* Arms the probes by which libwaffle is told to use rings, or not to (usdt/tracer.h). They are
 * armed in single processes, also if the sites are armed everywhere. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "capture/arming/arming_internal.h"
#include "capture/transport/transport.h"

void arming_use_transport(struct arming *arming, struct transport *transport)
{
	arming->transport = transport;
}

bool control_is_armed(const struct arming *arming, pid_t pid, uint32_t file)
{
	const struct object *object = arming->files.data[file].object;

	if (!arming->transport || !object->transport.version)
		return true;
	for (size_t i = 0; i < arming->arms.len; i++)
		if (arming->arms.data[i].pid == pid && arming->arms.data[i].file == file &&
		    arming->arms.data[i].control)
			return true;
	return false;
}

bool control_filters(const struct arming *arming, pid_t pid)
{
	return arming->plan && !arming->plan->is_static && arming->transport &&
	       transport_has_rings(arming->transport, pid);
}

int control_arm(struct arming *arming, uint32_t index, pid_t pid, struct error *err)
{
	struct armed_file *file = &arming->files.data[index];
	struct arm arm = {.pid = pid, .file = index, .control = true};
	struct error problem = ERROR_INIT;
	struct object control = {0};
	struct object_probe probe;
	struct arm_request request;
	char path[64];
	int result;

	if (control_is_armed(arming, pid, index))
		return 0;
	/* The kernel can't filter by a process whose main thread has exited. */
	if (process_live_task(pid) != pid)
		return 0;
	probe = transport_probe(arming->transport, pid, file->object);
	control.path = file->object->path;
	control.probes.data = &probe;
	control.probes.len = 1;
	request = file_request(file, pid, path);
	request.object = &control;
	request.uses = NULL;
	request.stacks = NULL;
	result = kernel_arm(arming->kernel, &arm.armed, &request, &problem);
	if (result == -ESRCH || (result && kill(pid, 0) && errno == ESRCH))
		return error_set(err, ESRCH, "pid %d: it exited while being armed", pid);
	if (result || !arm.armed) {
		if (!arming->warning[0])
			snprintf(arming->warning, sizeof(arming->warning), "%s", problem.message);
		return 0;
	}
	if (!vec_push(&arming->arms, arm)) {
		armed_release(arm.armed);
		return error_set(err, ENOMEM, "out of memory");
	}
	file->arm_count++;
	return 0;
}
