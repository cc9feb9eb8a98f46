// SPDX-License-Identifier: Apache-2.0
/* Which way the hits of a process come, and how often the tracer looks at the rings that it
 * announces. The process is this one; its rings are those of the functions below. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/transport/transport.h"
#include "waffle/abi.h"

int __wrap_ring_set_add(struct ring_set *set, pid_t pid, uint64_t address, uint64_t bytes,
			bool taken_over);
int __wrap_name_set_add(struct name_set *set, pid_t pid, uint64_t address, uint64_t bytes);
bool __wrap_image_may_be_read(pid_t pid);
bool __wrap_process_is_confined(pid_t pid);

static unsigned rings_added, names_added, told;
static int add_result;
static struct transport_way last;

int __wrap_ring_set_add(struct ring_set *set, pid_t pid, uint64_t address, uint64_t bytes,
			bool taken_over)
{
	(void)set;
	(void)pid;
	(void)address;
	(void)bytes;
	(void)taken_over;
	rings_added++;
	return add_result;
}

int __wrap_name_set_add(struct name_set *set, pid_t pid, uint64_t address, uint64_t bytes)
{
	(void)set;
	(void)pid;
	(void)address;
	(void)bytes;
	names_added++;
	return 0;
}

bool __wrap_image_may_be_read(pid_t pid)
{
	(void)pid;
	return true;
}

bool __wrap_process_is_confined(pid_t pid)
{
	(void)pid;
	return false;
}

static void tell(const struct transport_way *way, void *arg)
{
	(void)arg;
	last = *way;
	told++;
}

struct subject {
	struct ring_set *rings;
	struct name_set *names;
	struct transport *transport;
};

static uint32_t no_site(uint64_t ts, pid_t pid, uint64_t probe, void *arg)
{
	(void)ts;
	(void)pid;
	(void)probe;
	(void)arg;
	return WAFFLE_SITE_UNKNOWN;
}

static struct subject subject_open(void)
{
	struct ring_set_options rings = {.cpu_count = 1, .site = no_site};
	struct name_set_options names = {0};
	struct transport_options options = {.decided = tell};
	struct error err = ERROR_INIT;
	struct subject subject;

	rings_added = names_added = told = 0;
	add_result = 0;
	assert_int_equal(ring_set_open(&subject.rings, &rings, &err), 0);
	names.rings = options.rings = subject.rings;
	assert_int_equal(name_set_open(&subject.names, &names, &err), 0);
	options.names = subject.names;
	assert_int_equal(transport_open(&subject.transport, &options, &err), 0);
	return subject;
}

static void subject_close(struct subject *subject)
{
	transport_close(subject->transport);
	name_set_close(subject->names);
	ring_set_close(subject->rings);
}

static const struct object libwaffle = {
	.transport = {.version = WAFFLE_TRANSPORT_VERSION, .ring = 0x10, .usdt = 0x20}};

/* A thread announces a ring at an address; or names, with seen_tid 0. */
static void announce(struct subject *subject, uint32_t seen_tid, uint64_t address)
{
	struct waffle_rec_ring rec = {.rec = {.kind = WAFFLE_REC_RING, .tid = seen_tid},
				      .tgid = (uint32_t)getpid(),
				      .seen_tid = seen_tid,
				      .address = address,
				      .bytes = 4096};

	transport_ring(subject->transport, &rec, true);
}

/* libwaffle-gpu is armed in programs that may never load it. */
static void test_way_of_libwaffle_gpu_is_told_when_it_is_loaded(void **state)
{
	struct object gpu = libwaffle;
	struct subject subject = subject_open();

	(void)state;
	gpu.path = "/usr/lib/libwaffle-gpu.so";
	assert_int_equal(transport_probe(subject.transport, getpid(), &gpu).offset, 0x10);
	assert_int_equal(told, 1);
	assert_true(last.expected);
	transport_finish(subject.transport);
	assert_int_equal(told, 1);
	transport_loaded(subject.transport, getpid());
	assert_int_equal(told, 2);
	assert_false(last.expected);
	transport_loaded(subject.transport, getpid());
	assert_int_equal(told, 2);
	transport_finish(subject.transport);
	assert_int_equal(told, 3);
	subject_close(&subject);
}

static void test_rings_in_a_loop_are_looked_at_only_so_often(void **state)
{
	struct subject subject = subject_open();

	(void)state;
	assert_int_equal(transport_probe(subject.transport, getpid(), &libwaffle).offset, 0x10);
	for (uint64_t i = 1; i <= 100000; i++) {
		announce(&subject, 3, i << 12);
		announce(&subject, 0, i << 12);
	}
	assert_in_range(rings_added + names_added, 1000, 50000); /* however slow this is */
	subject_close(&subject);
}

static void test_thread_without_room_for_its_ring_is_told_once(void **state)
{
	struct subject subject = subject_open();

	(void)state;
	transport_probe(subject.transport, getpid(), &libwaffle);
	assert_true(last.ring && !last.why);
	add_result = -ENOSPC;
	for (uint64_t i = 1; i <= 3; i++)
		announce(&subject, 3, i << 12);
	assert_int_equal(rings_added, 3);
	assert_int_equal(told, 2);
	assert_true(last.ring && !last.ended);
	assert_string_equal(last.why, "there are too many rings");
	transport_forget(subject.transport, getpid());
	assert_int_equal(told, 3);
	assert_true(last.ended && last.why);
	subject_close(&subject);
}

static void test_program_with_the_right_version_follows_one_with_another(void **state)
{
	struct object other = libwaffle;
	struct subject subject = subject_open();

	(void)state;
	other.transport.version++;
	assert_int_equal(transport_probe(subject.transport, getpid(), &other).offset, 0x20);
	assert_string_equal(last.why, "its libwaffle is of another version");
	transport_exec(subject.transport, getpid());
	assert_int_equal(transport_probe(subject.transport, getpid(), &libwaffle).offset, 0x10);
	assert_true(last.ring && !last.why);
	/* Each copy has its own way. */
	assert_int_equal(transport_probe(subject.transport, getpid(), &other).offset, 0x20);
	assert_true(transport_has_rings(subject.transport, getpid()));
	assert_int_equal(told, 2);
	subject_close(&subject);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_way_of_libwaffle_gpu_is_told_when_it_is_loaded),
		cmocka_unit_test(test_rings_in_a_loop_are_looked_at_only_so_often),
		cmocka_unit_test(test_thread_without_room_for_its_ring_is_told_once),
		cmocka_unit_test(test_program_with_the_right_version_follows_one_with_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
