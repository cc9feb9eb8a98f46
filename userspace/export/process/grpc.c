// SPDX-License-Identifier: Apache-2.0
#include "export/process/grpc_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "export/process/http_headers_internal.h"
#include "export/process/wire_read_internal.h"

/* A byte that says whether the message is compressed, and its length. */
#define FRAME_BYTES 5u
#define DETAILS_MAX 4096u

/* The codes of google.rpc.Code, and which of them OTLP wants to be tried again
 * (opentelemetry.io/docs/specs/otlp, "Failures"). */
static const struct {
	const char *name;
	bool again;
} codes[] = {
	{"OK", false},
	{"CANCELLED", true},
	{"UNKNOWN", false},
	{"INVALID_ARGUMENT", false},
	{"DEADLINE_EXCEEDED", true},
	{"NOT_FOUND", false},
	{"ALREADY_EXISTS", false},
	{"PERMISSION_DENIED", false},
	{"RESOURCE_EXHAUSTED", false}, /* with RetryInfo it is */
	{"FAILED_PRECONDITION", false},
	{"ABORTED", true},
	{"OUT_OF_RANGE", true},
	{"UNIMPLEMENTED", false},
	{"INTERNAL", false},
	{"UNAVAILABLE", true},
	{"DATA_LOSS", true},
	{"UNAUTHENTICATED", false},
};

#define CODES (sizeof(codes) / sizeof(codes[0]))
#define RESOURCE_EXHAUSTED 8u

void grpc_request(struct out_bytes *out, const char *message, size_t len)
{
	unsigned char frame[FRAME_BYTES] = {0, (unsigned char)(len >> 24),
					    (unsigned char)(len >> 16), (unsigned char)(len >> 8),
					    (unsigned char)len};

	bytes_add(out, frame, sizeof(frame));
	bytes_add(out, message, len);
}

const char *grpc_answer(const char *body, size_t len, size_t *message_len)
{
	const unsigned char *frame = (const unsigned char *)body;

	if (len < FRAME_BYTES || frame[0])
		return NULL;
	*message_len =
		(size_t)frame[1] << 24 | (size_t)frame[2] << 16 | (size_t)frame[3] << 8 | frame[4];
	return *message_len <= len - FRAME_BYTES ? body + FRAME_BYTES : NULL;
}

/* ---- headers ---- */

static int base64_digit(char c)
{
	return c >= 'A' && c <= 'Z'   ? c - 'A'
	       : c >= 'a' && c <= 'z' ? c - 'a' + 26
	       : c >= '0' && c <= '9' ? c - '0' + 52
	       : c == '+'             ? 62
	       : c == '/'             ? 63
				      : -1;
}

/* Decodes in place up to the first character that is no digit. Returns the number of bytes. */
static size_t base64_decode(char *text)
{
	unsigned char *to = (unsigned char *)text, *begin = to;
	uint32_t bits = 0;
	unsigned count = 0;

	for (int digit; (digit = base64_digit(*text)) >= 0; text++) {
		bits = bits << 6 | (uint32_t)digit;
		count += 6;
		if (count >= 8) {
			count -= 8;
			*to++ = (unsigned char)(bits >> count);
		}
	}
	return (size_t)(to - begin);
}

/* message Duration { int64 seconds = 1; int32 nanos = 2; } */
static uint64_t duration_read(struct wire_part wire)
{
	uint64_t tag, number = 0, seconds = 0, nanos = 0;
	struct wire_part bytes = {0};

	while (wire_field(&wire, &tag, &number, &bytes))
		if (tag == WIRE_NUMBER(1) && number <= BACKOFF_ASKED_MAX_NS / 1000000000)
			seconds = number;
		else if (tag == WIRE_NUMBER(1))
			seconds = number >> 63 ? 0 : BACKOFF_ASKED_MAX_NS / 1000000000;
		else if (tag == WIRE_NUMBER(2) && number < 1000000000)
			nanos = number;
	return seconds * 1000000000 + nanos;
}

/* message Any { string type_url = 1; bytes value = 2; }
 * message RetryInfo { Duration retry_delay = 1; } */
static void detail_read(struct grpc_result *result, struct wire_part wire)
{
	static const char retry[] = "google.rpc.RetryInfo";
	struct wire_part bytes = {0}, value = {0};
	uint64_t tag, number;
	bool is_retry = false;

	while (wire_field(&wire, &tag, &number, &bytes))
		if (tag == WIRE_MESSAGE(1))
			is_retry =
				wire_part_len(&bytes) >= sizeof(retry) - 1 &&
				!memcmp(bytes.end - (sizeof(retry) - 1), retry, sizeof(retry) - 1);
		else if (tag == WIRE_MESSAGE(2))
			value = bytes;
	if (!is_retry)
		return;
	result->may_retry = true;
	while (value.at && wire_field(&value, &tag, &number, &bytes))
		if (tag == WIRE_MESSAGE(1))
			result->after_ns = duration_read(bytes);
}

/* message Status { int32 code = 1; string message = 2; repeated Any details = 3; } */
static void details_read(struct grpc_result *result, char *text)
{
	struct wire_part wire = wire_part_of(text, base64_decode(text)), bytes = {0};
	uint64_t tag, number;

	while (wire_field(&wire, &tag, &number, &bytes))
		if (tag == WIRE_MESSAGE(3))
			detail_read(result, bytes);
}

void grpc_header_take(struct grpc_result *result, const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len);
	size_t name = colon ? (size_t)(colon - line) : 0;
	char value[DETAILS_MAX], *at = value, *end;
	unsigned long status;

	if (!name || len - name - 1 >= sizeof(value))
		return;
	memcpy(value, colon + 1, len - name - 1);
	value[len - name - 1] = '\0';
	value[strcspn(value, "\r\n")] = '\0';
	at += strspn(at, " ");
	if (name == 11 && !strncasecmp(line, "grpc-status", name)) {
		status = strtoul(at, &end, 10);
		result->known = end != at;
		result->status = status < UINT32_MAX ? (uint32_t)status : UINT32_MAX;
	} else if (name == 12 && !strncasecmp(line, "grpc-message", name)) {
		http_percent_decode(at);
		snprintf(result->message, sizeof(result->message), "%s", at);
	} else if (name == 23 && !strncasecmp(line, "grpc-status-details-bin", name)) {
		details_read(result, at);
	}
}

/* ---- the result ---- */

enum sender_outcome grpc_failed(const struct grpc_result *result, struct sender_reply *reply)
{
	const char *name = result->status < CODES ? codes[result->status].name : "unknown";
	bool again = result->status < CODES && codes[result->status].again;

	if (!result->known) {
		snprintf(reply->why, sizeof(reply->why),
			 "the answer has no grpc-status; is this a server of gRPC?");
		return SENDER_REFUSED;
	}
	snprintf(reply->why, sizeof(reply->why), "gRPC status %u (%s)%s%s", result->status, name,
		 *result->message ? ": " : "", result->message);
	reply->after_ns = result->after_ns;
	again = again || (result->status == RESOURCE_EXHAUSTED && result->may_retry);
	return again ? SENDER_AGAIN : SENDER_REFUSED;
}
