// SPDX-License-Identifier: Apache-2.0
/* The kernel's types as waffle reads them, against libbpf's parse of the same file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel/types_internal.h"

static bool has_member(const struct btf *types, const char *name, const char *member)
{
	int id = btf__find_by_name_kind(types, name, BTF_KIND_STRUCT);
	const struct btf_type *type = id > 0 ? btf__type_by_id(types, (__u32)id) : NULL;

	for (__u16 i = 0; type && i < btf_vlen(type); i++)
		if (!strcmp(btf__name_by_offset(types, btf_members(type)[i].name_off), member))
			return true;
	return false;
}

static void test_names_and_numbers_are_those_that_libbpf_finds(void **state)
{
	static const char *const tracepoints[] = {
		"block_rq_complete", "block_rq_merge",  "block_rq_issue", "block_io_start",
		"signal_generate",   "page_fault_user", "cpu_frequency",  "no_such_tracepoint",
	};
	static const char *const structs[] = {"task_struct", "rq", "btf_trace_no_struct"};
	struct btf *parsed = btf__load_vmlinux_btf();
	struct kernel_types types;
	char type[64];

	(void)state;
	assert_non_null(parsed);
	assert_int_equal(kernel_types_open(&types, KERNEL_TYPES_FILE), 0);
	assert_int_equal(types.count, btf__type_cnt(parsed));
	for (size_t i = 0; i < sizeof(tracepoints) / sizeof(tracepoints[0]); i++) {
		snprintf(type, sizeof(type), "btf_trace_%s", tracepoints[i]);
		assert_int_equal(kernel_types_has(&types, type),
				 btf__find_by_name_kind(parsed, type, BTF_KIND_TYPEDEF) > 0);
	}
	for (size_t i = 0; i < sizeof(structs) / sizeof(structs[0]); i++) {
		int number = btf__find_by_name_kind(parsed, structs[i], BTF_KIND_STRUCT);

		assert_int_equal(kernel_types_struct(&types, structs[i]), number > 0 ? number : 0);
	}
	/* The members that cpus_steal() reads. */
	assert_int_equal(kernel_types_has(&types, "leaf_cfs_rq_list"),
			 has_member(parsed, "sched_entity", "cfs_rq") &&
				 has_member(parsed, "cfs_rq", "rq"));
	assert_int_equal(kernel_types_has(&types, "prev_steal_time_rq"),
			 has_member(parsed, "rq", "prev_steal_time_rq"));
	assert_int_equal(kernel_types_has(&types, "prev_steal_time"),
			 has_member(parsed, "rq", "prev_steal_time"));
	kernel_types_close(&types);
	btf__free(parsed);
}

/* ---- the excerpt ---- */

static void same(const struct btf *kernel, __u32 a, const struct btf *excerpt, __u32 b);

static const char *name_of(const struct btf *types, __u32 offset)
{
	return btf__name_by_offset(types, offset);
}

static void members_are_the_same(const struct btf *kernel, const struct btf_type *a,
				 const struct btf *excerpt, const struct btf_type *b)
{
	const struct btf_member *left = btf_members(a), *right = btf_members(b);

	for (__u16 i = 0; i < btf_vlen(a); i++) {
		assert_string_equal(name_of(kernel, left[i].name_off),
				    name_of(excerpt, right[i].name_off));
		assert_int_equal(btf_member_bit_offset(a, i), btf_member_bit_offset(b, i));
		assert_int_equal(btf_member_bitfield_size(a, i), btf_member_bitfield_size(b, i));
		same(kernel, left[i].type, excerpt, right[i].type);
	}
}

static void values_are_the_same(const struct btf *kernel, const struct btf_type *a,
				const struct btf *excerpt, const struct btf_type *b)
{
	for (__u16 i = 0; i < btf_vlen(a); i++) {
		assert_string_equal(name_of(kernel, btf_enum(a)[i].name_off),
				    name_of(excerpt, btf_enum(b)[i].name_off));
		assert_int_equal(btf_enum(a)[i].val, btf_enum(b)[i].val);
	}
}

/* All that a relocation can ask of a type. */
static void same(const struct btf *kernel, __u32 a, const struct btf *excerpt, __u32 b)
{
	const struct btf_type *left = btf__type_by_id(kernel, a);
	const struct btf_type *right = btf__type_by_id(excerpt, b);

	if (!a || !b) {
		assert_int_equal(a, b);
		return;
	}
	assert_non_null(right);
	assert_int_equal(left->info, right->info); /* the kind, and how many members */
	assert_string_equal(name_of(kernel, left->name_off), name_of(excerpt, right->name_off));
	assert_int_equal(btf__resolve_size(kernel, a), btf__resolve_size(excerpt, b));
	if (btf_is_composite(left))
		members_are_the_same(kernel, left, excerpt, right);
	else if (btf_is_enum(left))
		values_are_the_same(kernel, left, excerpt, right);
	else if (btf_is_array(left))
		assert_int_equal(btf_array(left)->nelems, btf_array(right)->nelems);
	if (btf_is_array(left))
		same(kernel, btf_array(left)->type, excerpt, btf_array(right)->type);
	else if (btf_is_mod(left) || btf_is_typedef(left))
		same(kernel, left->type, excerpt, right->type);
	else if (btf_is_ptr(left))
		assert_int_equal(right->type, 0);
}

static struct btf *excerpt_of(const char *file, const struct btf *programs)
{
	struct kernel_types types;
	int fd = memfd_create("excerpt", 0);
	struct btf *excerpt;
	char path[32];

	assert_true(fd >= 0);
	assert_int_equal(kernel_types_open(&types, file), 0);
	assert_int_equal(kernel_types_excerpt(&types, programs, fd), 0);
	kernel_types_close(&types);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	excerpt = btf__parse(path, NULL);
	assert_non_null(excerpt);
	close(fd);
	return excerpt;
}

static void test_excerpt_has_the_named_types_as_the_kernel_has_them(void **state)
{
	struct btf *kernel = btf__load_vmlinux_btf(), *programs = btf__new_empty(), *excerpt;
	static const struct {
		const char *name, *in_kernel;
		__u32 kind;
	} rows[] = {
		{"task_struct", "task_struct", BTF_KIND_STRUCT},
		{"rq___old", "rq", BTF_KIND_STRUCT}, /* another version of the same type */
		{"pid_type", "pid_type", BTF_KIND_ENUM},
		{"kuid_t", "kuid_t", BTF_KIND_TYPEDEF},
	};

	(void)state;
	assert_non_null(kernel);
	assert_true(btf__add_struct(programs, rows[0].name, 8) > 0);
	assert_true(btf__add_struct(programs, rows[1].name, 8) > 0);
	assert_true(btf__add_enum(programs, rows[2].name, 4) > 0);
	assert_true(btf__add_typedef(programs, rows[3].name, 1) > 0);
	assert_true(btf__add_struct(programs, "waffle_that_no_kernel_has", 8) > 0);
	excerpt = excerpt_of(KERNEL_TYPES_FILE, programs);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int a = btf__find_by_name_kind(kernel, rows[i].in_kernel, rows[i].kind);
		int b = btf__find_by_name_kind(excerpt, rows[i].in_kernel, rows[i].kind);

		assert_true(a > 0);
		assert_true(b > 0);
		same(kernel, (__u32)a, excerpt, (__u32)b);
	}
	assert_true(btf__find_by_name(excerpt, "waffle_that_no_kernel_has") < 0);
	assert_true(btf__find_by_name(excerpt, "sched_switch") < 0);
	assert_true(btf__type_cnt(excerpt) < btf__type_cnt(kernel) / 10);
	btf__free(excerpt);
	btf__free(programs);
	btf__free(kernel);
}

static void test_excerpt_for_programs_without_types_is_empty(void **state)
{
	struct btf *programs = btf__new_empty();
	struct btf *excerpt = excerpt_of(KERNEL_TYPES_FILE, programs);

	(void)state;
	assert_int_equal(btf__type_cnt(excerpt), 1); /* void */
	btf__free(excerpt);
	btf__free(programs);
}

/* ---- files ---- */

struct file {
	struct btf_header header;
	struct btf_type type;
	char names[5];
};

static int open_bytes(struct kernel_types *types, const void *bytes, size_t len)
{
	char path[] = "/tmp/waffle-types-XXXXXX";
	int fd = mkstemp(path), result;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	result = kernel_types_open(types, path);
	close(fd);
	unlink(path);
	return result;
}

static int result_of(const void *bytes, size_t len)
{
	struct kernel_types types;
	int result = open_bytes(&types, bytes, len);

	assert_int_equal(!result, types.bytes != NULL);
	assert_int_equal(!result, kernel_types_has(&types, "abc"));
	kernel_types_close(&types);
	return result;
}

static struct file small_file(void)
{
	return (struct file){
		.header = {.magic = BTF_MAGIC,
			   .version = BTF_VERSION,
			   .hdr_len = sizeof(struct btf_header),
			   .type_len = sizeof(struct btf_type),
			   .str_off = sizeof(struct btf_type),
			   .str_len = 5},
		.type = {.name_off = 1, .info = BTF_KIND_FWD << 24},
		.names = "\0abc",
	};
}

static void test_file_that_is_no_type_information_is_an_error(void **state)
{
	const struct file good = small_file();
	const size_t len = offsetof(struct file, names) + sizeof(good.names);
	struct file bad = good;
	struct kernel_types types;

	(void)state;
	assert_int_equal(result_of(&good, len), 0);
	assert_int_equal(result_of(&good, len - 1), -EBADMSG);
	assert_int_equal(result_of(&good, 3), -EBADMSG);
	bad.header.str_len = UINT32_MAX;
	assert_int_equal(result_of(&bad, len), -EBADMSG);
	bad = good;
	bad.header.magic = 0;
	assert_int_equal(result_of(&bad, len), -EBADMSG);
	bad = good;
	bad.names[4] = 'd'; /* the last name does not end */
	assert_int_equal(result_of(&bad, len), -EBADMSG);
	bad = good;
	bad.type.info = 31u << 24; /* a kind of a later kernel */
	assert_int_equal(result_of(&bad, len), -EBADMSG);
	bad = good;
	bad.type.info = BTF_KIND_STRUCT << 24 | 2; /* its members would be behind the end */
	assert_int_equal(result_of(&bad, len), -EBADMSG);
	bad = good;
	bad.header.type_len--;
	assert_int_equal(result_of(&bad, len), -EBADMSG);
	bad = good;
	bad.header.type_off = UINT32_MAX - 3;
	assert_int_equal(result_of(&bad, len), -EBADMSG);
	assert_int_equal(kernel_types_open(&types, "/nowhere"), -ENOENT);
	assert_false(kernel_types_has(&types, "abc"));
	assert_int_equal(kernel_types_struct(&types, "abc"), 0);
	kernel_types_close(&types);
}

static void test_part_of_a_name_is_no_name(void **state)
{
	static const char names[] = "\0first\0second_long\0long";
	struct kernel_types types = {.names = names, .names_len = sizeof(names)};

	(void)state;
	assert_true(kernel_types_has(&types, "first"));
	assert_true(kernel_types_has(&types, "second_long"));
	assert_true(kernel_types_has(&types, "long")); /* behind a name that ends alike */
	assert_false(kernel_types_has(&types, "irst"));
	assert_false(kernel_types_has(&types, "second"));
	types = (struct kernel_types){0};
	assert_false(kernel_types_has(&types, "first"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_and_numbers_are_those_that_libbpf_finds),
		cmocka_unit_test(test_excerpt_has_the_named_types_as_the_kernel_has_them),
		cmocka_unit_test(test_excerpt_for_programs_without_types_is_empty),
		cmocka_unit_test(test_file_that_is_no_type_information_is_an_error),
		cmocka_unit_test(test_part_of_a_name_is_no_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
