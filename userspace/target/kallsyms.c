// SPDX-License-Identifier: Apache-2.0
#include "target/kallsyms.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/symtab.h"
#include "util/vec.h"

#define DEFAULT_PATH "/proc/kallsyms"

struct entry {
	uint64_t address;
	const char *name, *module; /* in text */
	uint32_t rank;             /* of symbols at one address, the one to show has the highest */
};

struct kallsyms {
	char *text; /* the file, cut into strings */
	VEC(struct entry) list;
};

/* The table does not tell where a function ends but for the next one: so far the last before a gap
 * (a module's, the kernel's) may reach. */
#define REACH_MAX ((uint64_t)1 << 20)

static int digit_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* Up to sixteen digits and a blank; NULL: not so. */
static char *parse_address(char *at, uint64_t *address)
{
	unsigned digits = 0;
	int value;

	for (*address = 0; digits < 16 && (value = digit_value(*at)) >= 0; at++, digits++)
		*address = *address << 4 | (uint64_t)value;
	return digits && *at == ' ' ? at + 1 : NULL;
}

/* Cuts "name\t[module]" in two; the module's name is empty if there is none. */
static const char *cut_module(char *name)
{
	char *tab = strchr(name, '\t'), *end;

	if (!tab)
		return "";
	*tab = '\0';
	end = strrchr(tab + 1, ']');
	if (tab[1] != '[' || !end)
		return "";
	*end = '\0';
	return tab + 2;
}

/* Functions: t local, T global, w and W weak (nm(1)). */
static const char function_types[] = "wWtT";

static uint32_t entry_rank(char type, const char *name)
{
	unsigned underscores = symbol_underscores(name);

	return (8 - (underscores < 8 ? underscores : 8)) * 4 +
	       (uint32_t)(strchr(function_types, type) - function_types);
}

/* Takes a line that ends with a NUL. *seen counts functions, also those at address 0. */
static bool parse_line(struct kallsyms *kallsyms, char *line, size_t *seen)
{
	struct entry entry;
	char *at = parse_address(line, &entry.address);
	char type;

	if (!at || !at[0] || !strchr(function_types, at[0]) || at[1] != ' ' || !at[2])
		return true;
	type = at[0];
	++*seen;
	if (!entry.address)
		return true;
	entry.name = at + 2;
	entry.module = cut_module(at + 2);
	entry.rank = entry_rank(type, entry.name);
	return vec_push(&kallsyms->list, entry);
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	if (left->address != right->address)
		return left->address < right->address ? -1 : 1;
	if (left->rank != right->rank)
		return left->rank > right->rank ? -1 : 1;
	return left->name < right->name ? -1 : left->name > right->name;
}

static void sort_entries(struct kallsyms *kallsyms)
{
	struct entry *list = kallsyms->list.data;
	size_t kept = 0;

	qsort(list, kallsyms->list.len, sizeof(*list), compare_entries);
	for (size_t i = 0; i < kallsyms->list.len; i++)
		if (!kept || list[kept - 1].address != list[i].address)
			list[kept++] = list[i];
	kallsyms->list.len = kept;
}

/* `text` has room for a NUL at `size`, and belongs to the table from then on. */
static int parse_text(struct kallsyms **result, char *text, size_t size, struct error *err)
{
	struct kallsyms *kallsyms = calloc(1, sizeof(*kallsyms));
	char *line = text, *end = text + size;
	size_t seen = 0;
	bool ok = kallsyms != NULL;

	*result = NULL;
	*end = '\0';
	while (ok && line < end) {
		char *newline = memchr(line, '\n', (size_t)(end - line));

		if (!newline)
			newline = end;
		*newline = '\0';
		ok = parse_line(kallsyms, line, &seen);
		line = newline + 1;
	}
	if (!kallsyms) {
		free(text);
		return error_set(err, ENOMEM, "kernel symbols: out of memory");
	}
	kallsyms->text = text;
	if (ok && kallsyms->list.len) {
		sort_entries(kallsyms);
		*result = kallsyms;
		return 0;
	}
	kallsyms_free(kallsyms);
	if (!ok)
		return error_set(err, ENOMEM, "kernel symbols: out of memory");
	if (seen)
		return error_set(err, EPERM,
				 "kernel symbols: the kernel hides its addresses; run as root, and "
				 "with kernel.kptr_restrict below 2 (sysctl)");
	return error_set(err, ENODATA, "kernel symbols: no functions in the list");
}

int kallsyms_parse(struct kallsyms **kallsyms, const char *text, size_t size, struct error *err)
{
	char *copy = malloc(size + 1);

	*kallsyms = NULL;
	if (!copy)
		return error_set(err, ENOMEM, "kernel symbols: out of memory");
	if (size)
		memcpy(copy, text, size);
	return parse_text(kallsyms, copy, size, err);
}

/* The file of the kernel has no size. One byte is left for a NUL. */
static int read_all(int fd, char **result, size_t *len)
{
	VEC(char) text = {0};
	ssize_t got = 1;

	while (got > 0) {
		if (!vec_reserve(&text, (1 << 16) + 1)) {
			vec_free(&text);
			return -ENOMEM;
		}
		got = read(fd, text.data + text.len, text.cap - text.len - 1);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got > 0)
			text.len += (size_t)got;
	}
	if (got < 0) {
		int code = errno;

		vec_free(&text);
		return -code;
	}
	*result = text.data;
	*len = text.len;
	return 0;
}

int kallsyms_read(struct kallsyms **kallsyms, const char *path, struct error *err)
{
	const char *name = path ? path : DEFAULT_PATH;
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	char *text = NULL;
	size_t len = 0;
	int result;

	*kallsyms = NULL;
	if (fd < 0)
		return error_set(err, errno, "kernel symbols: cannot open %s: %s", name,
				 strerror(errno));
	result = read_all(fd, &text, &len);
	close(fd);
	if (result)
		return error_set(err, -result, "kernel symbols: cannot read %s: %s", name,
				 strerror(-result));
	return parse_text(kallsyms, text, len, err);
}

void kallsyms_free(struct kallsyms *kallsyms)
{
	if (!kallsyms)
		return;
	vec_free(&kallsyms->list);
	free(kallsyms->text);
	free(kallsyms);
}

size_t kallsyms_count(const struct kallsyms *kallsyms)
{
	return kallsyms ? kallsyms->list.len : 0;
}

bool kallsyms_find(const struct kallsyms *kallsyms, uint64_t address, struct kernel_symbol *symbol)
{
	const struct entry *list = kallsyms ? kallsyms->list.data : NULL;
	size_t low = 0, high = kallsyms_count(kallsyms);

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - list[low - 1].address >= REACH_MAX)
		return false;
	*symbol = (struct kernel_symbol){
		.name = list[low - 1].name,
		.module = list[low - 1].module,
		.offset = address - list[low - 1].address,
	};
	return true;
}
