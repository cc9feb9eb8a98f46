// SPDX-License-Identifier: Apache-2.0
/* The parts of an injection that need no other process. What a thread does is tested by
 * tests/integration/test_inject.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target/inject/inject.h"
#include "target/inject/inject_internal.h"
#include "util/own_thread.h"

#ifdef __x86_64__

#define TOP 0x7fff00010000ull

/* A function of the libc itself: sanitizers have some of their own. */
static uintptr_t libc_function(const char *name)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

	assert_non_null(libc);
	return (uintptr_t)dlsym(libc, name);
}

static struct image own_memory(void)
{
	struct image image;

	assert_int_equal(image_open(&image, getpid()), 0);
	return image;
}

static void test_waits_outside_of_the_loader_are_safe(void **state)
{
	static const long safe[] = {SYS_poll, SYS_epoll_wait, SYS_accept4, SYS_recvmsg, SYS_wait4};
	static const long unsafe[] = {SYS_openat,   SYS_mmap,    SYS_pread64, SYS_munmap,   SYS_brk,
				      SYS_mprotect, SYS_madvise, SYS_write,   SYS_getrandom};
	uint64_t none[6] = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(safe) / sizeof(safe[0]); i++)
		assert_true(inject_call_is_safe((uint64_t)safe[i], none));
	for (size_t i = 0; i < sizeof(unsafe) / sizeof(unsafe[0]); i++)
		assert_false(inject_call_is_safe((uint64_t)unsafe[i], none));
}

static void test_file_that_is_only_read_is_no_library(void **state)
{
	static char libc[] = "/lib/libc.so.6", none[] = "";
	static struct mapping all[] = {
		{.start = 0x1000, .end = 0x9000, .path = libc}, /* the whole file, to read it */
		{.start = 0x9000, .end = 0xa000, .path = libc},
		{.start = 0xa000,
		 .end = 0xb000,
		 .offset = 0x1000,
		 .executable = true,
		 .path = libc},
		{.start = 0xb000, .end = 0xc000, .offset = 0x2000, .path = libc},
		{.start = 0xc000, .end = 0xd000, .path = none},
		{.start = 0xd000, .end = 0xe000, .executable = true, .path = libc}, /* an old one */
	};
	const struct mappings mappings = {.list = {.data = all, .len = 6, .cap = 6}};

	(void)state;
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(inject_is_loaded(&mappings, i), i == 1 || i == 5);
	assert_false(inject_is_code(&mappings, 0));
	assert_false(inject_is_code(&mappings, 0x2000));
	assert_true(inject_is_code(&mappings, 0xafff));
	assert_false(inject_is_code(&mappings, 0xb000));
	assert_false(inject_is_code(&mappings, 0xe000));
}

static void *nothing_do(void *arg)
{
	return arg;
}

/* The end of a call is seen by the mask of its thread, which may start one of ours. */
static void test_start_of_a_thread_keeps_all_signals_blocked(void **state)
{
	uint64_t all = ~0ull, before, after = 0;
	pthread_t thread;
	int result;

	(void)state;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof(all));
	result = own_thread_start(&thread, nothing_do, NULL);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, &after, sizeof(all));
	assert_int_equal(result, 0);
	pthread_join(thread, NULL);
	assert_true(after == ~(1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1)));
}

static void test_waits_for_locks_of_the_libc_are_not_safe(void **state)
{
	uint64_t condition[6] = {0, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG};
	uint64_t lock[6] = {0, FUTEX_WAIT | FUTEX_PRIVATE_FLAG};

	(void)state;
	assert_true(inject_call_is_safe(SYS_futex, condition));
	assert_false(inject_call_is_safe(SYS_futex, lock));
}

static void test_interrupted_call_is_made_again(void **state)
{
	static const int64_t results[] = {-512, -513, -514, -516, -EINTR};
	struct user_regs_struct registers;

	(void)state;
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		registers = (struct user_regs_struct){
			.rip = 0x1002, .orig_rax = SYS_poll, .rax = (uint64_t)results[i]};
		assert_true(inject_call_rewind(&registers));
		assert_int_equal(registers.rip, 0x1000);
		assert_int_equal(registers.rax, SYS_poll);
	}
}

static void test_thread_that_is_not_interrupted_in_a_call_is_left_alone(void **state)
{
	struct user_regs_struct done = {.rip = 0x1002, .orig_rax = SYS_poll, .rax = 1};
	struct user_regs_struct outside = {
		.rip = 0x1002, .orig_rax = UINT64_MAX, .rax = (uint64_t)-512};

	(void)state;
	assert_false(inject_call_rewind(&done));
	assert_false(inject_call_rewind(&outside));
	assert_int_equal(done.rip, 0x1002);
}

static void test_symbols_are_those_of_the_loader(void **state)
{
	static const char *const names[] = {"dlopen", "memccpy", "__errno_location"};
	struct image image = own_memory();
	Dl_info libc;

	(void)state;
	assert_true(dladdr((const void *)libc_function("memccpy"), &libc));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(inject_symbol(&image, (uintptr_t)libc.dli_fbase, names[i]),
				 libc_function(names[i]));
	assert_int_equal(inject_symbol(&image, (uintptr_t)libc.dli_fbase, "no_such_function"), 0);
	assert_int_equal(inject_symbol(&image, (uintptr_t)&libc, "dlopen"), 0); /* no ELF header */
	image_close(&image);
}

static void test_libc_is_found_with_errno_and_the_return_from_signals(void **state)
{
	static const unsigned char call[] = {0x0f, 0x05};
	struct image image = own_memory();
	struct mappings mappings;
	struct inject_libc libc;
	struct error err = ERROR_INIT;
	uint64_t thread_pointer;

	(void)state;
	__asm__("mov %%fs:0, %0" : "=r"(thread_pointer));
	assert_int_equal(process_mappings_all(&mappings, getpid(), &err), 0);
	assert_int_equal(inject_libc_find(&libc, &image, &mappings, &err), 0);
	assert_int_equal(libc.open, libc_function("dlopen"));
	assert_int_equal(thread_pointer + libc.errno_at, (uintptr_t)&errno);
	assert_memory_equal((const char *)(uintptr_t)libc.restorer + 7, call, sizeof(call));
	mappings_free(&mappings);
	image_close(&image);
}

static struct inject_thread a_thread(void)
{
	struct inject_thread thread = {.registers = {.rsp = TOP, .rip = 0x1234, .rbx = 7},
				       .mask = 0x55,
				       .vector_bytes = 512,
				       .error = 17};

	return thread;
}

static void test_frame_lies_below_the_red_zone_and_is_aligned_as_calls_are(void **state)
{
	static unsigned char frame[INJECT_FRAME_MAX];
	struct inject_thread thread = a_thread();
	struct inject_libc libc = {.copy = 0x2000, .restorer = 0x3000};
	struct inject_call call = {.function = 0x4000, .text = "/lib/x.so", .second = 2};
	struct user_regs_struct begin;
	uint64_t at, word;
	size_t bytes;

	(void)state;
	for (uint64_t shift = 0; shift < 64; shift += 8) {
		thread.registers.rsp = TOP - shift;
		bytes = inject_frame_make(frame, &at, &begin, &thread, &libc, &call, ~0ull);
		assert_true(bytes);
		assert_int_equal(at + bytes, thread.registers.rsp - 128);
		assert_int_equal(begin.rsp, at);
		assert_int_equal(at % 16, 8);
		assert_int_equal(begin.rip, 0x4000);
		assert_int_equal(begin.orig_rax, UINT64_MAX);
		assert_int_equal(begin.rsi, 2);
		assert_string_equal((char *)frame + (begin.rdi - at), "/lib/x.so");
		memcpy(&word, frame, sizeof(word));
		assert_int_equal(word, 0x3000); /* where the function returns to */
	}
}

static void test_frame_without_room_is_not_made(void **state)
{
	static unsigned char frame[INJECT_FRAME_MAX];
	static char text[INJECT_FRAME_MAX + 1];
	struct inject_thread thread = a_thread();
	struct inject_libc libc = {0};
	struct inject_call call = {.text = text};
	struct user_regs_struct begin;
	uint64_t at;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	assert_int_equal(inject_frame_make(frame, &at, &begin, &thread, &libc, &call, 0), 0);
	call.text = "x";
	thread.vector_bytes = 8; /* not even those that all processors have */
	assert_int_equal(inject_frame_make(frame, &at, &begin, &thread, &libc, &call, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits_outside_of_the_loader_are_safe),
		cmocka_unit_test(test_file_that_is_only_read_is_no_library),
		cmocka_unit_test(test_start_of_a_thread_keeps_all_signals_blocked),
		cmocka_unit_test(test_waits_for_locks_of_the_libc_are_not_safe),
		cmocka_unit_test(test_interrupted_call_is_made_again),
		cmocka_unit_test(test_thread_that_is_not_interrupted_in_a_call_is_left_alone),
		cmocka_unit_test(test_symbols_are_those_of_the_loader),
		cmocka_unit_test(test_libc_is_found_with_errno_and_the_return_from_signals),
		cmocka_unit_test(test_frame_lies_below_the_red_zone_and_is_aligned_as_calls_are),
		cmocka_unit_test(test_frame_without_room_is_not_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void test_other_machines_are_refused(void **state)
{
	struct inject_target target = {.library = "/none.so", .start = "none", .thread = "none"};
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(inject_library(getpid(), &target, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.message, "x86-64"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_machines_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
