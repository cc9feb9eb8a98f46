// SPDX-License-Identifier: Apache-2.0
/* The generated programs of a filter: loading them, and what they need (bpf/filter.bpf.c). */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/filter.h"
#include "probe/kernel_internal.h"
#include "waffle.skel.h"
#include "util/terminal.h"

/* Spans that can be open, and held, at a time. What is too much is counted as lost. */
#define OPEN_SPANS 65536
static const uint32_t held_spans[WAFFLE_HELD_SIZE_COUNT] = {
	[WAFFLE_HELD_SMALL] = 32768,
	[WAFFLE_HELD_MEDIUM] = 4096,
	[WAFFLE_HELD_LARGE] = 1024,
};
#define CHILD_BUFFERS 512 /* threads with held spans, with --keep-children; 35 KiB each */

#define VERIFIER_LOG_BYTES (1 << 20)

struct bpf_map *held_map(const struct kernel *kernel, enum waffle_held_size size)
{
	struct bpf_map *maps[WAFFLE_HELD_SIZE_COUNT] = {
		[WAFFLE_HELD_SMALL] = kernel->bpf->maps.filter_held_small,
		[WAFFLE_HELD_MEDIUM] = kernel->bpf->maps.filter_held_medium,
		[WAFFLE_HELD_LARGE] = kernel->bpf->maps.filter_held_large,
	};

	return maps[size];
}

int classes_configure(struct kernel *kernel, const struct kernel_options *options)
{
	struct waffle_bpf *bpf = kernel->bpf;
	bool holds = options->filtered && options->holds;
	struct bpf_program *const programs[] = {
		bpf->progs.filter_hit,     bpf->progs.filter_keep,  bpf->progs.filter_hold,
		bpf->progs.filter_pass_by, bpf->progs.filter_end,   bpf->progs.filter_release,
		bpf->progs.filter_discard, bpf->progs.filter_stack,
	};
	int result = 0;

	kernel->filtered = options->filtered;
	kernel->keep_children = options->filtered && options->keep_children;
	bpf->rodata->filter_tracks = options->tracks;
	bpf->rodata->filter_keep_children = kernel->keep_children;
	bpf->rodata->rate_count = options->rate.count;
	bpf->rodata->rate_unit_ns = options->rate.unit_ns;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		bpf_program__set_autoload(programs[i], kernel->filtered);
	bpf_program__set_autoload(bpf->progs.filter_thread_exit, kernel->keep_children);
	if (!kernel->filtered)
		return 0;
	for (int i = 0; !result && i < WAFFLE_HELD_SIZE_COUNT; i++)
		if (holds)
			result = bpf_map__set_max_entries(held_map(kernel, i), held_spans[i]);
	if (!result && holds && kernel->keep_children)
		result = bpf_map__set_max_entries(bpf->maps.filter_buffers, CHILD_BUFFERS);
	return result ?: bpf_map__set_max_entries(bpf->maps.filter_open, OPEN_SPANS)
		      ?: bpf_map__set_max_entries(bpf->maps.filter_classes, WAFFLE_CLASSES_MAX)
		      ?: bpf_map__set_max_entries(bpf->maps.filter_next,
						  WAFFLE_NEXT_COUNT + WAFFLE_CLASSES_MAX);
}

static int next_set(struct kernel *kernel, uint32_t slot, int program)
{
	return bpf_map_update_elem(bpf_map__fd(kernel->bpf->maps.filter_next), &slot, &program,
				   BPF_ANY)
		       ? -errno
		       : 0;
}

/* The program for each decision (enum waffle_next). */
static int next_program(const struct kernel *kernel, enum waffle_next next)
{
	const struct waffle_bpf *bpf = kernel->bpf;
	struct bpf_program *const programs[WAFFLE_NEXT_COUNT] = {
		[WAFFLE_NEXT_HIT] = bpf->progs.filter_hit,
		[WAFFLE_NEXT_KEEP] = bpf->progs.filter_keep,
		[WAFFLE_NEXT_HOLD] = bpf->progs.filter_hold,
		[WAFFLE_NEXT_PASS_BY] = bpf->progs.filter_pass_by,
		[WAFFLE_NEXT_RELEASE] = bpf->progs.filter_release,
		[WAFFLE_NEXT_DISCARD] = bpf->progs.filter_discard,
		[WAFFLE_NEXT_STACK] = bpf->progs.filter_stack,
	};

	return bpf_program__fd(programs[next]);
}

int classes_open(struct kernel *kernel, struct error *err)
{
	int result = 0;

	for (uint32_t i = 0; kernel->filtered && !result && i < WAFFLE_NEXT_COUNT; i++)
		result = next_set(kernel, i, next_program(kernel, i));
	return result ? error_set(err, -result, "the filter's programs: %s", strerror(-result)) : 0;
}

static void loaded_close(struct loaded_class *loaded)
{
	if (loaded->own)
		close(loaded->hit);
}

void classes_close(struct kernel *kernel)
{
	for (size_t i = 0; i < kernel->classes.len; i++)
		loaded_close(&kernel->classes.data[i]);
	vec_free(&kernel->classes);
}

/* The constants of a program as a map of one element that nobody can change any more. */
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
		     const struct filter_code *code, enum waffle_held_size held,
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
		case CODE_RELOC_HELD:
			insn->imm = bpf_map__fd(held_map(kernel, held));
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
		    .expected_attach_type = at_tracepoint ? 0 : kernel_site_attach_type(kernel),
		    .log_buf = log, .log_size = log ? VERIFIER_LOG_BYTES : 0,
		    .log_level = log ? 1 : 0);

	return bpf_prog_load(at_tracepoint ? BPF_PROG_TYPE_TRACEPOINT : BPF_PROG_TYPE_KPROBE,
			     "waffle_filter", "Dual BSD/GPL", insns, count, &options);
}

/* The kernel's reasons for a refusal, for WAFFLE_LIBBPF=1. */
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

/* Where the programs go on: of calls, elsewhere. */
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
	      enum waffle_held_size held, bool at_tracepoint, struct error *err)
{
	struct bpf_insn *insns = malloc(code->insns.len * sizeof(*insns));
	int table = code->table.len ? table_make(code) : 0, fd, problem;

	if (!insns || table < 0) {
		problem = insns ? -table : ENOMEM;
		free(insns);
		return error_set(err, problem, "the filter's constants: %s", strerror(problem));
	}
	memcpy(insns, code->insns.data, code->insns.len * sizeof(*insns));
	relocate(kernel, insns, code, held, next_map(kernel, code, at_tracepoint), table);
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
			 "WAFFLE_LIBBPF=1 shows the verifier's words",
			 code->insns.len, strerror(problem));
}

uint32_t jited_bytes(int program)
{
	struct bpf_prog_info info = {0};
	uint32_t bytes = sizeof(info);

	return bpf_prog_get_info_by_fd(program, &info, &bytes) ? 0 : info.jited_prog_len;
}

/* The program at the sites of a class: its own, or the one for the only decision there is. */
static int hit_load(const struct kernel *kernel, const struct plan_class *class, struct error *err)
{
	if (class->hit.insns.len)
		return code_load(kernel, &class->hit, class->held, false, err);
	if (class->context)
		return next_program(kernel, WAFFLE_NEXT_PASS_BY);
	if (!class->is_span)
		return next_program(kernel, WAFFLE_NEXT_HIT);
	return next_program(kernel, class->holds ? WAFFLE_NEXT_HOLD : WAFFLE_NEXT_KEEP);
}

/* Tells the programs about a class, before a site of it can be hit. */
static int class_publish(struct kernel *kernel, uint32_t index, const struct plan_class *class,
			 int end, struct error *err)
{
	struct waffle_class value = {
		.name_bits = class->name_bits,
		.is_span = class->is_span,
		.held = class->held,
	};
	int result = 0;

	if (bpf_map_update_elem(bpf_map__fd(kernel->bpf->maps.filter_classes), &index, &value,
				BPF_ANY))
		result = -errno;
	if (!result && class->holds)
		result = next_set(kernel, WAFFLE_NEXT_COUNT + index, end);
	return result ? error_set(err, -result, "the filter's programs: %s", strerror(-result)) : 0;
}

/* The program at the end of held spans lives in the program array. */
static int end_load(struct kernel *kernel, struct loaded_class *loaded, uint32_t index,
		    const struct plan_class *class, struct error *err)
{
	int end = class->holds ? code_load(kernel, &class->end, class->held, false, err) : 0;
	int result = end < 0 ? end : class_publish(kernel, index, class, end, err);

	if (class->holds && end >= 0) {
		loaded->end_jited = jited_bytes(end);
		close(end);
	}
	return result;
}

int kernel_class_load(struct kernel *kernel, uint32_t index, const struct plan_class *class,
		      struct error *err)
{
	struct loaded_class loaded = {
		.is_span = class->is_span,
		.own = class->hit.insns.len > 0 && !class->call,
	};
	int result;

	if (index != kernel->classes.len || index >= WAFFLE_CLASSES_MAX)
		return error_set(err, E2BIG, "the filter: too many kinds of sites (at most %d)",
				 WAFFLE_CLASSES_MAX);
	if (class->call) {
		result = call_class_load(kernel, &loaded, index, class, err);
		if (!result && !vec_push(&kernel->classes, loaded))
			result = error_set(err, ENOMEM, "out of memory");
		return result;
	}
	loaded.hit = hit_load(kernel, class, err);
	if (loaded.hit < 0)
		return loaded.hit;
	if (loaded.own)
		loaded.hit_jited = jited_bytes(loaded.hit);
	result = end_load(kernel, &loaded, index, class, err);
	if (!result && !vec_push(&kernel->classes, loaded))
		result = error_set(err, ENOMEM, "out of memory");
	if (result)
		loaded_close(&loaded);
	return result;
}

uint32_t kernel_class_count(const struct kernel *kernel)
{
	return (uint32_t)kernel->classes.len;
}

uint32_t kernel_class_jited(const struct kernel *kernel, uint32_t index, bool at_end)
{
	if (index >= kernel->classes.len)
		return 0;
	return at_end ? kernel->classes.data[index].end_jited
		      : kernel->classes.data[index].hit_jited;
}
