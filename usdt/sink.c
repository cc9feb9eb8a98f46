// SPDX-License-Identifier: Apache-2.0
#include "usdt/sink.h"

int sink_open(struct sink **sink, const char *path, const struct sink_origin *origin,
	      struct error *err)
{
	return sink_store_open(sink, path, origin, err);
}
