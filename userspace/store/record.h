/* SPDX-License-Identifier: Apache-2.0 */
/* Functions on records (bpf/record.h) that need more than the layout. */
#ifndef WAFFLE_STORE_RECORD_H
#define WAFFLE_STORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/record.h"

/* Length in bytes of the longest record, a hit with sixteen full strings. */
#define RECORD_BYTES_MAX 8192
/* Largest timestamp of a valid record, in ns: 292 years after the machine started. */
#define RECORD_TS_MAX INT64_MAX

/*
 * Length in bytes of the record at `rec`, of which `available` bytes can be read. 0 if the kind is
 * unknown, the record does not fit, or the frame of a hit or return exceeds WAFFLE_FRAME_MAX.
 */
size_t record_size(const void *rec, size_t available);

/* Whether a record of this kind names a thread or track, which readers of a later time need, too.
 */
static inline bool record_names(unsigned kind)
{
	return kind == WAFFLE_REC_TASK || kind == WAFFLE_REC_TRACK ||
	       kind == WAFFLE_REC_THREAD_NAME;
}

/* The source (enum waffle_source) that counts records of this kind; WAFFLE_SOURCE_COUNT if
 * waffle-bpf itself makes them. */
unsigned record_source(unsigned kind);
const char *record_source_name(unsigned source);

#endif
