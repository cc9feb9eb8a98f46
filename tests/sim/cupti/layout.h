/* SPDX-License-Identifier: Apache-2.0 */
/* Records of operations, with the sizes and offsets that they have in a version of CUDA. */
#ifndef SIM_CUPTI_LAYOUT_H
#define SIM_CUPTI_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "observer.h"

#define LAYOUT_MAX 256
#define LAYOUT_GRAPH 51

struct layout_op {
	struct op_about about;
	uint32_t stream; /* UINT32_MAX: none */
	uint64_t start, end;
	bool is_graph; /* the whole graph of this operation */
};

struct layout_record {
	uint32_t kind; /* CUpti_ActivityKind; 0: none */
	size_t bytes;
	uint8_t data[LAYOUT_MAX];
};

struct layout_record layout_make(const struct layout_op *op);
/* A record of a kind that no version has. */
struct layout_record layout_unknown(void);
uint32_t layout_kind(const uint8_t *record);
size_t layout_bytes(uint32_t kind);
/* Whether the simulated version of CUPTI has records of this kind. */
bool layout_has(int kind);

#endif
