// SPDX-License-Identifier: Apache-2.0
/* USDT: the operands of notes on both machines, and the notes of this program. */
#include <elf.h>

#include "call_found.h"
#include "probe/find/usdt_internal.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define NOTE_ADDRESS 0x1000

static bool symbol(const char *name, size_t len, uint64_t *address, void *arg)
{
	(void)arg;
	if (len == 4 && !memcmp(name, "stat", 4))
		*address = 0x5000;
	else if (len == 5 && !memcmp(name, "a@b.1", 5))
		*address = 0x6000;
	else
		return false;
	return true;
}

/* "r13 4" "const:5 -4" "[rbp-16] 8" "[rax+rcx*8+0]"; "?": nowhere that can be read. */
static void argument_text(char *text, size_t size, const struct place_arg *arg)
{
	const struct waffle_fetch *fetch = &arg->at.pieces[0];
	char sign = arg->is_signed ? '-' : '+';

	if (!arg->at.count)
		snprintf(text, size, "?");
	else if (fetch->from == WAFFLE_FETCH_CONSTANT)
		snprintf(text, size, "#%lld%c%u", (long long)fetch->constant, sign, arg->bytes);
	else if (!fetch->loads)
		snprintf(text, size, "r%u%c%u", fetch->reg, sign, arg->bytes);
	else if (fetch->scale)
		snprintf(text, size, "[r%u+r%u*%u%+d]%c%u", fetch->reg, fetch->index, fetch->scale,
			 fetch->offset[0], sign, arg->bytes);
	else
		snprintf(text, size, "[r%u%+d]%c%u", fetch->reg, fetch->offset[0], sign,
			 arg->bytes);
}

static const struct sample {
	uint16_t machine;
	const char *operands, *read;
} samples[] = {
	{EM_X86_64, "", ""},
	{EM_X86_64, "4@%ebx", "r5+4"},
	{EM_X86_64, "-4@%edi 8@%r8 2@%r13w 1@%r12b 4@%r15d", "r14-4 r9+8 r2+2 r3+1 r0+4"},
	{EM_X86_64, "1@%sil 1@%al 8@%rsp 8@%rbp 8@%r11", "r13+1 r10+1 r19+8 r4+8 r6+8"},
	{EM_X86_64, "-4@$5 4@$-1 8@$0x10", "#5-4 #-1+4 #16+8"},
	{EM_X86_64, "8@-16(%rbp) 4@(%r12) 8@0x18(%rsp)", "[r4-16]+8 [r3+0]+4 [r19+24]+8"},
	{EM_X86_64, "8@(%rax,%rcx,8) -4@4(%rax,%rbx)", "[r10+r11*8+0]+8 [r10+r5*1+4]-4"},
	/* Relative to the probe, which is where ip points. */
	{EM_X86_64, "8@stat(%rip) -4@40+stat(%rip) 4@stat-4(%rip) 4@a@b.1(%rip)",
	 "[r16+16384]+8 [r16+16424]-4 [r16+16380]+4 [r16+20480]+4"},
	{EM_X86_64, "8@stat", "[r16+16384]+8"},
	{EM_X86_64, "8@other(%rip) 4@%eax", "? r10+4"},
	{EM_X86_64, "8f@%xmm0 4@%eax 8@%fs:16", "? r10+4 ?"},
	{EM_X86_64, "8f@%rax -8f@8(%rsp) 4f@%eax 16f@(%rsp) -16@%rax 1@%al",
	 "r10+8 [r19+8]-8 ? ? ? r10+1"},
	/* Old notes have no sizes. */
	{EM_X86_64, "%rax 16(%rsp) $3", "r10+8 [r19+16]+8 #3+8"},
	{EM_AARCH64, "-4@x0 8@x30 4@w7", "r0-4 r30+8 r7+4"},
	{EM_AARCH64, "8@[sp, 16] -4@[x19] 8@[x0, x1] 4@[sp,-8]",
	 "[r31+16]+8 [r19+0]-4 [r0+r1*1+0]+8 [r31-8]+4"},
	{EM_AARCH64, "8@16 -4@-1 4@wzr 8@sp", "#16+8 #-1-4 #0+4 r31+8"},
	{EM_AARCH64, "8f@d0 4@x1", "? r1+4"},
};

static void test_operands_of_notes(void **state)
{
	for (size_t i = 0; i < COUNT_OF(samples); i++) {
		struct usdt_note note = {.arguments = samples[i].operands, .address = NOTE_ADDRESS};
		struct call_at at = {.abi = abi_find(samples[i].machine)};
		char text[512] = "", one[64];

		assert_true(usdt_arguments(&at, &note, symbol, NULL) >= 0);
		for (unsigned k = 0; k < at.count; k++) {
			argument_text(one, sizeof(one), &at.args[k]);
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
				 k ? " " : "", one);
		}
		assert_string_equal(text, samples[i].read);
	}
	(void)state;
}

static void test_damaged_operands_are_refused(void **state)
{
	static const char *const damaged[] = {"3@%eax",        "4@(%rax",     "4@(%rax,%rcx,9)",
					      "4@(%rax,%zzz)", "16@(%rax)x4", "4@(%rax))"};

	for (size_t i = 0; i < COUNT_OF(damaged); i++) {
		struct usdt_note note = {.arguments = damaged[i], .address = NOTE_ADDRESS};
		struct call_at at = {.abi = abi_find(EM_X86_64)};

		assert_int_equal(usdt_arguments(&at, &note, symbol, NULL), -EINVAL);
	}
	(void)state;
}

#ifdef __x86_64__
#define PROBE(name, semaphore, operands) PROBE_OF("fruit", name, semaphore, operands)
#define PROBE_OF(provider, name, semaphore, operands)                                              \
	__asm__ volatile("990: nop\n"                                                              \
			 ".pushsection .note.stapsdt, \"\", \"note\"\n"                            \
			 ".balign 4\n"                                                             \
			 ".4byte 992f-991f, 994f-993f, 3\n"                                        \
			 "991: .asciz \"stapsdt\"\n"                                               \
			 "992: .balign 4\n"                                                        \
			 "993: .8byte 990b, _.stapsdt.base, " semaphore "\n"                       \
			 ".asciz \"" provider "\"\n"                                               \
			 ".asciz \"" name "\"\n"                                                   \
			 ".asciz \"" operands "\"\n"                                               \
			 "994: .balign 4\n"                                                        \
			 ".popsection\n"                                                           \
			 ".ifndef _.stapsdt.base\n"                                                \
			 ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, "       \
			 "comdat\n"                                                                \
			 ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"                          \
			 "_.stapsdt.base: .space 1\n"                                              \
			 ".size _.stapsdt.base, 1\n"                                               \
			 ".popsection\n"                                                           \
			 ".endif\n")

__attribute__((section(".probes"))) unsigned short fruit_semaphore;
int fruit_count = 3;
double fruit_weight = 0.25;
void fruit_eaten(int which);

void fruit_eaten(int which)
{
	PROBE_OF("fruit_kit", "open", "0", "");
	PROBE("eat__start", "fruit_semaphore", "-4@%edi 8@fruit_count(%rip)");
	fruit_count -= which;
	PROBE("eat__done", "0", "-4@%edi -4@$7");
	PROBE("eat__done", "0", "-4@%edi -4@$7");
	PROBE("spit", "0", "8f@%xmm0");
	PROBE("weigh", "0", "-4@%edi 8f@fruit_weight(%rip) 4f@%eax 8@%fs:16");
	PROBE_OF("basket", "put", "0", "4@%edi 4f@%eax");
	PROBE_OF("basket", "take", "0", "4@%edi");
}

static struct found find(const char *text)
{
	return FIND_IN(SELF, "/bin/fruits", text);
}

static void test_usdt_probe_is_an_event_with_the_arguments_of_its_note(void **state)
{
	struct found found = find("usdt:exe:fruit:eat__start");
	const struct site_info *site = &found.object->sites.data[0];
	const struct waffle_fetch_program *fetch_program =
		&found.object->calls.data[0].fetch_program;

	assert_string_equal(found.said, "");
	assert_int_equal(found.object->sites.len, 1);
	assert_string_equal(site->name, "eat__start");
	assert_string_equal(site->category, "fruit");
	assert_int_equal(site->kind, WAFFLE_SITE_EVENT);
	assert_int_equal(site->key_count, 2);
	assert_string_equal(site->keys[0].name, "arg1");
	assert_int_equal(site->keys[0].type, WAFFLE_KEY_I64);
	assert_int_equal(site->keys[1].type, WAFFLE_KEY_U64);
	assert_int_equal(fetch_program->begins, 2);
	assert_int_equal(fetch_program->fetches[1].reg, X86_IP);
	assert_int_equal(fetch_program->fetches[1].loads, 1);
	assert_int_equal(found.object->probes.len, 1);
	assert_int_equal(found.object->probes.data[0].type, OBJECT_PROBE_INSTANT);
	assert_int_not_equal(found.object->probes.data[0].semaphore_offset, 0);
	done(&found);
	(void)state;
}

static void test_copies_of_a_probe_are_one_site(void **state)
{
	struct found found = find("usdt:/bin/fruits:fruit:eat__done(int which, long)");

	assert_string_equal(found.said, "");
	assert_int_equal(found.object->sites.len, 1);
	assert_int_equal(found.object->sites.data[0].key_count, 1);
	assert_int_equal(found.object->probes.len, 2);
	assert_int_equal(found.object->probes.data[0].semaphore_offset, 0);
	done(&found);
	(void)state;
}

static void test_pair_of_probes_is_a_span(void **state)
{
	struct found found = find(
		"usdt:fruits:fr*t:eat__start(int which)..eat__done(, int rest) key=which..arg1 "
		"as span eat");
	const struct object *object = found.object;

	assert_string_equal(found.said, "");
	assert_int_equal(object->sites.len, 2);
	assert_string_equal(object->sites.data[0].name, "eat");
	assert_int_equal(object->sites.data[0].kind, WAFFLE_SITE_SPAN);
	assert_int_equal(object->sites.data[0].key_count, 2);
	assert_string_equal(object->sites.data[0].keys[1].name, "rest");
	assert_int_equal(object->sites.data[1].kind, WAFFLE_SITE_SPAN_END);
	assert_int_equal(object->calls.data[0].fetch_program.flags, WAFFLE_CALL_PAIR);
	assert_int_equal(object->calls.data[0].fetch_program.begins, 1);
	assert_int_equal(object->calls.data[0].fetch_program.keys, 1);
	assert_int_equal(object->calls.data[1].fetch_program.flags, WAFFLE_CALL_END);
	assert_int_equal(object->calls.data[1].fetch_program.pair,
			 object->calls.data[0].fetch_program.pair);
	assert_int_equal(object->calls.data[1].fetch_program.begins, 0);
	assert_int_equal(object->calls.data[1].fetch_program.returns, 1);
	assert_int_equal(object->calls.data[1].fetch_program.keys, 1);
	assert_int_equal(object->calls.data[1].fetch_program.fetches[0].constant, 7);
	assert_int_equal(object->calls.data[1].fetch_program.fetches[1].reg, X86_DI);
	assert_int_equal(object->probes.len, 3);
	done(&found);
	(void)state;
}

static void test_missing_probe_and_provider_are_said_with_near_names(void **state)
{
	struct found found = find("usdt:exe:fruit:eat__stat");

	assert_string_equal(found.said,
			    "--probe: no USDT probe 'eat__stat' in /bin/fruits; did you mean "
			    "eat__start\n");
	done(&found);
	/* A similar name of a provider is of no help where its probe is not there. */
	found = find("usdt:exe:fruit:fruit_ki");
	assert_string_equal(found.said, "--probe: no USDT probe 'fruit_ki' in /bin/fruits\n");
	done(&found);
	found = find("usdt:exe:friut:eat__start");
	assert_string_equal(found.said, "--probe: no USDT probe of a provider 'friut' in "
					"/bin/fruits; did you mean fruit\n");
	done(&found);
	(void)state;
}

static void test_control_characters_of_a_path_reach_no_terminal(void **state)
{
	struct found found =
		FIND_IN(SELF, "/bin/\x1b[2Jfruits", "usdt:exe:fruit:nothing", "uprobe:exe:nosuch");

	assert_string_equal(found.said, "--probe: no USDT probe 'nothing' in /bin/?[2Jfruits\n"
					"--probe: no function 'nosuch' in /bin/?[2Jfruits\n");
	done(&found);
	(void)state;
}

static void test_argument_in_a_vector_register_is_said(void **state)
{
	struct found found = find("usdt:exe:fruit:spit(long far)");

	assert_string_equal(found.said,
			    "--probe: argument 1 of spit is in no place that the kernel can read: "
			    "'8f@%xmm0'\n  usdt:exe:fruit:spit(long far)\n"
			    "                      ^~~~~~~~\n");
	assert_int_equal(found.object->sites.len, 1);
	assert_int_equal(found.object->sites.data[0].key_count, 0);
	done(&found);
	(void)state;
}

static void test_double_is_recorded_and_what_is_left_out_is_said(void **state)
{
	struct found found = find("usdt:exe:fruit:weigh");
	const struct site_info *site = &found.object->sites.data[0];

	assert_string_equal(found.said,
			    "--probe: argument 3 of weigh and 1 more of /bin/fruits are left out: "
			    "the first one is a float, which the kernel can't widen; a double can "
			    "be read\n");
	assert_false(found.missing);
	assert_int_equal(site->key_count, 2);
	assert_string_equal(site->keys[1].name, "arg2");
	assert_int_equal(site->keys[1].type, WAFFLE_KEY_F64);
	assert_int_equal(found.object->calls.data[0].fetch_program.fetches[1].bytes, 8);
	done(&found);
	/* The message comes once for all probes that a pattern finds. */
	found = find("usdt:exe:basket:*");
	assert_string_equal(found.said,
			    "--probe: argument 2 of put of /bin/fruits is left out: it is a float, "
			    "which the kernel can't widen; a double can be read\n");
	assert_int_equal(found.object->sites.len, 2);
	done(&found);
	/* The end of a pair without a list records nothing, so nothing is reported as unreadable.
	 */
	found = find("usdt:exe:basket:take..put key=tid");
	assert_string_equal(found.said, "");
	done(&found);
	(void)state;
}

static void test_value_that_a_probe_does_not_have_is_said_with_its_place(void **state)
{
	struct found found = find("usdt:exe:fruit:weigh(int n, double kg)");

	assert_string_equal(found.said, "");
	assert_int_equal(found.object->sites.data[0].keys[1].type, WAFFLE_KEY_F64);
	done(&found);
	found = find("usdt:exe:basket:put(double kg)");
	assert_string_equal(found.said,
			    "--probe: argument 1 of put is no double: '4@%edi 4f@%eax'\n"
			    "  usdt:exe:basket:put(double kg)\n"
			    "                      ^~~~~~~~~\n");
	assert_int_equal(found.object->sites.data[0].key_count, 0);
	done(&found);
	found = find("usdt:exe:basket:put {arg1, arg2 as kg}");
	assert_string_equal(found.said, "--probe: argument 2 of put is a float, which the kernel "
					"can't widen; a double can be read: '4@%edi 4f@%eax'\n"
					"  usdt:exe:basket:put {arg1, arg2 as kg}\n"
					"                             ^~~~\n");
	assert_int_equal(found.object->sites.data[0].key_count, 1);
	done(&found);
	found = find("usdt:exe:basket:take {arg7 as x}");
	assert_string_equal(found.said, "--probe: there is no argument 7 of take: '4@%edi'\n"
					"  usdt:exe:basket:take {arg7 as x}\n"
					"                        ^~~~\n");
	done(&found);
	(void)state;
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operands_of_notes),
		cmocka_unit_test(test_damaged_operands_are_refused),
#ifdef __x86_64__
		cmocka_unit_test(test_usdt_probe_is_an_event_with_the_arguments_of_its_note),
		cmocka_unit_test(test_copies_of_a_probe_are_one_site),
		cmocka_unit_test(test_pair_of_probes_is_a_span),
		cmocka_unit_test(test_missing_probe_and_provider_are_said_with_near_names),
		cmocka_unit_test(test_control_characters_of_a_path_reach_no_terminal),
		cmocka_unit_test(test_argument_in_a_vector_register_is_said),
		cmocka_unit_test(test_double_is_recorded_and_what_is_left_out_is_said),
		cmocka_unit_test(test_value_that_a_probe_does_not_have_is_said_with_its_place),
#endif
	};

#ifdef __x86_64__
	fruit_eaten(0);
#endif
	return cmocka_run_group_tests(tests, NULL, NULL);
}
