// SPDX-License-Identifier: Apache-2.0
#include "target/elf/demangle_rust_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"

/* A backward reference repeats a part of the name, and parts of parts grow without end. */
#define DEPTH_MAX 64
#define STEPS_MAX 65536
#define LIFETIMES_MAX 26 /* 'a to 'z */

struct rust_name {
	const char *text; /* behind "_R" */
	size_t at, len;
	char *out;
	size_t out_len, out_size;
	unsigned depth, steps;
	uint64_t lifetimes; /* bound by the binders around */
	bool quiet;         /* what is read is not printed */
	bool bad;
};

static void path_print(struct rust_name *name, bool value);
static void type_print(struct rust_name *name);

static char peek(const struct rust_name *name)
{
	return !name->bad && name->at < name->len ? name->text[name->at] : '\0';
}

static char next(struct rust_name *name)
{
	char c = peek(name);

	if (c)
		name->at++;
	else
		name->bad = true;
	return c;
}

static bool eat(struct rust_name *name, char c)
{
	if (peek(name) != c)
		return false;
	name->at++;
	return true;
}

static void put_bytes(struct rust_name *name, const char *text, size_t len)
{
	if (name->bad || name->quiet)
		return;
	if (len >= name->out_size - name->out_len) {
		name->bad = true;
		return;
	}
	memcpy(name->out + name->out_len, text, len);
	name->out_len += len;
}

static void put(struct rust_name *name, const char *text)
{
	put_bytes(name, text, strlen(text));
}

static void put_number(struct rust_name *name, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	put(name, text);
}

/* Bounds what follows. Each true needs a leave(). */
static bool enter(struct rust_name *name)
{
	if (++name->depth > DEPTH_MAX || ++name->steps > STEPS_MAX)
		name->bad = true;
	return !name->bad;
}

static void leave(struct rust_name *name)
{
	name->depth--;
}

/* ---- numbers and identifiers ---- */

static uint64_t base_62(struct rust_name *name)
{
	uint64_t number = 0;

	if (eat(name, '_'))
		return 0;
	while (!eat(name, '_')) {
		char c = next(name);
		unsigned digit = isdigit((unsigned char)c)   ? (unsigned)(c - '0')
				 : islower((unsigned char)c) ? (unsigned)(c - 'a') + 10
							     : (unsigned)(c - 'A') + 36;

		if (name->bad || !isalnum((unsigned char)c) || number > UINT64_MAX / 62 - 1) {
			name->bad = true;
			return 0;
		}
		number = number * 62 + digit;
	}
	return number + 1;
}

/* A number that a letter announces; without it 0. */
static uint64_t base_62_after(struct rust_name *name, char letter)
{
	return eat(name, letter) ? base_62(name) + 1 : 0;
}

struct rust_identifier {
	const char *text;
	size_t len;
	bool punycode;
};

static struct rust_identifier identifier(struct rust_name *name)
{
	struct rust_identifier of = {.punycode = eat(name, 'u')};
	size_t len = 0;

	if (!isdigit((unsigned char)peek(name)))
		name->bad = true;
	else if (!eat(name, '0'))
		while (isdigit((unsigned char)peek(name)) && len < name->len)
			len = len * 10 + (size_t)(next(name) - '0');
	eat(name, '_');
	if (name->bad || len > name->len - name->at) {
		name->bad = true;
		return of;
	}
	of.text = name->text + name->at;
	of.len = len;
	name->at += len;
	return of;
}

static void put_identifier(struct rust_name *name, const struct rust_identifier *of)
{
	put(name, of->punycode ? "punycode{" : "");
	put_bytes(name, of->text, of->len);
	put(name, of->punycode ? "}" : "");
}

/* ---- backward references, lists, lifetimes ---- */

/* Prints what an earlier place has. The place is before the reference, so there are no circles. */
static void back_print(struct rust_name *name, void (*print)(struct rust_name *name))
{
	size_t before = name->at - 1, after;
	uint64_t to = base_62(name);

	if (to >= before)
		name->bad = true;
	if (name->bad || name->quiet)
		return;
	after = name->at;
	name->at = (size_t)to;
	print(name);
	name->at = after;
}

static unsigned list_print(struct rust_name *name, void (*print)(struct rust_name *name))
{
	unsigned count = 0;

	while (!name->bad && !eat(name, 'E')) {
		put(name, count++ ? ", " : "");
		print(name);
	}
	return count;
}

static void lifetime_put(struct rust_name *name, uint64_t index)
{
	char text[] = "'a";

	if (!index) {
		put(name, "'_");
		return;
	}
	if (index > name->lifetimes || name->lifetimes - index >= LIFETIMES_MAX) {
		name->bad = true;
		return;
	}
	text[1] = (char)('a' + name->lifetimes - index);
	put(name, text);
}

/* Prints "for<'a> "; returns how many lifetimes it binds. */
static uint64_t binder_print(struct rust_name *name)
{
	uint64_t count = base_62_after(name, 'G');

	if (count > LIFETIMES_MAX || name->lifetimes + count > LIFETIMES_MAX) {
		name->bad = true;
		return 0;
	}
	put(name, count ? "for<" : "");
	for (uint64_t i = 0; i < count; i++) {
		put(name, i ? ", " : "");
		name->lifetimes++;
		lifetime_put(name, 1);
	}
	put(name, count ? "> " : "");
	return count;
}

/* ---- constants ---- */

/* Prints 'a', '\n', or '\u{2764}' beyond ASCII. */
static void character_put(struct rust_name *name, uint64_t number)
{
	static const char named[] = "\tt\rr\nn\'\'\\\\";
	char text[20];

	if (number > 0x10ffff || (number >= 0xd800 && number < 0xe000)) {
		name->bad = true;
		return;
	}
	snprintf(text, sizeof(text), "'\\u{%" PRIx64 "}'", number);
	if (number >= ' ' && number < 0x7f)
		snprintf(text, sizeof(text), "'%c'", (char)number);
	if (!number)
		snprintf(text, sizeof(text), "'\\0'");
	for (size_t i = 0; named[i]; i += 2)
		if (number == (uint64_t)named[i])
			snprintf(text, sizeof(text), "'\\%c'", named[i + 1]);
	put(name, text);
}

static bool is_hex(char c)
{
	return isdigit((unsigned char)c) || (c >= 'a' && c <= 'f');
}

#define SIGNED_TYPES "asilxn"

static void hex_print(struct rust_name *name, char type)
{
	bool negative = eat(name, 'n');
	const char *digits = name->text + name->at;
	uint64_t number = 0;
	size_t len = 0;

	for (; is_hex(peek(name)); len++) {
		char c = next(name);

		number = number << 4 |
			 (uint64_t)(isdigit((unsigned char)c) ? c - '0' : c - 'a' + 10);
	}
	if (!eat(name, '_') || (negative && !strchr(SIGNED_TYPES, type)) ||
	    (strchr("bc", type) && len > 16) || (type == 'b' && number > 1))
		name->bad = true;
	put(name, negative ? "-" : "");
	if (type == 'b') {
		put(name, number ? "true" : "false");
	} else if (type == 'c') {
		character_put(name, number);
	} else if (len > 16) {
		put(name, "0x");
		put_bytes(name, digits, len);
	} else {
		put_number(name, number);
	}
}

static void constant_print(struct rust_name *name)
{
	char type;

	if (!enter(name))
		return;
	type = next(name);
	if (type == 'p')
		put(name, "_");
	else if (type == 'B')
		back_print(name, constant_print);
	else if (type && strchr("bchilmnoxstjya", type))
		hex_print(name, type);
	else
		name->bad = true;
	leave(name);
}

/* ---- types ---- */

static const char *basic_type(char c)
{
	static const char *const types[26] = {"i8",   "bool",  "char",  "f64", "str", "f32", NULL,
					      "u8",   "isize", "usize", NULL,  "i32", "u32", "i128",
					      "u128", "_",     NULL,    NULL,  "i16", "u16", "()",
					      "...",  NULL,    "i64",   "u64", "!"};

	return c >= 'a' && c <= 'z' ? types[c - 'a'] : NULL;
}

static void generic_print(struct rust_name *name)
{
	if (eat(name, 'L'))
		lifetime_put(name, base_62(name));
	else if (eat(name, 'K'))
		constant_print(name);
	else
		type_print(name);
}

static void abi_print(struct rust_name *name)
{
	struct rust_identifier abi;

	if (!eat(name, 'K'))
		return;
	put(name, "extern \"");
	if (eat(name, 'C')) {
		put(name, "C");
	} else {
		abi = identifier(name);
		for (size_t i = 0; i < abi.len; i++)
			put_bytes(name, abi.text[i] == '_' ? "-" : &abi.text[i], 1);
	}
	put(name, "\" ");
}

static void function_print(struct rust_name *name)
{
	uint64_t bound = binder_print(name);

	put(name, eat(name, 'U') ? "unsafe " : "");
	abi_print(name);
	put(name, "fn(");
	list_print(name, type_print);
	put(name, ")");
	if (!eat(name, 'u')) {
		put(name, " -> ");
		type_print(name);
	}
	name->lifetimes -= bound;
}

/* Prints a path, without the end of its list of generics. Returns whether there is one to end. */
static bool path_open_print(struct rust_name *name)
{
	size_t before, after;
	uint64_t to;
	bool open;

	if (eat(name, 'B')) {
		before = name->at - 1;
		to = base_62(name);
		if (to >= before || !enter(name)) {
			name->bad = true;
			return false;
		}
		after = name->at;
		name->at = (size_t)to;
		open = path_open_print(name);
		name->at = after;
		leave(name);
		return open;
	}
	if (!eat(name, 'I')) {
		path_print(name, false);
		return false;
	}
	path_print(name, false);
	put(name, "<");
	list_print(name, generic_print);
	return true;
}

/* Prints "Iterator<Item = u8>". */
static void trait_print(struct rust_name *name)
{
	bool open = path_open_print(name);

	while (eat(name, 'p')) {
		struct rust_identifier of = identifier(name);

		put(name, open ? ", " : "<");
		open = true;
		put_identifier(name, &of);
		put(name, " = ");
		type_print(name);
	}
	put(name, open ? ">" : "");
}

static void dynamic_print(struct rust_name *name)
{
	uint64_t bound, lifetime;

	put(name, "dyn ");
	bound = binder_print(name);
	for (unsigned i = 0; !name->bad && !eat(name, 'E'); i++) {
		put(name, i ? " + " : "");
		trait_print(name);
	}
	name->lifetimes -= bound;
	if (!eat(name, 'L')) {
		name->bad = true;
		return;
	}
	lifetime = base_62(name);
	put(name, lifetime ? " + " : "");
	if (lifetime)
		lifetime_put(name, lifetime);
}

static void reference_print(struct rust_name *name, bool mutable)
{
	uint64_t lifetime;

	put(name, "&");
	if (eat(name, 'L')) {
		lifetime = base_62(name);
		if (lifetime) {
			lifetime_put(name, lifetime);
			put(name, " ");
		}
	}
	put(name, mutable ? "mut " : "");
	type_print(name);
}

static void array_print(struct rust_name *name, bool sized)
{
	put(name, "[");
	type_print(name);
	if (sized) {
		put(name, "; ");
		constant_print(name);
	}
	put(name, "]");
}

static void tuple_print(struct rust_name *name)
{
	put(name, "(");
	put(name, list_print(name, type_print) == 1 ? ",)" : ")");
}

static void type_of(struct rust_name *name, char c)
{
	switch (c) {
	case 'A':
	case 'S':
		array_print(name, c == 'A');
		break;
	case 'T':
		tuple_print(name);
		break;
	case 'R':
	case 'Q':
		reference_print(name, c == 'Q');
		break;
	case 'P':
	case 'O':
		put(name, c == 'P' ? "*const " : "*mut ");
		type_print(name);
		break;
	case 'F':
		function_print(name);
		break;
	case 'D':
		dynamic_print(name);
		break;
	case 'B':
		back_print(name, type_print);
		break;
	default:
		name->at--;
		path_print(name, false);
	}
}

static void type_print(struct rust_name *name)
{
	char c;

	if (!enter(name))
		return;
	c = next(name);
	if (basic_type(c))
		put(name, basic_type(c));
	else if (c)
		type_of(name, c);
	leave(name);
}

/* ---- paths ---- */

static void path_value_print(struct rust_name *name)
{
	path_print(name, true);
}

static void path_type_print(struct rust_name *name)
{
	path_print(name, false);
}

/* Prints "::name" or "::{closure#0}". */
static void nested_print(struct rust_name *name, bool value)
{
	char space = next(name);
	struct rust_identifier of;
	uint64_t number;

	path_print(name, value);
	number = base_62_after(name, 's');
	of = identifier(name);
	if (islower((unsigned char)space)) {
		put(name, of.len ? "::" : "");
		put_identifier(name, &of);
		return;
	}
	put(name, "::{");
	if (space == 'C')
		put(name, "closure");
	else if (space == 'S')
		put(name, "shim");
	else
		put_bytes(name, &space, 1);
	put(name, of.len ? ":" : "");
	put_identifier(name, &of);
	put(name, "#");
	put_number(name, number);
	put(name, "}");
	name->bad |= !isupper((unsigned char)space);
}

/* Reads the path of the `impl`, which the type says better. */
static void impl_skip(struct rust_name *name)
{
	bool quiet = name->quiet;

	name->quiet = true;
	base_62_after(name, 's');
	path_print(name, false);
	name->quiet = quiet;
}

/* Prints "<T as Trait>" or "<T>". */
static void qualified_print(struct rust_name *name, bool impl, bool trait)
{
	if (impl)
		impl_skip(name);
	put(name, "<");
	type_print(name);
	put(name, trait ? " as " : "");
	if (trait)
		path_print(name, false);
	put(name, ">");
}

static void path_of(struct rust_name *name, char c, bool value)
{
	struct rust_identifier crate;

	switch (c) {
	case 'C':
		base_62_after(name, 's');
		crate = identifier(name);
		put_identifier(name, &crate);
		break;
	case 'N':
		nested_print(name, value);
		break;
	case 'M':
	case 'X':
	case 'Y':
		qualified_print(name, c != 'Y', c != 'M');
		break;
	case 'I':
		path_print(name, value);
		put(name, value ? "::<" : "<");
		list_print(name, generic_print);
		put(name, ">");
		break;
	case 'B':
		back_print(name, value ? path_value_print : path_type_print);
		break;
	default:
		name->bad = true;
	}
}

static void path_print(struct rust_name *name, bool value)
{
	if (!enter(name))
		return;
	path_of(name, next(name), value);
	leave(name);
}

/* ---- names ---- */

bool demangle_is_rust(const char *symbol)
{
	return !strncmp(symbol, "_R", 2) && isupper((unsigned char)symbol[2]);
}

/* Prints what the compiler or linker has added, as the demangler of C++ does. */
static void suffix_print(struct rust_name *name, const char *suffix)
{
	if (!*suffix || text_begins(suffix, ".llvm."))
		return;
	put(name, " [clone ");
	put(name, suffix);
	put(name, "]");
}

bool demangle_rust(const char *symbol, char *text, size_t size)
{
	struct rust_name name = {.out = text, .out_size = size};

	if (!demangle_is_rust(symbol) || !size)
		return false;
	name.text = symbol + 2;
	name.len = strcspn(name.text, ".$");
	path_print(&name, true);
	name.quiet = true;
	if (!name.bad && name.at < name.len) /* the crate that made it */
		path_print(&name, false);
	name.quiet = false;
	suffix_print(&name, name.text + name.len);
	if (name.bad || name.at != name.len)
		return false;
	text[name.out_len] = '\0';
	return true;
}
