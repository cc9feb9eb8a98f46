// SPDX-License-Identifier: Apache-2.0
/* The longest filters there may be are programs that the kernel verifies. Needs root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <time.h>

#include "filter/codegen/codegen.h"
#include "filter/eval.h"
#include "filter/filter.h"
#include "filter_machine.h"
#include "tail_call.h"

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

#define STRINGS 8

/* Strings and numbers in turn: each string begins another run of keys. */
static const struct site_info many_strings = {
	.name = "many",
	.category = "",
	.file = "a.c",
	.func = "run",
	.object = "/bin/a",
	.kind = WAFFLE_SITE_SPAN,
	.key_count = WAFFLE_KEYS_MAX,
	.keys = {{'s', "s0"},
		 {'i', "n0"},
		 {'s', "s1"},
		 {'u', "n1"},
		 {'s', "s2"},
		 {'d', "n2"},
		 {'s', "s3"},
		 {'b', "n3"},
		 {'s', "s4"},
		 {'i', "n4"},
		 {'s', "s5"},
		 {'u', "n5"},
		 {'s', "s6"},
		 {'d', "n6"},
		 {'s', "s7"},
		 {'n', "n7"}},
};

/* One of 64 predicates. */
typedef void (*nth_fn)(char *text, size_t size, unsigned i);

/* The search that takes the kernel longest to verify, with a
 * part before, in the middle and at the end. */
static void nth_search(char *text, size_t size, unsigned i)
{
	snprintf(text, size, "kv.s%u ~ \"a%02u*b?%02uc*[d-f]gh%02u*%02ux\"", i % STRINGS, i, i, i,
		 i);
}

static void nth_mixed(char *text, size_t size, unsigned i)
{
	static const char *const forms[] = {
		"kv.s%u ~ \"*needle %u*\"",
		"kv.n%u > %u",
		"kv.s%u in {\"one\", \"two\", \"three %u\"}",
		"(comm ~ \"*%u*\" || tid == %u)",
		"kv.s%u ~ \"/usr/lib/*/python%u/*.so\"",
		"kv.n%u != %u.5",
		"!(kv.s%u == \"exactly %u\")",
		"(depth > %u || parent.name == \"p%u\")",
	};

	snprintf(text, size, forms[i % 8], i / 8 % STRINGS, i);
}

static void nth_texts(char *text, size_t size, unsigned i)
{
	snprintf(text, size, "kv.s%u %s \"%0*u\"", i % STRINGS, i % 3 ? "==" : "!~", 200, i);
}

/* Makes it, loads the program as a probe's and prints how long that took. */
static void longest_load(struct machine *machine, const char *what, nth_fn nth, const char *op,
			 unsigned count, const char *tail)
{
	struct codegen_options options = codegen_options_default();
	static char source[FILTER_SOURCE_MAX];
	struct filter_expr *filter;
	struct residual residual;
	struct filter_code code;
	struct error err = ERROR_INIT;
	char predicate[300];
	uint64_t begin;
	size_t len = 0;
	int fd;

	for (unsigned i = 0; i < count; i++) {
		nth(predicate, sizeof(predicate), i);
		len += (size_t)snprintf(source + len, sizeof(source) - len, "%s%s", i ? op : "",
					predicate);
	}
	snprintf(source + len, sizeof(source) - len, "%s", tail);
	if (filter_parse(&filter, what, source, &err))
		fail_msg("%s", err.message);
	options.on_accept = WAFFLE_NEXT_KEEP;
	options.on_defer = WAFFLE_NEXT_DEFER;
	assert_true(residual_make(&residual, filter, &many_strings));
	assert_int_equal(codegen(&code, filter, &residual, &many_strings, &options), 0);
	assert_true(code.predicates <= FILTER_PREDICATES_MAX);
	assert_true(has_tail_call(code.insns.data, code.insns.len));
	begin = now_ns();
	fd = program_load(machine, BPF_PROG_TYPE_KPROBE, &code, source);
	print_message("%s: %zu bytes, %u predicates, %zu instructions, loaded in %.1f ms\n", what,
		      strlen(source), code.predicates, code.insns.len,
		      (double)(now_ns() - begin) / 1e6);
	close(fd);
	filter_code_free(&code);
	residual_free(&residual);
	filter_free(filter);
}

static void test_longest_expressions_load_as_probes(void **state)
{
	struct machine opened, *machine = &opened;

	(void)state;
	if (!machine_open(machine))
		skip();
	longest_load(machine, "64 searches", nth_search, " || ", 64, "");
	longest_load(machine, "63 searches and a duration", nth_search, " && ", 63,
		     " && dur > 10ms");
	/* Twice the work: what is accepted at once is found out by asking all again. */
	longest_load(machine, "63 searches or a duration", nth_search, " || ", 62,
		     " || (pid == 1 && dur > 10ms)");
	longest_load(machine, "all sorts, and", nth_mixed, " && ", 48, "");
	longest_load(machine, "all sorts, or", nth_mixed, " || ", 48, "");
	longest_load(machine, "long texts", nth_texts, " || ", 64, "");
	machine_close(machine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_longest_expressions_load_as_probes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
