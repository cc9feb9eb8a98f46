/* SPDX-License-Identifier: Apache-2.0 */
/* The list of processors: a new one is a row here, and a file that defines its processor_NAME. */
#ifndef WAFFLE_EXPORT_PROCESS_PROCESSORS_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_PROCESSORS_INTERNAL_H

#include "export/process/processor_internal.h"

// clang-format off
#define PROCESSOR_ROWS(row)                                                                        \
	row(sample)                                                                                \
	row(filter)                                                                                \
	row(call)                                                                                  \
	row(metrics)                                                                               \
	row(log)                                                                                   \
	row(batch)                                                                                 \
	row(export)
// clang-format on

#define PROCESSOR_DECLARE(name) extern const struct processor_type processor_##name;
PROCESSOR_ROWS(PROCESSOR_DECLARE)
#undef PROCESSOR_DECLARE

#endif
