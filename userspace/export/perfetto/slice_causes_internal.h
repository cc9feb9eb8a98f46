/* SPDX-License-Identifier: Apache-2.0 */
/* Why the spans of a capture took long, as short texts for the arguments of their slices:
 * "75.0 % disk-read: loader-2 (4720) in load, /data/shard-7 (ext4); 16.0 % running", those of at
 * least a twentieth of the time, at most three. */
#ifndef WAFFLE_EXPORT_PERFETTO_SLICE_CAUSES_INTERNAL_H
#define WAFFLE_EXPORT_PERFETTO_SLICE_CAUSES_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "model/model.h"

struct slice_causes;

/* NULL: the capture has no spans, or the scheduler was not recorded. */
struct slice_causes *slice_causes_open(const struct model *model);
void slice_causes_close(struct slice_causes *causes);

/* Number of a span's text. 0: its thread just ran, or it is not whole. */
uint32_t slice_causes_number(const struct slice_causes *causes, uint32_t span);
const char *slice_causes_text(const struct slice_causes *causes, uint32_t number, size_t *len);

#endif
