// SPDX-License-Identifier: Apache-2.0
/* Arms the probes by which libwaffle is told to use rings, or not to (usdt/ring/tracer.h). They are
 * armed in single processes, also if the sites are armed everywhere. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "capture/arming/arming_internal.h"
#include "capture/transport/transport.h"

void arming_use_transport(struct arming *arming, struct transport *transport)
{
	arming->transport = transport;
}

/* Names the probes of a file in a mapping of it. */
static void mapping_sites(struct arming *arming, pid_t pid, const struct mapping *mapping,
			  const struct armed_file *file)
{
	uint64_t size = mapping->end - mapping->start;

	for (size_t i = 0; i < file->object->probes.len; i++) {
		const struct object_probe *probe = &file->object->probes.data[i];

		if (probe->type == OBJECT_PROBE_SITE && probe->site != OBJECT_SPAN_END &&
		    probe->offset >= mapping->offset && probe->offset - mapping->offset < size)
			transport_site(arming->transport, pid,
				       mapping->start + (probe->offset - mapping->offset),
				       file->first_site + probe->site);
	}
}

void control_sites(struct arming *arming, pid_t pid, const struct mappings *mappings)
{
	if (!arming->transport || !transport_has_rings(arming->transport, pid))
		return;
	for (size_t i = 0; i < arming->files.len; i++) {
		const struct armed_file *file = &arming->files.data[i];

		for (size_t m = 0; file->object && m < mappings->list.len; m++) {
			const struct mapping *mapping = &mappings->list.data[m];

			if (mapping->executable && file->ino == mapping->ino &&
			    !strcmp(file->object->path, mapping->path))
				mapping_sites(arming, pid, mapping, file);
		}
	}
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
	       transport_filters(arming->transport, pid);
}

void arming_confine(struct arming *arming, pid_t pid)
{
	if (!arming->transport || !transport_confines(arming->transport, pid))
		return;
	for (size_t i = arming->arms.len; i > 0; i--)
		if (arming->arms.data[i - 1].pid == pid && arming->arms.data[i - 1].control)
			armed_release(arm_remove(arming, i - 1));
}

bool control_awaits(const struct arming *arming, pid_t pid)
{
	for (size_t i = 0; i < arming->arms.len; i++)
		if (arming->arms.data[i].pid == pid)
			return false;
	return arming->plan && !arming->plan->is_static && arming->transport &&
	       !arming_is_everywhere(arming);
}

/* Returns whether a process opens libwaffle when its sites are mapped already and the kernel
 * filters their hits. */
static bool is_late(const struct arming *arming, pid_t pid)
{
	const struct mappings *mappings = arming->scanned;

	if (!mappings || !arming->plan || arming->plan->is_static)
		return false;
	for (size_t i = 0; i < arming->arms.len; i++) {
		const struct arm *arm = &arming->arms.data[i];

		if (arm->pid != pid || arm->control || arm->unfiltered)
			continue;
		for (size_t m = 0; m < mappings->list.len; m++)
			if (mappings->list.data[m].ino == arming->files.data[arm->file].ino)
				return true;
	}
	return false;
}

int control_arm(struct arming *arming, uint32_t index, struct arm_request request,
		struct error *err)
{
	struct armed_file *file = &arming->files.data[index];
	struct arm arm = {.pid = request.pid, .file = index, .control = true};
	struct error problem = ERROR_INIT;
	struct object control = {0};
	struct object_probe probe;
	pid_t pid = request.pid;
	int result;

	if (control_is_armed(arming, pid, index))
		return 0;
	/* The kernel can't filter by a process whose main thread has exited. */
	if (process_live_task(pid) != pid)
		return 0;
	if (is_late(arming, pid))
		transport_keeps_kernel(arming->transport, pid);
	probe = transport_probe(arming->transport, pid, file->object);
	control.path = file->object->path;
	control.probes.data = &probe;
	control.probes.len = 1;
	request.object = &control;
	request.uses = NULL;
	request.stacks = NULL;
	result = kernel_arm(arming->kernel, &arm.armed, &request, &problem);
	if (result)
		return file_arm_failed(arming, index, pid, result, &problem, err);
	if (!arm.armed)
		return 0;
	if (!vec_push(&arming->arms, arm)) {
		armed_release(arm.armed);
		return error_set(err, ENOMEM, "out of memory");
	}
	file->arm_count++;
	return 0;
}
