/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers over bpf/record.h that need more than its layout. */
#ifndef WAFFLE_STORE_RECORD_H
#define WAFFLE_STORE_RECORD_H

#include <stddef.h>

#include "bpf/record.h"

/* Length in bytes of the longest record, a hit with sixteen full strings. */
#define RECORD_BYTES_MAX 8192
/* The last time that a record may be of, in ns: 292 years after the machine's start. */
#define RECORD_TS_MAX INT64_MAX

/*
 * Length in bytes of the record at `rec`, of which `available` bytes may be read: 0 if it is of an
 * unknown kind, does not fit, or the frame of a hit or return is longer than WAFFLE_FRAME_MAX.
 */
size_t record_size(const void *rec, size_t available);

/* The source that counts a record of this kind; WAFFLE_SOURCE_COUNT: made by waffle-bpf itself. */
unsigned record_source(unsigned kind);
const char *record_kind_name(unsigned kind);
const char *record_source_name(unsigned source);

#endif
