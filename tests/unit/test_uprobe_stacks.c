// SPDX-License-Identifier: Apache-2.0
/* No program at a uprobe may get a stack that its CPU's other threads share (bpf/uprobe.bpf.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/kernel_internal.h"
#include "tail_call.h"
#include "waffle.skel.h"

static void test_programs_at_uprobes_have_a_tail_call(void **state)
{
	struct waffle_bpf *bpf = waffle_bpf__open();
	struct bpf_program *program = NULL;
	size_t found = 0;

	(void)state;
	assert_non_null(bpf);
	while ((program = bpf_object__next_program(bpf->obj, program))) {
		if (bpf_program__type(program) != BPF_PROG_TYPE_KPROBE)
			continue;
		found++;
		if (!has_tail_call(bpf_program__insns(program), bpf_program__insn_cnt(program)))
			fail_msg("%s has no tail call", bpf_program__name(program));
	}
	assert_true(found >= 20);
	waffle_bpf__destroy(bpf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs_at_uprobes_have_a_tail_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
