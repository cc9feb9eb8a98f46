// SPDX-License-Identifier: Apache-2.0
/* Storage for the values of spans and events, one frame after the other. */
#include <string.h>

#include "model/build.h"
#include "util/memory.h"

uint32_t frames_add(struct model *model, const void *values, uint32_t bytes, uint32_t room)
{
	size_t words = (bytes + 7u) / 8, len = model->frames.len;

	if (!words && !room)
		return MODEL_NONE;
	memory_require(len + words + room + 1 < MODEL_NONE);
	vec_need(&model->frames, words + room + 1);
	model->frames.data[len] = FRAME_HEAD(bytes, room);
	memset(&model->frames.data[len + 1], 0, (words + room) * sizeof(uint64_t));
	if (bytes)
		memcpy(&model->frames.data[len + 1], values, bytes);
	model->frames.len += words + room + 1;
	return (uint32_t)len;
}

uint32_t frames_append(struct model *model, uint32_t old, const void *values, uint32_t bytes)
{
	uint32_t words = (bytes + 7u) / 8, at = old, held, room;
	uint64_t head;

	if (old == MODEL_NONE)
		return frames_add(model, values, bytes, 0);
	head = model->frames.data[old];
	held = FRAME_BYTES(head);
	room = FRAME_ROOM(head);
	/* A frame is read in whole words: values behind a partial word could not be found. */
	if (held % 8) {
		model->bad_records++;
		return old;
	}
	if (words > room) {
		at = frames_add(model, NULL, 0, held / 8 + words);
		memcpy(&model->frames.data[at + 1], &model->frames.data[old + 1], held);
		room = words;
	}
	if (bytes)
		memcpy(&model->frames.data[at + 1 + held / 8], values, bytes);
	model->frames.data[at] = FRAME_HEAD(held + bytes, room - words);
	return at;
}
