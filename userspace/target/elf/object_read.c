// SPDX-License-Identifier: Apache-2.0
#include "target/elf/object_read.h"

#include "target/elf/object_parse.h"
#include "target/elf/object_remote.h"
#include "target/worker/worker.h"

int object_read(struct object **object, int fd, const char *path, struct error *err)
{
	return worker_is_there() ? object_read_remote(object, fd, path, err)
				 : object_parse(object, fd, path, err);
}
