/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chakra execution traces (github.com/mlcommons/chakra), which simulators such as ASTRA-sim read.
 *
 * The file is a sequence of protobuf messages, each after its length as a varint: a GlobalMetadata,
 * then a Node for each operation and each call of the host. The field numbers are those of
 * schema/protobuf/et_def.proto, version 1.0.0.
 */
#ifndef WAFFLE_EXPORT_CHAKRA_H
#define WAFFLE_EXPORT_CHAKRA_H

#include "analyze/gpu/replay_build.h"
#include "util/error.h"

/* Writes the selected nodes (NULL: all) to a path through util/output.h. */
int chakra_write_path(const struct replay_build *build, const bool *selected, const char *path,
		      struct error *err);

#endif
