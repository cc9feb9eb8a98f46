/* SPDX-License-Identifier: Apache-2.0 */
/* object_read() by a worker. What that says of a file is checked here against the file as far as
 * its process could be harmed. */
#ifndef WAFFLE_TARGET_OBJECT_REMOTE_H
#define WAFFLE_TARGET_OBJECT_REMOTE_H

#include "target/object.h"
#include "util/wire.h"

/* An object without anything in it. */
int object_new(struct object **object, const char *path, struct error *err);

int object_read_remote(struct object **object, int fd, const char *path, struct error *err);
/* The worker's side: a worker_handler. */
int object_serve(struct wire_in *request, int fd, struct wire_out *reply, void *arg);

/* The parts, also for what call/ adds to an object. */
void object_put_site(struct wire_out *out, const struct site_info *site);
/* False: it makes no sense, or there is no memory. */
bool object_get_site(struct wire_in *in, struct object *object, struct site_info *site);
void object_put_probe(struct wire_out *out, const struct object_probe *probe);
bool object_get_probe(struct wire_in *in, struct object_probe *probe);

/* The reply of object_serve(); -EPROTO: it makes no sense. -ENOMEM. */
int object_decode(struct object *object, struct wire_in *in);

#endif
