// SPDX-License-Identifier: Apache-2.0
/* Any bytes as the begin of a request. What is kept of them must be printable. */
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "capture/request_head_internal.h"
#include "require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t max)
{
	size_t len = strnlen(text, max);

	require(len < max);
	for (size_t i = 0; i < len; i++)
		require(isgraph((unsigned char)text[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct request_head head;
	size_t next = request_head_next((const char *)data, size);

	require(!next || next < size);
	if (!request_head_read(&head, (const char *)data, size))
		return 0;
	require(head.protocol < REQUEST_PROTOCOLS && head.method[0]);
	check_text(head.method, sizeof(head.method));
	check_text(head.path, sizeof(head.path));
	return 0;
}
