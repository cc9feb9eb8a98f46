// SPDX-License-Identifier: Apache-2.0
#include "target/elf/symbols_remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/worker/worker.h"
#include "util/map.h"
#include "util/strtab.h"
#include "util/vec.h"

#define FRAME_BYTES 24 /* minimum size of an encoded frame */
#define FRAMES_MAX 4096

struct symbols_answer {
	struct symbol_frames frames; /* `list` points to this */
	struct symbol_frame list[];
};

struct remote_module {
	char *path;
	struct build_id build_id;
	struct elf_segments segments;
	bool dead;                        /* a worker died on this module: send no more requests */
	struct map by_offset, by_address; /* → index in `answers` */
	struct map before;                /* offset → enum callsite */
	VEC(struct symbols_answer *) answers;
};

struct symbols_remote {
	char *debug_dir;
	bool fetch;
	struct strtab *strings;
	VEC(struct remote_module *) modules;
	struct map module_at; /* symbol_module_hash() or the next free key → index */
};

int symbols_remote_open(struct symbols_remote **result, const char *debug_dir, bool fetch)
{
	struct symbols_remote *remote = calloc(1, sizeof(*remote));

	*result = remote;
	if (!remote)
		return -ENOMEM;
	remote->fetch = fetch;
	remote->debug_dir = strdup(debug_dir);
	remote->strings = strtab_new();
	if (remote->debug_dir && remote->strings)
		return 0;
	symbols_remote_close(remote);
	*result = NULL;
	return -ENOMEM;
}

static void module_free(struct remote_module *module)
{
	for (size_t i = 0; i < module->answers.len; i++)
		free(module->answers.data[i]);
	vec_free(&module->answers);
	map_free(&module->by_offset);
	map_free(&module->by_address);
	map_free(&module->before);
	free(module->path);
	free(module);
}

void symbols_remote_close(struct symbols_remote *remote)
{
	if (!remote)
		return;
	for (size_t i = 0; i < remote->modules.len; i++)
		module_free(remote->modules.data[i]);
	vec_free(&remote->modules);
	map_free(&remote->module_at);
	strtab_free(remote->strings);
	free(remote->debug_dir);
	free(remote);
}

int symbols_remote_add(struct symbols_remote *remote, const struct symbol_module *like,
		       uint32_t *number)
{
	struct remote_module **modules = remote->modules.data, *module;
	uint64_t key;

	for (key = symbol_module_hash(like);
	     (*number = map_get(&remote->module_at, key)) != MAP_NONE; key++)
		if (symbol_module_is(like, modules[*number]->path, &modules[*number]->build_id))
			return 0;
	module = calloc(1, sizeof(*module));
	if (!module)
		return -ENOMEM;
	module->build_id = like->build_id;
	module->segments = like->segments;
	if (like->path)
		module->path = strdup(like->path);
	if ((like->path && !module->path) || !vec_push(&remote->modules, module)) {
		module_free(module);
		return -ENOMEM;
	}
	*number = (uint32_t)(remote->modules.len - 1);
	return map_set(&remote->module_at, key, *number) ? 0 : -ENOMEM;
}

static struct remote_module *module_at(struct symbols_remote *remote, uint32_t number)
{
	return number < remote->modules.len ? remote->modules.data[number] : NULL;
}

/* Every request starts with the module. */
static void put_module(struct wire_out *out, const struct symbols_remote *remote,
		       const struct remote_module *module)
{
	wire_put_text(out, remote->debug_dir);
	wire_put_u32(out, remote->fetch);
	wire_put_text(out, module->path);
	wire_put(out, &module->build_id, sizeof(module->build_id));
	wire_put(out, &module->segments, sizeof(module->segments));
}

/* Sends a request. False: there was no answer. */
static bool ask(struct remote_module *module, enum worker_op op, struct wire_out *request,
		struct wire_out *reply)
{
	struct error problem = ERROR_INIT;
	int result = worker_call(WORKER_FOR_NAMES, op, request, -1, module->path ?: "[unnamed]",
				 reply, &problem);

	wire_out_free(request);
	module->dead |= result == -EPROTO;
	return !result;
}

/* Stops further requests for this module, since a reply was malformed. */
static void distrust(struct remote_module *module)
{
	struct error problem = ERROR_INIT;

	worker_reply_bad(module->path ?: "[unnamed]", &problem);
	module->dead = true;
}

/* ---- frames ---- */

static const char *get_kept(struct symbols_remote *remote, struct wire_in *in)
{
	const char *text = wire_get_text(in);

	return text ? strtab_get(remote->strings, strtab_add(remote->strings, text, strlen(text)))
		    : NULL;
}

/* NULL: the reply is malformed, or allocation failed. */
static struct symbols_answer *decode(struct symbols_remote *remote, struct wire_in *in)
{
	uint32_t word = wire_get_u32(in), count;
	uint64_t address = wire_get_u64(in);
	struct symbols_answer *answer;

	count = wire_get_count(in, FRAME_BYTES);
	if (in->bad || count > FRAMES_MAX || (word >> 1) > SYMBOL_DWARF)
		return NULL;
	answer = calloc(1, sizeof(*answer) + count * sizeof(answer->list[0]));
	if (!answer)
		return NULL;
	answer->frames = (struct symbol_frames){.list = answer->list,
						.count = count,
						.source = word >> 1,
						.located = word & 1,
						.address = address};
	for (uint32_t i = 0; i < count; i++) {
		struct symbol_frame *frame = &answer->list[i];

		frame->function = get_kept(remote, in);
		frame->file = get_kept(remote, in);
		frame->line = wire_get_u32(in);
		frame->inlined = wire_get_u32(in) & 1;
		frame->offset = wire_get_u64(in);
		in->bad |= frame->offset > address;
	}
	in->bad |= count && (!answer->frames.located || !answer->frames.source);
	if (wire_in_done(in))
		return answer;
	free(answer);
	return NULL;
}

bool symbols_remote_decode(struct symbols_remote *remote, struct wire_in *in)
{
	struct symbols_answer *answer = decode(remote, in);
	bool good = answer;

	free(answer);
	return good;
}

int symbols_remote_frames(struct symbols_remote *remote, uint32_t number, uint64_t place,
			  bool is_offset, struct symbol_frames *frames)
{
	struct remote_module *module = module_at(remote, number);
	struct wire_out request = {0}, reply = {0};
	struct symbols_answer *answer = NULL;
	struct map *known;
	uint32_t index;

	*frames = (struct symbol_frames){.address = place};
	if (!module)
		return -EINVAL;
	known = is_offset ? &module->by_offset : &module->by_address;
	index = map_get(known, place);
	if (index != MAP_NONE) {
		*frames = module->answers.data[index]->frames;
		return 0;
	}
	if (module->dead)
		return 0;
	put_module(&request, remote, module);
	wire_put_u32(&request, is_offset);
	wire_put_u64(&request, place);
	if (ask(module, WORKER_FRAMES, &request, &reply)) {
		struct wire_in in = wire_in(reply.bytes.data, reply.bytes.len);

		answer = decode(remote, &in);
		if (!answer)
			distrust(module);
	}
	wire_out_free(&reply);
	if (!answer)
		return 0;
	if (!vec_push(&module->answers, answer)) {
		free(answer);
		return -ENOMEM;
	}
	/* If the map cannot grow, the next request asks the worker again. */
	map_set(known, place, (uint32_t)(module->answers.len - 1));
	*frames = answer->frames;
	return 0;
}

/* ---- the rest ---- */

enum callsite symbols_remote_before(struct symbols_remote *remote, uint32_t number, uint64_t offset)
{
	struct remote_module *module = module_at(remote, number);
	struct wire_out request = {0}, reply = {0};
	uint32_t known = module ? map_get(&module->before, offset) : CALLSITE_UNKNOWN;

	if (known != MAP_NONE)
		return known;
	if (module->dead)
		return CALLSITE_UNKNOWN;
	put_module(&request, remote, module);
	wire_put_u64(&request, offset);
	known = CALLSITE_UNKNOWN;
	if (ask(module, WORKER_BEFORE, &request, &reply)) {
		struct wire_in in = wire_in(reply.bytes.data, reply.bytes.len);

		known = wire_get_u32(&in);
		if (in.bad || known >= CALLSITE_COUNT)
			known = CALLSITE_UNKNOWN;
	}
	wire_out_free(&reply);
	map_set(&module->before, offset, known);
	return known;
}

/* The variable with a name or, if `name` is NULL, at an address. */
static bool variable(struct symbols_remote *remote, uint32_t number, const char *name,
		     uint64_t address, const char **found, uint64_t *offset)
{
	struct remote_module *module = module_at(remote, number);
	struct wire_out request = {0}, reply = {0};

	*found = NULL;
	if (!module || module->dead)
		return false;
	put_module(&request, remote, module);
	wire_put_text(&request, name);
	wire_put_u64(&request, address);
	if (ask(module, WORKER_VARIABLE, &request, &reply)) {
		struct wire_in in = wire_in(reply.bytes.data, reply.bytes.len);

		*found = get_kept(remote, &in);
		*offset = wire_get_u64(&in);
		if (!wire_in_done(&in) || *offset > address) {
			distrust(module);
			*found = NULL;
		}
	}
	wire_out_free(&reply);
	return *found;
}

const char *symbols_remote_variable(struct symbols_remote *remote, uint32_t number,
				    uint64_t address, uint64_t *offset)
{
	const char *found;

	return variable(remote, number, NULL, address, &found, offset) ? found : NULL;
}

bool symbols_remote_has_variable(struct symbols_remote *remote, uint32_t number, const char *name)
{
	const char *found;
	uint64_t offset;

	return variable(remote, number, name, 0, &found, &offset);
}

bool symbols_remote_is_go(struct symbols_remote *remote, uint32_t number)
{
	struct remote_module *module = module_at(remote, number);
	struct wire_out request = {0}, reply = {0};
	bool found = false;

	if (!module || module->dead)
		return false;
	put_module(&request, remote, module);
	if (ask(module, WORKER_GO, &request, &reply)) {
		struct wire_in in = wire_in(reply.bytes.data, reply.bytes.len);

		found = wire_get_u32(&in) && wire_in_done(&in);
	}
	wire_out_free(&reply);
	return found;
}

int symbols_remote_module(struct symbols_remote *remote, uint32_t number,
			  struct symbol_module_state *state)
{
	struct remote_module *module = module_at(remote, number);
	struct wire_out request = {0}, reply = {0};

	*state = (struct symbol_module_state){.file = SYMBOL_FILE_MISSING};
	if (!module)
		return -EINVAL;
	state->build_id = module->build_id;
	if (module->dead) {
		state->file = SYMBOL_FILE_BAD;
		return 0;
	}
	put_module(&request, remote, module);
	if (ask(module, WORKER_MODULE, &request, &reply)) {
		struct wire_in in = wire_in(reply.bytes.data, reply.bytes.len);
		uint32_t file = wire_get_u32(&in), source = wire_get_u32(&in);

		state->debug_path = get_kept(remote, &in);
		wire_get(&in, &state->build_id, sizeof(state->build_id));
		if (!wire_in_done(&in) || file > SYMBOL_FILE_BAD || source > SYMBOL_DWARF ||
		    state->build_id.size > BUILD_ID_MAX) {
			distrust(module);
			*state = (struct symbol_module_state){.file = SYMBOL_FILE_BAD};
		} else {
			state->file = file;
			state->source = source;
		}
	} else {
		state->file = SYMBOL_FILE_BAD;
	}
	wire_out_free(&reply);
	return 0;
}
