/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aligns the clocks of the hosts of a job by their collectives and messages, before its model is
 * loaded. No rank leaves a synchronising collective before every rank has entered it, and no
 * message arrives before it is sent. This bounds how much two clocks can differ. The bounds are
 * guaranteed, and the error of each host's clock follows from them.
 *
 *	if (clock_align(reader, CLOCK_ALIGN_AUTO, &unaligned, err) < 0) …
 *	if (model_load(&model, reader, …
 */
#ifndef WAFFLE_MODEL_CLOCK_CLOCK_H
#define WAFFLE_MODEL_CLOCK_CLOCK_H

#include "store/store.h"
#include "util/error.h"

enum clock_align {
	CLOCK_ALIGN_AUTO, /* by collectives and messages; else by the wall clock */
	CLOCK_ALIGN_WALL, /* by CLOCK_REALTIME */
	CLOCK_ALIGN_NONE, /* each host's times as they are */
	CLOCK_ALIGN_COUNT
};
extern const char *const clock_align_names[CLOCK_ALIGN_COUNT];

/*
 * Sets the clocks of all hosts of a reader (store_reader_set_clock()). Reads its calls of NCCL and
 * MPI unless one host is all, or the file has aligned clocks already. *unaligned becomes the number
 * of hosts that CLOCK_ALIGN_AUTO could not align, because they did nothing together with the
 * others: their clocks are corrected by the wall clock. Returns 0 or a negative errno with a
 * message. It is -EDOM if what the hosts did together contradicts itself: then the clocks are as
 * CLOCK_ALIGN_NONE leaves them, and the caller may choose CLOCK_ALIGN_WALL.
 */
int clock_align(struct store_reader *reader, enum clock_align how, uint32_t *unaligned,
		struct error *err);

#endif
