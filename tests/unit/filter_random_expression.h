/* SPDX-License-Identifier: Apache-2.0 */
/* Random expressions for the differential test, using the site and the pools of a world. */
#ifndef WAFFLE_TESTS_FILTER_RANDOM_EXPRESSION_H
#define WAFFLE_TESTS_FILTER_RANDOM_EXPRESSION_H

#include <stdarg.h>

#include "filter_random.h"

__attribute__((format(printf, 2, 3))) static inline void put(struct world *world,
							     const char *format, ...)
{
	va_list args;

	va_start(args, format);
	world->source_len +=
		(size_t)vsnprintf(world->source + world->source_len,
				  sizeof(world->source) - world->source_len, format, args);
	va_end(args);
}

static inline void put_text_byte(struct world *world, unsigned char byte)
{
	byte = byte ? byte : 'c'; /* no text in an expression contains a NUL */
	if (byte == '"' || byte == '\\')
		put(world, "\\%c", byte);
	else if (byte < 0x20 || byte >= 0x7f)
		put(world, "\\x%02x", byte);
	else
		put(world, "%c", byte);
}

static inline void put_text(struct world *world, const struct random_text *text)
{
	bool change = percent(world, 15);

	put(world, "\"");
	for (unsigned i = 0; i < text->len; i++)
		put_text_byte(world,
			      change && percent(world, 10) ? 'c' : (unsigned char)text->bytes[i]);
	put(world, "\"");
}

/* Writes one byte in pattern syntax, at most 5 bytes. */
static inline unsigned put_pattern_byte(struct world *world, unsigned char byte, unsigned strange)
{
	if (!percent(world, strange)) {
		if (!byte || !strchr("*?[\\", byte)) {
			put_text_byte(world, byte);
			return 1;
		}
		put_text_byte(world, '\\');
		put_text_byte(world, byte);
		return 2;
	}
	switch (below(world, 5)) {
	case 0:
		put(world, "[a-b]");
		return 5;
	case 1:
		put(world, "[!c]");
		return 4;
	case 2:
		put(world, "[ac.]");
		return 5;
	default:
		put(world, "?");
		return 1;
	}
}

/* Writes a text with parts replaced by stars. */
static inline void put_pattern(struct world *world, const struct random_text *text)
{
	unsigned stars = below(world, 4), strange = percent(world, 40) ? 20 : 1;
	unsigned each = stars ? 100 * stars / (text->len + 1) : 0;
	unsigned len = 0;

	put(world, "\"");
	if (stars && percent(world, 60))
		put(world, "*"), len++;
	for (unsigned i = 0; i < text->len && len < 240; i++) {
		if (percent(world, each)) {
			put(world, "*");
			len++;
			i += below(world, percent(world, 50) ? 3 : text->len);
			continue;
		}
		len += put_pattern_byte(world, (unsigned char)text->bytes[i], strange);
	}
	if (len >= 240 || (stars && percent(world, 60)))
		put(world, "*");
	put(world, "\"");
}

static inline void put_text_test(struct world *world, const struct random_text *pool)
{
	unsigned count;

	switch (below(world, 6)) {
	case 0:
		put(world, " == ");
		put_text(world, &pool[below(world, POOL)]);
		return;
	case 1:
		put(world, " != ");
		put_text(world, &pool[below(world, POOL)]);
		return;
	case 2:
		count = percent(world, 90) ? 1 + below(world, 4) : 20;
		put(world, " in {");
		for (unsigned i = 0; i < count; i++) {
			put(world, i ? ", " : "");
			put_text(world, &pool[below(world, POOL)]);
		}
		put(world, "}");
		return;
	default:
		put(world, percent(world, 65) ? " ~ " : " !~ ");
		put_pattern(world, &pool[below(world, POOL)]);
		return;
	}
}

static inline void put_number_test(struct world *world, const char *(*literal)(struct world *world))
{
	static const char *const ops[] = {"==", "!=", "<", "<=", ">", ">="};
	unsigned op = below(world, 7);

	if (op < 6) {
		put(world, " %s ", ops[op]);
		put(world, "%s", literal(world));
		return;
	}
	put(world, " in {");
	for (unsigned i = 0, count = 1 + below(world, 4); i < count; i++) {
		put(world, i ? ", " : "");
		put(world, "%s", literal(world));
	}
	put(world, "}");
}

static inline const char *number_literal(struct world *world)
{
	return percent(world, 80) ? world->numbers[below(world, POOL)]
				  : random_numbers[below(world, 4)];
}

static inline const char *small_literal(struct world *world)
{
	static const char *const small[] = {"0", "1", "2", "3", "4"};

	return small[below(world, 5)];
}

static inline const char *print_literal(uint64_t value)
{
	static _Thread_local char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return text;
}

static inline const char *pid_literal(struct world *world)
{
	return print_literal(world->pid + below(world, 3) - 1);
}

static inline const char *tid_literal(struct world *world)
{
	return print_literal(world->tid + below(world, 3) - 1);
}

static inline const char *cpu_literal(struct world *world)
{
	return print_literal(below(world, world->cpu + 2));
}

static inline const char *dur_literal(struct world *world)
{
	return print_literal(world->durations[below(world, POOL)]);
}

static inline const char *line_literal(struct world *world)
{
	return print_literal(9 + below(world, 5));
}

static inline void put_bool_test(struct world *world)
{
	put(world, " %s %s",
	    percent(world, 50) ? "==" : "!=", percent(world, 50) ? "true" : "false");
}

static inline void put_key(struct world *world)
{
	const struct site_key *key = &world->site.keys[below(world, world->site.key_count)];
	char type = percent(world, 95) ? key->type : "is"[below(world, 2)];

	if (percent(world, 2))
		put(world, "kv.missing");
	else
		put(world, "kv.%s", key->name);
	if (type == WAFFLE_KEY_STR)
		put_text_test(world, world->texts);
	else if (type == WAFFLE_KEY_BOOL && percent(world, 60))
		put_bool_test(world);
	else
		put_number_test(world, number_literal);
}

static inline void put_name_test(struct world *world, const char *const *names, unsigned count)
{
	static const char *const ops[] = {"==", "!=", "~", "!~"};
	struct random_text text;
	const char *name = names[below(world, count)];
	unsigned op = below(world, 5);

	if (op == 4) {
		put(world, " in {\"%s\", \"%s\"}", name, names[below(world, count)]);
		return;
	}
	put(world, " %s ", ops[op]);
	text.len = (unsigned)strlen(name);
	memcpy(text.bytes, name, text.len);
	if (op < 2)
		put(world, "\"%s\"", name);
	else
		put_pattern(world, &text);
}

static inline void put_static(struct world *world)
{
	static const char *const kinds[] = {"span", "event", "counter", "log", "sched"};
	static const char *const others[] = {"",     "net", "src/a.c", "a.c",      "b.c",
					     "main", "run", "libx.so", "/bin/prog"};
	const struct site_info *site = &world->site;
	const struct {
		const char *field, *value;
	} fields[] = {{"name", site->name},
		      {"category", site->category},
		      {"file", site->file},
		      {"func", site->func},
		      {"lib", site->object}};
	unsigned pick = below(world, 8);

	if (pick == 6) {
		put(world, "kind %s %s", percent(world, 30) ? "==" : "!=", kinds[below(world, 5)]);
	} else if (pick == 7) {
		put(world, "line");
		put_number_test(world, line_literal);
	} else {
		pick = pick == 5 ? 0 : pick;
		put(world, "%s", fields[pick].field);
		if (percent(world, 50))
			put_name_test(world, &fields[pick].value, 1);
		else
			put_name_test(world, pick ? others : random_names, pick ? 9 : NAME_COUNT);
	}
}

static inline void put_predicate(struct world *world)
{
	static const struct {
		const char *field;
		const char *(*literal)(struct world *world);
	} numbers[] = {
		{"pid", pid_literal}, {"tid", tid_literal},     {"cpu", cpu_literal},
		{"dur", dur_literal}, {"depth", small_literal},
	};
	unsigned pick = below(world, 100);

	world->predicates++;
	if (pick < 45) {
		put_key(world);
	} else if (pick < 77) {
		pick = pick < 50 ? 0 : pick < 55 ? 1 : pick < 60 ? 2 : pick < 71 ? 3 : 4;
		put(world, "%s", numbers[pick].field);
		put_number_test(world, numbers[pick].literal);
	} else if (pick < 85) {
		put(world, "comm");
		put_text_test(world, world->comms);
	} else if (pick < 92) {
		put(world, "parent.name");
		put_name_test(world, random_names, NAME_COUNT);
	} else if (pick < 98) {
		put_static(world);
	} else {
		world->predicates--;
		put(world, "sample(%u/4)", 1 + below(world, 4));
	}
}

static inline void put_expression(struct world *world, unsigned depth)
{
	unsigned count, pick = below(world, 10);
	const char *op = pick < 6 ? " && " : " || ";

	if (!depth || pick == 0 || world->predicates > FILTER_PREDICATES_MAX - 16 ||
	    world->source_len > FILTER_SOURCE_MAX - 4096) {
		put_predicate(world);
		return;
	}
	if (pick == 9) {
		put(world, "!(");
		put_expression(world, depth - 1);
		put(world, ")");
		return;
	}
	count = 2 + below(world, 2);
	put(world, "(");
	for (unsigned i = 0; i < count; i++) {
		put(world, "%s", i ? op : "");
		put_expression(world, depth - 1);
	}
	put(world, ")");
}

static inline void expression_make(struct world *world)
{
	unsigned depth = percent(world, 90) ? below(world, 4) : 5;

	world->source_len = world->predicates = 0;
	put_expression(world, depth);
}

#endif
