// SPDX-License-Identifier: Apache-2.0
/* Ids of containers from lines of /proc/PID/cgroup. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "target/process/container_id.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "f123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_ids_are_found_as_engines_write_them(void **state)
{
	static const char *const lines[] = {
		"0::/docker/" ID "\n",
		"0::/system.slice/docker-" ID ".scope\n",
		"0::/machine.slice/libpod-" ID ".scope/container\n",
		"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" ID ".scope\n",
		"4:cpu,cpuacct:/kubepods/besteffort/pod12/" ID,
		"0::/docker/" OTHER "/docker/" ID "\n",
		"0::/../docker-" ID ".scope",
	};
	char id[CONTAINER_ID_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_true(container_id_parse(id, lines[i]));
		assert_string_equal(id, ID);
	}
}

static void test_other_cgroups_have_none(void **state)
{
	static const char *const lines[] = {
		"",
		"0::/\n",
		"0::/user.slice/user-1000.slice\n",
		"0::/docker/" ID "0\n",
		"0::/docker/x" ID "\n",
		"0::/docker/" ID ".service\n",
		"0::/docker/0123\n",
		"0::/machine.slice/libpod-conmon-" ID ".scope\n",
	};
	char id[CONTAINER_ID_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_false(container_id_parse(id, lines[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids_are_found_as_engines_write_them),
		cmocka_unit_test(test_other_cgroups_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
