/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a data chunk back to records. The bytes are not trusted. */
#ifndef WAFFLE_STORE_DECODE_H
#define WAFFLE_STORE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/record.h"
#include "target/site.h"

struct decoder;

struct decoder *decoder_new(void); /* NULL: out of memory */
void decoder_free(struct decoder *decoder);
bool decoder_add_site(struct decoder *decoder, const struct site_info *site);

/* Starts a chunk; the bytes must stay until its last record was read. */
void decoder_begin(struct decoder *decoder, const void *data, size_t bytes, uint32_t records);
/* The next record, valid until the next call: 1; 0 behind the last one; -EBADMSG if the chunk is
 * not what an encoder makes. */
int decoder_next(struct decoder *decoder, const struct waffle_rec **rec);

#endif
