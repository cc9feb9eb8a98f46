// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "target/process/container_name_internal.h"
#include "target/process/process_set.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define ID_A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID_B "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static void test_cgroup_paths(void **state)
{
	static const struct {
		enum cgroup_name kind;
		const char *name, *controllers, *path;
		size_t len;
	} samples[] = {
		{CGROUP_PATH, "/a/b", "", "/a/b", 4},
		{CGROUP_PATH, "/a/b", "", "/a/b/c", 4},
		{CGROUP_PATH, "a/b/", "", "/a/b/c", 4},
		{CGROUP_PATH, "/a/b", "", "/a/bc", 0},
		{CGROUP_PATH, "/a/b", "", "/x/a/b", 0},
		{CGROUP_PATH, "/sys/fs/cgroup/a", "", "/a/b", 2},
		{CGROUP_PATH, "/sys/fs/cgroup/pids/a", "pids", "/a", 2},
		{CGROUP_PATH, "/sys/fs/cgroup/pids/a", "cpu", "/a", 0},
		{CGROUP_PATH, "/sys/fs/cgroups", "", "/a", 0},
		{CGROUP_PATH, "/", "", "/a", 1},
		{CGROUP_UNIT, "nginx", "", "/system.slice/nginx.service", 27},
		{CGROUP_UNIT, "nginx.service", "", "/system.slice/nginx.service/sub", 27},
		{CGROUP_UNIT, "system.slice", "", "/system.slice/nginx.service", 13},
		{CGROUP_UNIT, "ginx", "", "/system.slice/nginx.service", 0},
		{CGROUP_UNIT, "nginx", "", "/user.slice/user@1.service/nginx.service", 0},
		{CGROUP_UNIT, "nginx", "", "/docker/" ID_A "/system.slice/nginx.service", 0},
		{CGROUP_UNIT, "nginx", "", "/lxc.payload.web/system.slice/nginx.service", 0},
		{CGROUP_UNIT, "nginx", "", "/system.slice/system-nginx.slice/nginx.service", 46},
		{CGROUP_UNIT, "nginx", "", "", 0},
		{CGROUP_CONTAINER, "01", "", "/system.slice/docker-" ID_A ".scope", 91},
		{CGROUP_CONTAINER, ID_A, "", "/docker/" ID_A "/sub", 72},
		{CGROUP_CONTAINER, "0123", "", "/k/cri-containerd-" ID_A ".scope", 88},
		{CGROUP_CONTAINER, "0123", "", "/m/libpod-conmon-" ID_A ".scope", 0},
		{CGROUP_CONTAINER, "1", "", "/docker/" ID_A, 0},
		{CGROUP_CONTAINER, "0123", "", "/docker/0123", 0},
		{CGROUP_CONTAINER, ID_A "0", "", "/docker/" ID_A, 0},
		{CGROUP_CONTAINER, "web", "", "/lxc.payload.web/init", 16},
		{CGROUP_CONTAINER, "web", "", "/m/systemd-nspawn@web.service/x", 29},
		{CGROUP_CONTAINER, "we", "", "/lxc.payload.web", 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(samples); i++)
		if (cgroup_find(samples[i].kind, samples[i].name, samples[i].controllers,
				samples[i].path) != samples[i].len)
			fail_msg("%s in %s: not %zu", samples[i].name, samples[i].path,
				 samples[i].len);
}

static void write_file(const char *root, const char *path, const char *text)
{
	char name[512];
	FILE *file;

	snprintf(name, sizeof(name), "%s/%s", root, path);
	for (char *slash = name + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(name, 0700);
		*slash = '/';
	}
	file = fopen(name, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(chmod(name, 0600), 0);
}

#define PODMAN_FILE "var/lib/containers/storage/overlay-containers/containers.json"
#define DOCKER_FILE "var/lib/docker/containers/" ID_A "/config.v2.json"

static void test_names_of_containers(void **state)
{
	char root[] = "/tmp/test_process_set.XXXXXX", name[512];
	struct container_ids found;

	(void)state;
	assert_non_null(mkdtemp(root));
	container_by_name(root, "web", &found);
	assert_int_equal(found.count, 0);
	write_file(root, DOCKER_FILE, "{\"ID\":\"" ID_A "\",\"Name\":\"/web\",\"Config\":{}}");
	write_file(root, "var/lib/docker/containers/other/config.v2.json", "{\"Name\": 3");
	write_file(root, "var/lib/containers/storage/overlay-containers/containers.json",
		   "[1,{\"id\":\"x\",\"names\":[\"short\"]},"
		   "{\"id\":\"" ID_B "\",\"names\":[2,\"db\",\"data\"]}]");
	container_by_name(root, "web", &found);
	assert_int_equal(found.count, 1);
	assert_string_equal(found.ids[0], ID_A);
	container_by_name(root, "data", &found);
	assert_int_equal(found.count, 1);
	assert_string_equal(found.ids[0], ID_B);
	container_by_name(root, "short", &found);
	assert_int_equal(found.count, 0);
	container_by_name(root, "", &found);
	assert_int_equal(found.count, 0);
	/* A stopped container of Docker does not hide one of Podman. */
	write_file(root, PODMAN_FILE, "[{\"id\":\"" ID_B "\",\"names\":[\"web\"]}]");
	container_by_name(root, "web", &found);
	assert_int_equal(found.count, 2);
	assert_string_equal(found.ids[0], ID_A);
	assert_string_equal(found.ids[1], ID_B);
	assert_false(found.too_large);
	/* A file that is too large is not silently none. */
	snprintf(name, sizeof(name), "%s/" PODMAN_FILE, root);
	assert_int_equal(truncate(name, 65ll << 20), 0);
	container_by_name(root, "web", &found);
	assert_int_equal(found.count, 1);
	assert_true(found.too_large);
	write_file(root, PODMAN_FILE, "[]");
	/* A file that others may write names nothing. */
	snprintf(name, sizeof(name), "%s/%s", root, DOCKER_FILE);
	assert_int_equal(chmod(name, 0666), 0);
	container_by_name(root, "web", &found);
	assert_int_equal(found.count, 0);
	snprintf(name, sizeof(name), "rm -r %s", root);
	assert_int_equal(system(name), 0);
}

static void test_descendants(void **state)
{
	pid_list pids = {0};
	struct error err = ERROR_INIT;
	size_t count;

	(void)state;
	assert_true(vec_push(&pids, getppid()));
	/* This process is a child of its parent, and is left out. */
	assert_int_equal(process_set_add_descendants(&pids, &err), 0);
	count = pids.len;
	for (size_t i = 0; i < count; i++)
		assert_true(pids.data[i] != getpid());
	/* All are there, so nothing is added. */
	assert_true(process_set_descendants(&pids) >= 0);
	vec_free(&pids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cgroup_paths),
		cmocka_unit_test(test_names_of_containers),
		cmocka_unit_test(test_descendants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
