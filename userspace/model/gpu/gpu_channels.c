// SPDX-License-Identifier: Apache-2.0
/* The table of channels. */
#include "model/gpu/gpu_internal.h"
#include "util/memory.h"

uint32_t gpu_channel(const struct model_gpu *gpu, enum channel_kind kind, uint32_t pid,
		     uint64_t handle, uint32_t thread)
{
	const uint64_t key[] = {kind, pid, handle, thread};

	return keymap_get(&gpu->channel_at, key, sizeof(key));
}

uint32_t gpu_stream(const struct model_gpu *gpu, uint32_t pid, uint64_t stream, uint32_t thread)
{
	if (stream == STREAM_PER_THREAD)
		return gpu_channel(gpu, CHANNEL_STREAM, pid, stream, thread + 1);
	return gpu_channel(gpu, CHANNEL_STREAM, pid, stream == STREAM_LEGACY ? STREAM_NULL : stream,
			   0);
}

uint32_t gpu_channel_add(struct model_gpu *gpu, enum channel_kind kind, uint32_t pid,
			 uint64_t handle, uint32_t thread)
{
	uint64_t key[] = {kind, pid, 0, 0};
	uint32_t found;
	struct channel channel = {.handle = handle,
				  .pid = pid,
				  .kind = kind,
				  .sibling = MODEL_NONE,
				  .last = MODEL_NONE};

	if (kind == CHANNEL_STREAM && handle == STREAM_PER_THREAD) {
		channel.thread = thread + 1;
		channel.blocking = STREAM_BLOCKING;
	}
	if (kind == CHANNEL_STREAM && handle == STREAM_LEGACY)
		channel.handle = STREAM_NULL;
	found = gpu_channel(gpu, kind, pid, channel.handle, channel.thread);
	if (found != MODEL_NONE)
		return found;
	key[2] = channel.handle;
	key[3] = channel.thread;
	found = (uint32_t)gpu->channels.len;
	if (kind == CHANNEL_STREAM) {
		channel.sibling = map_get(&gpu->streams, pid);
		map_put(&gpu->streams, pid, found);
	}
	keymap_put(&gpu->channel_at, key, sizeof(key), found);
	vec_add(&gpu->channels, channel);
	return found;
}
