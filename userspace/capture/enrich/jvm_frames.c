// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/jvm_frames_internal.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "capture/address_space/hit_image.h"
#include "target/dwarf/callsite.h"

/* Between the first two attempts to find the code of a JVM that starts. It doubles each time. */
#define EXAMINE_NS 100000000ull
#define DOUBLED_MAX 8

/* A name is valid for so long: other code may take the place of a method's. */
#define NAME_NS 1000000000ull

/* Limit of the names read for a process in that time. One takes some 15 us. */
#define READS_MAX 1000

#ifdef __aarch64__
#define OWN_MACHINE EM_AARCH64
#else
#define OWN_MACHINE EM_X86_64
#endif

#define JVM_TEXT_MAX (JVM_NAME_MAX + sizeof(STORE_JVM))

bool jvm_frames_ready(struct jvm_frames *frames, const struct image *image)
{
	if (!frames->to && frames->jvm.structs &&
	    (frames->jvm.known || jvm_read(&frames->jvm, image)) &&
	    !jvm_code_range(&frames->jvm, image, &frames->from, &frames->to))
		frames->from = frames->to = 0;
	return frames->to > 0;
}

static bool knows_code(struct jvm_frames *frames, const struct kernel *kernel, pid_t pid,
		       uint64_t ts)
{
	struct image image;

	bool ready;

	if (frames->to)
		return true;
	if (frames->attempts && ts - frames->examined_ts < EXAMINE_NS << (frames->attempts - 1))
		return false;
	frames->examined_ts = ts;
	frames->attempts += frames->attempts < DOUBLED_MAX;
	if (hit_image_open(&image, kernel, pid, ts))
		return false;
	ready = jvm_frames_ready(frames, &image);
	image_close(&image);
	return ready;
}

/* The index of the innermost frame of such code; the number of frames: there is none. A return
 * address may be that of the next method's first byte. */
static uint32_t find(const struct jvm_frames *frames, const struct store_stack *stack)
{
	uint32_t at = 0;

	while (at < stack->count &&
	       stack->addresses[at] - (at > 0) - frames->from >= frames->to - frames->from)
		at++;
	return at;
}

/* Whether a frame of code without frame pointers, which may be none, returns to an address. */
static bool may_return(const struct image *image, uint64_t address)
{
	uint8_t before[CALLSITE_BYTES];

	return image_read(image, address - sizeof(before), before, sizeof(before)) &&
	       callsite_is_call(before, OWN_MACHINE);
}

/* Writes the name of a frame with STORE_JVM. False: it is unknown. */
static bool read_name(struct jvm_frames *frames, const struct kernel *kernel,
		      const struct store_stack *stack, uint32_t at, uint64_t ts,
		      char text[JVM_TEXT_MAX])
{
	uint64_t address = stack->addresses[at];
	char name[JVM_NAME_MAX];
	struct image image;
	bool known;

	if (frames->second != ts / NAME_NS)
		frames->reads = 0;
	frames->second = ts / NAME_NS;
	if (frames->reads++ >= READS_MAX)
		return false;
	if (hit_image_open(&image, kernel, (pid_t)stack->pid, ts))
		return false;
	known = (!at || may_return(&image, address)) &&
		jvm_code_name(&frames->jvm, &image, address - (at > 0), name);
	image_close(&image);
	if (known)
		snprintf(text, JVM_TEXT_MAX, "%s%s", STORE_JVM, name);
	return known;
}

int jvm_frames_name(struct jvm_frames *frames, struct frame_names *names,
		    const struct kernel *kernel, uint32_t program, struct store_stack *stack,
		    uint64_t ts, uint64_t *addresses, struct error *err)
{
	char text[JVM_TEXT_MAX];
	uint32_t at, number;
	bool room;

	if (!frames->jvm.structs || !knows_code(frames, kernel, (pid_t)stack->pid, ts))
		return 0;
	at = find(frames, stack);
	if (at == stack->count)
		return 0;
	const frame_key key = {program, stack->addresses[at], at > 0, ts / NAME_NS};

	room = frame_names_begin(names);
	number = room ? frame_names_find(names, key) : MAP_NONE;
	if (room && number == MAP_NONE && read_name(frames, kernel, stack, at, ts, text)) {
		int result = frame_names_add(names, key, stack->pid, text, &number, err);

		if (result)
			return result;
	}
	memcpy(addresses, stack->addresses, at * sizeof(*addresses));
	addresses[at] = number == MAP_NONE ? stack->addresses[at] : STORE_NAMED | number;
	stack->addresses = addresses;
	stack->cut |= at + 1 < stack->count;
	stack->count = at + 1;
	return 0;
}

bool jvm_frames_step(const struct jvm_frames *frames, struct frame_names *names,
		     const struct image *image, uint32_t pid, struct jvm_frame *frame,
		     uint64_t *address)
{
	char name[JVM_NAME_MAX], text[JVM_TEXT_MAX];
	struct error ignored = ERROR_INIT; /* the writer returns it again */
	uint32_t number;
	bool more;

	*address = 0;
	more = jvm_step(&frames->jvm, image, frame, name);
	snprintf(text, sizeof(text), "%s%s", STORE_JVM, name);
	if (*name && frame_names_begin(names) &&
	    !frame_names_number(names, pid, text, &number, &ignored))
		*address = STORE_NAMED | number;
	return more;
}
