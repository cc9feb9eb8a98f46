// SPDX-License-Identifier: Apache-2.0
/* Code of the JVM in memory that may hold anything. Real JVMs: tests/integration/test_java.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/process/jvm.h"

#define STRUCTS 0x10 /* pointers to the tables */
#define TYPES 0x18
#define HEAPS 0x20
#define LOW 0x28
#define HIGH 0x30
#define TABLE 0x100
#define SIZES 0x800
#define LIST 0x900
#define HEAP 0xa00
#define SEGMAP 0xb00
#define TEXTS 0x1000 /* of the tables */
#define METHOD 0x2000
#define CONSTANT 0x2100
#define POOL 0x2200
#define KLASS 0x2300
#define SYMBOLS 0x2400
#define STACK 0x3000
#define CODE 0x4000 /* of 64 segments of 64 bytes */
#define CODE_END 0x5000
#define SEGMENT 64

/* Bits of a return address that sign it. */
#ifdef __aarch64__
#define SIGNED (0x5aull << 56 | 0x3ull << 48)
#else
#define SIGNED 0ull
#endif

/* Offsets of this JVM, other than those of any real one. */
enum {
	ARRAY_LEN = 4,
	ARRAY_DATA = 16,
	HEAP_MEMORY = 32,
	HEAP_SEGMAP = 64,
	HEAP_LOG2 = 96,
	SPACE_LOW = 8,
	SPACE_HIGH = 24,
	BLOCK_USED = 12,
	BLOB_NAME = 8,
	NMETHOD_METHOD = 24,
	BLOB_FRAME = 36,
	METHOD_CONST = 40,
	CONST_CONSTANTS = 16,
	CONST_NAME = 26,
	POOL_HOLDER = 8,
	KLASS_NAME = 48,
	SYMBOL_LENGTH = 2,
	SYMBOL_BODY = 6,
	BLOCK_SIZE = 16,
	POOL_SIZE = 56
};

static unsigned char memory[0x6000];
static size_t texts_end;

static void put(size_t at, uint64_t value, size_t bytes)
{
	memcpy(memory + at, &value, bytes);
}

static size_t text_put(const char *text)
{
	size_t at = texts_end;

	strcpy((char *)memory + at, text);
	texts_end += strlen(text) + 1;
	return at;
}

static void fields_put(void)
{
	static const struct {
		const char *type, *field;
		uint64_t offset, address;
	} fields[] = {
		{"Universe", "_collectedHeap", 0, 0x77},
		{"CodeCache", "_heaps", 0, HEAPS},
		{"CodeCache", "_low_bound", 0, LOW},
		{"CodeCache", "_high_bound", 0, HIGH},
		{"GrowableArrayBase", "_len", ARRAY_LEN, 0},
		{"GrowableArray<int>", "_data", ARRAY_DATA, 0},
		{"CodeHeap", "_memory", HEAP_MEMORY, 0},
		{"CodeHeap", "_segmap", HEAP_SEGMAP, 0},
		{"CodeHeap", "_log2_segment_size", HEAP_LOG2, 0},
		{"VirtualSpace", "_low", SPACE_LOW, 0},
		{"VirtualSpace", "_high", SPACE_HIGH, 0},
		{"HeapBlock::Header", "_used", BLOCK_USED, 0},
		{"CodeBlob", "_name", BLOB_NAME, 0},
		{"CodeBlob", "_size", 60, 0},
		{"CodeBlob", "_frame_size", BLOB_FRAME, 0},
		{"nmethod", "_method", NMETHOD_METHOD, 0},
		{"Method", "_constMethod", METHOD_CONST, 0},
		{"ConstMethod", "_constants", CONST_CONSTANTS, 0},
		{"ConstMethod", "_name_index", CONST_NAME, 0},
		{"ConstantPool", "_pool_holder", POOL_HOLDER, 0},
		{"Klass", "_name", KLASS_NAME, 0},
		{"Symbol", "_length", SYMBOL_LENGTH, 0},
		{"Symbol", "_body", SYMBOL_BODY, 0},
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		size_t at = TABLE + 48 * i;

		put(at, text_put(fields[i].type), 8);
		put(at + 8, text_put(fields[i].field), 8);
		put(at + 24, fields[i].address > 0, 4);
		put(at + 32, fields[i].offset, 8);
		put(at + 40, fields[i].address, 8);
	}
	put(SIZES, text_put("HeapBlock"), 8);
	put(SIZES + 32, BLOCK_SIZE, 8);
	put(SIZES + 40, text_put("ConstantPool"), 8);
	put(SIZES + 72, POOL_SIZE, 8);
	put(STRUCTS, TABLE, 8);
	put(TYPES, SIZES, 8);
}

static size_t symbol_put(size_t at, const char *text)
{
	put(at + SYMBOL_LENGTH, strlen(text), 2);
	memcpy(memory + at + SYMBOL_BODY, text, strlen(text));
	return at;
}

/* A block of code in the segments [first, end). */
static void block_put(size_t first, size_t end, const char *kind, uint64_t method)
{
	size_t at = CODE + first * SEGMENT;

	for (size_t i = first; i < end; i++)
		memory[SEGMAP + i] = (unsigned char)(i - first > 10 ? 10 : i - first);
	put(at + BLOCK_USED, 1, 1);
	put(at + BLOCK_SIZE + BLOB_NAME, text_put(kind), 8);
	put(at + BLOCK_SIZE + NMETHOD_METHOD, method, 8);
}

static void code_put(void)
{
	put(HEAPS, LIST, 8);
	put(LOW, CODE, 8);
	put(HIGH, CODE_END, 8);
	put(LIST + ARRAY_LEN, 1, 4);
	put(LIST + ARRAY_DATA, LIST + 32, 8);
	put(LIST + 32, HEAP, 8);
	put(HEAP + HEAP_MEMORY + SPACE_LOW, CODE, 8);
	put(HEAP + HEAP_MEMORY + SPACE_HIGH, CODE_END, 8);
	put(HEAP + HEAP_SEGMAP + SPACE_LOW, SEGMAP, 8);
	put(HEAP + HEAP_SEGMAP + SPACE_HIGH, SEGMAP + 64, 8);
	put(HEAP + HEAP_LOG2, 6, 4);
	memset(memory + SEGMAP, 0xff, 64);
	put(METHOD + METHOD_CONST, CONSTANT, 8);
	put(CONSTANT + CONST_CONSTANTS, POOL, 8);
	put(CONSTANT + CONST_NAME, 2, 2);
	put(POOL + POOL_HOLDER, KLASS, 8);
	put(POOL + POOL_SIZE + 16, symbol_put(SYMBOLS, "match") | 1, 8);
	put(KLASS + KLASS_NAME, symbol_put(SYMBOLS + 64, "com/acme/OrderBook"), 8);
	block_put(0, 2, "Interpreter", 0);
	block_put(2, 40, "nmethod", METHOD);
	block_put(40, 42, "native nmethod", METHOD);
	block_put(42, 44, "StubRoutines (1)", 0);
	block_put(44, 46, "nmethod", 0x123456);
	block_put(46, 48, "nmethod", METHOD);
	put(CODE + 46 * SEGMENT + BLOCK_USED, 0, 1);
}

static int setup(void **state)
{
	(void)state;
	memset(memory, 0, sizeof(memory));
	texts_end = TEXTS;
	fields_put();
	code_put();
	return 0;
}

static struct image image_make(void)
{
	struct image image = {.process = -1, .memory = memfd_create("memory", MFD_CLOEXEC)};

	assert_true(image.memory >= 0);
	assert_int_equal(write(image.memory, memory, sizeof(memory)), sizeof(memory));
	return image;
}

static bool name_at(uint64_t address, char name[JVM_NAME_MAX])
{
	struct jvm jvm = {.structs = STRUCTS, .types = TYPES};
	struct image image = image_make();
	bool found = jvm_read(&jvm, &image) && jvm_code_name(&jvm, &image, address, name);
	close(image.memory);
	return found;
}

static void assert_name(size_t segment, const char *expected)
{
	char name[JVM_NAME_MAX];

	assert_true(name_at(CODE + segment * SEGMENT + 40, name));
	assert_string_equal(name, expected);
}

static void assert_none(uint64_t address)
{
	char name[JVM_NAME_MAX];

	assert_false(name_at(address, name));
}

static void test_code_is_named_by_its_block(void **state)
{
	(void)state;
	assert_name(0, "the JVM's interpreter");
	assert_name(2, "com.acme.OrderBook.match");
	assert_name(39, "com.acme.OrderBook.match"); /* its begin is four steps away */
	assert_name(40, "com.acme.OrderBook.match");
	assert_name(42, "a stub of the JVM");
}

static void test_what_is_no_code_has_no_name(void **state)
{
	(void)state;
	assert_none(CODE - 1);
	assert_none(CODE_END);
	assert_none(CODE + 44 * SEGMENT); /* its method cannot be read */
	assert_none(CODE + 46 * SEGMENT); /* a free block */
	assert_none(CODE + 50 * SEGMENT); /* no block */
}

static void test_numbers_of_hidden_classes_are_left_out(void **state)
{
	(void)state;
	symbol_put(SYMBOLS + 64, "com/acme/Desk$$Lambda+0x00007f01a8003000");
	assert_name(2, "com.acme.Desk$$Lambda.match");
	symbol_put(SYMBOLS + 64, "com/acme/Desk$$Lambda$14/0x0000000800c03000");
	assert_name(2, "com.acme.Desk$$Lambda$14.match");
}

static void test_a_long_name_is_cut(void **state)
{
	char name[JVM_NAME_MAX];

	(void)state;
	put(SYMBOLS + 64 + SYMBOL_LENGTH, 400, 2);
	memset(memory + SYMBOLS + 64 + SYMBOL_BODY, 'x', 400);
	assert_true(name_at(CODE + 2 * SEGMENT, name));
	assert_int_equal(strlen(name), JVM_NAME_MAX - 1);
	put(SYMBOLS + 64 + SYMBOL_LENGTH, 0, 2);
	assert_none(CODE + 2 * SEGMENT);
}

static void test_a_map_of_segments_that_leads_nowhere_ends(void **state)
{
	(void)state;
	memory[SEGMAP + 3] = 4; /* before the begin */
	assert_none(CODE + 3 * SEGMENT);
	put(HEAP + HEAP_SEGMAP + SPACE_HIGH, SEGMAP + 2, 8); /* too short */
	assert_none(CODE + 2 * SEGMENT);
	put(HEAP + HEAP_LOG2, 63, 4);
	assert_none(CODE);
}

static void test_a_jvm_without_a_field_is_unknown(void **state)
{
	(void)state;
	put(SIZES, text_put("Other"), 8);
	assert_none(CODE);
	setup(NULL);
	put(TABLE + 48 * 3, 0, 8); /* the table ends early */
	assert_none(CODE);
	setup(NULL);
	put(STRUCTS, 0, 8); /* libjvm.so is not loaded yet */
	assert_none(CODE);
}

static void test_the_range_of_code_is_known(void **state)
{
	struct jvm jvm = {.structs = STRUCTS, .types = TYPES};
	struct image image = image_make();
	uint64_t from, to;

	(void)state;
	assert_false(jvm_code_range(&jvm, &image, &from, &to));
	assert_true(jvm_read(&jvm, &image));
	assert_true(jvm_code_range(&jvm, &image, &from, &to));
	assert_int_equal(from, CODE);
	assert_int_equal(to, CODE_END);
	close(image.memory);
}

/* A native method that compiled code called, which the interpreter called through an adapter, and
 * the stub through which C++ called that. */
static void test_frames_are_followed(void **state)
{
	static const struct {
		uint64_t pc, sp, fp;
		const char *name;
	} expected[] = {
		{CODE + 40 * SEGMENT + 50, STACK, 0x77, "com.acme.OrderBook.match"},
		{CODE + 4 * SEGMENT, STACK + 32, STACK + 128, "com.acme.OrderBook.match"},
		{CODE + 70, STACK + 80, STACK + 128, "com.acme.OrderBook.match"},
		{CODE + 42 * SEGMENT + 50, STACK + 160, STACK + 192, "a stub of the JVM"},
		{0x7f0000, STACK + 208, STACK + 256, NULL},
	};
	struct jvm jvm = {.structs = STRUCTS, .types = TYPES};
	struct jvm_frame frame = {.pc = expected[0].pc, .sp = expected[0].sp, .fp = expected[0].fp};
	char name[JVM_NAME_MAX];
	struct image image;

	(void)state;
	put(CODE + 40 * SEGMENT + BLOCK_SIZE + BLOB_FRAME, 4, 4);
	put(STACK + 16, STACK + 128, 8);
	put(STACK + 24, CODE + 4 * SEGMENT, 8);
	put(CODE + 2 * SEGMENT + BLOCK_SIZE + BLOB_FRAME, 6, 4);
	put(STACK + 64, STACK + 128, 8);
	put(STACK + 72, CODE + 70 + SIGNED, 8);
	put(STACK + 128 - 24, METHOD, 8);
	put(STACK + 128 - 8, STACK + 160, 8); /* the stack pointer of the caller */
	put(STACK + 128, STACK + 192, 8);
	put(STACK + 136, CODE + 42 * SEGMENT + 50 + SIGNED, 8);
	put(STACK + 192, STACK + 256, 8);
	put(STACK + 200, 0x7f0000, 8);
	image = image_make();
	assert_true(jvm_read(&jvm, &image));
	for (size_t i = 0; expected[i].name; i++) {
		assert_int_equal(frame.pc, expected[i].pc);
		assert_int_equal(frame.sp, expected[i].sp);
		assert_int_equal(frame.fp, expected[i].fp);
		assert_true(jvm_step(&jvm, &image, &frame, name));
		assert_string_equal(name, expected[i].name);
	}
	assert_int_equal(frame.pc, 0x7f0000);
	assert_int_equal(frame.sp, STACK + 208);
	assert_false(jvm_step(&jvm, &image, &frame, name));
	assert_string_equal(name, "");
	close(image.memory);
}

static void test_a_stack_that_leads_back_ends(void **state)
{
	struct jvm jvm = {.structs = STRUCTS, .types = TYPES};
	struct jvm_frame frame = {.pc = CODE + 50, .sp = STACK + 64, .fp = STACK};
	char name[JVM_NAME_MAX];
	struct image image;

	(void)state;
	put(STACK + 8, CODE + 50, 8);
	image = image_make();
	assert_true(jvm_read(&jvm, &image));
	assert_false(jvm_step(&jvm, &image, &frame, name));
	assert_string_equal(name, "the JVM's interpreter");
	close(image.memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_code_is_named_by_its_block, setup),
		cmocka_unit_test_setup(test_what_is_no_code_has_no_name, setup),
		cmocka_unit_test_setup(test_numbers_of_hidden_classes_are_left_out, setup),
		cmocka_unit_test_setup(test_a_long_name_is_cut, setup),
		cmocka_unit_test_setup(test_a_map_of_segments_that_leads_nowhere_ends, setup),
		cmocka_unit_test_setup(test_a_jvm_without_a_field_is_unknown, setup),
		cmocka_unit_test_setup(test_the_range_of_code_is_known, setup),
		cmocka_unit_test_setup(test_frames_are_followed, setup),
		cmocka_unit_test_setup(test_a_stack_that_leads_back_ends, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
