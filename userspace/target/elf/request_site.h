/* SPDX-License-Identifier: Apache-2.0 */
/* The names of requests that a server answers (capture/requests.h): "HTTP GET", "RESP BLPOP". */
#ifndef WAFFLE_TARGET_ELF_REQUEST_SITE_H
#define WAFFLE_TARGET_ELF_REQUEST_SITE_H

#include <stddef.h>

#include "target/elf/site.h"
#include "util/text.h"

#define REQUEST_SITE_HTTP "HTTP"
#define REQUEST_SITE_RESP "RESP" /* the protocol of redis */

/* The command of a request of redis; NULL: it is none. */
static inline const char *request_site_command(const struct site_info *site)
{
	return site_is_request(site) && text_begins(site->name, REQUEST_SITE_RESP " ")
		       ? site->name + sizeof(REQUEST_SITE_RESP)
		       : NULL;
}

#endif
