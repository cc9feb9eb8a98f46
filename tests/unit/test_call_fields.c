// SPDX-License-Identifier: Apache-2.0
/* Fields of structs, by the DWARF of this program; the fetch programs are run on its own memory. */
#include <elf.h>

#include "probe/args/abi_internal.h"
#include "call_found.h"

struct wire {
	char pad[3];
	short port;
	int fd;
};

struct request;
typedef struct request request_t;
typedef char word_t[6];

struct request {
	const char *path;
	struct wire *wire;
	struct wire spare;
	char method[8];
	union {
		unsigned long bytes;
		void *data;
	};
	struct request *next;
	double weight;
	float half;
	unsigned flag : 3;
	int (*done)(int);
	char rows[2][5];
	word_t words[3];
	char longer[300];
	char none[0];
	char open[];
};

int handle_request(request_t *r);

__attribute__((noinline)) int handle_request(request_t *r)
{
	__asm__ volatile("" ::"r"(r));
	return 0;
}

static struct found find(const char *values)
{
	char text[300];

	snprintf(text, sizeof(text), "uprobe:exe:handle_request(struct request *r) {%s}", values);
	return FIND_IN(SELF, "/bin/this", text);
}

/* The value that BPF would read. */
static uint64_t fetch(const struct waffle_fetch *fetch, uint64_t argument)
{
	uint64_t value = argument;

	for (unsigned i = 0; i < fetch->loads; i++) {
		uint64_t read = 0;
		bool last = i + 1 == fetch->loads && fetch->format == WAFFLE_FORMAT_WORD;

		memcpy(&read, (char *)(uintptr_t)value + fetch->offset[i], last ? fetch->bytes : 8);
		value = read;
	}
	return value + (uint64_t)(int64_t)fetch->offset[fetch->loads];
}

static void test_fields_are_read_where_the_compiler_put_them(void **state)
{
	struct wire wire = {.port = 443, .fd = 17};
	struct request second = {.bytes = 99}, first = {.path = "/index",
							.wire = &wire,
							.spare = {.fd = 5},
							.method = "POST",
							.bytes = 4096,
							.next = &second,
							.weight = 1.5};
	struct found found =
		find("r->path, r->wire->fd as fd, r->wire->port, r->spare.fd as spare, "
		     "r->method, r->bytes, r->next->bytes as more, r->weight, r->done");
	const struct site_info *site;
	const struct waffle_fetch *fetches;
	uint64_t argument = (uint64_t)(uintptr_t)&first;

	assert_string_equal(found.said, "");
	assert_int_equal(found.object->sites.len, 1);
	site = &found.object->sites.data[0];
	fetches = found.object->calls.data[0].fetch_program.fetches;
	assert_int_equal(site->key_count, 9);
	assert_string_equal(site->keys[0].name, "path");
	assert_int_equal(site->keys[0].type, WAFFLE_KEY_STR);
	assert_int_equal(fetches[0].format, WAFFLE_FORMAT_STR);
	assert_string_equal((char *)(uintptr_t)fetch(&fetches[0], argument), "/index");
	assert_string_equal(site->keys[1].name, "fd");
	assert_int_equal(site->keys[1].type, WAFFLE_KEY_I64);
	assert_int_equal(fetch(&fetches[1], argument), 17);
	assert_string_equal(site->keys[2].name, "port");
	assert_int_equal(fetches[2].bytes, 2);
	assert_int_equal(fetch(&fetches[2], argument), 443);
	assert_int_equal(fetch(&fetches[3], argument), 5);
	assert_int_equal(fetches[4].format, WAFFLE_FORMAT_BYTES);
	assert_int_equal(fetches[4].bytes, 8);
	assert_string_equal((char *)(uintptr_t)fetch(&fetches[4], argument), "POST");
	assert_int_equal(site->keys[5].type, WAFFLE_KEY_U64);
	assert_int_equal(fetch(&fetches[5], argument), 4096);
	assert_int_equal(fetch(&fetches[6], argument), 99);
	assert_int_equal(site->keys[7].type, WAFFLE_KEY_F64);
	assert_int_equal(site->keys[8].type, WAFFLE_KEY_CODE);
	done(&found);
	(void)state;
}

static void test_arrays_are_as_long_as_all_their_dimensions(void **state)
{
	struct found found = find("r->rows, r->words, r->longer");
	const struct waffle_fetch *fetches = found.object->calls.data[0].fetch_program.fetches;

	assert_string_equal(found.said, "");
	assert_int_equal(fetches[0].format, WAFFLE_FORMAT_BYTES);
	assert_int_equal(fetches[0].bytes, 10);
	assert_int_equal(fetches[1].bytes, 18);
	assert_int_equal(fetches[2].bytes, WAFFLE_STR_MAX - 1);
	done(&found);
	(void)state;
}

static void test_what_can_not_be_read_is_said_at_its_place(void **state)
{
	static const struct {
		const char *values, *said;
	} samples[] = {
		{"r->pth", "--probe: no field 'pth' in struct request; did you mean path\n"
			   "  uprobe:exe:handle_request(struct request *r) {r->pth}\n"
			   "                                                 ^~~~~\n"},
		{"r->wire.fd", "--probe: '.' behind a pointer: write '->'\n"
			       "  uprobe:exe:handle_request(struct request *r) {r->wire.fd}\n"
			       "                                                       ^~~\n"},
		{"r->spare->fd", "--probe: '->' after something that is no pointer: write '.'\n"
				 "  uprobe:exe:handle_request(struct request *r) {r->spare->fd}\n"
				 "                                                        ^~~~\n"},
		{"r->spare", "--probe: a struct: name one of its fields\n"
			     "  uprobe:exe:handle_request(struct request *r) {r->spare}\n"
			     "                                                 ^~~~~~~\n"},
		{"r->half", "--probe: a value of its type can't be shown\n"
			    "  uprobe:exe:handle_request(struct request *r) {r->half}\n"
			    "                                                 ^~~~~~\n"},
		{"r->none", "--probe: a value of its type can't be shown\n"
			    "  uprobe:exe:handle_request(struct request *r) {r->none}\n"
			    "                                                 ^~~~~~\n"},
		{"r->open", "--probe: a value of its type can't be shown\n"
			    "  uprobe:exe:handle_request(struct request *r) {r->open}\n"
			    "                                                 ^~~~~~\n"},
		{"r->flag", "--probe: a bit-field can't be read\n"
			    "  uprobe:exe:handle_request(struct request *r) {r->flag}\n"
			    "                                                 ^~~~~~\n"},
		{"r->next->next->next->next->next->bytes",
		 "--probe: goes through more than 4 pointers\n"
		 "  uprobe:exe:handle_request(struct request *r) "
		 "{r->next->next->next->next->next->bytes}\n"
		 "                                                "
		 "^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"},
	};

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		struct found found = find(samples[i].values);

		assert_string_equal(found.said, samples[i].said);
		assert_int_equal(found.object->sites.len, 0);
		done(&found);
	}
	(void)state;
}

static void expect_missing_struct(const char *text, const char *said)
{
	struct found found = FIND_IN(SELF, "/bin/this", text);

	assert_non_null(strstr(found.said, said));
	done(&found);
}

static void test_missing_struct_is_said_with_near_names(void **state)
{
	expect_missing_struct("uprobe:exe:handle_request(struct requst *r) {r->path}",
			      "--probe: no struct 'requst' in /bin/this; did you mean request");
	(void)state;
}

static void test_struct_of_many_sources_is_near_once(void **state)
{
	expect_missing_struct(
		"uprobe:exe:handle_request(struct call_specc *r) {r->path}",
		"--probe: no struct 'call_specc' in /bin/this; did you mean call_spec\n");
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields_are_read_where_the_compiler_put_them),
		cmocka_unit_test(test_arrays_are_as_long_as_all_their_dimensions),
		cmocka_unit_test(test_what_can_not_be_read_is_said_at_its_place),
		cmocka_unit_test(test_missing_struct_is_said_with_near_names),
		cmocka_unit_test(test_struct_of_many_sources_is_near_once),
	};

	handle_request(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
