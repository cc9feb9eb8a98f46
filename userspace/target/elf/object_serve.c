// SPDX-License-Identifier: Apache-2.0
/* The worker's side of object_remote.c. */
#include <errno.h>

#include "target/elf/object_read.h"
#include "target/elf/object_remote.h"

int object_serve(struct wire_in *request, int fd, struct wire_out *reply, void *arg)
{
	const char *path = wire_get_text(request);
	struct error problem = ERROR_INIT;
	struct object *object;
	int result;

	(void)arg;
	if (!path || !wire_in_done(request))
		return -EINVAL;
	result = object_read(&object, fd, path, &problem);
	if (result) {
		wire_put_text(reply, problem.message);
		return result;
	}
	wire_put_u32(reply, object->machine | (uint32_t)object->big_endian << 16 |
				    (uint32_t)object->simulation << 17);
	wire_put_u32(reply, object->bad_notes);
	wire_put_u64(reply, object->doubled.offset);
	wire_put_u32(reply, object->doubled.mappings);
	wire_put_u32(reply, object->transport.version);
	wire_put_u64(reply, object->transport.ring);
	wire_put_u64(reply, object->transport.ring_semaphore);
	wire_put_u64(reply, object->transport.usdt);
	wire_put_u64(reply, object->transport.usdt_semaphore);
	wire_put_u32(reply, (uint32_t)object->sites.len);
	for (size_t i = 0; i < object->sites.len; i++)
		object_put_site(reply, &object->sites.data[i]);
	wire_put_u32(reply, (uint32_t)object->probes.len);
	for (size_t i = 0; i < object->probes.len; i++)
		object_put_probe(reply, &object->probes.data[i]);
	object_free(object);
	return 0;
}
