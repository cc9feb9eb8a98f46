/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing buffer of bytes or text, for what processors write. If memory runs out, `failed` is set
 * and what follows is left out, so that callers need not check each call.
 */
#ifndef WAFFLE_EXPORT_PROCESS_BYTES_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_BYTES_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct out_bytes {
	char *data;
	size_t len, cap;
	bool failed;
};

void bytes_add_slow_(struct out_bytes *bytes, const void *data, size_t len);

static inline void bytes_add(struct out_bytes *bytes, const void *data, size_t len)
{
	if (len >= bytes->cap - bytes->len || bytes->failed) {
		bytes_add_slow_(bytes, data, len);
		return;
	}
	memcpy(bytes->data + bytes->len, data, len);
	bytes->len += len;
}

bool bytes_grow_(struct out_bytes *bytes, size_t len);

/* Where the next `len` bytes go; the caller writes them and adds their number to bytes->len. NULL:
 * out of memory. */
static inline char *bytes_room(struct out_bytes *bytes, size_t len)
{
	if ((len > bytes->cap - bytes->len || bytes->failed) && !bytes_grow_(bytes, len))
		return NULL;
	return bytes->data + bytes->len;
}

void bytes_print(struct out_bytes *bytes, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The same as "%" PRIu64 and "%016" PRIx64, in a fraction of the time. */
void bytes_u64(struct out_bytes *bytes, uint64_t value);
void bytes_hex64(struct out_bytes *bytes, uint64_t value);
/* The shortest decimal number that reads back as the same; "nan", "inf" or "-inf" of others. */
void bytes_f64(struct out_bytes *bytes, double value);
void bytes_free(struct out_bytes *bytes);

static inline void bytes_text(struct out_bytes *bytes, const char *text)
{
	bytes_add(bytes, text, strlen(text));
}

static inline void bytes_char(struct out_bytes *bytes, char c)
{
	bytes_add(bytes, &c, 1);
}

/* Empties it, and keeps the memory. */
static inline void bytes_clear(struct out_bytes *bytes)
{
	bytes->len = 0;
	bytes->failed = false;
}

/* ---- JSON ---- */

/* A string. Control characters, also those of C1 and of text direction, are escaped, so that a
 * terminal shows it safely; invalid UTF-8 becomes U+FFFD. */
void bytes_json_string(struct out_bytes *bytes, const char *text, size_t len);
/* A number; one that is not finite becomes the string "NaN", "Infinity" or "-Infinity". */
void bytes_json_f64(struct out_bytes *bytes, double value);

#endif
