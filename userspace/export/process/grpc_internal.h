/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A unary call of gRPC over HTTP/2 (github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). The
 * request is a POST of five bytes and a message. The result is in trailers: headers that follow the
 * answer's body. So libcurl is enough, and no library of gRPC is needed.
 */
#ifndef WAFFLE_EXPORT_PROCESS_GRPC_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_GRPC_INTERNAL_H

#include "export/process/bytes_internal.h"
#include "export/process/sender_internal.h"

#define GRPC_UNIMPLEMENTED 12u

/* The result of a call, from the trailers. */
struct grpc_result {
	bool known; /* the answer has a grpc-status */
	uint32_t status;
	char message[160]; /* may have any bytes */
	bool may_retry;    /* the answer has a RetryInfo */
	uint64_t after_ns; /* the time that the RetryInfo asks to wait */
};

/* Appends the body of the request that carries this message. */
void grpc_request(struct out_bytes *out, const char *message, size_t len);
/* Takes a line of the headers or of the trailers of an answer. */
void grpc_header_take(struct grpc_result *result, const char *line, size_t len);
/* The message in an answer's body. NULL: the body is cut off, or compressed. */
const char *grpc_answer(const char *body, size_t len, size_t *message_len);
/* Whether a request that did not succeed is tried again, or refused. Fills in reply->why and
 * reply->after_ns. */
enum sender_outcome grpc_failed(const struct grpc_result *result, struct sender_reply *reply);

#endif
