// SPDX-License-Identifier: Apache-2.0
/*
 * Ranges with payloads of NVTX's payload extension, as NCCL makes them: schemas with numbers of the
 * program's own, and ranges that are pushed by the domain's function and popped by the extension's.
 * The last range must not be inside of any other. It makes all of them for each line of its input.
 */
#include <nvtx3/nvToolsExtPayload.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define STATIC(number) (NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + (number))

struct reduce {
	uint64_t comm;
	size_t bytes;
	int root;
	unsigned op; /* an enumeration */
};

struct mixed {
	int8_t small;
	float part;
	const char *text;
	int numbers[2]; /* an array, which is not read */
	const void *address;
	nvtxStringHandle_t handle;
	double real;
};

static nvtxDomainHandle_t domain;

static uint64_t enum_register(void)
{
	static const nvtxPayloadEnum_t values[] = {{"Sum", 0, 0}, {"Max", 2, 0}};
	nvtxPayloadEnumAttr_t made = {0};

	made.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
			 NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
			 NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID;
	made.entries = values;
	made.numEntries = 2;
	made.sizeOfEnum = sizeof(unsigned);
	made.schemaId = STATIC(24);
	return nvtxPayloadEnumRegister(domain, &made);
}

static uint64_t schema_register(const nvtxPayloadSchemaEntry_t *entries, size_t count, size_t size,
				uint64_t id)
{
	nvtxPayloadSchemaAttr_t made = {0};

	made.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
			 NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
			 NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
			 NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
			 (id ? NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID : 0);
	made.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
	made.entries = entries;
	made.numEntries = count;
	made.payloadStaticSize = size;
	made.schemaId = id;
	return nvtxPayloadSchemaRegister(domain, &made);
}

static void push(const char *name, uint64_t schema, const void *data, size_t size)
{
	nvtxPayloadData_t payload = {schema, size, data};
	nvtxEventAttributes_t event = {0};

	event.version = NVTX_VERSION;
	event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	event.messageType = NVTX_MESSAGE_TYPE_ASCII;
	event.message.ascii = name;
	event.payloadType = NVTX_PAYLOAD_TYPE_EXT;
	event.reserved0 = 1;
	event.payload.ullValue = (uintptr_t)&payload;
	nvtxDomainRangePushEx(domain, &event);
}

static void ranges_make(uint64_t made, const struct reduce *one, const struct mixed *two)
{
	push("ncclReduce", STATIC(5), one, sizeof(*one));
	nvtxRangePopPayload(domain, NULL, 0);
	push("mixed", made, two, sizeof(*two));
	nvtxRangePopPayload(domain, NULL, 0);
	push("short", STATIC(5), one, sizeof(*one) - 1);
	nvtxDomainRangePop(domain);
	push("unknown", STATIC(77), one, sizeof(*one));
	nvtxDomainRangePop(domain);
	nvtxRangeEndPayload(domain, nvtxRangeStartPayload(domain, NULL, 0), NULL, 0);
	nvtxMarkPayload(domain, NULL, 0);
	push("last", STATIC(5), one, sizeof(*one));
	nvtxDomainRangePop(domain);
}

int main(void)
{
	/* `text` of the second one points to nothing. Offsets of 0 follow the member before. */
	static const nvtxPayloadSchemaEntry_t reduce[] = {
		{0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "comm", NULL, 0, 0, NULL, NULL},
		{0, NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "Message size [bytes]", NULL, 0, 0, NULL, NULL},
		{0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "root", NULL, 0, 0, NULL, NULL},
		{0, STATIC(24), "op", NULL, 0, 0, NULL, NULL},
	};
	static const nvtxPayloadSchemaEntry_t mixed[] = {
		{0, NVTX_PAYLOAD_ENTRY_TYPE_INT8, "small", NULL, 0, 0, NULL, NULL},
		{0, NVTX_PAYLOAD_ENTRY_TYPE_FLOAT, "part", NULL, 0, 0, NULL, NULL},
		{0, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "text", NULL, 0, 0, NULL, NULL},
		{NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, NVTX_PAYLOAD_ENTRY_TYPE_INT, "numbers",
		 NULL, 2, 0, NULL, NULL},
		{0, NVTX_PAYLOAD_ENTRY_TYPE_ADDRESS, "address", NULL, 0,
		 offsetof(struct mixed, address), NULL, NULL},
		{0, NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE, "handle", NULL, 0, 0,
		 NULL, NULL},
		{0, NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, "real", NULL, 0, 0, NULL, NULL},
	};
	const struct reduce one = {0xc0ffee, 1u << 20, -3, 2};
	struct mixed two = {-5, 0.25f, (const char *)0x10, {1, 2}, (void *)0x1234, NULL, 2.5};
	uint64_t made;
	char line[16];

	domain = nvtxDomainCreateA("NCCL");
	two.handle = nvtxDomainRegisterStringA(domain, "kept");
	enum_register();
	schema_register(reduce, 4, sizeof(one), STATIC(5));
	made = schema_register(mixed, 7, sizeof(two), 0);
	puts(made ? "ready" : "no schema");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		ranges_make(made, &one, &two);
		puts("made");
		fflush(stdout);
	}
	return 0;
}
