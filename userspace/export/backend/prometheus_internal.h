/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of a whole capture as a request of Prometheus' remote write. */
#ifndef WAFFLE_EXPORT_BACKEND_PROMETHEUS_INTERNAL_H
#define WAFFLE_EXPORT_BACKEND_PROMETHEUS_INTERNAL_H

#include "export/process/metrics_text.h"
#include "model/model.h"

/* Appends the request, and sets the number of its series. Returns 0 or a negative errno with a
 * message. */
int prometheus_request(const struct model *model, const char *service, struct out_bytes *request,
		       uint32_t *series, struct error *err);

#endif
