/* SPDX-License-Identifier: Apache-2.0 */
/* Loads generated BPF programs and runs them on memory of this process. Include it after cmocka. */
#ifndef WAFFLE_TESTS_FILTER_MACHINE_H
#define WAFFLE_TESTS_FILTER_MACHINE_H

#include <bpf/bpf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "disasm.h"
#include "filter/codegen/codegen.h"

#define LOG_BYTES (1 << 20)

struct machine {
	int open, deferred, next; /* maps */
	unsigned char *guard;     /* first byte after the memory for frames */
	char *log;
	struct codegen_options hit, end;
};

static inline int map_new(enum bpf_map_type type, const char *name, uint32_t value,
			  uint32_t entries)
{
	return bpf_map_create(type, name, type == BPF_MAP_TYPE_ARRAY ? 4 : 8, value, entries, NULL);
}

/* False: loading BPF programs is not permitted here. */
static inline bool machine_open(struct machine *machine)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *memory =
		mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	machine->guard = memory + 3 * page;
	assert_int_equal(mprotect(machine->guard, page, PROT_NONE), 0);
	machine->log = malloc(LOG_BYTES);
	assert_non_null(machine->log);
	machine->open = map_new(BPF_MAP_TYPE_HASH, "open", sizeof(struct waffle_open), 64);
	machine->deferred = map_new(BPF_MAP_TYPE_HASH, "deferred",
				    sizeof(struct waffle_deferred) + WAFFLE_FRAME_MAX, 4);
	machine->next =
		bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "next", 4, 4, WAFFLE_NEXT_COUNT, NULL);
	machine->hit = (struct codegen_options){
		.id_offset = 0, .frame_offset = 8, .size_offset = 16, .verdict_as_result = true};
	machine->end = machine->hit;
	machine->end.at_end = true;
	return machine->open >= 0 && machine->deferred >= 0 && machine->next >= 0;
}

static inline void machine_close(struct machine *machine)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	munmap(machine->guard - 3 * page, 4 * page);
	free(machine->log);
	if (machine->open >= 0)
		close(machine->open);
	if (machine->deferred >= 0)
		close(machine->deferred);
	if (machine->next >= 0)
		close(machine->next);
}

static inline void code_print(const struct filter_code *code)
{
	char text[DISASM_TEXT];
	unsigned words;

	for (uint32_t i = 0; i < code->insns.len; i += words) {
		words = disasm(text, code, i);
		print_message("%4u: %s\n", i, text);
	}
}

static inline int table_new(const struct filter_code *code)
{
	uint32_t zero = 0;
	int fd;

	if (!code->table.len)
		return -1;
	fd = map_new(BPF_MAP_TYPE_ARRAY, "table", 8 * (uint32_t)code->table.len, 1);
	assert_true(fd >= 0);
	assert_int_equal(bpf_map_update_elem(fd, &zero, code->table.data, 0), 0);
	return fd;
}

static inline int program_load(struct machine *machine, enum bpf_prog_type type,
			       struct filter_code *code, const char *source)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts);
	int table = table_new(code), fd;
	const int fds[] = {[CODE_RELOC_OPEN] = machine->open,
			   [CODE_RELOC_DEFERRED] = machine->deferred,
			   [CODE_RELOC_NEXT] = machine->next,
			   [CODE_RELOC_TABLE] = table};

	for (size_t i = 0; i < code->relocs.len; i++)
		code->insns.data[code->relocs.data[i].insn].imm = fds[code->relocs.data[i].type];
	fd = bpf_prog_load(type, "filter", "GPL", code->insns.data, code->insns.len, &opts);
	if (fd < 0) {
		opts.log_buf = machine->log;
		opts.log_size = LOG_BYTES;
		opts.log_level = 1;
		machine->log[0] = '\0';
		bpf_prog_load(type, "filter", "GPL", code->insns.data, code->insns.len, &opts);
		print_message("%s\n", source);
		code_print(code);
		print_message("%s\n", machine->log);
		fail_msg("the kernel refuses a program: %d", fd);
	}
	if (table >= 0)
		close(table);
	return fd;
}

static inline int program_run(int fd, uint64_t id, const void *frame, uint64_t size)
{
	uint64_t args[12] = {id, (uintptr_t)frame, size};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	assert_int_equal(bpf_prog_test_run_opts(fd, &opts), 0);
	return (int)opts.retval;
}

/* The kernel's ids of this thread, which ignore pid namespaces. */
static inline uint64_t kernel_pid_tgid(uint32_t shift)
{
	struct bpf_insn insns[] = {
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_current_pid_tgid},
		{.code = BPF_ALU64 | BPF_RSH | BPF_K, .imm = (int32_t)shift},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "ids", "GPL", insns, 3, NULL), id;

	assert_true(fd >= 0);
	id = program_run(fd, 0, NULL, 0);
	close(fd);
	return (uint32_t)id;
}

#endif
