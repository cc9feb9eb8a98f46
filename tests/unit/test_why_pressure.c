// SPDX-License-Identifier: Apache-2.0
/* The limit of memory that stands above the causes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "why_capture.h"

#define MS 1000000ull

/* Thread 11 waits for 12 from 2 to 9 ms. `faulting` has page faults of `fault_ns` in that time, or
 * before it. The cgroup of thread 11 had reached its limit at 9 ms. */
static struct why *ask_limited(struct capture *capture, uint32_t faulting, uint64_t fault_ns)
{
	uint64_t from = faulting == 11 ? 1000 : 3 * MS;
	struct waffle_rec_fault fault = {.rec = {from + fault_ns, faulting, WAFFLE_REC_FAULT, 0},
					 .from_ts = from,
					 .total_ns = fault_ns,
					 .count = 100};
	struct waffle_rec_memory memory = {.rec = {9 * MS, 11, WAFFLE_REC_MEMORY, 0},
					   .cgroup = 7,
					   .limit_bytes = 64 << 20,
					   .used_bytes = 64 << 20};

	capture_begin(capture, true);
	gets(capture, 1000, 1, 0, 11, 0, 0, 0);
	gets(capture, 1001, 2, 0, 12, 0, 0, 0);
	if (faulting == 11)
		capture_add(capture, &fault);
	waits(capture, 2 * MS, 1, 11, 0, S, NR_READ, 3, 0, 0);
	if (faulting == 12)
		capture_add(capture, &fault);
	gets(capture, 9 * MS, 1, 0, 11, 12, 9 * MS, 0);
	capture_add(capture, &memory);
	return ask(capture, 10 * MS,
		   &(struct why_query){.tid = 11, .from_ts = 1000, .to_ts = 10 * MS});
}

static void test_the_limit_is_shown_if_the_threads_own_page_faults_take_a_tenth(void **state)
{
	static const struct {
		uint32_t faulting;
		uint64_t fault_ns;
		bool shown;
	} rows[] = {{11, 15 * MS / 10, true}, {11, MS / 2, false}, {12, 4 * MS, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why = ask_limited(&capture, rows[i].faulting, rows[i].fault_ns);
		const char *text = strtab_get(why->texts, why->instances.data[0].memory);

		if (rows[i].shown)
			assert_non_null(strstr(text, "memory.max 64.0 MiB of "));
		else
			assert_string_equal(text, "");
		done(&capture, why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_the_limit_is_shown_if_the_threads_own_page_faults_take_a_tenth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
