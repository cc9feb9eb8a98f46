/* SPDX-License-Identifier: Apache-2.0 */
/* Senders whose parcels are written to a file. */
#ifndef WAFFLE_EXPORT_PROCESS_FILE_SENDER_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_FILE_SENDER_INTERNAL_H

#include "export/process/sender_internal.h"

/*
 * Appends to a file, which is created if it is not there; NULL is standard error, which the sender
 * duplicates. It is started. `name` is that of the processor in messages.
 */
int file_sender_append(struct sender **sender, const char *name, const char *path,
		       const struct chain_host *host, struct error *err);
/* Each parcel replaces the contents of a file as a whole (util/output.h). The sender is started. */
int file_sender_replace(struct sender **sender, const char *name, const char *path,
			const struct chain_host *host, struct error *err);

#endif
