/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The binary interface between a program with NVTX, version 3, and a tool. NVTX is a header: each
 * object (the program, or a library of it) that uses it has a structure of function pointers, which
 * are NULL as long as there is no tool. The declarations are our own. Their source is the headers
 * of PyPI's nvidia-nvtx 13.5.25 (nvToolsExt.h, nvtxDetail/nvtxTypes.h, nvtxDetail/nvtxImpl.h); the
 * layout of the structure has been the same since 2022.
 */
#ifndef WAFFLE_USDT_GPU_NVTX_ABI_H
#define WAFFLE_USDT_GPU_NVTX_ABI_H

#include <stdint.h>
#include <wchar.h>

/* ---- events ---- */

enum nvtx_message { NVTX_MESSAGE_ASCII = 1, NVTX_MESSAGE_WIDE = 2, NVTX_MESSAGE_REGISTERED = 3 };

enum nvtx_payload {
	NVTX_PAYLOAD_U64 = 1,
	NVTX_PAYLOAD_I64 = 2,
	NVTX_PAYLOAD_F64 = 3,
	NVTX_PAYLOAD_U32 = 4,
	NVTX_PAYLOAD_I32 = 5,
	NVTX_PAYLOAD_F32 = 6,
};

/* nvtxEventAttributes_t. Later versions append members, which `size` tells. */
struct nvtx_attributes {
	uint16_t version, size;
	uint32_t category; /* 0: none */
	int32_t color_type;
	uint32_t color;
	int32_t payload_type; /* enum nvtx_payload; 0: none */
	int32_t reserved;
	union {
		uint64_t u64;
		int64_t i64;
		double f64;
		uint32_t u32;
		int32_t i32;
		float f32;
	} payload;
	int32_t message_type; /* enum nvtx_message; 0: none */
	union {
		const char *ascii;
		const wchar_t *wide;
		const void *registered; /* what RegisterString returned */
	} message;
};
_Static_assert(sizeof(struct nvtx_attributes) == 48, "nvtxEventAttributes_t has 48 bytes");

/* What Pop returns without a tool, and what no level is. */
#define NVTX_NO_PUSH_POP_TRACKING (-2)

/* ---- tables ---- */

/* Functions of the module CORE, and their places in its table. */
enum nvtx_core {
	NVTX_MARK_EX = 1,
	NVTX_MARK_A,
	NVTX_MARK_W,
	NVTX_START_EX,
	NVTX_START_A,
	NVTX_START_W,
	NVTX_END,
	NVTX_PUSH_EX,
	NVTX_PUSH_A,
	NVTX_PUSH_W,
	NVTX_POP,
	NVTX_NAME_CATEGORY_A,
	NVTX_NAME_CATEGORY_W,
	NVTX_NAME_THREAD_A,
	NVTX_NAME_THREAD_W,
	NVTX_CORE_COUNT,
};

/* Those of the module CORE2. */
enum nvtx_core2 {
	NVTX_DOMAIN_MARK_EX = 1,
	NVTX_DOMAIN_START_EX,
	NVTX_DOMAIN_END,
	NVTX_DOMAIN_PUSH_EX,
	NVTX_DOMAIN_POP,
	NVTX_DOMAIN_RESOURCE_CREATE,
	NVTX_DOMAIN_RESOURCE_DESTROY,
	NVTX_DOMAIN_NAME_CATEGORY_A,
	NVTX_DOMAIN_NAME_CATEGORY_W,
	NVTX_DOMAIN_REGISTER_STRING_A,
	NVTX_DOMAIN_REGISTER_STRING_W,
	NVTX_DOMAIN_CREATE_A,
	NVTX_DOMAIN_CREATE_W,
	NVTX_DOMAIN_DESTROY,
	NVTX_DOMAIN_INITIALIZE,
	NVTX_CORE2_COUNT,
};

enum nvtx_module { NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5 };

typedef void (*nvtx_function)(void);

/* The export table with this number, which InitializeInjectionNvtx2() asks the object for. */
#define NVTX_EXPORT_CALLBACKS 1
typedef const void *(*nvtx_export_table)(uint32_t number);
struct nvtx_callbacks {
	uint64_t size;
	/* Gives the table of a module: NVTX_…_COUNT addresses of function pointers, the first of
	 * which is NULL. Returns 0 if there is none. */
	int (*table)(int module, nvtx_function ***table, unsigned *count);
};

/*
 * The structure of an object (nvtxGlobals_v3): offsets in bytes. A pointer in a table has the
 * address of a function pointer between NVTX_AT_FUNCTIONS and the first table.
 */
#define NVTX_AT_STATE 0 /* u32: NVTX_STATE_* */
#define NVTX_AT_FUNCTIONS 48
#define NVTX_AT_DOMAIN_FUNCTIONS 392
#define NVTX_AT_CORE 560
#define NVTX_AT_CORE2 968
#define NVTX_GLOBALS_BYTES 1168
enum nvtx_state { NVTX_STATE_FRESH, NVTX_STATE_STARTED, NVTX_STATE_COMPLETE };

#endif
