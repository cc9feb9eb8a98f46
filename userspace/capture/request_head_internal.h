/* SPDX-License-Identifier: Apache-2.0 */
/* The first bytes of a request, of HTTP/1 or of RESP (the protocol of redis). They come from the
 * network and are not trusted. */
#ifndef WAFFLE_CAPTURE_REQUEST_HEAD_INTERNAL_H
#define WAFFLE_CAPTURE_REQUEST_HEAD_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

enum request_protocol { REQUEST_HTTP, REQUEST_RESP, REQUEST_PROTOCOLS };

#define REQUEST_METHOD_MAX 32
#define REQUEST_PATH_MAX 200

struct request_head {
	enum request_protocol protocol;
	char method[REQUEST_METHOD_MAX]; /* "GET"; of RESP the command, in capital letters */
	char path[REQUEST_PATH_MAX];     /* of HTTP, without its query; of RESP empty */
	bool path_cut;                   /* it is longer */
};

/*
 * Reads method and path, or the command. False: the bytes are no begin of a request. Nothing else
 * is kept: no query, no header, no argument of a command. Bytes that are not printable ASCII are
 * replaced by '?'.
 */
bool request_head_read(struct request_head *head, const char *bytes, size_t len);

/* The offset of the request that follows the one at the begin of these bytes; 0: it has no end in
 * them, or its end is not known. */
size_t request_head_next(const char *bytes, size_t len);

#endif
