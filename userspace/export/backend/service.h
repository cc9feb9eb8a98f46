/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a captured program, by which servers know it. */
#ifndef WAFFLE_EXPORT_BACKEND_SERVICE_H
#define WAFFLE_EXPORT_BACKEND_SERVICE_H

#include "store/store.h"

#define SERVICE_BYTES 256

/* OTEL_SERVICE_NAME, or else the program of the captured command, as far as the capture has it.
 * Writes it to `name`, and returns that. */
const char *service_name(char name[SERVICE_BYTES], const struct store_meta *meta);

#endif
