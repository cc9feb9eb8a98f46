/* SPDX-License-Identifier: Apache-2.0 */
/* object_read() by a worker. The replies are checked here against the file, as far as wrong ones
 * could harm a process. */
#ifndef WAFFLE_TARGET_ELF_OBJECT_REMOTE_H
#define WAFFLE_TARGET_ELF_OBJECT_REMOTE_H

#include "target/elf/object.h"
#include "util/wire.h"

int object_read_remote(struct object **object, int fd, const char *path, struct error *err);
/* The worker's side (object_serve.c), a worker_handler. */
int object_serve(struct wire_in *request, int fd, struct wire_out *reply, void *arg);

/* Encode and decode single parts. probe/find/ uses them for the sites that it adds. */
void object_put_site(struct wire_out *out, const struct site_info *site);
/* False: the reply is malformed, or allocation failed. */
bool object_get_site(struct wire_in *in, struct object *object, struct site_info *site);
void object_put_probe(struct wire_out *out, const struct object_probe *probe);
bool object_get_probe(struct wire_in *in, struct object_probe *probe);

/* Parses the reply of object_serve(). 0; -EPROTO: it is malformed; -ENOMEM. */
int object_decode(struct object *object, struct wire_in *in);

#endif
