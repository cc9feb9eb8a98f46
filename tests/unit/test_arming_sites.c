// SPDX-License-Identifier: Apache-2.0
/* Sites by the addresses of their probes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/arming/arming_internal.h"

int __real_address_spaces_scan(struct address_spaces *spaces, pid_t pid,
			       const struct mappings **now, struct error *err);
int __wrap_address_spaces_scan(struct address_spaces *spaces, pid_t pid,
			       const struct mappings **now, struct error *err);

static unsigned scans;

int __wrap_address_spaces_scan(struct address_spaces *spaces, pid_t pid,
			       const struct mappings **now, struct error *err)
{
	scans++;
	return __real_address_spaces_scan(spaces, pid, now, err);
}

/* A file that is armed ahead is no reason to read the mappings for each unknown probe. */
static void test_unknown_probes_seldom_cause_a_read_of_the_mappings(void **state)
{
	struct arming arming = {0};
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(address_spaces_open(&arming.spaces, NULL, NULL, &err), 0);
	assert_true(vec_push(&arming.sites, (struct arming_site){.number = WAFFLE_SITE_UNKNOWN}));
	for (uint64_t i = 1; i < 20000; i++)
		assert_int_equal(arming_site_at(&arming, getpid(), i << 12), WAFFLE_SITE_UNKNOWN);
	assert_in_range(scans, 1, 5000); /* however slow this is */
	vec_free(&arming.sites);
	address_spaces_close(arming.spaces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unknown_probes_seldom_cause_a_read_of_the_mappings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
