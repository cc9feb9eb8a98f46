// SPDX-License-Identifier: Apache-2.0
#include "store/keep_rows_internal.h"

#include <stdlib.h>
#include <string.h>

#include "store/bytes_internal.h"

void keep_rows_free(struct keep_rows *rows)
{
	for (size_t i = 0; i < rows->list.len; i++)
		free(rows->list.data[i].copy);
	vec_free(&rows->list);
	vec_free(&rows->free);
}

uint32_t keep_rows_next(const struct keep_rows *rows)
{
	return rows->free.len ? rows->free.data[rows->free.len - 1] : (uint32_t)rows->list.len + 1;
}

/* What a free row needs in a reader. */
static uint32_t cost_empty(enum store_numbered what)
{
	return (uint32_t)table_bytes(what == STORE_STACKS ? CHUNK_STACKS : CHUNK_OBJECTS, 0);
}

/* Takes ownership of the row's copy. */
static bool row_add(struct keep_rows *rows, struct kept_row row, enum store_numbered what,
		    size_t *more)
{
	*more = row.cost;
	if (rows->free.len) {
		rows->list.data[rows->free.data[--rows->free.len] - 1] = row;
		*more -= cost_empty(what);
		rows->cost += *more;
		return true;
	}
	/* A number can always be freed later. */
	if (vec_reserve(&rows->free, rows->list.len + 1) && vec_push(&rows->list, row)) {
		rows->cost += *more;
		return true;
	}
	free(row.copy);
	return false;
}

bool keep_rows_add_stack(struct keep_rows *rows, const struct store_stack *stack, uint64_t used,
			 size_t *more)
{
	byte_vec bytes = {0};
	struct kept_row row = {.used = used,
			       .cost = (uint32_t)table_bytes(CHUNK_STACKS, stack->count)};

	if (!stack_put(&bytes, stack)) {
		vec_free(&bytes);
		return false;
	}
	row.bytes = (uint32_t)bytes.len;
	row.copy = realloc(bytes.data, bytes.len);
	row.copy = row.copy ? row.copy : bytes.data;
	return row_add(rows, row, STORE_STACKS, more);
}

bool keep_rows_add_object(struct keep_rows *rows, const struct store_object *object, uint64_t used,
			  size_t *more)
{
	size_t name = strlen(object->name), detail = strlen(object->detail);
	struct kept_row row = {.used = used,
			       .bytes = (uint32_t)(sizeof(*object) + name + detail + 2),
			       .cost = (uint32_t)(table_bytes(CHUNK_OBJECTS, 0) +
						  string_bytes(name) + string_bytes(detail))};
	struct store_object *copy = malloc(row.bytes);
	char *texts;

	if (!copy)
		return false;
	texts = (char *)(copy + 1);
	*copy = *object;
	copy->name = memcpy(texts, object->name, name + 1);
	copy->detail = memcpy(texts + name + 1, object->detail, detail + 1);
	row.copy = copy;
	return row_add(rows, row, STORE_OBJECTS, more);
}

void keep_rows_use(struct keep_rows *rows, uint32_t number, uint64_t used)
{
	if (number && number <= rows->list.len && rows->list.data[number - 1].used)
		rows->list.data[number - 1].used = used;
}

bool keep_rows_are_many(const struct keep_rows *rows, uint64_t first, bool full)
{
	size_t used = rows->list.len - rows->free.len;

	return first != rows->dropped_first && used >= KEEP_ROWS_MIN / 16 &&
	       (full || (used >= KEEP_ROWS_MIN && used >= rows->drop_at));
}

size_t keep_rows_drop(struct keep_rows *rows, enum store_numbered what, uint64_t first,
		      bool (*may_drop)(uint32_t number, void *arg), void *arg)
{
	size_t less = 0;

	for (uint32_t number = 1; number <= rows->list.len; number++) {
		struct kept_row *row = &rows->list.data[number - 1];

		if (!row->used || row->used >= first || !may_drop(number, arg) ||
		    !vec_push(&rows->free, number))
			continue;
		less += row->cost - cost_empty(what);
		free(row->copy);
		*row = (struct kept_row){0};
	}
	rows->cost -= less;
	rows->dropped_first = first;
	rows->drop_at = 2 * (rows->list.len - rows->free.len);
	rows->drop_at = rows->drop_at < KEEP_ROWS_MANY ? rows->drop_at : KEEP_ROWS_MANY;
	return less;
}

bool keep_rows_named(const struct keep_rows *rows, struct map *frames)
{
	for (size_t i = 0; i < rows->list.len; i++) {
		const struct kept_row *row = &rows->list.data[i];
		uint64_t address = 0, count;
		struct cursor cursor;

		if (!row->used)
			continue;
		cursor = (struct cursor){.at = row->copy,
					 .end = (const unsigned char *)row->copy + row->bytes};
		get_varint(&cursor); /* the process */
		count = get_varint(&cursor);
		for (uint64_t frame = 0; frame < count && !cursor.bad; frame++) {
			address = get_difference(&cursor, address);
			if (address & STORE_NAMED && !map_set(frames, address, 0))
				return false;
		}
	}
	return true;
}

bool keep_rows_put(const struct keep_rows *rows, enum store_numbered what, uint32_t number,
		   byte_vec *to, struct strtab *strings)
{
	const struct kept_row *row = &rows->list.data[number - 1];

	if (what == STORE_OBJECTS)
		return object_put(to, strings,
				  row->used ? row->copy
					    : &(struct store_object){.name = "", .detail = ""});
	if (!row->used)
		return stack_put(to, &(struct store_stack){0});
	if (!vec_reserve(to, row->bytes))
		return false;
	memcpy(to->data + to->len, row->copy, row->bytes);
	to->len += row->bytes;
	return true;
}
