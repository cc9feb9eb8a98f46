/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the bytes of a data chunk back into records. The bytes are not trusted. */
#ifndef WAFFLE_STORE_DECODE_INTERNAL_H
#define WAFFLE_STORE_DECODE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/lengths_internal.h"
#include "store/record.h"
#include "target/elf/site.h"

struct decoder;

struct decoder *decoder_new(void); /* NULL: out of memory */
void decoder_free(struct decoder *decoder);
bool decoder_add_site(struct decoder *decoder, const struct site_info *site);
/* The lengths of the file's records. Without a call they are those of this program. */
void decoder_set_lengths(struct decoder *decoder, const struct record_lengths *lengths);

/* Starts a chunk. `data` must stay valid until the last record has been read. */
void decoder_begin(struct decoder *decoder, const void *data, size_t bytes, uint32_t records);
/* Reads the next record of a known kind, which is valid until the next call. Returns 1, 0 after the
 * last record, or -EBADMSG if no encoder could have written the chunk, or -ENOMEM. */
int decoder_next(struct decoder *decoder, const struct waffle_rec **rec);
/* Number of the chunk's records that follow that one. */
uint32_t decoder_left(const struct decoder *decoder);

#endif
