// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/nccl_abi.h"

#include <stddef.h>
#include <string.h>

/* From version 4 on the descriptions begin like this. */
#define FROM_4_COLL                                                                                \
	{                                                                                          \
		.seq = 24, .func = 32, .count = 56, .datatype = 72, .channels = 80, .algo = 88,    \
		.proto = 96                                                                        \
	}
#define FROM_4_P2P                                                                                 \
	{                                                                                          \
		.func = 24, .datatype = 40, .count = 48, .peer = 56, .channels = 60                \
	}

const struct nccl_layout nccl_layouts[NCCL_VERSIONS + 1] = {
	[1] = {.coll = {.hash = 32,
			.seq = 40,
			.func = 48,
			.count = 72,
			.datatype = 84,
			.channels = 104,
			.algo = 106,
			.proto = 107},
	       .p2p = {.hash = 32, .func = 40, .datatype = 56, .count = 64, .peer = 72},
	       .numbers = true},
	[2] = {.coll = {.hash = 32,
			.seq = 40,
			.func = 48,
			.count = 72,
			.datatype = 88,
			.channels = 104,
			.algo = 112,
			.proto = 120},
	       .p2p = {.hash = 32, .func = 40, .datatype = 56, .count = 64, .peer = 72}},
	[3] = {.coll = {.hash = 32,
			.seq = 40,
			.func = 48,
			.count = 72,
			.datatype = 88,
			.channels = 96,
			.algo = 104,
			.proto = 112},
	       .p2p = {.hash = 32, .func = 40, .datatype = 56, .count = 64, .peer = 72},
	       .kernels = true},
	[4] = {.coll = FROM_4_COLL, .p2p = FROM_4_P2P, .kernels = true, .timer = true},
	[5] = {.coll = FROM_4_COLL,
	       .p2p = FROM_4_P2P,
	       .wide_type = true,
	       .kernels = true,
	       .timer = true},
	[6] = {.coll = FROM_4_COLL,
	       .p2p = FROM_4_P2P,
	       .wide_type = true,
	       .kernels = true,
	       .timer = true},
	[7] = {.coll = FROM_4_COLL,
	       .p2p = FROM_4_P2P,
	       .wide_type = true,
	       .kernels = true,
	       .timer = true,
	       .phases = true},
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

const char *nccl_function_name(unsigned number)
{
	static const char *const names[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
					    "AllReduce", "SendRecv", "Send",      "Recv"};

	return number < COUNT(names) ? names[number] : NULL;
}

const char *nccl_algorithm_name(unsigned number)
{
	static const char *const names[] = {
		"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};

	return number < COUNT(names) ? names[number] : NULL;
}

const char *nccl_protocol_name(unsigned number)
{
	static const char *const names[] = {"LL", "LL128", "SIMPLE"};

	return number < COUNT(names) ? names[number] : NULL;
}

static const struct {
	const char *name, *short_name;
	unsigned bytes;
} types[] = {
	{"ncclInt8", "int8", 1},         {"ncclUint8", "uint8", 1},
	{"ncclInt32", "int32", 4},       {"ncclUint32", "uint32", 4},
	{"ncclInt64", "int64", 8},       {"ncclUint64", "uint64", 8},
	{"ncclFloat16", "float16", 2},   {"ncclFloat32", "float32", 4},
	{"ncclFloat64", "float64", 8},   {"ncclBfloat16", "bfloat16", 2},
	{"ncclFloat8e4m3", "f8e4m3", 1}, {"ncclFloat8e5m2", "f8e5m2", 1},
};

int nccl_type_number(const char *name)
{
	for (unsigned i = 0; name && i < COUNT(types); i++)
		if (!strcmp(name, types[i].name))
			return (int)i;
	return -1;
}

const char *nccl_type_name(unsigned number)
{
	return number < COUNT(types) ? types[number].short_name : NULL;
}

unsigned nccl_type_bytes(unsigned number)
{
	return number < COUNT(types) ? types[number].bytes : 0;
}
