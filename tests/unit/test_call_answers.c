// SPDX-License-Identifier: Apache-2.0
/* A worker's replies about calls: fetch programs that would make the
 * tracer access memory out of bounds are refused. */
#include "bpf/call.h"
#include "probe/find/find_remote_internal.h"
#include "call_found.h"
#include "target/elf/object_remote.h"

__attribute__((noinline)) int plum_pick(int a, long b);

int plum_pick(int a, long b)
{
	__asm__ volatile("" ::"r"(b));
	return a;
}

/* A reply with one call and no description, which is an honest worker's but for the fetch_program.
 */
static int answer(struct found *found, const struct waffle_fetch_program *fetch_program)
{
	struct find_lists lists = {0};
	struct wire_out reply = {0};
	struct error err = ERROR_INIT;
	struct object *object;
	struct wire_in in;
	int result;

	assert_int_equal(object_new(&object, "answer", &err), 0);
	wire_put_u32(&reply, 1);
	object_put_site(&reply, &found->object->sites.data[found->object->calls.data[0].site]);
	wire_put_u32(&reply, 1);
	wire_put_u32(&reply, 0);
	wire_put(&reply, fetch_program, sizeof(*fetch_program));
	wire_put_u32(&reply, 0); /* probes */
	wire_put_u32(&reply, 1); /* calls of the set */
	for (unsigned i = 0; i < SET_INSIDES; i++)
		wire_put_text(&reply, NULL);
	in = wire_in(reply.bytes.data, reply.bytes.len);
	result = find_decode(found->set, object, &lists, 1 << 20, &in);
	wire_out_free(&reply);
	object_free(object);
	return result;
}

static void test_words_outside_of_what_is_kept_are_refused(void **state)
{
	struct found found = FIND_IN(SELF, SELF, "uprobe:exe:plum_pick(i32 a, i64 b) as event");
	const struct waffle_fetch_program good = found.object->calls.data[0].fetch_program;
	struct waffle_fetch_program bad;

	(void)state;
	assert_int_equal(good.word_count, 2);
	assert_int_equal(answer(&found, &good), 0);
	for (unsigned from = WAFFLE_CALL_REGS; from < 256; from++) {
		bad = good;
		bad.words[1].from = (__u8)from;
		assert_int_equal(answer(&found, &bad), -EPROTO);
	}
	bad.stack_words = 255;
	assert_int_equal(answer(&found, &bad), -EPROTO);
	bad = good;
	bad.words[0].to = 60; /* behind the frame */
	assert_int_equal(answer(&found, &bad), -EPROTO);
	bad = good;
	bad.word_bytes = UINT16_MAX;
	assert_int_equal(answer(&found, &bad), -EPROTO);
	bad = good;
	bad.word_count = WAFFLE_FETCHES_MAX;
	assert_int_equal(answer(&found, &bad), -EPROTO);
	done(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words_outside_of_what_is_kept_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
