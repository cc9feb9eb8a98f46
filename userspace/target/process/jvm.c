// SPDX-License-Identifier: Apache-2.0
#include "target/process/jvm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "target/dwarf/unwind.h"
#include "target/process/mapping_file.h"
#include "target/process/program_facts.h"
#include "util/path.h"

/* ---- its tables ---- */

/* An entry of gHotSpotVMStructs. */
struct field_entry {
	uint64_t type, field, type_text; /* addresses of their names; type 0: the end */
	uint32_t is_static, unused;
	uint64_t offset;  /* of a field in its object */
	uint64_t address; /* of a static field */
};

/* An entry of gHotSpotVMTypes. */
struct type_entry {
	uint64_t type, super_type; /* addresses of their names; type 0: the end */
	uint32_t is_oop, is_integer, is_unsigned, unused;
	uint64_t size;
};

#define ENTRIES_MAX 4096 /* JDK 17 has 788 and 768 */
#define TEXT_MAX 48

enum field {
	HEAPS, /* static, as the following two: GrowableArray<CodeHeap*>* */
	LOW,   /* the address space of the code */
	HIGH,
	ARRAY_LEN,
	ARRAY_DATA,
	HEAP_MEMORY,
	HEAP_SEGMAP,
	HEAP_LOG2_SEGMENT,
	SPACE_LOW,
	SPACE_HIGH,
	BLOCK_USED,
	BLOB_NAME,
	BLOB_FRAME,
	NMETHOD_METHOD,
	METHOD_CONST,
	CONST_CONSTANTS,
	CONST_NAME,
	POOL_HOLDER,
	KLASS_NAME,
	SYMBOL_LENGTH,
	SYMBOL_BODY,
	BLOCK_SIZE, /* sizes of types, as the following one */
	POOL_SIZE,
};

/* Where a field is called otherwise in some versions, there are several rows. */
static const struct {
	const char *type, *name; /* name NULL: the size of the type */
	enum field field;
} rows[] = {
	{"CodeCache", "_heaps", HEAPS},
	{"CodeCache", "_low_bound", LOW},
	{"CodeCache", "_high_bound", HIGH},
	{"GrowableArrayBase", "_len", ARRAY_LEN},
	{"GenericGrowableArray", "_len", ARRAY_LEN}, /* before 16 */
	{"GrowableArray<int>", "_data", ARRAY_DATA},
	{"CodeHeap", "_memory", HEAP_MEMORY},
	{"CodeHeap", "_segmap", HEAP_SEGMAP},
	{"CodeHeap", "_log2_segment_size", HEAP_LOG2_SEGMENT},
	{"VirtualSpace", "_low", SPACE_LOW},
	{"VirtualSpace", "_high", SPACE_HIGH},
	{"HeapBlock::Header", "_used", BLOCK_USED},
	{"CodeBlob", "_name", BLOB_NAME},
	{"CodeBlob", "_frame_size", BLOB_FRAME},
	{"nmethod", "_method", NMETHOD_METHOD},
	{"CompiledMethod", "_method", NMETHOD_METHOD}, /* 9 to 22 */
	{"Method", "_constMethod", METHOD_CONST},
	{"ConstMethod", "_constants", CONST_CONSTANTS},
	{"ConstMethod", "_name_index", CONST_NAME},
	{"ConstantPool", "_pool_holder", POOL_HOLDER},
	{"Klass", "_name", KLASS_NAME},
	{"Symbol", "_length", SYMBOL_LENGTH},
	{"Symbol", "_body", SYMBOL_BODY},
	{"HeapBlock", NULL, BLOCK_SIZE},
	{"ConstantPool", NULL, POOL_SIZE},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

_Static_assert(POOL_SIZE + 1 == JVM_FIELDS, "jvm.h has room for all");

static uint64_t read_word(const struct image *image, uint64_t address)
{
	uint64_t word = 0;

	return address && image_read(image, address, &word, sizeof(word)) ? word : 0;
}

static void read_text(const struct image *image, uint64_t address, char *text, size_t size)
{
	size_t len = address ? image_read_some(image, address, text, size - 1) : 0;

	text[len] = '\0';
}

/* The row of a type, and of its field unless `field` is 0; ROWS: none. */
static size_t row_of(const struct image *image, uint64_t type, uint64_t field)
{
	char text[TEXT_MAX], name[TEXT_MAX] = "";

	read_text(image, type, text, sizeof(text));
	for (size_t i = 0; i < ROWS; i++) {
		if (strcmp(text, rows[i].type) != 0 || !rows[i].name != !field)
			continue;
		if (field && !*name)
			read_text(image, field, name, sizeof(name));
		if (!field || !strcmp(name, rows[i].name))
			return i;
	}
	return ROWS;
}

/* Real offsets and sizes are small. */
#define OFFSET_MAX (1u << 16)

/* Keeps a value of the field of a row, and notes that the field is there. */
static void keep(struct jvm *jvm, uint32_t *seen, size_t row, uint64_t value)
{
	jvm->fields[rows[row].field] = value;
	*seen |= 1u << rows[row].field;
}

static void read_fields(struct jvm *jvm, const struct image *image, uint32_t *seen)
{
	uint64_t at = read_word(image, jvm->structs);
	struct field_entry entry;

	for (unsigned i = 0; i < ENTRIES_MAX; i++, at += sizeof(entry)) {
		size_t row;

		if (!image_read(image, at, &entry, sizeof(entry)) || !entry.type || !entry.field)
			break;
		row = row_of(image, entry.type, entry.field);
		if (row < ROWS && (entry.is_static || entry.offset < OFFSET_MAX))
			keep(jvm, seen, row, entry.is_static ? entry.address : entry.offset);
	}
}

static void read_sizes(struct jvm *jvm, const struct image *image, uint32_t *seen)
{
	uint64_t at = read_word(image, jvm->types);
	struct type_entry entry;

	for (unsigned i = 0; i < ENTRIES_MAX; i++, at += sizeof(entry)) {
		size_t row;

		if (!image_read(image, at, &entry, sizeof(entry)) || !entry.type)
			break;
		row = row_of(image, entry.type, 0);
		if (row < ROWS && entry.size < OFFSET_MAX)
			keep(jvm, seen, row, entry.size);
	}
}

bool jvm_read(struct jvm *jvm, const struct image *image)
{
	uint32_t seen = 0;

	read_fields(jvm, image, &seen);
	read_sizes(jvm, image, &seen);
	jvm->known = seen == (1u << JVM_FIELDS) - 1;
	return jvm->known;
}

/* Limit of the files of that name to look into. */
#define TRIES_MAX 4

int jvm_find(struct jvm *jvm, pid_t pid, const struct mappings *mappings)
{
	static const struct cfi_table at_zero = {0};
	unsigned tries = 0;

	*jvm = (struct jvm){0};
	for (size_t i = 0; i < mappings->list.len && !jvm->structs && tries < TRIES_MAX; i++) {
		const struct mapping *mapping = &mappings->list.data[i];
		struct waffle_unwind_mapping placed;
		struct program_facts facts;
		char path[4096];
		int fd, result;

		if (strcmp(path_base(mapping->path), "libjvm.so") != 0)
			continue;
		tries++;
		fd = mapping_open(mapping, pid, path, sizeof(path));
		result = fd < 0 ? fd : program_facts_read(&facts, fd, path);
		if (result == -EAGAIN)
			return result;
		if (result || !facts.jvm_structs || !facts.jvm_types ||
		    !unwind_place(&placed, mapping, &facts.segments, &at_zero))
			continue;
		jvm->structs = facts.jvm_structs + placed.base;
		jvm->types = facts.jvm_types + placed.base;
	}
	return 0;
}

/* ---- code ---- */

bool jvm_code_range(const struct jvm *jvm, const struct image *image, uint64_t *from, uint64_t *to)
{
	if (!jvm->known)
		return false;
	*from = read_word(image, jvm->fields[LOW]);
	*to = read_word(image, jvm->fields[HIGH]);
	return *from && *from < *to;
}

/* There is one heap, or one each for compiled methods of two kinds and for the rest. */
#define HEAPS_MAX 16

/* Of at most 254 segments each. A segment has 128 bytes, a large method some 100 KiB. */
#define STEPS_MAX 64

struct space {
	uint64_t low, high;
};

static struct space space_at(const struct jvm *jvm, const struct image *image, uint64_t address)
{
	return (struct space){read_word(image, address + jvm->fields[SPACE_LOW]),
			      read_word(image, address + jvm->fields[SPACE_HIGH])};
}

/* The heap whose code has an address; 0: none. */
static uint64_t heap_of(const struct jvm *jvm, const struct image *image, uint64_t address)
{
	uint64_t list = read_word(image, jvm->fields[HEAPS]);
	uint64_t data = read_word(image, list + jvm->fields[ARRAY_DATA]);
	uint32_t count = 0;

	if (!list || !image_read(image, list + jvm->fields[ARRAY_LEN], &count, sizeof(count)))
		return 0;
	for (uint32_t i = 0; i < count && i < HEAPS_MAX; i++) {
		uint64_t heap = read_word(image, data + 8ull * i);
		struct space memory = space_at(jvm, image, heap + jvm->fields[HEAP_MEMORY]);

		if (heap && address >= memory.low && address < memory.high)
			return heap;
	}
	return 0;
}

/*
 * Finds the block that has an address. A heap consists of segments. A byte for each in a map says
 * how many segments before it the block begins: 0 at its begin, or at most 254, from where another
 * byte says how many more; 255: no block. 0: none.
 */
static uint64_t block_of(const struct jvm *jvm, const struct image *image, uint64_t address)
{
	uint64_t heap = heap_of(jvm, image, address);
	struct space memory = space_at(jvm, image, heap + jvm->fields[HEAP_MEMORY]);
	struct space map = space_at(jvm, image, heap + jvm->fields[HEAP_SEGMAP]);
	uint64_t shift = read_word(image, heap + jvm->fields[HEAP_LOG2_SEGMENT]) & UINT32_MAX;
	uint64_t segment, block;
	unsigned steps = 0;
	uint8_t back = 0, used;

	if (!heap || address < memory.low || shift < 4 || shift > 24)
		return 0;
	segment = (address - memory.low) >> shift;
	do {
		if (steps++ == STEPS_MAX || segment >= map.high - map.low ||
		    !image_read(image, map.low + segment, &back, sizeof(back)) || back == 255 ||
		    back > segment)
			return 0;
		segment -= back;
	} while (back);
	block = memory.low + (segment << shift);
	return image_read(image, block + jvm->fields[BLOCK_USED], &used, sizeof(used)) && used
		       ? block
		       : 0;
}

/* Appends a name of the JVM, such as "com/acme/OrderBook", with dots. What follows "+0x" or "/0x"
 * is the number of a hidden class, such as that of a lambda. */
static bool put_symbol(const struct jvm *jvm, const struct image *image, uint64_t symbol,
		       char name[JVM_NAME_MAX])
{
	size_t have = strlen(name);
	uint16_t len = 0;
	char *text = name + have, *hidden;

	if (!symbol || !image_read(image, symbol + jvm->fields[SYMBOL_LENGTH], &len, sizeof(len)) ||
	    !len)
		return false;
	if (len > JVM_NAME_MAX - 1 - have)
		len = (uint16_t)(JVM_NAME_MAX - 1 - have);
	if (!image_read(image, symbol + jvm->fields[SYMBOL_BODY], text, len))
		return false;
	text[len] = '\0';
	hidden = strstr(text, "+0x");
	hidden = hidden ? hidden : strstr(text, "/0x");
	if (hidden)
		*hidden = '\0';
	for (; *text; text++)
		if (*text == '/')
			*text = '.';
	return true;
}

static bool method_name(const struct jvm *jvm, const struct image *image, uint64_t method,
			char name[JVM_NAME_MAX])
{
	uint64_t constant = read_word(image, method + jvm->fields[METHOD_CONST]);
	uint64_t pool = read_word(image, constant + jvm->fields[CONST_CONSTANTS]);
	uint64_t holder = read_word(image, pool + jvm->fields[POOL_HOLDER]);
	uint64_t symbol;
	uint16_t index = 0;
	size_t len;

	name[0] = '\0';
	if (!method || !constant || !pool || !holder ||
	    !image_read(image, constant + jvm->fields[CONST_NAME], &index, sizeof(index)) ||
	    !put_symbol(jvm, image, read_word(image, holder + jvm->fields[KLASS_NAME]), name))
		return false;
	len = strlen(name);
	if (len + 2 < JVM_NAME_MAX) {
		name[len] = '.';
		name[len + 1] = '\0';
	}
	/* The lowest bit says that an entry is resolved. */
	symbol = read_word(image, pool + jvm->fields[POOL_SIZE] + 8ull * index);
	return put_symbol(jvm, image, symbol & ~1ull, name);
}

struct blob {
	uint64_t at; /* 0: none */
	char kind[TEXT_MAX];
};

static struct blob blob_of(const struct jvm *jvm, const struct image *image, uint64_t address)
{
	uint64_t block = jvm->known ? block_of(jvm, image, address) : 0;
	struct blob blob = {.at = block ? block + jvm->fields[BLOCK_SIZE] : 0};

	if (blob.at)
		read_text(image, read_word(image, blob.at + jvm->fields[BLOB_NAME]), blob.kind,
			  sizeof(blob.kind));
	return blob;
}

static bool is_interpreter(const struct blob *blob)
{
	return !strcmp(blob->kind, "Interpreter");
}

static bool blob_name(const struct jvm *jvm, const struct image *image, const struct blob *blob,
		      char name[JVM_NAME_MAX])
{
	name[0] = '\0';
	if (!strcmp(blob->kind, "nmethod") || !strcmp(blob->kind, "native nmethod"))
		return method_name(jvm, image,
				   read_word(image, blob->at + jvm->fields[NMETHOD_METHOD]), name);
	if (!*blob->kind)
		return false;
	snprintf(name, JVM_NAME_MAX, "%s",
		 is_interpreter(blob) ? "the JVM's interpreter" : "a stub of the JVM");
	return true;
}

bool jvm_code_name(const struct jvm *jvm, const struct image *image, uint64_t address,
		   char name[JVM_NAME_MAX])
{
	struct blob blob = blob_of(jvm, image, address);

	return blob_name(jvm, image, &blob, name);
}

/* ---- frames ---- */

/*
 * src/hotspot/cpu/x86/frame_x86.hpp and src/hotspot/cpu/aarch64/frame_aarch64.hpp have the same
 * layout. Of a frame of the interpreter, interpreter_frame_method_offset and
 * interpreter_frame_sender_sp_offset are in words from its frame pointer. Of any frame, the return
 * address and the saved frame pointer are right below the stack pointer of the caller.
 */
#define FRAME_METHOD (-3 * 8)
#define FRAME_SENDER_SP (-1 * 8)

#define FRAME_WORDS_MAX (1 << 16)

static uint64_t read_return_address(const struct image *image, uint64_t at)
{
	uint64_t address = read_word(image, at);

#ifdef __aarch64__
	/* The bits above may sign it: -XX:UseBranchProtection. */
	address &= (1ull << WAFFLE_UNWIND_USER_BITS) - 1;
#endif
	return address;
}

/* The interpreter's code, and stubs without a size of their frame, keep frame pointers. */
static struct jvm_frame by_frame_pointer(const struct image *image, const struct jvm_frame *frame,
					 bool interpreter)
{
	struct jvm_frame caller = {.pc = read_return_address(image, frame->fp + 8),
				   .sp = frame->fp + 16,
				   .fp = read_word(image, frame->fp)};
	uint64_t sender = interpreter ? read_word(image, frame->fp + FRAME_SENDER_SP) : 0;

	/* An adapter may have made room between both for the arguments. */
	if (sender > caller.sp && sender - caller.sp < 8ull * FRAME_WORDS_MAX)
		caller.sp = sender;
	return caller;
}

/* Compiled code saves its caller's frame pointer next to its return address. */
static struct jvm_frame by_size(const struct image *image, const struct jvm_frame *frame,
				int32_t words)
{
	uint64_t end = frame->sp + 8ull * (uint32_t)words;

	return (struct jvm_frame){.pc = read_return_address(image, end - 8),
				  .sp = end,
				  .fp = read_word(image, end - 16)};
}

bool jvm_step(const struct jvm *jvm, const struct image *image, struct jvm_frame *frame,
	      char name[JVM_NAME_MAX])
{
	struct blob blob = blob_of(jvm, image, frame->pc);
	bool interpreter = is_interpreter(&blob);
	struct jvm_frame caller;
	int32_t words = 0;

	if ((!interpreter ||
	     !method_name(jvm, image, read_word(image, frame->fp + FRAME_METHOD), name)) &&
	    !blob_name(jvm, image, &blob, name))
		name[0] = '\0';
	if (!blob.at ||
	    !image_read(image, blob.at + jvm->fields[BLOB_FRAME], &words, sizeof(words)))
		return false;
	caller = !interpreter && words > 1 && words < FRAME_WORDS_MAX
			 ? by_size(image, frame, words)
			 : by_frame_pointer(image, frame, interpreter);
	if (caller.sp <= frame->sp || caller.pc < 4096)
		return false;
	*frame = caller;
	return true;
}
