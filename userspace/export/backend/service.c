// SPDX-License-Identifier: Apache-2.0
#include "export/backend/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *service_name(char name[SERVICE_BYTES], const struct store_meta *meta)
{
	const char *named = getenv("OTEL_SERVICE_NAME"), *first = meta->command;
	size_t len = strcspn(first, " ");
	const char *slash = memrchr(first, '/', len);

	if (slash) {
		len -= (size_t)(slash + 1 - first);
		first = slash + 1;
	}
	if (named && *named)
		snprintf(name, SERVICE_BYTES, "%s", named);
	else
		snprintf(name, SERVICE_BYTES, "%.*s", (int)len, len ? first : "");
	return *name ? name : "waffle";
}
