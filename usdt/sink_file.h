/* SPDX-License-Identifier: Apache-2.0 */
/* A file that grows while the program runs. */
#ifndef WAFFLE_USDT_SINK_FILE_H
#define WAFFLE_USDT_SINK_FILE_H

#include <stddef.h>

#include "util/error.h"

struct sink_file;

/* Creates it under a temporary name (util/output.h). */
int sink_file_open(struct sink_file **file, const char *path, struct error *err);
const char *sink_file_path(const struct sink_file *file);
/* Appends all bytes. On an error the file ends where it did before. */
int sink_file_write(struct sink_file *file, const void *data, size_t bytes, struct error *err);
/* Gives it its name: from now on it is left, however the program ends. */
int sink_file_publish(struct sink_file *file, struct error *err);
/* Closes it and frees in any case. */
int sink_file_close(struct sink_file *file, struct error *err);
/* Frees. The file stays if it has its name; NULL is allowed. */
void sink_file_discard(struct sink_file *file);

#endif
