// SPDX-License-Identifier: Apache-2.0
/* The programs at sites: how they attach, and how those of a filter are loaded. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/filter.h"
#include "kernel/kernel_internal.h"
#include "util/terminal.h"
#include "waffle.skel.h"

#define VERIFIER_LOG_BYTES (1 << 20)

/* libbpf takes the path of the BTF file before the object is open, and reads the file when it loads
 * the object. So the excerpt, which needs the types of the open object, is written in between. */
struct waffle_bpf *kernel_programs_open(struct kernel *kernel)
{
	LIBBPF_OPTS(bpf_object_open_opts, options);
	bool is_first = kernel->types.bytes && kernel->types_fd < 0;
	struct waffle_bpf *bpf;
	char path[32];
	int result = 0;

	if (is_first)
		kernel->types_fd = memfd_create("waffle-types", MFD_CLOEXEC);
	if (is_first && kernel->types_fd < 0)
		return NULL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", kernel->types_fd);
	if (kernel->types_fd >= 0)
		options.btf_custom_path = path;
	bpf = waffle_bpf__open_opts(&options);
	if (bpf && is_first)
		result = kernel_types_excerpt(&kernel->types, bpf_object__btf(bpf->obj),
					      kernel->types_fd);
	if (!result)
		return bpf;
	waffle_bpf__destroy(bpf);
	errno = -result;
	return NULL;
}

/* The attach type of all programs at sites. It must be one, since the kernel allows tail calls only
 * between programs of the same type. */
static enum bpf_attach_type site_attach_type(const struct kernel *kernel)
{
	return kernel->multi ? BPF_TRACE_UPROBE_MULTI : 0;
}

/* The programs at sites, which are written for uprobe.multi. */
void kernel_site_programs_configure(const struct kernel *kernel, struct waffle_bpf *bpf)
{
	struct bpf_program *program = NULL;

	while ((program = bpf_object__next_program(bpf->obj, program)))
		if (bpf_program__expected_attach_type(program) == BPF_TRACE_UPROBE_MULTI)
			bpf_program__set_expected_attach_type(program, site_attach_type(kernel));
}

struct bpf_map *deferred_map(const struct kernel *kernel, enum waffle_deferred_size size)
{
	struct bpf_map *maps[WAFFLE_DEFERRED_SIZE_COUNT] = {
		[WAFFLE_DEFERRED_SMALL] = kernel->bpf->maps.filter_deferred_small,
		[WAFFLE_DEFERRED_MEDIUM] = kernel->bpf->maps.filter_deferred_medium,
		[WAFFLE_DEFERRED_LARGE] = kernel->bpf->maps.filter_deferred_large,
	};

	return maps[size];
}

/* Stores the constants of a program in a frozen map of one element. */
static int table_make(const struct filter_code *code)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_RDONLY_PROG);
	uint32_t bytes = (uint32_t)(code->table.len * sizeof(*code->table.data)), zero = 0;
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "waffle_table", sizeof(zero), bytes, 1,
				&options);

	if (fd >= 0 &&
	    (bpf_map_update_elem(fd, &zero, code->table.data, BPF_ANY) || bpf_map_freeze(fd))) {
		int problem = errno;

		close(fd);
		errno = problem;
		fd = -1;
	}
	return fd < 0 ? -errno : fd;
}

/* Puts the descriptors of maps into a program's instructions. */
static void relocate(const struct kernel *kernel, struct bpf_insn *insns,
		     const struct filter_code *code, enum waffle_deferred_size deferred,
		     const struct bpf_map *next, int table)
{
	for (size_t i = 0; i < code->relocs.len; i++) {
		const struct code_reloc *reloc = &code->relocs.data[i];
		struct bpf_insn *insn = &insns[reloc->insn];

		insn->src_reg = BPF_PSEUDO_MAP_FD;
		switch (reloc->type) {
		case CODE_RELOC_OPEN:
			insn->imm = bpf_map__fd(kernel->bpf->maps.filter_open);
			break;
		case CODE_RELOC_DEFERRED:
			insn->imm = bpf_map__fd(deferred_map(kernel, deferred));
			break;
		case CODE_RELOC_NEXT:
			insn->imm = bpf_map__fd(next);
			break;
		case CODE_RELOC_CALLS:
			insn->imm = bpf_map__fd(kernel->bpf->maps.call_threads);
			break;
		case CODE_RELOC_TABLE:
			insn->src_reg = BPF_PSEUDO_MAP_VALUE;
			insn->imm = table;
			break;
		}
	}
}

static int program_load(const struct kernel *kernel, const struct bpf_insn *insns, size_t count,
			bool at_tracepoint, char *log)
{
	LIBBPF_OPTS(bpf_prog_load_opts, options,
		    .expected_attach_type = at_tracepoint ? 0 : site_attach_type(kernel),
		    .log_buf = log, .log_size = log ? VERIFIER_LOG_BYTES : 0,
		    .log_level = log ? 1 : 0);

	return bpf_prog_load(at_tracepoint ? BPF_PROG_TYPE_TRACEPOINT : BPF_PROG_TYPE_KPROBE,
			     "waffle_filter", "Dual BSD/GPL", insns, count, &options);
}

/* Shows the verifier's log, for WAFFLE_LIBBPF=1. */
static void refusal_show(const struct kernel *kernel, const struct bpf_insn *insns, size_t count,
			 bool at_tracepoint)
{
	char *log = getenv("WAFFLE_LIBBPF") ? calloc(1, VERIFIER_LOG_BYTES) : NULL;
	int again;

	if (!log)
		return;
	again = program_load(kernel, insns, count, at_tracepoint, log);
	if (again >= 0)
		close(again);
	terminal_log(stderr, log);
	free(log);
}

/* The program array that the programs continue in: calls have their own. */
static const struct bpf_map *next_map(const struct kernel *kernel, const struct filter_code *code,
				      bool at_tracepoint)
{
	for (size_t i = 0; i < code->relocs.len; i++)
		if (code->relocs.data[i].type == CODE_RELOC_CALLS)
			return at_tracepoint ? kernel->bpf->maps.call_next_point
					     : kernel->bpf->maps.call_next;
	return kernel->bpf->maps.filter_next;
}

/* A descriptor of the program, which belongs to the caller. The program holds what it needs. */
int code_load(const struct kernel *kernel, const struct filter_code *code,
	      enum waffle_deferred_size deferred, bool at_tracepoint, struct error *err)
{
	struct bpf_insn *insns = malloc(code->insns.len * sizeof(*insns));
	int table = code->table.len ? table_make(code) : 0, fd, problem;

	if (!insns || table < 0) {
		problem = insns ? -table : ENOMEM;
		free(insns);
		return error_set(err, problem, "the filter's constants: %s", strerror(problem));
	}
	memcpy(insns, code->insns.data, code->insns.len * sizeof(*insns));
	relocate(kernel, insns, code, deferred, next_map(kernel, code, at_tracepoint), table);
	fd = program_load(kernel, insns, code->insns.len, at_tracepoint, NULL);
	problem = errno;
	if (fd < 0)
		refusal_show(kernel, insns, code->insns.len, at_tracepoint);
	if (code->table.len)
		close(table);
	free(insns);
	if (fd >= 0)
		return fd;
	return error_set(err, problem,
			 "the kernel refuses the filter's program of %zu instructions: %s; "
			 "WAFFLE_LIBBPF=1 shows the verifier's messages",
			 code->insns.len, strerror(problem));
}

uint32_t jited_bytes(int program)
{
	struct bpf_prog_info info = {0};
	uint32_t bytes = sizeof(info);

	return bpf_prog_get_info_by_fd(program, &info, &bytes) ? 0 : info.jited_prog_len;
}
