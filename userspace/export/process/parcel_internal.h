/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to be delivered as one, such as a request or some lines. */
#ifndef WAFFLE_EXPORT_PROCESS_PARCEL_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_PARCEL_INTERNAL_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct parcel {
	struct parcel *next;
	uint64_t queued_ns;
	uint32_t kind;    /* meaning is that of whoever delivers it */
	uint32_t records; /* that are in it, for the counts */
	size_t len;
	char data[];
};

/* A copy of `data`, for free(). NULL: out of memory. */
static inline struct parcel *parcel_new(uint32_t kind, uint32_t records, const void *data,
					size_t len)
{
	struct parcel *parcel = malloc(sizeof(*parcel) + len);

	if (!parcel)
		return NULL;
	*parcel = (struct parcel){.kind = kind, .records = records, .len = len};
	if (len)
		memcpy(parcel->data, data, len);
	return parcel;
}

#endif
