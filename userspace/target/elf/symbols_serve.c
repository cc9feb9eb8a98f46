// SPDX-License-Identifier: Apache-2.0
/* The worker's side of symbols_remote.c: answers requests with a symbolizer of its own. */
#include <errno.h>

#include "target/elf/symbols.h"
#include "target/elf/symbols_remote.h"

/* Adds the module of a request. The first request creates the symbolizer. */
static int take_module(struct wire_in *in, struct symbols_service *service, uint32_t *number)
{
	struct symbolizer_options options = {.debug_dir = wire_get_text(in)};
	struct symbol_module module = {0};
	int result = 0;

	options.fetch = wire_get_u32(in);
	options.in_worker = true;
	module.path = wire_get_text(in);
	wire_get(in, &module.build_id, sizeof(module.build_id));
	wire_get(in, &module.segments, sizeof(module.segments));
	if (in->bad || !options.debug_dir)
		return -EINVAL;
	if (!service->symbolizer)
		result = symbolizer_open(&service->symbolizer, &options);
	return result ? result : symbolizer_add(service->symbolizer, &module, number);
}

int symbols_serve_frames(struct wire_in *request, int fd, struct wire_out *reply, void *arg)
{
	struct symbols_service *service = arg;
	struct symbol_frames frames;
	uint32_t number, is_offset;
	uint64_t place;
	int result = take_module(request, service, &number);

	(void)fd;
	is_offset = wire_get_u32(request);
	place = wire_get_u64(request);
	if (result || !wire_in_done(request))
		return result ? result : -EINVAL;
	result = (is_offset ? symbolizer_offset : symbolizer_address)(service->symbolizer, number,
								      place, &frames);
	if (result)
		return result;
	wire_put_u32(reply, (uint32_t)frames.source << 1 | (uint32_t)frames.located);
	wire_put_u64(reply, frames.address);
	wire_put_u32(reply, frames.count);
	for (uint32_t i = 0; i < frames.count; i++) {
		wire_put_text(reply, frames.list[i].function);
		wire_put_text(reply, frames.list[i].file);
		wire_put_u32(reply, frames.list[i].line);
		wire_put_u32(reply, frames.list[i].inlined);
		wire_put_u64(reply, frames.list[i].offset);
	}
	return 0;
}

int symbols_serve_before(struct wire_in *request, int fd, struct wire_out *reply, void *arg)
{
	struct symbols_service *service = arg;
	uint32_t number;
	int result = take_module(request, service, &number);
	uint64_t offset = wire_get_u64(request);

	(void)fd;
	if (result || !wire_in_done(request))
		return result ? result : -EINVAL;
	wire_put_u32(reply, symbolizer_before(service->symbolizer, number, offset));
	return 0;
}

int symbols_serve_variable(struct wire_in *request, int fd, struct wire_out *reply, void *arg)
{
	struct symbols_service *service = arg;
	uint64_t address, offset = 0;
	const char *name, *found;
	uint32_t number;
	int result = take_module(request, service, &number);

	(void)fd;
	name = wire_get_text(request);
	address = wire_get_u64(request);
	if (result || !wire_in_done(request))
		return result ? result : -EINVAL;
	if (name)
		found = symbolizer_has_variable(service->symbolizer, number, name) ? name : NULL;
	else
		found = symbolizer_variable(service->symbolizer, number, address, &offset);
	wire_put_text(reply, found);
	wire_put_u64(reply, found ? offset : 0);
	return 0;
}

int symbols_serve_go(struct wire_in *request, int fd, struct wire_out *reply, void *arg)
{
	struct symbols_service *service = arg;
	uint32_t number;
	int result = take_module(request, service, &number);

	(void)fd;
	if (result || !wire_in_done(request))
		return result ? result : -EINVAL;
	wire_put_u32(reply, symbolizer_is_go(service->symbolizer, number));
	return 0;
}

int symbols_serve_module(struct wire_in *request, int fd, struct wire_out *reply, void *arg)
{
	struct symbols_service *service = arg;
	struct symbol_module_state state;
	uint32_t number;
	int result = take_module(request, service, &number);

	(void)fd;
	if (result || !wire_in_done(request))
		return result ? result : -EINVAL;
	result = symbolizer_module(service->symbolizer, number, &state);
	if (result)
		return result;
	wire_put_u32(reply, state.file);
	wire_put_u32(reply, state.source);
	wire_put_text(reply, state.debug_path);
	wire_put(reply, &state.build_id, sizeof(state.build_id));
	return 0;
}
