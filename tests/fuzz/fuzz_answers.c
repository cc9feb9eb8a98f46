// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as the reply of a worker that was taken over by the file it parsed: an object's sites,
 * its calls, frames, an unwind table. Each is rejected or well-formed.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/call.h"
#include "probe/spec/call.h"
#include "probe/find/find_remote_internal.h"
#include "probe/spec/call_set.h"
#include "target/dwarf/cfi_remote.h"
#include "target/elf/object_remote.h"
#include "target/process/program_facts.h"
#include "target/elf/symbols_remote.h"
#include "require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_object(const struct object *object)
{
	for (size_t i = 0; i < object->sites.len; i++) {
		const struct site_info *site = &object->sites.data[i];

		require(site->name && site->file && site->category && site->func);
		require(site->key_count <= WAFFLE_KEYS_MAX && site->kind < WAFFLE_SITE_KIND_COUNT);
		for (unsigned k = 0; k < site->key_count; k++)
			require(site->keys[k].name && site_key_from_file(site->keys[k].type));
	}
	for (size_t i = 0; i < object->probes.len; i++)
		require(object->probes.data[i].site == OBJECT_SPAN_END ||
			object->probes.data[i].site < object->sites.len);
	for (size_t i = 0; i < object->calls.len; i++)
		require(object->calls.data[i].site < object->sites.len);
}

static void read_object(struct wire_in in)
{
	struct error err = ERROR_INIT;
	struct object *object;

	require(!object_new(&object, "fuzz", &err));
	if (!object_decode(object, &in))
		check_object(object);
	object_free(object);
}

static void read_calls(struct wire_in in)
{
	struct find_lists lists = {0};
	struct error err = ERROR_INIT;
	struct call_set *set;
	struct object *object;

	require(!call_set_open(&set, &err));
	require(!call_set_add(set, "uprobe:libx:a|b* {x = arg0}", "fuzz", &err) || err.message[0]);
	require(!object_new(&object, "fuzz", &err));
	for (uint32_t i = 0; i < set->entries.len; i++)
		require(vec_push(&lists.of[i % 2], i));
	if (!find_decode(set, object, &lists, 1 << 20, &in))
		check_object(object);
	vec_free(&lists.of[0]);
	vec_free(&lists.of[1]);
	object_free(object);
	call_set_free(set);
}

static void check_words(const struct waffle_fetch_program *fetch_program)
{
	require(fetch_program->word_bytes <= WAFFLE_WORD_ROOM);
	for (unsigned i = 0; i < fetch_program->word_count; i++)
		require(fetch_program->words[i].from < WAFFLE_CALL_WORDS);
}

/* A correct reply, except for the fetch program of its call and the probe. */
static void read_fetch_program(struct wire_in in)
{
	struct site_info site = {.name = "a", .category = "", .file = "", .func = "", .call = true};
	struct find_lists lists = {0};
	struct wire_out reply = {0};
	struct error err = ERROR_INIT;
	struct waffle_fetch_program fetch_program;
	struct object_probe probe;
	struct call_set *set;
	struct object *object;
	struct wire_in answer;

	wire_get(&in, &fetch_program, sizeof(fetch_program));
	if (in.bad || !object_get_probe(&in, &probe))
		return;
	wire_put_u32(&reply, 1);
	object_put_site(&reply, &site);
	wire_put_u32(&reply, 1);
	wire_put_u32(&reply, 0);
	wire_put(&reply, &fetch_program, sizeof(fetch_program));
	wire_put_u32(&reply, 1);
	object_put_probe(&reply, &probe);
	wire_put_u32(&reply, 1);
	for (unsigned i = 0; i < SET_INSIDES; i++)
		wire_put_text(&reply, NULL);
	require(!call_set_open(&set, &err) && !object_new(&object, "fuzz", &err));
	answer = wire_in(reply.bytes.data, reply.bytes.len);
	if (!find_decode(set, object, &lists, 1 << 20, &answer)) {
		check_object(object);
		require(object->calls.len == 1);
		check_words(&object->calls.data[0].fetch_program);
	}
	wire_out_free(&reply);
	object_free(object);
	call_set_free(set);
}

static void read_frames(struct wire_in in)
{
	struct symbols_remote *remote;

	require(!symbols_remote_open(&remote, "/nowhere", false));
	symbols_remote_decode(remote, &in);
	symbols_remote_close(remote);
}

static void read_table(struct wire_in in)
{
	struct elf_segments segments;
	struct cfi_table table;

	if (cfi_decode(&table, &segments, &in, NULL))
		return;
	require(segments.count <= ELF_SEGMENTS_MAX && table.count <= CFI_ROWS_MAX);
	for (size_t i = 1; i < table.count; i++)
		require(table.rows[i].pc > table.rows[i - 1].pc);
	cfi_table_free(&table);
}

static void read_facts(struct wire_in in)
{
	struct program_facts facts;

	program_facts_decode(&facts, &in);
	require(facts.segments.count <= ELF_SEGMENTS_MAX && facts.build_id.size <= BUILD_ID_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const readers[])(struct wire_in in) = {
		read_object, read_calls, read_frames, read_table, read_facts, read_fetch_program};

	/* This one was added last, so that inputs for the others keep their numbers. */
	if (size)
		readers[data[0] == 'r' ? 5 : data[0] % 5](wire_in(data + 1, size - 1));
	return 0;
}
