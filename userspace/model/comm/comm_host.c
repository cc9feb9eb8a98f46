// SPDX-License-Identifier: Apache-2.0
/* The hosts of processes. */
#include "model/comm/comm_internal.h"

uint32_t comm_host(const struct model *model, uint32_t pid)
{
	uint32_t host = store_pid_host(pid);

	return host < model->host_count ? host : 0;
}

bool comm_hosts_comparable(const struct model *model, uint32_t host, uint32_t other)
{
	return model_hosts_comparable(model, host, other);
}
