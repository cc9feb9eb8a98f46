// SPDX-License-Identifier: Apache-2.0
#include "probe/find/find_remote_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe/spec/call.h"
#include "target/elf/object_remote.h"
#include "target/worker/sandbox.h"
#include "target/worker/worker_queue.h"
#include "util/hash.h"
#include "util/input.h"

#define KEPT_MAX 16384 /* size of a name or a message */

/* ---- states of descriptions ---- */

static void put_suggestions(struct wire_out *out, const struct set_suggestions *similar)
{
	wire_put_u32(out, similar->count);
	for (uint32_t i = 0; i < similar->count && i < SET_SUGGESTIONS_MAX; i++)
		wire_put_text(out, similar->names[i]);
}

static void put_state(struct wire_out *out, const struct spec_state *state)
{
	wire_put_u32(out, state->found);
	wire_put_u32(out, (uint32_t)state->stripped | (uint32_t)state->provider << 1);
	wire_put_u32(out, state->probed);
	wire_put_text(out, state->looked);
	wire_put_text(out, state->trouble);
	wire_put_text(out, state->pending);
	wire_put_text(out, state->refusal);
	put_suggestions(out, &state->providers);
	for (unsigned side = 0; side < 2; side++)
		for (unsigned i = 0; i < SPEC_NAMES_MAX; i++) {
			const struct set_named *named = &state->names[side][i];

			wire_put_u32(out, (uint32_t)named->matched | (uint32_t)named->ifunc << 1);
			put_suggestions(out, &named->similar);
		}
}

/* The copy lives as long as the set. */
static const char *get_kept(struct wire_in *in, struct call_set *set)
{
	const char *text = wire_get_text(in);

	in->bad |= text && strlen(text) > KEPT_MAX;
	return text && !in->bad ? set_keep(set, text) : NULL;
}

static void get_suggestions(struct wire_in *in, struct call_set *set,
			    struct set_suggestions *similar)
{
	similar->count = wire_get_u32(in);
	if (similar->count > SET_SUGGESTIONS_MAX) {
		similar->count = 0;
		in->bad = true;
	}
	for (uint32_t i = 0; i < similar->count; i++) {
		similar->names[i] = get_kept(in, set);
		in->bad |= !similar->names[i];
	}
	if (in->bad)
		similar->count = 0;
}

static void get_state(struct wire_in *in, struct call_set *set, struct spec_state *state)
{
	uint32_t word;

	*state = (struct spec_state){.found = wire_get_u32(in)};
	word = wire_get_u32(in);
	state->stripped = word & 1;
	state->provider = word & 2;
	state->probed = wire_get_u32(in);
	state->looked = get_kept(in, set);
	state->trouble = get_kept(in, set);
	state->pending = get_kept(in, set);
	state->refusal = get_kept(in, set);
	get_suggestions(in, set, &state->providers);
	for (unsigned side = 0; side < 2; side++)
		for (unsigned i = 0; i < SPEC_NAMES_MAX; i++) {
			struct set_named *named = &state->names[side][i];

			word = wire_get_u32(in);
			named->matched = word & 1;
			named->ifunc = word & 2;
			get_suggestions(in, set, &named->similar);
		}
}

/* Writes all states of a search. A description that is in both lists occurs twice. */
static void put_set(struct wire_out *out, const struct call_set *set,
		    const struct find_lists *lists)
{
	wire_put_u32(out, set->calls);
	for (unsigned i = 0; i < SET_INSIDES; i++)
		wire_put_text(out, set->stripped[i]);
	for (unsigned exe = 0; exe < 2; exe++)
		for (size_t i = 0; i < lists->of[exe].len; i++)
			put_state(out, &set->entries.data[lists->of[exe].data[i]]->state);
}

/* Takes over the states only if all of them are well-formed. */
static bool get_set(struct wire_in *in, struct call_set *set, const struct find_lists *lists)
{
	const char *stripped[SET_INSIDES];
	uint32_t calls = wire_get_u32(in);
	struct wire_in states;

	for (unsigned i = 0; i < SET_INSIDES; i++)
		stripped[i] = get_kept(in, set);
	states = *in;
	for (unsigned look = 0; look < 2; look++) {
		if (look)
			*in = states;
		for (unsigned exe = 0; exe < 2; exe++)
			for (size_t i = 0; i < lists->of[exe].len; i++) {
				struct spec_state state;

				get_state(in, set, &state);
				if (look)
					set->entries.data[lists->of[exe].data[i]]->state = state;
			}
		if (!wire_in_done(in) || calls > WAFFLE_FETCH_PROGRAMS_MAX)
			return false;
	}
	set->calls += calls;
	for (unsigned i = 0; i < SET_INSIDES; i++)
		set->stripped[i] = set->stripped[i] ?: stripped[i];
	return true;
}

/* ---- the worker's side ---- */

static bool get_lists(struct wire_in *in, const struct call_set *set, struct find_lists *lists)
{
	for (unsigned exe = 0; exe < 2; exe++) {
		uint32_t count = wire_get_count(in, sizeof(uint32_t));

		for (uint32_t i = 0; i < count; i++) {
			uint32_t entry = wire_get_u32(in);

			if (entry >= set->entries.len || !vec_push(&lists->of[exe], entry))
				return false;
		}
	}
	return !in->bad;
}

/* Resets the set, since the worker may have searched another file before. */
static void set_begin(struct call_set *set, const struct find_lists *lists)
{
	set->calls = 0;
	memset(set->stripped, 0, sizeof(set->stripped));
	for (unsigned exe = 0; exe < 2; exe++)
		for (size_t i = 0; i < lists->of[exe].len; i++)
			set->entries.data[lists->of[exe].data[i]]->state = (struct spec_state){0};
}

static void put_found(struct wire_out *reply, const struct object *object)
{
	wire_put_u32(reply, (uint32_t)object->sites.len);
	for (size_t i = 0; i < object->sites.len; i++)
		object_put_site(reply, &object->sites.data[i]);
	wire_put_u32(reply, (uint32_t)object->calls.len);
	for (size_t i = 0; i < object->calls.len; i++) {
		wire_put_u32(reply, object->calls.data[i].site);
		wire_put(reply, &object->calls.data[i].fetch_program,
			 sizeof(object->calls.data[i].fetch_program));
	}
	wire_put_u32(reply, (uint32_t)object->probes.len);
	for (size_t i = 0; i < object->probes.len; i++)
		object_put_probe(reply, &object->probes.data[i]);
}

static int search(struct wire_in *request, struct call_set *set, struct object *object, int fd,
		  struct wire_out *reply)
{
	struct find_lists lists = {0};
	struct error problem = ERROR_INIT;
	uint32_t word = wire_get_u32(request);
	int result = -EINVAL;

	object->machine = (uint16_t)word;
	object->big_endian = word & 1u << 16;
	object->simulation = word & 1u << 17;
	if (get_lists(request, set, &lists) && wire_in_done(request)) {
		set_begin(set, &lists);
		result = find_in_file(set, object, fd, &lists, &problem);
	}
	if (!result) {
		put_found(reply, object);
		put_set(reply, set, &lists);
	} else {
		wire_put_text(reply, problem.message);
	}
	vec_free(&lists.of[0]);
	vec_free(&lists.of[1]);
	return result;
}

int call_set_serve(struct wire_in *request, int fd, struct wire_out *reply, void *arg)
{
	const char *path = wire_get_text(request), *real = wire_get_text(request);
	struct error problem = ERROR_INIT;
	struct object *object;
	int result;

	wire_get_u64(request); /* the fingerprint, which is of this set, too */
	if (!path || !real || !arg)
		return -EINVAL;
	sandbox_name(fd, real);
	result = object_new(&object, path, &problem);
	if (result)
		return result;
	result = search(request, arg, object, fd, reply);
	object_free(object);
	return result;
}

/* ---- the tracer's side ---- */

/* Whether all keys have types that values of calls may have. */
static bool site_is_of_call(const struct site_info *site)
{
	for (unsigned i = 0; i < site->key_count; i++)
		if (!site->keys[i].type || !strchr("iudbpsnSEcv", site->keys[i].type))
			return false;
	return site->call;
}

/* The BPF programs keep within their memory whatever the words are, but the values would be wrong.
 */
static bool words_are_sound(const struct waffle_fetch_program *fetch_program)
{
	bool sound = fetch_program->word_count <= fetch_program->begins &&
		     fetch_program->stack_words <= WAFFLE_CALL_STACK_WORDS &&
		     fetch_program->word_bytes <= WAFFLE_WORD_ROOM &&
		     (!fetch_program->word_count ||
		      fetch_program->word_bytes >= sizeof(struct waffle_frame));

	for (unsigned i = 0; sound && i < fetch_program->word_count; i++) {
		const struct waffle_word *word = &fetch_program->words[i];

		sound = word->from < WAFFLE_CALL_REGS + fetch_program->stack_words &&
			word->to * sizeof(uint32_t) >= sizeof(struct waffle_frame) &&
			word->to * sizeof(uint32_t) < fetch_program->word_bytes && word->spare < 64;
	}
	return sound;
}

static bool fetch_program_is_sound(const struct waffle_fetch_program *fetch_program)
{
	return fetch_program->begins + fetch_program->saves + fetch_program->returns +
			       fetch_program->keys <=
		       WAFFLE_FETCHES_MAX &&
	       fetch_program->saves <= WAFFLE_SAVED_MAX && words_are_sound(fetch_program);
}

static int get_sites(struct wire_in *in, struct object *object)
{
	uint32_t count = wire_get_count(in, 4);

	for (uint32_t i = 0; i < count; i++) {
		struct site_info site;

		if (!object_get_site(in, object, &site) || !site_is_of_call(&site))
			return -EPROTO;
		if (!vec_push(&object->sites, site))
			return -ENOMEM;
	}
	return in->bad ? -EPROTO : 0;
}

/* `base`: the number of sites before. */
static int get_calls(struct wire_in *in, struct object *object, size_t base)
{
	uint32_t count = wire_get_count(in, sizeof(struct waffle_fetch_program));

	for (uint32_t i = 0; i < count; i++) {
		struct object_call call = {.site = wire_get_u32(in)};

		wire_get(in, &call.fetch_program, sizeof(call.fetch_program));
		/* There is exactly one call per site. */
		if (in->bad || call.site != i || !fetch_program_is_sound(&call.fetch_program))
			return -EPROTO;
		call.site += (uint32_t)base;
		if (!vec_push(&object->calls, call))
			return -ENOMEM;
	}
	return in->bad || count != object->sites.len - base ? -EPROTO : 0;
}

static int get_probes(struct wire_in *in, struct object *object, size_t base, uint64_t file_bytes)
{
	uint32_t count = wire_get_count(in, 4);

	for (uint32_t i = 0; i < count; i++) {
		struct object_probe probe;

		if (!object_get_probe(in, &probe) || probe.type == OBJECT_PROBE_SITE ||
		    probe.site >= object->sites.len - base || probe.offset >= file_bytes ||
		    probe.semaphore_offset >= file_bytes)
			return -EPROTO;
		probe.site += (uint32_t)base;
		if (!vec_push(&object->probes, probe))
			return -ENOMEM;
	}
	return in->bad ? -EPROTO : 0;
}

int find_decode(struct call_set *set, struct object *object, const struct find_lists *lists,
		uint64_t file_bytes, struct wire_in *in)
{
	size_t sites = object->sites.len, calls = object->calls.len, probes = object->probes.len;
	int result = get_sites(in, object);

	result = result ?: get_calls(in, object, sites);
	result = result ?: get_probes(in, object, sites, file_bytes);
	if (!result && !get_set(in, set, lists))
		result = -EPROTO;
	if (result) {
		object->sites.len = sites;
		object->calls.len = calls;
		object->probes.len = probes;
	}
	return result;
}

static uint64_t text_fingerprint(uint64_t hash, const char *text)
{
	/* With the NUL, so that two texts are not taken for one. */
	return text ? hash_bytes(hash, text, strlen(text) + 1) : hash_bytes(hash, "\1", 1);
}

/* Tells descriptions apart to which the numbers in a request refer: the reply may be kept for later
 * captures with other ones. */
static uint64_t set_fingerprint(struct call_set *set)
{
	uint64_t hash = HASH_BEGIN;

	if (set->fingerprinted == set->entries.len)
		return set->fingerprint;
	for (size_t i = 0; i < set->entries.len; i++) {
		const struct call_spec *spec = &set->entries.data[i]->spec;
		char numbers[96];

		snprintf(numbers, sizeof(numbers), "%u %u %u %u %d %d %d", spec->type, spec->role,
			 spec->flags, spec->group, spec->pair, spec->event, spec->quiet);
		hash = text_fingerprint(hash, spec->source.origin);
		hash = hash_bytes(hash, spec->source.text, spec->source.len);
		hash = text_fingerprint(hash, spec->category);
		hash = text_fingerprint(hash, numbers);
	}
	for (size_t i = 0; i < set->tables.enum_names.len; i++)
		hash = text_fingerprint(hash, set->tables.enum_names.data[i]);
	hash = hash_bytes(hash, set->tables.enums.data,
			  set->tables.enums.len * sizeof(set->tables.enums.data[0]));
	for (size_t i = 0; i < set->tables.sequences.len; i++)
		hash = text_fingerprint(hash, set->tables.sequences.data[i]);
	hash = hash_bytes(hash, &set->kernel.version, sizeof(set->kernel.version));
	hash = hash_bytes(hash, &set->kernel.optimised_nop, sizeof(set->kernel.optimised_nop));
	set->fingerprint = hash;
	set->fingerprinted = set->entries.len;
	return hash;
}

static void put_request(struct wire_out *request, struct call_set *set, const struct object *object,
			int fd, const struct find_lists *lists)
{
	char link[64], real[PATH_MAX];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, real, sizeof(real) - 1);
	real[len > 0 ? len : 0] = '\0';
	wire_put_text(request, object->path);
	wire_put_text(request, real);
	wire_put_u64(request, set_fingerprint(set));
	wire_put_u32(request, object->machine | (uint32_t)object->big_endian << 16 |
				      (uint32_t)object->simulation << 17);
	for (unsigned exe = 0; exe < 2; exe++) {
		wire_put_u32(request, (uint32_t)lists->of[exe].len);
		wire_put(request, lists->of[exe].data,
			 lists->of[exe].len * sizeof(lists->of[exe].data[0]));
	}
}

int find_remote(struct call_set *set, struct object *object, int fd, const struct find_lists *lists,
		struct error *err)
{
	struct wire_out request = {0}, reply = {0};
	struct stat status;
	struct wire_in in;
	int result;

	if (input_stat(fd, &status))
		return error_set(err, errno, "%s: %s", object->path, strerror(errno));
	put_request(&request, set, object, fd, lists);
	result = worker_ask(WORKER_CALLS, &request, fd, object->path, &reply, err);
	in = wire_in(reply.bytes.data, reply.bytes.len);
	if (!result) {
		result = find_decode(set, object, lists, (uint64_t)status.st_size, &in);
		if (result == -EPROTO)
			worker_reply_bad(object->path, err);
		else if (result)
			error_set(err, -result, "out of memory");
	} else if (!err->message[0]) {
		const char *text = wire_get_text(&in);

		if (text)
			error_set(err, -result, "%s", text);
		else
			error_set(err, -result, "%s: can't be read", object->path);
	}
	wire_out_free(&request);
	wire_out_free(&reply);
	return result;
}
