// SPDX-License-Identifier: Apache-2.0
#include "kernel/types_internal.h"

#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util/vec.h"

/* More than any kernel has: those of today's distributions have 7 MiB. */
#define BYTES_MAX (256u << 20)

static int read_all(struct kernel_types *types, int fd)
{
	types->bytes = malloc(types->len);
	if (!types->bytes)
		return -ENOMEM;
	for (size_t done = 0; done < types->len;) {
		ssize_t got = read(fd, types->bytes + done, types->len - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -EBADMSG;
		done += (size_t)got;
	}
	return 0;
}

/* The kernel maps its types since Linux 6.16. */
static int map_or_read(struct kernel_types *types, int fd)
{
	struct stat file;
	void *bytes;

	if (fstat(fd, &file))
		return -errno;
	if (file.st_size < (off_t)sizeof(struct btf_header) || file.st_size > BYTES_MAX)
		return -EBADMSG;
	types->len = (size_t)file.st_size;
	bytes = mmap(NULL, types->len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return read_all(types, fd);
	types->bytes = bytes;
	types->is_mapped = true;
	return 0;
}

static const struct btf_type *type_at(const struct kernel_types *types, __u32 number)
{
	return (const struct btf_type *)(types->bytes + types->offsets[number]);
}

/* Size in bytes of a type with the data after it; 0: unknown kind. */
static size_t type_bytes(const struct btf_type *type)
{
	static const struct {
		unsigned char known, once, each; /* bytes after the type, and for each of vlen */
	} kinds[] = {
		[BTF_KIND_INT] = {1, sizeof(__u32), 0},
		[BTF_KIND_PTR] = {1, 0, 0},
		[BTF_KIND_ARRAY] = {1, sizeof(struct btf_array), 0},
		[BTF_KIND_STRUCT] = {1, 0, sizeof(struct btf_member)},
		[BTF_KIND_UNION] = {1, 0, sizeof(struct btf_member)},
		[BTF_KIND_ENUM] = {1, 0, sizeof(struct btf_enum)},
		[BTF_KIND_FWD] = {1, 0, 0},
		[BTF_KIND_TYPEDEF] = {1, 0, 0},
		[BTF_KIND_VOLATILE] = {1, 0, 0},
		[BTF_KIND_CONST] = {1, 0, 0},
		[BTF_KIND_RESTRICT] = {1, 0, 0},
		[BTF_KIND_FUNC] = {1, 0, 0},
		[BTF_KIND_FUNC_PROTO] = {1, 0, sizeof(struct btf_param)},
		[BTF_KIND_VAR] = {1, sizeof(struct btf_var), 0},
		[BTF_KIND_DATASEC] = {1, 0, sizeof(struct btf_var_secinfo)},
		[BTF_KIND_FLOAT] = {1, 0, 0},
		[BTF_KIND_DECL_TAG] = {1, sizeof(struct btf_decl_tag), 0},
		[BTF_KIND_TYPE_TAG] = {1, 0, 0},
		[BTF_KIND_ENUM64] = {1, 0, sizeof(struct btf_enum64)},
	};
	__u16 kind = btf_kind(type);

	if (kind >= sizeof(kinds) / sizeof(kinds[0]) || !kinds[kind].known)
		return 0;
	return sizeof(*type) + kinds[kind].once + (size_t)kinds[kind].each * btf_vlen(type);
}

static int types_find(struct kernel_types *types, size_t at, size_t end)
{
	types->offsets = malloc((1 + (end - at) / sizeof(struct btf_type)) * sizeof(__u32));
	if (!types->offsets)
		return -ENOMEM;
	for (types->count = 1; at < end; types->count++) {
		size_t bytes = end - at < sizeof(struct btf_type)
				       ? 0
				       : type_bytes((const struct btf_type *)(types->bytes + at));

		if (!bytes || bytes > end - at)
			return -EBADMSG;
		types->offsets[types->count] = (__u32)at;
		at += bytes;
	}
	return 0;
}

static int sections_find(struct kernel_types *types)
{
	const struct btf_header *header = (const struct btf_header *)types->bytes;
	uint64_t at = (uint64_t)header->hdr_len + header->type_off;
	uint64_t names = (uint64_t)header->hdr_len + header->str_off;

	if (header->magic != BTF_MAGIC || at % sizeof(__u32) || at > types->len ||
	    header->type_len > types->len - at || names > types->len ||
	    header->str_len > types->len - names || !header->str_len ||
	    types->bytes[names + header->str_len - 1])
		return -EBADMSG;
	types->names = (const char *)types->bytes + names;
	types->names_len = header->str_len;
	return types_find(types, at, at + header->type_len);
}

int kernel_types_open(struct kernel_types *types, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), result;

	*types = (struct kernel_types){0};
	if (fd < 0)
		return -errno;
	result = map_or_read(types, fd) ?: sections_find(types);
	close(fd);
	if (result)
		kernel_types_close(types);
	return result;
}

void kernel_types_close(struct kernel_types *types)
{
	if (types->is_mapped)
		munmap(types->bytes, types->len);
	else
		free(types->bytes);
	free(types->offsets);
	*types = (struct kernel_types){0};
}

static const char *name_of(const struct kernel_types *types, __u32 offset)
{
	return offset < types->names_len ? types->names + offset : "";
}

bool kernel_types_has(const struct kernel_types *types, const char *name)
{
	size_t len = strlen(name) + 1; /* with the zero byte that ends it */
	const char *at = types->names, *end = at ? at + types->names_len : NULL;

	while (at && (at = memmem(at, (size_t)(end - at), name, len))) {
		if (at > types->names && !at[-1])
			return true;
		at++;
	}
	return false;
}

__u32 kernel_types_struct(const struct kernel_types *types, const char *name)
{
	for (__u32 i = 1; i < types->count; i++)
		if (btf_is_struct(type_at(types, i)) &&
		    !strcmp(name_of(types, type_at(types, i)->name_off), name))
			return i;
	return 0;
}

/* A name without the suffix of another version of the same type: rq___old is rq. */
struct stem {
	const char *text;
	size_t len;
};

struct excerpt {
	const struct kernel_types *from;
	__u32 *numbers;   /* in the excerpt, by number in `from`; 0: not taken */
	VEC(__u32) taken; /* numbers in `from`, in the order of the excerpt */
	VEC(struct stem) wanted;
	VEC(unsigned char) types;
	VEC(char) names;
};

static struct stem stem_of(const char *name)
{
	const char *end = strstr(name, "___");

	return (struct stem){name, end && end > name ? (size_t)(end - name) : strlen(name)};
}

static int stem_compare(const void *a, const void *b)
{
	const struct stem *left = a, *right = b;
	int order =
		memcmp(left->text, right->text, left->len < right->len ? left->len : right->len);

	return order ?: (left->len > right->len) - (left->len < right->len);
}

static bool can_be_wanted(const struct btf_type *type)
{
	return type->name_off &&
	       (btf_is_composite(type) || btf_is_any_enum(type) || btf_is_typedef(type));
}

static bool want_all(struct excerpt *made, const struct btf *programs)
{
	for (__u32 i = 1; i < btf__type_cnt(programs); i++) {
		const struct btf_type *type = btf__type_by_id(programs, i);

		if (can_be_wanted(type) &&
		    !vec_push(&made->wanted,
			      stem_of(btf__name_by_offset(programs, type->name_off))))
			return false;
	}
	if (made->wanted.len)
		qsort(made->wanted.data, made->wanted.len, sizeof(made->wanted.data[0]),
		      stem_compare);
	return true;
}

static bool is_wanted(const struct excerpt *made, const struct btf_type *type)
{
	struct stem stem;

	if (!can_be_wanted(type) || !made->wanted.len)
		return false;
	stem = stem_of(name_of(made->from, type->name_off));
	return bsearch(&stem, made->wanted.data, made->wanted.len, sizeof(stem), stem_compare);
}

/* Replaces a type's number in the kernel by its number in the excerpt, where it gets one. */
static bool take(struct excerpt *made, __u32 *number)
{
	__u32 from = *number;

	if (!from || from >= made->from->count) {
		*number = 0;
		return true;
	}
	if (!made->numbers[from] && !vec_push(&made->taken, from))
		return false;
	if (!made->numbers[from])
		made->numbers[from] = (__u32)made->taken.len;
	*number = made->numbers[from];
	return true;
}

static bool name_copy(struct excerpt *made, __u32 *offset)
{
	const char *name = name_of(made->from, *offset);
	size_t bytes = strlen(name) + 1;

	*offset = 0;
	if (bytes == 1)
		return true;
	if (!vec_reserve(&made->names, bytes))
		return false;
	*offset = (__u32)made->names.len;
	memcpy(made->names.data + made->names.len, name, bytes);
	made->names.len += bytes;
	return true;
}

static bool members_copy(struct excerpt *made, struct btf_type *type)
{
	struct btf_member *members = btf_members(type);

	for (__u16 i = 0; i < btf_vlen(type); i++)
		if (!name_copy(made, &members[i].name_off) || !take(made, &members[i].type))
			return false;
	return true;
}

static bool values_copy(struct excerpt *made, struct btf_type *type)
{
	for (__u16 i = 0; i < btf_vlen(type); i++)
		if (!name_copy(made, btf_is_enum(type) ? &btf_enum(type)[i].name_off
						       : &btf_enum64(type)[i].name_off))
			return false;
	return true;
}

/* Adds to the excerpt what a copied type names and embeds. */
static bool adapt(struct excerpt *made, struct btf_type *type)
{
	if (!name_copy(made, &type->name_off))
		return false;
	switch (btf_kind(type)) {
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return members_copy(made, type);
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		return values_copy(made, type);
	case BTF_KIND_ARRAY:
		return take(made, &btf_array(type)->type) &&
		       take(made, &btf_array(type)->index_type);
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_CONST:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		return take(made, &type->type);
	case BTF_KIND_PTR:
		type->type = 0;
		return true;
	default:
		return true;
	}
}

static bool type_copy(struct excerpt *made, __u32 number)
{
	const struct btf_type *type = type_at(made->from, number);
	size_t bytes = type_bytes(type), at = made->types.len;

	if (!vec_reserve(&made->types, bytes))
		return false;
	memcpy(made->types.data + at, type, bytes);
	made->types.len += bytes;
	return adapt(made, (struct btf_type *)(made->types.data + at));
}

/* All wanted types, then what they embed. */
static bool copy_all(struct excerpt *made)
{
	for (__u32 i = 1; i < made->from->count; i++) {
		__u32 number = i;

		if (is_wanted(made, type_at(made->from, i)) && !take(made, &number))
			return false;
	}
	for (size_t i = 0; i < made->taken.len; i++)
		if (!type_copy(made, made->taken.data[i]))
			return false;
	return true;
}

static int excerpt_write(const struct excerpt *made, int fd)
{
	struct btf_header header = {.magic = BTF_MAGIC,
				    .version = BTF_VERSION,
				    .hdr_len = sizeof(header),
				    .type_len = (__u32)made->types.len,
				    .str_off = (__u32)made->types.len,
				    .str_len = (__u32)made->names.len};
	const struct iovec parts[] = {{&header, sizeof(header)},
				      {made->types.data, made->types.len},
				      {made->names.data, made->names.len}};
	ssize_t written = writev(fd, parts, 3);

	if (written < 0)
		return -errno;
	return (size_t)written == sizeof(header) + made->types.len + made->names.len ? 0 : -ENOSPC;
}

int kernel_types_excerpt(const struct kernel_types *types, const struct btf *programs, int fd)
{
	struct excerpt made = {.from = types};
	int result = -ENOMEM;

	made.numbers = calloc(types->count, sizeof(*made.numbers));
	if (made.numbers && vec_push(&made.names, '\0') && want_all(&made, programs) &&
	    copy_all(&made))
		result = excerpt_write(&made, fd);
	free(made.numbers);
	vec_free(&made.taken);
	vec_free(&made.wanted);
	vec_free(&made.types);
	vec_free(&made.names);
	return result;
}
