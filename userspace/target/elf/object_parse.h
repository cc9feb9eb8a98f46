/* SPDX-License-Identifier: Apache-2.0 */
/* object_read() in the process that calls it. libwaffle reads the files of its own process so. */
#ifndef WAFFLE_TARGET_ELF_OBJECT_PARSE_H
#define WAFFLE_TARGET_ELF_OBJECT_PARSE_H

#include "target/elf/object.h"

int object_parse(struct object **object, int fd, const char *path, struct error *err);

#endif
