/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl, opened when an exporter needs it: so no program depends on it, and no header of it is
 * needed to build. The numbers are part of its ABI (curl/curl.h); tests/unit/test_http.c compares
 * them with the header where that is installed.
 */
#ifndef WAFFLE_EXPORT_PROCESS_CURL_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_CURL_INTERNAL_H

#include "util/error.h"

/* row(name, number) */
#define CURL_OPTIONS(row)                                                                          \
	row(WRITEDATA, 10001) row(URL, 10002) row(ERRORBUFFER, 10010) row(WRITEFUNCTION, 20011)    \
		row(POSTFIELDS, 10015) row(USERAGENT, 10018) row(HTTPHEADER, 10023) row(           \
			NOPROGRESS, 43) row(POST, 47) row(FOLLOWLOCATION, 52)                      \
			row(XFERINFODATA, 10057) row(SSL_VERIFYPEER, 64) row(CAINFO, 10065) row(   \
				SSL_VERIFYHOST, 81) row(FORBID_REUSE, 75) row(HTTP_VERSION, 84)    \
				row(NOSIGNAL, 99) row(TIMEOUT_MS, 155) row(CONNECTTIMEOUT_MS, 156) \
					row(PROTOCOLS, 181) row(XFERINFOFUNCTION, 20219)           \
						row(POSTFIELDSIZE_LARGE, 30120)                    \
							row(HEADERDATA, 10029)                     \
								row(HEADERFUNCTION, 20079)

enum curl_option {
#define CURL_OPTION_ROW(name, number) CURL_##name = (number),
	CURL_OPTIONS(CURL_OPTION_ROW)
#undef CURL_OPTION_ROW
};

#define CURL_INIT_ALL 3l
#define CURL_HTTP 1l
#define CURL_HTTPS 2l
/* HTTP/2 over TLS, and HTTP/2 without TLS and without an upgrade from HTTP/1.1. */
#define CURL_HTTP_2_TLS 4l
#define CURL_HTTP_2_PRIOR_KNOWLEDGE 5l
#define CURL_INFO_RESPONSE_CODE (0x200000 + 2)
#define CURL_INFO_RETRY_AFTER (0x600000 + 57)
#define CURL_UNSUPPORTED_PROTOCOL 1
#define CURL_URL_MALFORMAT 3
#define CURL_WRITE_ERROR 23
#define CURL_OUT_OF_MEMORY 27
#define CURL_PEER_FAILED_VERIFICATION 60
#define CURL_SSL_CACERT_BADFILE 77
#define CURL_ERROR_BYTES 256

/* Its functions. */
struct curl_library {
	int (*global_init)(long flags);
	void *(*easy_init)(void);
	int (*easy_setopt)(void *easy, int option, ...);
	int (*easy_perform)(void *easy);
	int (*easy_getinfo)(void *easy, int info, ...);
	void (*easy_cleanup)(void *easy);
	const char *(*easy_strerror)(int code);
	void *(*slist_append)(void *list, const char *text);
	void (*slist_free_all)(void *list);
};

/* Opens the library, once for the process. NULL with a message: it is not there. */
const struct curl_library *curl_library_open(struct error *err);

#endif
