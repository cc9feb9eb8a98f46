// SPDX-License-Identifier: Apache-2.0
/* Sites by the addresses of their probes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/arming/arming_internal.h"
#include "fake_sites.h"

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

static void test_site_without_room_in_the_file_is_left_out_and_others_are_not(void **state)
{
	static const struct site_info sites[] = {
		{.name = "first"}, {.name = FAKE_SITE_REFUSED}, {.name = "last"}};
	static const struct session_options options;
	struct arming arming = {.options = &options};
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(arming_add_name(&arming, &sites[1]), WAFFLE_SITE_UNKNOWN);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(arming_register(&arming, &sites[i], NULL, &err), 0);
	assert_int_equal(arming_announce(&arming, 1, 3, &err), 0);
	assert_int_equal(arming_number(&arming, 1), 0);
	assert_int_equal(arming_number(&arming, 2), WAFFLE_SITE_UNKNOWN);
	assert_int_equal(arming_number(&arming, 3), 1);
	assert_string_equal(arming_warning(&arming), "no room; it is not recorded");
	assert_string_equal(err.message, "");
	vec_free(&arming.sites);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_site_without_room_in_the_file_is_left_out_and_others_are_not),
		cmocka_unit_test(test_unknown_probes_seldom_cause_a_read_of_the_mappings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
