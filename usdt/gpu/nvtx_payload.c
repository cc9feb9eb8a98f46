// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/nvtx_payload.h"

#include <string.h>

#include "util/hash.h"

#define SCHEMAS_MAX 256u
/* Names of ranges with a payload. At most half of the table is used, so that searches are short. */
#define NAMES_MAX 1024u
#define NAME_SLOTS (2u * NAMES_MAX)

enum form { FORM_NONE, FORM_SIGNED, FORM_UNSIGNED, FORM_FLOAT, FORM_ADDRESS, FORM_HANDLE };

struct form_bytes {
	uint8_t form; /* enum form */
	uint8_t bytes;
};

/* By the number of a type. 1 to 10 are C's types from char to unsigned long long, 11 to 18 those of
 * 8 to 64 bits, 19 and 20 float and double, 43 and 44 the same by their size. Types that are not
 * listed can't be read. */
static const struct form_bytes forms[NVTX_MEMBERS] = {
	[1] = {FORM_SIGNED, 1},
	[2] = {FORM_UNSIGNED, 1},
	[3] = {FORM_SIGNED, 2},
	[4] = {FORM_UNSIGNED, 2},
	[5] = {FORM_SIGNED, 4},
	[6] = {FORM_UNSIGNED, 4},
	[7] = {FORM_SIGNED, 8},
	[8] = {FORM_UNSIGNED, 8},
	[9] = {FORM_SIGNED, 8},
	[10] = {FORM_UNSIGNED, 8},
	[11] = {FORM_SIGNED, 1},
	[12] = {FORM_UNSIGNED, 1},
	[13] = {FORM_SIGNED, 2},
	[14] = {FORM_UNSIGNED, 2},
	[15] = {FORM_SIGNED, 4},
	[16] = {FORM_UNSIGNED, 4},
	[17] = {FORM_SIGNED, 8},
	[18] = {FORM_UNSIGNED, 8},
	[19] = {FORM_FLOAT, 4},
	[20] = {FORM_FLOAT, 8},
	[NVTX_MEMBER_SIZE] = {FORM_UNSIGNED, 8},
	[NVTX_MEMBER_ADDRESS] = {FORM_ADDRESS, 8},
	[43] = {FORM_FLOAT, 4},
	[44] = {FORM_FLOAT, 8},
	/* Not followed: the pointer may be one that nothing else reads. */
	[NVTX_MEMBER_CSTRING] = {FORM_ADDRESS, 8},
	[NVTX_MEMBER_CSTRING_UTF8] = {FORM_ADDRESS, 8},
	[NVTX_MEMBER_REGISTERED] = {FORM_HANDLE, 8},
};

struct schema_member {
	const char *name;
	struct form_bytes as;
	uint32_t offset;
};

struct nvtx_schema {
	uint64_t id;
	unsigned domain;
	bool ready;         /* complete, and never changes again */
	uint8_t enum_bytes; /* of an enumeration; 0: it is a structure */
	unsigned count;
	uint32_t bytes; /* to the end of its last member */
	struct schema_member members[NVTX_MEMBERS_MAX];
};

static struct {
	struct nvtx_schema all[SCHEMAS_MAX];
	uint32_t count;
	struct {
		uint64_t key; /* text, kind, keys and schema; 0: free */
		waffle_name_t *name;
	} names[NAME_SLOTS];
	uint32_t name_count;
} schemas;

/* ---- schemas ---- */

/* The latest one with this number. */
static const struct nvtx_schema *schema_find(unsigned domain, uint64_t id)
{
	uint32_t count = __atomic_load_n(&schemas.count, __ATOMIC_ACQUIRE);

	for (uint32_t i = count < SCHEMAS_MAX ? count : SCHEMAS_MAX; i-- > 0;) {
		const struct nvtx_schema *at = &schemas.all[i];

		if (__atomic_load_n(&at->ready, __ATOMIC_ACQUIRE) && at->id == id &&
		    (at->domain == domain || id >= NVTX_SCHEMA_DYNAMIC))
			return at;
	}
	return NULL;
}

/* NULL: there are too many. */
static struct nvtx_schema *schema_new(unsigned domain, bool has_id, uint64_t id)
{
	uint32_t number = __atomic_load_n(&schemas.count, __ATOMIC_RELAXED);
	struct nvtx_schema *made;

	if (number < SCHEMAS_MAX)
		number = __atomic_fetch_add(&schemas.count, 1, __ATOMIC_ACQ_REL);
	if (number >= SCHEMAS_MAX)
		return NULL;
	made = &schemas.all[number];
	made->domain = domain;
	made->id = has_id && id >= NVTX_SCHEMA_FIRST && id < NVTX_SCHEMA_DYNAMIC
			   ? id
			   : NVTX_SCHEMA_DYNAMIC + number;
	return made;
}

static uint64_t schema_publish(struct nvtx_schema *schema)
{
	__atomic_store_n(&schema->ready, true, __ATOMIC_RELEASE);
	return schema->id;
}

static struct form_bytes form_of(unsigned domain, const struct nvtx_schema_entry *entry)
{
	static const struct form_bytes none;
	const struct nvtx_schema *of;

	if (entry->flags & NVTX_MEMBER_NOT_PLAIN)
		return none;
	if (entry->type < NVTX_MEMBERS)
		return forms[entry->type];
	of = schema_find(domain, entry->type);
	return of && of->enum_bytes ? (struct form_bytes){FORM_SIGNED, of->enum_bytes} : none;
}

/* Takes the members that can be read. Behind one that can't, the places of members without an
 * offset are unknown, and these are left out, too. */
static void members_take(struct nvtx_schema *schema, const struct nvtx_schema_entry *entries,
			 uint64_t count)
{
	uint64_t next = 0;

	for (uint64_t i = 0; i < count && schema->count < NVTX_MEMBERS_MAX; i++) {
		struct form_bytes as = form_of(schema->domain, &entries[i]);
		const struct nvtx_text *name = nvtx_text_of(entries[i].name);
		uint64_t offset = entries[i].offset;

		if (i && !offset)
			offset = as.bytes && next != UINT64_MAX
					 ? (next + as.bytes - 1) & ~(uint64_t)(as.bytes - 1)
					 : UINT64_MAX;
		next = as.bytes && offset <= UINT16_MAX ? offset + as.bytes : UINT64_MAX;
		if (!name || next == UINT64_MAX)
			continue;
		schema->members[schema->count++] =
			(struct schema_member){nvtx_text_string(name), as, (uint32_t)offset};
		if (next > schema->bytes)
			schema->bytes = (uint32_t)next;
	}
}

uint64_t nvtx_schema_register(unsigned domain, const struct nvtx_schema_attributes *attributes)
{
	uint64_t fields = attributes ? attributes->fields : 0;
	bool readable = (fields & NVTX_SCHEMA_HAS_ENTRIES) && (fields & NVTX_SCHEMA_HAS_COUNT) &&
			attributes->entries && (fields & NVTX_SCHEMA_HAS_TYPE) &&
			attributes->type == NVTX_SCHEMA_STATIC;
	struct nvtx_schema *made =
		attributes ? schema_new(domain, fields & NVTX_SCHEMA_HAS_ID, attributes->schema)
			   : NULL;

	if (!made)
		return 0;
	if (readable)
		members_take(made, attributes->entries, attributes->entry_count);
	return schema_publish(made);
}

uint64_t nvtx_enum_register(unsigned domain, const struct nvtx_enum_attributes *attributes)
{
	uint64_t fields = attributes ? attributes->fields : 0;
	struct nvtx_schema *made =
		attributes ? schema_new(domain, fields & NVTX_ENUM_HAS_ID, attributes->schema)
			   : NULL;
	uint64_t bytes = fields & NVTX_ENUM_HAS_SIZE ? attributes->size : sizeof(int);

	if (!made)
		return 0;
	made->enum_bytes = bytes == 1 || bytes == 2 || bytes == 8 ? (uint8_t)bytes : 4;
	return schema_publish(made);
}

/* ---- events ---- */

/* Only the first of several payloads is read. */
static const struct nvtx_payload_data *data_of(const struct nvtx_attributes *attributes)
{
	if (attributes->payload_type != NVTX_PAYLOAD_EXTENDED || attributes->reserved < 1)
		return NULL;
	return (const struct nvtx_payload_data *)(uintptr_t)attributes->payload.u64;
}

const struct nvtx_schema *nvtx_payload_schema(unsigned domain,
					      const struct nvtx_attributes *attributes)
{
	const struct nvtx_payload_data *data = data_of(attributes);
	const struct nvtx_schema *schema =
		data && data->data ? schema_find(domain, data->schema) : NULL;

	/* A size of -1 means that it is not told. */
	return schema && schema->count && schema->bytes <= data->size && data->size != UINT64_MAX
		       ? schema
		       : NULL;
}

static char key_type(enum form form)
{
	static const char types[] = {
		[FORM_SIGNED] = WAFFLE_KEY_I64, [FORM_UNSIGNED] = WAFFLE_KEY_U64,
		[FORM_FLOAT] = WAFFLE_KEY_F64,  [FORM_ADDRESS] = WAFFLE_KEY_PTR,
		[FORM_HANDLE] = WAFFLE_KEY_STR,
	};

	return types[form];
}

static waffle_name_t *name_make(const struct nvtx_text *text, bool span, unsigned keys,
				const struct nvtx_schema *schema)
{
	waffle_key_t more[NVTX_MEMBERS_MAX];

	for (unsigned i = 0; i < schema->count; i++)
		more[i] = (waffle_key_t){key_type(schema->members[i].as.form),
					 schema->members[i].name};
	return nvtx_name_make(text, span, keys, more, schema->count);
}

waffle_name_t *nvtx_payload_name(struct nvtx_text *text, bool span, unsigned keys,
				 const struct nvtx_schema *schema)
{
	uint64_t key = (((uint64_t)nvtx_text_number(text) * SCHEMAS_MAX +
			 (uint64_t)(schema - schemas.all)) *
				NVTX_KEY_SETS +
			keys) * 2 +
		       span + 1;
	uint32_t at = (uint32_t)(hash_number(key) >> 40) % NAME_SLOTS;
	waffle_name_t *name;

	for (uint32_t i = 0; i < NAME_SLOTS; i++, at = (at + 1) % NAME_SLOTS) {
		uint64_t found = __atomic_load_n(&schemas.names[at].key, __ATOMIC_ACQUIRE);

		if (!found) {
			if (__atomic_load_n(&schemas.name_count, __ATOMIC_RELAXED) >= NAMES_MAX)
				return NULL;
			if (!__atomic_compare_exchange_n(&schemas.names[at].key, &found, key, false,
							 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
			    found != key)
				continue; /* another thread has taken the slot */
			__atomic_fetch_add(&schemas.name_count, !found, __ATOMIC_RELAXED);
		} else if (found != key) {
			continue;
		}
		name = __atomic_load_n(&schemas.names[at].name, __ATOMIC_ACQUIRE);
		if (!name) {
			name = name_make(text, span, keys, schema);
			__atomic_store_n(&schemas.names[at].name, name, __ATOMIC_RELEASE);
		}
		return name;
	}
	return NULL;
}

static int64_t signed_of(uint64_t word, unsigned bytes)
{
	unsigned unused = 64 - 8 * bytes;

	return (int64_t)(word << unused) >> unused;
}

static double float_of(uint64_t word, unsigned bytes)
{
	double wide;
	float narrow;

	memcpy(&wide, &word, sizeof(wide));
	memcpy(&narrow, &word, sizeof(narrow));
	return bytes == sizeof(narrow) ? (double)narrow : wide;
}

static waffle_value_t value_of(struct form_bytes as, uint64_t word)
{
	const struct nvtx_text *text;

	switch ((enum form)as.form) {
	case FORM_SIGNED:
		return waffle_i64(signed_of(word, as.bytes));
	case FORM_FLOAT:
		return waffle_f64(float_of(word, as.bytes));
	case FORM_ADDRESS:
		return waffle_ptr((const void *)(uintptr_t)word);
	case FORM_HANDLE:
		text = nvtx_text_of_handle((const void *)(uintptr_t)word);
		return waffle_str(text ? nvtx_text_string(text) : NULL);
	default:
		return waffle_u64(word);
	}
}

unsigned nvtx_payload_values(const struct nvtx_schema *schema,
			     const struct nvtx_attributes *attributes,
			     waffle_value_t values[NVTX_MEMBERS_MAX])
{
	const char *data = data_of(attributes)->data;

	for (unsigned i = 0; i < schema->count; i++) {
		const struct schema_member *member = &schema->members[i];
		uint64_t word = 0;

		memcpy(&word, data + member->offset, member->as.bytes);
		values[i] = value_of(member->as, word);
	}
	return schema->count;
}
