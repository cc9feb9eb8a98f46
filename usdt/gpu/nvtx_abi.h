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
	/* `u64` is the address of `reserved` structures nvtx_payload_data. */
	NVTX_PAYLOAD_EXTENDED = (int32_t)0xDFBD0009,
};

/* nvtxEventAttributes_t. Later versions append members, which `size` tells. */
struct nvtx_attributes {
	uint16_t version, size;
	uint32_t category; /* 0: none */
	int32_t color_type;
	uint32_t color;
	int32_t payload_type; /* enum nvtx_payload; 0: none */
	int32_t reserved;     /* of an extended payload the number of structures */
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

/* ---- the payload extension (nvToolsExtPayload.h) ---- */

/* nvtxPayloadData_t */
struct nvtx_payload_data {
	uint64_t schema; /* a number from registering, or enum nvtx_member for a single value */
	uint64_t size;
	const void *data;
};

/* Types of members: NVTX_PAYLOAD_ENTRY_TYPE_*. Numbers have the sizes of C on x86-64 and aarch64.
 */
enum nvtx_member {
	NVTX_MEMBER_SIZE = 22,
	NVTX_MEMBER_ADDRESS = 23,
	NVTX_MEMBER_CSTRING = 75,      /* const char * */
	NVTX_MEMBER_CSTRING_UTF8 = 76, /* const char * */
	NVTX_MEMBER_REGISTERED = 80,   /* what RegisterString returned */
	NVTX_MEMBERS = 81,
};

/* Flags of a member with which it is no plain value: it is a pointer to one, or an array. */
#define NVTX_MEMBER_NOT_PLAIN (1u << 1 | 1u << 2 | 1u << 3 | 7u << 4)

/* nvtxPayloadSchemaEntry_t */
struct nvtx_schema_entry {
	uint64_t flags, type;
	const char *name, *description;
	uint64_t array_or_union;
	uint64_t offset; /* 0, but for the first: it follows the one before, with its alignment */
	const void *semantics;
	void *reserved;
};
_Static_assert(sizeof(struct nvtx_schema_entry) == 64, "nvtxPayloadSchemaEntry_t has 64 bytes");

/* nvtxPayloadSchemaAttr_t. `fields` says which of the others are set. */
struct nvtx_schema_attributes {
	uint64_t fields;
	const char *name;
	uint64_t type, flags;
	const struct nvtx_schema_entry *entries;
	uint64_t entry_count, static_size, alignment, schema;
	void *extension;
};
#define NVTX_SCHEMA_HAS_TYPE (1u << 2)
#define NVTX_SCHEMA_HAS_ENTRIES (1u << 4)
#define NVTX_SCHEMA_HAS_COUNT (1u << 5)
#define NVTX_SCHEMA_HAS_ID (1u << 8)
#define NVTX_SCHEMA_STATIC 1
/* Numbers that the program chooses itself, for each domain, lie between these. */
#define NVTX_SCHEMA_FIRST (1ull << 24)
#define NVTX_SCHEMA_DYNAMIC (1ull << 32)

/* nvtxPayloadEnumAttr_t */
struct nvtx_enum_attributes {
	uint64_t fields;
	const char *name;
	const void *entries;
	uint64_t entry_count, size, schema;
	void *extension;
};
#define NVTX_ENUM_HAS_SIZE (1u << 4)
#define NVTX_ENUM_HAS_ID (1u << 5)

/* nvtxExtModuleInfo_t: what InitializeInjectionNvtxExtension() gets from an object. A slot that is
 * left at 0 is switched off. */
struct nvtx_extension_segment {
	uint64_t id, count;
	intptr_t *slots;
};
struct nvtx_extension {
	uint16_t version, size, module, compatibility;
	uint64_t segment_count;
	struct nvtx_extension_segment *segments;
};
#define NVTX_EXTENSION_PAYLOAD 2
enum nvtx_extension_slot {
	NVTX_SLOT_SCHEMA_REGISTER,
	NVTX_SLOT_ENUM_REGISTER,
	NVTX_SLOT_MARK,
	NVTX_SLOT_PUSH,
	NVTX_SLOT_POP,
	NVTX_SLOT_START,
	NVTX_SLOT_END,
	NVTX_SLOTS,
};

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
