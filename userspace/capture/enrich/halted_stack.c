// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/halted_stack_internal.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/dwarf/cfi_remote.h"
#include "target/dwarf/unwind.h"
#include "target/process/mapping_file.h"
#include "util/clock.h"

static int word_read(const void *image, __u64 *word, uint64_t address)
{
	return address % sizeof(*word) || !image_read(image, address, word, sizeof(*word));
}
#define WAFFLE_UNWIND_READ(context, word, address) word_read(context, word, address)
#include "bpf/unwind_step.h"

/* The table of a larger file would take too long. */
#define FILE_BYTES_MAX (256ll << 20)

struct module {
	struct waffle_unwind_mapping placed;
	struct cfi_table table;
	bool tried;
};

struct halted_code {
	pid_t pid;
	uint64_t until_ns;
	struct mappings mappings; /* by address */
	struct module *modules;   /* one for each mapping */
	struct stacks *stacks;
	bool jvm;
};

struct halted_code *halted_code_open(pid_t pid, const struct image *image, struct stacks *stacks,
				     uint64_t until_ns)
{
	struct halted_code *code = calloc(1, sizeof(*code));
	struct error ignored = ERROR_INIT;

	if (!code)
		return NULL;
	code->pid = pid;
	code->until_ns = until_ns;
	code->stacks = stacks;
	code->jvm = stacks && stacks_jvm_ready(stacks, (uint32_t)pid, image);
	if (!process_mappings(&code->mappings, pid, &ignored))
		code->modules = calloc(code->mappings.list.len + 1, sizeof(*code->modules));
	if (code->modules)
		return code;
	halted_code_close(code);
	return NULL;
}

void halted_code_close(struct halted_code *code)
{
	if (!code)
		return;
	for (size_t i = 0; code->modules && i < code->mappings.list.len; i++)
		cfi_table_free(&code->modules[i].table);
	free(code->modules);
	mappings_free(&code->mappings);
	free(code);
}

/* Makes the table of a mapped file, in a worker, since the file is not trusted. */
static void module_make(const struct halted_code *code, struct module *module,
			const struct mapping *mapping)
{
	struct elf_segments segments;
	char path[PATH_MAX];
	struct stat status;
	int fd;

	module->tried = true;
	if (!mapping->ino || clock_monotonic_ns() >= code->until_ns)
		return;
	fd = mapping_open(mapping, code->pid, path, sizeof(path));
	if (fd < 0)
		return;
	if (fstat(fd, &status) || status.st_size > FILE_BYTES_MAX) {
		close(fd);
		return;
	}
	if (cfi_file_read(&module->table, &segments, fd, path, NULL)) {
		module->table = (struct cfi_table){0};
		return;
	}
	if (!unwind_place(&module->placed, mapping, &segments, &module->table))
		cfi_table_free(&module->table);
}

/* The row for an address; NULL: none is known. */
static const struct waffle_unwind_row *row_find(struct halted_code *code, uint64_t pc)
{
	size_t low = 0, high = code ? code->mappings.list.len : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct mapping *mapping = &code->mappings.list.data[middle];
		struct module *module = &code->modules[middle];

		if (pc < mapping->start) {
			high = middle;
			continue;
		}
		if (pc >= mapping->end) {
			low = middle + 1;
			continue;
		}
		if (!module->tried)
			module_make(code, module, mapping);
		return module->table.count
			       ? cfi_table_find(&module->table,
						pc - module->placed.base + module->table.base)
			       : NULL;
	}
	return NULL;
}

bool halted_code_has_jvm(const struct halted_code *code)
{
	return code->jvm;
}

/* Steps from code of the JVM to its caller. False: the walk ends. */
static bool jvm_walk(const struct halted_code *code, const struct image *image,
		     struct waffle_unwind_regs *regs, uint64_t *address)
{
	struct jvm_frame frame = {.pc = waffle_unwind_pc(regs), .sp = regs->sp, .fp = regs->fp};
	bool more = stacks_jvm_step(code->stacks, (uint32_t)code->pid, image, &frame, address);

	*address = *address ?: regs->ip;
	*regs = (struct waffle_unwind_regs){.ip = frame.pc, .sp = frame.sp, .fp = frame.fp};
	return more;
}

uint32_t halted_stack_walk(uint64_t *addresses, uint32_t room,
			   const struct waffle_rec_halted *halted, const struct image *image,
			   struct halted_code *code)
{
	static const struct waffle_unwind_row unknown = {.rule = WAFFLE_UNWIND_UNKNOWN};
	struct waffle_unwind_regs regs = {
		.ip = halted->ip, .sp = halted->sp, .fp = halted->fp, .exact = 1};
	uint32_t count = 0;

	while (count < room && regs.ip >= 4096) {
		const struct waffle_unwind_row *row;

		if (code && code->jvm &&
		    stacks_jvm_has(code->stacks, (uint32_t)code->pid, waffle_unwind_pc(&regs))) {
			if (!jvm_walk(code, image, &regs, &addresses[count++]))
				break;
			continue;
		}
		row = row_find(code, waffle_unwind_pc(&regs));
		/* A reader names a caller by the byte before its address: bpf/stack.bpf.c. */
		addresses[count] = regs.ip + (count && regs.exact);
		count++;
		if (!waffle_unwind_step((void *)(uintptr_t)image, row ?: &unknown, &regs))
			break;
	}
	return count;
}
