// SPDX-License-Identifier: Apache-2.0
#include "target/elf/object_remote.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "target/worker/filecopy.h"
#include "target/worker/worker_queue.h"
#include "util/input.h"

/* Minimum encoded sizes of a site and a probe. */
#define SITE_BYTES 28
#define PROBE_BYTES 24

void object_put_site(struct wire_out *out, const struct site_info *site)
{
	wire_put_text(out, site->name);
	wire_put_text(out, site->category);
	wire_put_text(out, site->file);
	wire_put_text(out, site->func);
	wire_put_u32(out, site->line);
	wire_put_u32(out, site->kind | (uint32_t)site->role << 16);
	wire_put_u32(out, (uint32_t)site->call | (uint32_t)site->simulated << 1 |
				  (uint32_t)site->keyed << 2 | (uint32_t)site->laps << 3);
	wire_put_u32(out, site->key_count | (uint32_t)site->begin_keys << 16);
	for (unsigned i = 0; i < site->key_count; i++) {
		wire_put_u32(out, (unsigned char)site->keys[i].type);
		wire_put_text(out, site->keys[i].name);
	}
}

static const char *get_text(struct wire_in *in, struct object *object)
{
	const char *text = wire_get_text(in), *kept;

	if (!text) {
		in->bad = true;
		return "";
	}
	kept = strtab_get(object->strings, strtab_add(object->strings, text, strlen(text)));
	in->bad |= !kept;
	return kept;
}

bool object_get_site(struct wire_in *in, struct object *object, struct site_info *site)
{
	uint32_t word;

	*site = (struct site_info){.object = object->path};
	site->name = get_text(in, object);
	site->category = get_text(in, object);
	site->file = get_text(in, object);
	site->func = get_text(in, object);
	site->line = wire_get_u32(in);
	word = wire_get_u32(in);
	site->kind = (uint16_t)word;
	site->role = (uint16_t)(word >> 16);
	word = wire_get_u32(in);
	site->call = word & 1;
	site->simulated = word & 2;
	site->keyed = word & 4;
	site->laps = word & 8;
	word = wire_get_u32(in);
	site->key_count = (uint16_t)word;
	site->begin_keys = (uint16_t)(word >> 16);
	if (site->kind >= WAFFLE_SITE_KIND_COUNT || site->role >= SITE_ROLE_COUNT ||
	    site->key_count > WAFFLE_KEYS_MAX || site->begin_keys > site->key_count)
		in->bad = true;
	for (unsigned i = 0; i < site->key_count && !in->bad; i++) {
		site->keys[i].type = (char)wire_get_u32(in);
		site->keys[i].name = get_text(in, object);
	}
	return !in->bad;
}

void object_put_probe(struct wire_out *out, const struct object_probe *probe)
{
	wire_put_u64(out, probe->offset);
	wire_put_u64(out, probe->semaphore_offset);
	wire_put_u32(out, probe->site);
	wire_put_u32(out, probe->type | (uint32_t)probe->cost << 8 | (uint32_t)probe->shift << 16);
}

bool object_get_probe(struct wire_in *in, struct object_probe *probe)
{
	uint32_t word;

	*probe = (struct object_probe){.offset = wire_get_u64(in)};
	probe->semaphore_offset = wire_get_u64(in);
	probe->site = wire_get_u32(in);
	word = wire_get_u32(in);
	probe->type = (uint8_t)word;
	probe->cost = (uint8_t)(word >> 8);
	probe->shift = (uint16_t)(word >> 16);
	in->bad |= probe->type > OBJECT_PROBE_END || probe->cost > OBJECT_COST_REFUSED;
	return !in->bad;
}

/* Whether all key types of a site may occur in files (target/elf/site.h). */
static bool site_is_of_file(const struct site_info *site)
{
	for (unsigned i = 0; i < site->key_count; i++)
		if (!site->keys[i].type || !strchr("iudbpsnSE", site->keys[i].type))
			return false;
	return !site->call && !site->role && !site->keyed && !site->laps;
}

int object_decode(struct object *object, struct wire_in *in)
{
	uint32_t word = wire_get_u32(in), count;

	object->machine = (uint16_t)word;
	object->big_endian = word & 1u << 16;
	object->simulation = word & 1u << 17;
	object->bad_notes = wire_get_u32(in);
	object->doubled.offset = wire_get_u64(in);
	object->doubled.mappings = wire_get_u32(in);
	object->transport.version = wire_get_u32(in);
	object->transport.ring = wire_get_u64(in);
	object->transport.ring_semaphore = wire_get_u64(in);
	object->transport.usdt = wire_get_u64(in);
	object->transport.usdt_semaphore = wire_get_u64(in);
	count = wire_get_count(in, SITE_BYTES);
	for (uint32_t i = 0; i < count; i++) {
		struct site_info site;

		if (!object_get_site(in, object, &site) || !site_is_of_file(&site))
			return -EPROTO;
		if (!vec_push(&object->sites, site))
			return -ENOMEM;
	}
	count = wire_get_count(in, PROBE_BYTES);
	for (uint32_t i = 0; i < count; i++) {
		struct object_probe probe;

		if (!object_get_probe(in, &probe) || probe.type != OBJECT_PROBE_SITE ||
		    (probe.site != OBJECT_SPAN_END && probe.site >= object->sites.len))
			return -EPROTO;
		if (!vec_push(&object->probes, probe))
			return -ENOMEM;
	}
	return wire_in_done(in) ? 0 : -EPROTO;
}

/*
 * A compromised worker could request a probe in the middle of an instruction, in a file that other
 * users run, too. So only nops are probed. Semaphores need no check: the worker has only read files
 * of one owner, who can change the semaphores in them anyway.
 */
static bool nops_are_there(const struct object *object, int fd)
{
	static const unsigned char x86[] = {0x90}, arm64[] = {0x1f, 0x20, 0x03, 0xd5};
	bool arm = object->machine == EM_AARCH64, are = true;
	size_t size = arm ? sizeof(arm64) : sizeof(x86);
	struct file_copy copy;

	if (file_copy_open(&copy, fd))
		return false;
	for (size_t i = 0; i < object->probes.len && are; i++) {
		const struct object_probe *probe = &object->probes.data[i];
		unsigned char code[sizeof(arm64)];

		are = file_copy_get(&copy, probe->offset, code, size) &&
		      !memcmp(code, arm ? arm64 : x86, size) &&
		      probe->semaphore_offset < (uint64_t)copy.at_first.st_size;
	}
	file_copy_close(&copy);
	return are;
}

static int reply_take(struct object *object, int fd, const struct wire_out *reply,
		      struct error *err)
{
	struct wire_in in = wire_in(reply->bytes.data, reply->bytes.len);
	int result = object_decode(object, &in);
	struct stat status;

	if (result == -ENOMEM)
		return error_set(err, ENOMEM, "%s: out of memory", object->path);
	if (result || !nops_are_there(object, fd))
		return worker_reply_bad(object->path, err);
	if (input_stat(fd, &status))
		return error_set(err, errno, "%s: %s", object->path, strerror(errno));
	object->dev = status.st_dev;
	object->ino = status.st_ino;
	return 0;
}

int object_read_remote(struct object **object, int fd, const char *path, struct error *err)
{
	struct wire_out request = {0}, reply = {0};
	struct object *made;
	int result = object_new(&made, path, err);

	*object = NULL;
	if (result)
		return result;
	wire_put_text(&request, path);
	result = worker_ask(WORKER_OBJECT, &request, fd, path, &reply, err);
	if (!result) {
		result = reply_take(made, fd, &reply, err);
	} else if (!err->message[0]) {
		struct wire_in in = wire_in(reply.bytes.data, reply.bytes.len);
		const char *text = wire_get_text(&in);

		error_set(err, -result, "%s%s", text ? "" : "can't be read: ", text ? text : path);
	}
	wire_out_free(&request);
	wire_out_free(&reply);
	if (result)
		object_free(made);
	else
		*object = made;
	return result;
}
