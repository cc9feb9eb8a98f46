// SPDX-License-Identifier: Apache-2.0
/*
 * A Perfetto trace is a message whose only field is `packet` (1), repeated: a tag, a length and a
 * body. https://protobuf.dev/programming-guides/encoding describes the encoding. The body of each
 * packet has to consist of fields, so that another file is not taken for a trace.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "export/repair/pieces_internal.h"
#include "export/repair/repair.h"
#include "util/memory.h"

#define PACKET_TAG 0x0a
/* Perfetto's own limit. */
#define PACKET_MAX ((uint64_t)256 << 20)

enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct packet_scan {
	struct pieces *pieces;
	const char *path;
	uint64_t at;    /* of the next byte */
	uint64_t field; /* where the last field begins */
	int result;
	bool ended; /* the file ended first */
	bool bad;
};

static uint8_t byte_take(struct packet_scan *scan, struct error *err)
{
	struct pieces *pieces = scan->pieces;

	if (scan->result || scan->ended)
		return 0;
	if (scan->at < pieces->from || scan->at >= pieces->from + pieces->len)
		scan->result = pieces_seek(pieces, scan->at, scan->path, err);
	if (scan->result || !pieces->len) {
		scan->ended = true;
		return 0;
	}
	return pieces->bytes[scan->at++ - pieces->from];
}

static uint64_t varint_take(struct packet_scan *scan, struct error *err)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = byte_take(scan, err);

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	scan->bad = true;
	return 0;
}

static bool may_go_on(const struct packet_scan *scan)
{
	return !scan->result && !scan->ended && !scan->bad;
}

/* Skips the fields up to the end of a packet, which is inside the file. */
static void fields_skip(struct packet_scan *scan, uint64_t end, struct error *err)
{
	while (may_go_on(scan) && scan->at < end) {
		uint64_t begin = scan->at, tag = varint_take(scan, err), bytes = 0;

		scan->field = begin;
		switch (tag & 7) {
		case WIRE_VARINT:
			varint_take(scan, err);
			break;
		case WIRE_64:
			bytes = 8;
			break;
		case WIRE_32:
			bytes = 4;
			break;
		case WIRE_BYTES:
			bytes = varint_take(scan, err);
			break;
		default:
			scan->bad = true;
		}
		if (!(tag >> 3) || scan->at > end || bytes > end - scan->at)
			scan->bad = true;
		else
			scan->at += bytes;
	}
	if (scan->at != end)
		scan->bad = true;
}

static int not_a_trace(const struct packet_scan *scan, uint64_t at, struct error *err)
{
	return error_set(
		err, EBADMSG,
		"%s: is not a Perfetto trace, or damaged: no packet begins at byte %" PRIu64,
		scan->path, at);
}

/* Instead of what should be in a packet there may be zeros up to the end of the file. */
static int only_zeros(struct packet_scan *scan, uint64_t from, uint64_t packet, struct error *err)
{
	bool zeros = false;
	int result = pieces_only_zeros(scan->pieces, from, scan->path, &zeros, err);

	return result ?: zeros ? 0 : not_a_trace(scan, packet, err);
}

/* Reads a packet at scan->at. *whole: there was one, and it is complete. */
static int packet_scan(struct packet_scan *scan, bool *whole, struct error *err)
{
	uint64_t begin = scan->at, bytes;

	*whole = false;
	if (byte_take(scan, err) != PACKET_TAG && !scan->result)
		return only_zeros(scan, begin, begin, err);
	bytes = varint_take(scan, err);
	if (scan->result || scan->ended)
		return scan->result;
	if (scan->bad || bytes > PACKET_MAX)
		return not_a_trace(scan, begin, err);
	if (bytes > scan->pieces->size - scan->at)
		return 0;
	fields_skip(scan, scan->at + bytes, err);
	if (!scan->result && scan->bad)
		return only_zeros(scan, scan->field, begin, err);
	*whole = !scan->result && !scan->ended;
	return scan->result;
}

int repair_scan_perfetto(struct repair_plan *plan, int fd, const char *path, struct error *err)
{
	struct pieces *pieces = memory_get(sizeof(*pieces));
	struct packet_scan scan = {.pieces = pieces, .path = path};
	int result = pieces_begin(pieces, fd, path, err);
	bool whole = true;

	*plan = (struct repair_plan){.tail = ""};
	while (!result && whole && scan.at < pieces->size) {
		result = packet_scan(&scan, &whole, err);
		if (result || !whole)
			break;
		plan->kept = scan.at;
		plan->items++;
	}
	plan->dropped = pieces->size - plan->kept;
	if (!result && !plan->items)
		result = not_a_trace(&scan, 0, err);
	free(pieces);
	return result;
}
