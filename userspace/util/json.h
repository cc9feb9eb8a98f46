/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A streaming JSON writer to a FILE. json_close() returns the first error, so
 * that callers need not check each call.
 *
 *	struct json *json = json_new(stdout, true);
 *	json_object_begin(json);
 *	json_field_u64(json, "count", 3);
 *	json_key(json, "spans");
 *	json_array_begin(json);
 *	…
 *	err = json_close(json);
 *
 * Strings may contain any bytes: invalid UTF-8 becomes U+FFFD. Integers are written with all their
 * digits. JSON has no numbers for doubles that are not finite: they become the strings "NaN",
 * "Infinity" and "-Infinity".
 */
#ifndef WAFFLE_UTIL_JSON_H
#define WAFFLE_UTIL_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json;

/* `pretty`: indented by two spaces, for people. NULL: out of memory. All functions below accept
 * NULL and do nothing then; json_close(NULL) returns -ENOMEM. Without a FILE the text is kept until
 * json_take(). */
struct json *json_new(FILE *out, bool pretty);

/*
 * Writes the buffered text to the FILE, and a newline unless json_line() ended the last value.
 * Frees the writer and does not flush the FILE. Returns 0, -ENOMEM, the negative errno of a failed
 * write, or -EINVAL (the calls made no JSON value, a bug of the caller).
 */
int json_close(struct json *json);

/* Ends a complete value with a newline, for JSON with one value a line. Another value may
 * follow. */
void json_line(struct json *json);

/* The same for the elements of an array whose brackets the caller writes: call it between two of
 * them. It writes a comma and a newline. */
void json_next(struct json *json);
/* Writes the buffered text to the FILE, for a stream that does not end. Returns the first error. */
int json_flush(struct json *json);
/* Without a FILE: returns the text since the last call. It is valid until more is written. `json`
 * must not be NULL. */
const char *json_take(struct json *json, size_t *len);
/* Writes text as it is before, between or behind values, such as the brackets of such an array. */
void json_outside(struct json *json, const char *text);

void json_object_begin(struct json *json);
void json_object_end(struct json *json);
void json_array_begin(struct json *json);
void json_array_end(struct json *json);

/* A key that is a constant must be printable ASCII without quotes and backslashes: it is written as
 * it is. Other keys may contain anything, and are escaped. */
static inline void json_key(struct json *json, const char *key);

void json_string(struct json *json, const char *text);
void json_string_len(struct json *json, const char *text, size_t len);
void json_i64(struct json *json, int64_t value);
void json_u64(struct json *json, uint64_t value);
void json_f64(struct json *json, double value);
void json_bool(struct json *json, bool value);
void json_null(struct json *json);
/* A string of sixteen hexadecimal digits. */
void json_hex64(struct json *json, uint64_t value);
/* Gives a number that printf() wrote a plain decimal point: the program that libwaffle records may
 * have a locale with another one. Returns its length, which is no longer than before. */
size_t json_plain_point(char *digits, size_t len);
/* Text that is a JSON number already, such as microseconds "12.345". */
void json_number(struct json *json, const char *digits, size_t len);

void json_key_plain_(struct json *json, const char *key, size_t len);
void json_key_any_(struct json *json, const char *key);

static inline __attribute__((always_inline)) void json_key(struct json *json, const char *key)
{
	if (__builtin_constant_p(__builtin_strlen(key)))
		json_key_plain_(json, key, __builtin_strlen(key));
	else
		json_key_any_(json, key);
}

static inline void json_field_string(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	json_string(json, text);
}

static inline void json_field_i64(struct json *json, const char *key, int64_t value)
{
	json_key(json, key);
	json_i64(json, value);
}

static inline void json_field_u64(struct json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	json_u64(json, value);
}

static inline void json_field_f64(struct json *json, const char *key, double value)
{
	json_key(json, key);
	json_f64(json, value);
}

static inline void json_field_bool(struct json *json, const char *key, bool value)
{
	json_key(json, key);
	json_bool(json, value);
}

static inline void json_field_hex64(struct json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	json_hex64(json, value);
}

#endif
