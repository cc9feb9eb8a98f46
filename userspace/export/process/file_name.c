// SPDX-License-Identifier: Apache-2.0
#include "export/process/file_name_internal.h"

#include <stdio.h>
#include <string.h>

int file_name_expand(char path[PATH_MAX], const char *pattern, const struct chain_host *host,
		     struct error *err)
{
	size_t len = 0;

	for (const char *at = pattern; *at; at++) {
		char part[16] = {*at};

		if (*at == '%') {
			at++;
			if (*at == 'p')
				snprintf(part, sizeof(part), "%u", host->pid);
			else if (*at != '%')
				return error_set(err, EINVAL,
						 "%s: %%%.1s in '%s' is not known; write %%p for "
						 "the pid or %%%% for %%",
						 host->origin, at, pattern);
		}
		if (len + strlen(part) >= PATH_MAX)
			return error_set(err, ENAMETOOLONG, "%s: the name of a file is too long",
					 host->origin);
		memcpy(path + len, part, strlen(part));
		len += strlen(part);
	}
	path[len] = '\0';
	return 0;
}
