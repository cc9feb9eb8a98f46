// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/frame_names_internal.h"

#include <errno.h>
#include <stdio.h>

#include "target/process/python.h"

#define NAMES_MAX (1u << 20)
#define FRAMES_MAX (1u << 20)
#define KEY_MAX (PYTHON_NAME_MAX + PYTHON_FILE_MAX + 48)

void frame_names_free(struct frame_names *names)
{
	keymap_free(&names->number_of_frame);
	keymap_free(&names->number_of_name);
}

bool frame_names_begin(struct frame_names *names)
{
	uint64_t dropped = store_writer_names_dropped(names->writer);

	if (dropped != names->dropped)
		frame_names_free(names);
	names->dropped = dropped;
	return names->number_of_name.len < NAMES_MAX && names->count < MAP_NONE - NAMES_MAX &&
	       store_writer_has_room(names->writer);
}

uint32_t frame_names_find(const struct frame_names *names, const frame_key frame)
{
	return keymap_get(&names->number_of_frame, frame, sizeof(frame_key));
}

int frame_names_number(struct frame_names *names, uint32_t pid, const char *text, uint32_t *number,
		       struct error *err)
{
	struct store_name name = {.pid = pid, .name = text};
	char key[KEY_MAX];
	size_t len = (size_t)snprintf(key, sizeof(key), "%u %s", pid, text);

	len = len < sizeof(key) ? len : sizeof(key) - 1;
	*number = keymap_get(&names->number_of_name, key, len);
	if (*number != MAP_NONE)
		return 0;
	*number = names->count;
	if (!keymap_set(&names->number_of_name, key, len, *number))
		return error_set(err, ENOMEM, "out of memory");
	names->count++;
	name.value = STORE_NAMED | *number;
	return store_writer_add_name(names->writer, &name, err);
}

int frame_names_add(struct frame_names *names, const frame_key frame, uint32_t pid,
		    const char *text, uint32_t *number, struct error *err)
{
	int result = frame_names_number(names, pid, text, number, err);

	if (result)
		return result;
	if (names->number_of_frame.len >= FRAMES_MAX)
		keymap_free(&names->number_of_frame); /* it only holds earlier results */
	(void)keymap_set(&names->number_of_frame, frame, sizeof(frame_key), *number);
	return 0;
}
