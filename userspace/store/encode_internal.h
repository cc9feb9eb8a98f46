/* SPDX-License-Identifier: Apache-2.0 */
/* Turns records into the bytes of a data chunk, before compression. docs/file-format.md describes
 * the layout. */
#ifndef WAFFLE_STORE_ENCODE_INTERNAL_H
#define WAFFLE_STORE_ENCODE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/record.h"
#include "target/elf/site.h"

/*
 * First byte of a record: the kind in the low four bits, flags in the others. The meaning of the
 * two highest flags depends on the kind.
 */
#define TAG_KIND 0x0f /* 0: the kind exceeds four bits and is in the next byte */
_Static_assert(WAFFLE_REC_KIND_COUNT <= 256, "a kind fits a byte");
#define TAG_SAME_CPU 0x10       /* the CPU is the previous record's */
#define TAG_CURRENT 0x20        /* the thread is the last one seen on that CPU */
#define TAG_TGID 0x40           /* hit, span end, return: a tgid follows; else it is the thread's */
#define TAG_HIT_FLAGS 0x80      /* hit: a byte of HIT_* follows; else it is 0 */
#define TAG_RETURN_FLAGS 0x80   /* return: a byte of RETURN_* follows; else it is 0 */
#define TAG_END_EXPLICIT 0x80   /* span end: id and site follow; else the innermost span ends */
#define TAG_SWITCH_WAKER 0x40   /* switch: waker and wake time follow, else both are 0 */
#define TAG_SWITCH_REPEATS 0x80 /* switch: blocked as the last time; else a block follows */

/* How a hit's ids are encoded, two bits each. */
#define HIT_ID(flags) ((flags)&3u)
#define HIT_PARENT(flags) ((flags) >> 2 & 3u)
#define HIT_TRACE(flags) ((flags) >> 4 & 3u)
#define HIT_PARENT_SHIFT 2
#define HIT_TRACE_SHIFT 4
enum { HIT_ID_NEXT, HIT_ID_ZERO, HIT_ID_EXPLICIT, HIT_ID_ROOT };
enum { HIT_PARENT_OPEN, HIT_PARENT_ZERO, HIT_PARENT_EXPLICIT };
enum { HIT_TRACE_SAME, HIT_TRACE_ZERO, HIT_TRACE_EXPLICIT, HIT_TRACE_ROOT };
#define HIT_RAW 0x40u /* the frame follows unencoded: length, bytes */
/* Call: a number of keys follows. From now on the frames of the site's hits have the values of that
 * many keys, and its returns have the others. */
#define HIT_KEYS 0x80u

/* Flags of a return with TAG_RETURN_FLAGS. */
#define RETURN_ID 1u   /* id and site follow; else the thread's innermost call returns */
#define RETURN_KEYS 2u /* the same as HIT_KEYS */
#define RETURN_LEFT 8u /* WAFFLE_RETURN_LEFT: no values follow; combined with RETURN_ID at most */
/* The values follow unencoded: length, bytes; combined with RETURN_ID at most. */
#define RETURN_RAW 4u

struct encoder;

struct encoder *encoder_new(void); /* NULL: out of memory */
void encoder_free(struct encoder *encoder);
bool encoder_add_site(struct encoder *encoder, const struct site_info *site);

/* Appends a record whose size record_size() has returned. False: out of memory; the record was not
 * appended. */
bool encoder_append(struct encoder *encoder, const struct waffle_rec *rec);
/* Whether the chunk has reached the size at which it should be written. */
bool encoder_full(const struct encoder *encoder);

/* The chunk of all records since the last reset. `data` is valid until the next append. */
struct encoded {
	const unsigned char *data;
	size_t bytes;
	uint32_t records;
	uint64_t min_ts, max_ts;
};
struct encoded encoder_chunk(const struct encoder *encoder);
/* Starts the next chunk. */
void encoder_reset(struct encoder *encoder);

#endif
