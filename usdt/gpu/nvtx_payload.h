/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Payloads of NVTX's payload extension: the program registers a schema, which says what members a
 * structure has, and gives ranges the address of such a structure. Its members become keys. Members
 * that are numbers, addresses, C strings and registered strings are read; others, such as arrays
 * and nested structures, are left out.
 *
 * The functions may be called by several threads and in signal handlers: they take no lock.
 */
#ifndef WAFFLE_USDT_GPU_NVTX_PAYLOAD_H
#define WAFFLE_USDT_GPU_NVTX_PAYLOAD_H

#include <stdbool.h>

#include "usdt/gpu/nvtx_abi.h"
#include "usdt/gpu/nvtx_text.h"

/* Members of a schema that are read. */
#define NVTX_MEMBERS_MAX 10

/* A schema that was registered; NULL: none. */
struct nvtx_schema;

/* Both return the number by which the program refers to it. `domain` is its number. */
uint64_t nvtx_schema_register(unsigned domain, const struct nvtx_schema_attributes *attributes);
uint64_t nvtx_enum_register(unsigned domain, const struct nvtx_enum_attributes *attributes);

/* The schema of an event's payload. NULL: it has none, or one that is not known. */
const struct nvtx_schema *nvtx_payload_schema(unsigned domain,
					      const struct nvtx_attributes *attributes);
/* The name of ranges or marks with these keys and those of the schema. NULL: there are too many
 * such names. */
waffle_name_t *nvtx_payload_name(struct nvtx_text *text, bool span, unsigned keys,
				 const struct nvtx_schema *schema);
/* Writes the values of the schema's members. Returns their number, which is that of the keys. */
unsigned nvtx_payload_values(const struct nvtx_schema *schema,
			     const struct nvtx_attributes *attributes,
			     waffle_value_t values[NVTX_MEMBERS_MAX]);

#endif
