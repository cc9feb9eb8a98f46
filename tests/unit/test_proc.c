// SPDX-License-Identifier: Apache-2.0
/* Parsing /proc of a process that does not exist: files
 * of any contents (tests/fuzz/fake_proc.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/perf_event.h>

#include "../fuzz/fake_proc.h"
#include "bpf/record.h"
#include "target/process/cgroup.h"
#include "target/process/cpu_time.h"
#include "target/process/descriptors.h"
#include "target/process/mmap_watch.h"
#include "target/process/process.h"

static void files_are(const void *bytes, size_t size)
{
	fake.bytes = bytes;
	fake.size = size;
	fake.folder = -1;
}

static int files_end(void **state)
{
	(void)state;
	files_are(NULL, 0);
	return 0;
}

/* Its name would be the same bytes here, of which the first ends it. */
static void test_a_process_that_has_overwritten_its_arguments_has_its_name(void **state)
{
	char text[64];

	(void)state;
	files_are("\0\0\0\0", 4);
	process_cmdline(FAKE_PID, text, sizeof(text));
	assert_string_equal(text, "[]");
	files_are("train.py\0--epochs\0003\0\0\0", 23);
	process_cmdline(FAKE_PID, text, sizeof(text));
	assert_string_equal(text, "train.py --epochs 3");
}

static void test_a_cgroup_without_room_for_its_path_is_not_found(void **state)
{
	static const char tables[] =
		"30 25 0:26 / /a/very/long/mount/point rw - cgroup2 cgroup2 rw\n"
		"0::/system.slice\n";
	char path[8] = "";

	(void)state;
	files_are(tables, strlen(tables));
	assert_false(cgroup_path(path, sizeof(path), FAKE_PID, 1, "cpu"));
}

/* The folders of both hierarchies have one inode here. */
static void test_a_cgroup_is_found_in_the_hierarchy_of_its_controller(void **state)
{
	char folder[] = "/tmp/waffle-test-cgroup-XXXXXX", link[64], path[64], tables[512];
	char expected[80];
	struct stat info;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(stat(folder, &info), 0);
	snprintf(link, sizeof(link), "%s-link", folder);
	assert_int_equal(symlink(folder, link), 0);
	snprintf(tables, sizeof(tables),
		 "30 25 0:26 / %s rw - cgroup cgroup rw,pids\n"
		 "31 25 0:27 / %s rw - cgroup cgroup rw,cpu,cpuacct\n"
		 "5:pids:/\n4:cpu,cpuacct:/\n",
		 folder, link);
	files_are(tables, strlen(tables));
	assert_true(cgroup_path(path, sizeof(path), FAKE_PID, info.st_ino, "cpu"));
	snprintf(expected, sizeof(expected), "%s/", link);
	assert_string_equal(path, expected);
	assert_true(cgroup_path(path, sizeof(path), FAKE_PID, info.st_ino, "pids"));
	snprintf(expected, sizeof(expected), "%s/", folder);
	assert_string_equal(path, expected);
	assert_false(cgroup_path(path, sizeof(path), FAKE_PID, info.st_ino, "memory"));
	assert_int_equal(unlink(link), 0);
	assert_int_equal(rmdir(folder), 0);
}

/* How many limits are found if the process's cgroup has this path, and `mount` holds the mount. */
static size_t io_limits_at(const char *mount, const char *folder)
{
	struct cgroup_io_limit limits[4];
	char tables[256];
	size_t count;

	snprintf(tables, sizeof(tables), "30 25 0:26 / %s rw - cgroup2 cgroup2 rw\n0::%s\n", mount,
		 folder);
	files_are(tables, strlen(tables));
	count = cgroup_io_limits(FAKE_PID, limits, 4);
	files_are(NULL, 0);
	return count;
}

static void limits_make(const char *folder, const char *name, const char *limits)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(limits, file);
	fclose(file);
}

static void file_make(const char *folder, const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(mkdir(path, 0755), 0);
	limits_make(path, "io.max", "8:16 rbps=1000 wbps=max riops=max wiops=max\n");
}

static void test_limits_of_both_versions_of_cgroups_are_told_apart(void **state)
{
	char folder[] = "/tmp/waffle-test-cgroup-XXXXXX", tables[256], command[64];
	struct cgroup_io_limit limits[4];

	(void)state;
	assert_non_null(mkdtemp(folder));
	limits_make(folder, "io.max", "8:16 rbps=1000 wbps=max riops=max wiops=max\n");
	limits_make(folder, "blkio.throttle.write_iops_device", "8:16 2000\n");
	snprintf(tables, sizeof(tables), "30 25 0:26 / %s rw - cgroup2 cgroup2 rw\n0::/a\n",
		 folder);
	files_are(tables, strlen(tables));
	assert_int_equal(cgroup_io_limits(FAKE_PID, limits, 4), 1);
	assert_int_equal(limits[0].limit, 1000);
	assert_int_equal(limits[0].kind, 0);
	snprintf(tables, sizeof(tables),
		 "30 25 0:26 / %s rw - cgroup cgroup rw,blkio\n4:blkio:/a\n", folder);
	files_are(tables, strlen(tables));
	assert_int_equal(cgroup_io_limits(FAKE_PID, limits, 4), 1);
	assert_int_equal(limits[0].limit, 2000);
	assert_int_equal(limits[0].kind,
			 WAFFLE_IO_LIMIT_WRITES | WAFFLE_IO_LIMIT_COUNT | WAFFLE_IO_LIMIT_OLD);
	files_are(NULL, 0);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

/* A cgroup of version 2 in a folder of its own, and the one below it that the process is in. */
struct cgroup_folders {
	char above[40], below[64], tables[256];
};

static void folders_make(struct cgroup_folders *folders)
{
	snprintf(folders->above, sizeof(folders->above), "/tmp/waffle-test-cgroup-XXXXXX");
	assert_non_null(mkdtemp(folders->above));
	snprintf(folders->below, sizeof(folders->below), "%s/a", folders->above);
	assert_int_equal(mkdir(folders->below, 0755), 0);
	snprintf(folders->tables, sizeof(folders->tables),
		 "30 25 0:26 / %s rw - cgroup2 cgroup2 rw\n0::/a\n", folders->above);
	files_are(folders->tables, strlen(folders->tables));
}

static void folders_remove(const struct cgroup_folders *folders)
{
	char command[64];

	files_are(NULL, 0);
	snprintf(command, sizeof(command), "rm -r %s", folders->above);
	assert_int_equal(system(command), 0);
}

static void test_a_cgroup_is_full_if_it_or_one_above_has_all_its_processes(void **state)
{
	static const struct {
		const char *limit, *above_limit;
		uint64_t found;
	} rows[] = {
		{"8\n", "9\n", 0}, {"7\n", "9\n", 7}, {"max\n", "8\n", 8}, {"max\n", "max\n", 0}};
	struct cgroup_folders folders;
	struct cgroup_io_limit limit;

	(void)state;
	folders_make(&folders);
	limits_make(folders.below, "pids.current", "7\n");
	limits_make(folders.above, "pids.current", "8\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		limits_make(folders.below, "pids.max", rows[i].limit);
		limits_make(folders.above, "pids.max", rows[i].above_limit);
		assert_int_equal(cgroup_pids_are_used_up(&limit, FAKE_PID), rows[i].found != 0);
		if (rows[i].found)
			assert_int_equal(limit.limit, rows[i].found);
	}
	folders_remove(&folders);
}

static void test_the_lowest_weight_of_a_process_and_those_above_it_counts(void **state)
{
	static const struct {
		const char *weight, *above;
		uint64_t found;
	} rows[] = {{"100\n", "100\n", 0}, {"1000\n", "50\n", 50}, {"20\n", "50\n", 20}};
	struct cgroup_folders folders;
	struct cgroup_io_limit limit;

	(void)state;
	folders_make(&folders);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		limits_make(folders.below, "cpu.weight", rows[i].weight);
		limits_make(folders.above, "cpu.weight", rows[i].above);
		assert_int_equal(cgroup_weight_is_low(&limit, FAKE_PID), rows[i].found != 0);
		if (rows[i].found)
			assert_int_equal(limit.limit, rows[i].found);
	}
	folders_remove(&folders);
}

static void test_the_time_of_a_process_is_behind_any_name(void **state)
{
	static const char stat[] = "7 (a) 1 2) R 1 7 7 0 -1 4194560 10 11 12 13 250 50 1 2 20 0 "
				   "3 0 9000 1 2\n";
	uint64_t tick_ns = 1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK);
	struct cpu_time time;

	(void)state;
	files_are(stat, strlen(stat));
	assert_true(process_cpu_time(&time, FAKE_PID));
	assert_int_equal(time.ran_ns, 300 * tick_ns);
	assert_int_equal(time.start_ns, 9000 * tick_ns);
	files_are("7 (a) R 1 7", 11);
	assert_false(process_cpu_time(&time, FAKE_PID));
}

/* A cgroup outside of our namespace has a path that leads out of the mount, to files of anybody. */
static void test_a_cgroup_above_the_mount_is_not_looked_for(void **state)
{
	char folder[] = "/tmp/waffle-test-cgroup-XXXXXX", mount[64], command[64];

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(mount, sizeof(mount), "%s/mount", folder);
	file_make(folder, "mount");
	file_make(folder, "mount/..a");
	file_make(folder, "other");
	assert_int_equal(io_limits_at(mount, "/..a"), 2);
	assert_int_equal(io_limits_at(mount, "/.."), 0);
	assert_int_equal(io_limits_at(mount, "/../other"), 0);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

static void test_a_mapping_without_all_its_permissions_is_left_out(void **state)
{
	static const char maps[] = "1000-2000 r-xp 0 8:1 7 /bin/app\n"
				   "3000-4000 r 0 8:1 7 /bin/app\n";
	struct error err = ERROR_INIT;
	struct mappings found;

	(void)state;
	files_are(maps, strlen(maps));
	assert_int_equal(process_mappings_all(&found, FAKE_PID, &err), 0);
	assert_int_equal(found.list.len, 1);
	assert_true(found.list.data[0].executable);
	mappings_free(&found);
}

#define REPEATED 10000

/* A process chooses how often it maps a file, and the length of its path. */
static void test_long_paths_of_mappings_take_no_more_memory(void **state)
{
	char path[4000] = "", *maps;
	struct error err = ERROR_INIT;
	struct mappings found;
	size_t size, bytes = 0;
	FILE *text = open_memstream(&maps, &size);

	(void)state;
	memset(path, 'x', sizeof(path) - 1);
	for (unsigned i = 1; i <= REPEATED; i++)
		fprintf(text, "%x000-%x800 r-xp 0 8:1 7 /%s\n", i, i, path);
	fprintf(text, "ffff0000-ffff1000 rw-p 0 0:0 0 \n");
	assert_int_equal(fclose(text), 0);
	files_are(maps, size);
	assert_int_equal(process_mappings_all(&found, FAKE_PID, &err), 0);
	for (size_t i = 0; i < found.list.len; i++)
		bytes += strlen(found.list.data[i].path);
	assert_in_range(bytes, 7 << 20, 8 << 20);
	assert_int_equal(found.list.data[found.list.len - 1].start, 0xffff0000);
	mappings_free(&found);
	free(maps);
}

static void detail_is(const char *table, const char *detail)
{
	const struct file_key key = {.ino = 4711};
	static struct descriptor found;

	fake.info = (struct statx){.stx_mode = S_IFSOCK, .stx_ino = key.ino};
	files_are(table, strlen(table));
	memset(&found, 'x', sizeof(found));
	assert_int_equal(descriptor_find(&found, FAKE_PID, 3, &key), 0);
	assert_string_equal(found.detail, detail);
}

static void test_a_socket_whose_line_is_not_as_it_should_be_has_no_ends(void **state)
{
	(void)state;
	detail_is("0: 0100007F:1F90 0200007F:0050 01 0:0 0:0 0 0 0 4711\n",
		  "tcp 127.0.0.1:8080 <-> 127.0.0.2:80");
	detail_is("0: 0100007F:1F90 0200007F:0000 01 0:0 0:0 0 0 0 4711\n", "tcp 127.0.0.1:8080");
	detail_is("0: 0100007F 0200007F:0050 01 0:0 0:0 0 0 0 4711\n", "");
	detail_is("0: 0100007F:1F90 0200007F 01 0:0 0:0 0 0 0 4711\n", "");
	detail_is("0: 0100007F:1F90 :0050 01 0:0 0:0 0 0 0 4711\n", "");
}

/* The time at which a file of this file system was made. */
static int64_t born_on(const char *type)
{
	const struct file_key key = {.ino = 4711, .dev = 8 << 20 | 1};
	static struct descriptor found;
	char files[128];

	fake.info = (struct statx){.stx_mask = STATX_BTIME,
				   .stx_mode = S_IFREG,
				   .stx_ino = key.ino,
				   .stx_dev_major = 8,
				   .stx_dev_minor = 1,
				   .stx_btime.tv_sec = 1000};
	snprintf(files, sizeof(files), "/data/x\n36 35 8:1 / /data rw - %s /dev/x rw\n", type);
	files_are(files, strlen(files));
	assert_int_equal(descriptor_find(&found, FAKE_PID, 3, &key), 0);
	files_are(NULL, 0);
	assert_string_equal(found.detail, type);
	return found.born_s;
}

static void test_the_clock_of_a_file_server_may_be_wrong(void **state)
{
	(void)state;
	assert_int_equal(born_on("ext4"), 1000);
	assert_int_equal(born_on("nfs4"), 0);
	assert_int_equal(born_on("cifs"), 0);
	assert_int_equal(born_on("fuse.sshfs"), 0);
}

static bool socket_count(const struct inet_socket *socket, void *arg)
{
	(void)socket;
	(*(unsigned *)arg)++;
	return true;
}

static void test_the_sockets_of_a_process_that_is_gone_are_not_all(void **state)
{
	static const char line[] = "0: 0100007F:1F90 0100007F:0050 01 0:0 0:0 0 0 0 4711\n";
	unsigned count = 0;

	(void)state;
	files_are(line, strlen(line));
	assert_true(tcp_sockets_each(FAKE_PID, socket_count, &count));
	assert_int_equal(count, 2); /* each table has it once */
	files_are(NULL, 0);
	assert_false(tcp_sockets_each(FAKE_PID, socket_count, &count));
}

static void test_a_unix_socket_that_a_forged_line_is_about_is_not_named(void **state)
{
	static const char table[] = "0: 2 0 0 1 3 4711 /run/x\n0: 2 0 0 1 3 4712\n"
				    "0: 2 0 0 1 3 4711 /run/trusted\n";
	static struct descriptor found;

	(void)state;
	files_are(table, strlen(table));
	assert_false(descriptor_of_unix(&found, FAKE_PID, 4711));
	assert_true(descriptor_of_unix(&found, FAKE_PID, 4712));
	assert_string_equal(found.name, "socket:[4712]");
	assert_string_equal(found.detail, "unix");
	assert_false(descriptor_of_unix(&found, FAKE_PID, 4713));
}

/* ---- the kernel's records of mappings ---- */

struct seen {
	unsigned count;
	struct mmap_event events[4];
	char path[64];
};

static void see(const struct mmap_event *event, void *arg)
{
	struct seen *seen = arg;

	assert_true(seen->count < 4);
	if (event->kind == MMAP_MAPPED)
		snprintf(seen->path, sizeof(seen->path), "%s", event->mapping.path);
	seen->events[seen->count++] = *event;
}

struct mapped_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t address, length, offset;
	uint32_t major, minor;
	uint64_t ino, generation;
	uint32_t prot, flags;
	char path[16];
	uint64_t ts;
};

/* The last record says that it is longer than what is there. */
static void test_records_of_mappings_are_read_around_the_end_of_a_ring(void **state)
{
	static uint8_t data[4096];
	static struct perf_event_mmap_page page;
	struct mmap_ring ring = {.page = &page, .data = data, .bytes = sizeof(data)};
	struct mapped_record records[3] = {
		{.header = {.type = PERF_RECORD_MMAP2, .size = sizeof(records[0])},
		 .pid = 7,
		 .address = 0x1000,
		 .length = 0x2000,
		 .major = 8,
		 .minor = 1,
		 .ino = 99,
		 .prot = PROT_EXEC,
		 .path = "/x (deleted)",
		 .ts = 5}};
	struct seen seen = {0};

	(void)state;
	records[1] = records[2] = records[0];
	records[1].length = ~0ull; /* there is no such mapping */
	records[2].header.size = sizeof(records[0]) + 8;
	page.data_tail = 3 * sizeof(data) - 40;
	page.data_head = page.data_tail + sizeof(records);
	for (size_t i = 0; i < sizeof(records); i++)
		data[(page.data_tail + i) % sizeof(data)] = ((uint8_t *)records)[i];
	mmap_ring_read(&ring, see, &seen);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.events[0].kind, MMAP_MAPPED);
	assert_int_equal(seen.events[0].pid, 7);
	assert_int_equal(seen.events[0].ts, 5);
	assert_int_equal(seen.events[0].mapping.start, 0x1000);
	assert_int_equal(seen.events[0].mapping.end, 0x3000);
	assert_int_equal(seen.events[0].mapping.dev, 8 << 20 | 1);
	assert_true(seen.events[0].mapping.executable);
	assert_string_equal(seen.path, "/x");
	assert_int_equal(page.data_tail, page.data_head);
}

static void test_escapes_of_mount_points_are_decoded(void **state)
{
	static const struct {
		const char *text, *path;
	} rows[] = {
		{"/mnt/a\\040b\\012c\\134d", "/mnt/a b\nc\\d"},
		{"\\377\\400\\08", "\377\\400\\08"}, /* no bytes: as they are */
		{"/mnt/end\\04", "/mnt/end\\04"},
		{"\\", "\\"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s", rows[i].text);
		process_unescape(path);
		assert_string_equal(path, rows[i].path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			test_a_process_that_has_overwritten_its_arguments_has_its_name, files_end),
		cmocka_unit_test_teardown(test_a_mapping_without_all_its_permissions_is_left_out,
					  files_end),
		cmocka_unit_test_teardown(test_long_paths_of_mappings_take_no_more_memory,
					  files_end),
		cmocka_unit_test_teardown(test_a_cgroup_without_room_for_its_path_is_not_found,
					  files_end),
		cmocka_unit_test_teardown(test_a_cgroup_above_the_mount_is_not_looked_for,
					  files_end),
		cmocka_unit_test_teardown(test_a_cgroup_is_found_in_the_hierarchy_of_its_controller,
					  files_end),
		cmocka_unit_test_teardown(test_limits_of_both_versions_of_cgroups_are_told_apart,
					  files_end),
		cmocka_unit_test_teardown(
			test_a_cgroup_is_full_if_it_or_one_above_has_all_its_processes, files_end),
		cmocka_unit_test_teardown(
			test_the_lowest_weight_of_a_process_and_those_above_it_counts, files_end),
		cmocka_unit_test_teardown(test_the_time_of_a_process_is_behind_any_name, files_end),
		cmocka_unit_test_teardown(
			test_a_socket_whose_line_is_not_as_it_should_be_has_no_ends, files_end),
		cmocka_unit_test_teardown(test_the_clock_of_a_file_server_may_be_wrong, files_end),
		cmocka_unit_test_teardown(test_the_sockets_of_a_process_that_is_gone_are_not_all,
					  files_end),
		cmocka_unit_test_teardown(
			test_a_unix_socket_that_a_forged_line_is_about_is_not_named, files_end),
		cmocka_unit_test(test_escapes_of_mount_points_are_decoded),
		cmocka_unit_test(test_records_of_mappings_are_read_around_the_end_of_a_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
