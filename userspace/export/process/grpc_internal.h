/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A unary call of gRPC over HTTP/2 (github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md): the
 * request is a POST of a message behind five bytes, and the result is in headers that follow the
 * answer. So libcurl is enough, and no library of gRPC is needed.
 */
#ifndef WAFFLE_EXPORT_PROCESS_GRPC_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_GRPC_INTERNAL_H

#include "export/process/bytes_internal.h"
#include "export/process/sender_internal.h"

#define GRPC_UNIMPLEMENTED 12u

/* What a server said behind its answer. */
struct grpc_result {
	bool known; /* there was a grpc-status */
	uint32_t status;
	char message[160]; /* may have any bytes */
	bool may_retry;    /* RetryInfo was there, … */
	uint64_t after_ns; /* … and asks to wait for so long */
};

/* The request of a message. */
void grpc_request(struct out_bytes *out, const char *message, size_t len);
/* Takes a line of the headers before or behind an answer. */
void grpc_header_take(struct grpc_result *result, const char *line, size_t len);
/* The message in an answer's body. NULL: there is none that can be read. */
const char *grpc_answer(const char *body, size_t len, size_t *message_len);
/* What becomes of a request with this result other than success; writes reply->why and after_ns. */
enum sender_outcome grpc_failed(const struct grpc_result *result, struct sender_reply *reply);

#endif
