/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files in the options of processors: %p is the pid, %% a %. */
#ifndef WAFFLE_EXPORT_PROCESS_FILE_NAME_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_FILE_NAME_INTERNAL_H

#include <limits.h>

#include "export/process/chain_host.h"
#include "util/error.h"

int file_name_expand(char path[PATH_MAX], const char *pattern, const struct chain_host *host,
		     struct error *err);

#endif
