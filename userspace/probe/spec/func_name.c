// SPDX-License-Identifier: Apache-2.0
#include "probe/spec/func_name.h"

#include <ctype.h>
#include <string.h>

#include "util/suggest.h"

/* Whether [at, at + len) is `word`. */
static bool is_word(const char *at, size_t len, const char *word)
{
	return strlen(word) == len && !memcmp(at, word, len);
}

/* Recognises compilers' suffixes: one for a fragment at any position, one for a clone with a
 * number. */
enum func_part func_part(const char *symbol)
{
	static const char *const fragments[] = {"cold", "__part"};
	static const char *const clones[] = {"part", "isra", "constprop", "_omp_fn", "_omp_cpyfn"};
	enum func_part part = FUNC_WHOLE;

	for (const char *at = strchr(symbol, '.'); at && at != symbol; at = strchr(at, '.')) {
		size_t len = strcspn(++at, "./");
		bool numbered = at[len] == '.' && isdigit((unsigned char)at[len + 1]);

		for (unsigned i = 0; i < sizeof(fragments) / sizeof(fragments[0]); i++)
			if (is_word(at, len, fragments[i]))
				return FUNC_FRAGMENT;
		for (unsigned i = 0; i < sizeof(clones) / sizeof(clones[0]); i++)
			if (numbered && is_word(at, len, clones[i]))
				part = FUNC_CLONE;
	}
	return part;
}

static bool is_identifier(char byte)
{
	return isalnum((unsigned char)byte) || byte == '_' || byte == '$';
}

static bool starts(const char *text, size_t len, const char *with)
{
	return len >= strlen(with) && !memcmp(text, with, strlen(with));
}

/* Length of "operator<" and the like at `at`, whose characters are not brackets. 0: there is
 * none. */
static size_t operator_len(const char *text, size_t at, size_t len)
{
	static const char *const signs[] = {
		"()", "[]", "->*", "->", "<=>", "<<=", ">>=", "<<", ">>", "<=", ">=", "<", ">"};
	size_t word = strlen("operator");

	if ((at && is_identifier(text[at - 1])) || !starts(text + at, len - at, "operator") ||
	    (at + word < len && is_identifier(text[at + word])))
		return 0;
	for (unsigned i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (starts(text + at + word, len - at - word, signs[i]))
			return word + strlen(signs[i]);
	return word;
}

#define DEPTH_MAX 128

/* Position after the bracket that closes the one at `at`; `len` if none does. */
static size_t skip_group(const char *text, size_t at, size_t len)
{
	char open[DEPTH_MAX];
	unsigned depth = 0;

	while (at < len) {
		size_t sign = operator_len(text, at, len);
		char byte = text[at];

		if (sign) {
			at += sign;
			continue;
		}
		at++;
		if (strchr("(<[{", byte)) {
			if (depth == DEPTH_MAX)
				return len;
			open[depth++] = byte;
		} else if (byte == '>') {
			/* Not a bracket: the end of "->", or "greater than". */
			if (at > 1 && text[at - 2] != '-' && depth && open[depth - 1] == '<')
				depth--;
		} else if (strchr(")]}", byte)) {
			while (depth && open[depth - 1] == '<')
				depth--;
			depth -= depth > 0;
		}
		if (!depth)
			return at;
	}
	return len;
}

/* Advances over a group in brackets, an operator or a single byte. */
static size_t step(const char *text, size_t at, size_t len)
{
	size_t sign = operator_len(text, at, len);

	if (sign)
		return at + sign;
	return strchr("(<[{", text[at]) ? skip_group(text, at, len) : at + 1;
}

/* Finds the list of parameters in [from, to). False: there is none. `*inner` is set for a function
 * that returns a pointer to a function: "(*f(int))" before "(char)". */
static bool find_args(const char *text, size_t from, size_t to, size_t args[2], size_t inner[2])
{
	size_t end = 0;
	bool found = false;

	inner[0] = inner[1] = 0;
	for (size_t at = from, next; at < to; at = next) {
		next = step(text, at, to);
		if (text[at] == '(') {
			inner[0] = found && end == at ? args[0] : 0;
			inner[1] = inner[0] ? args[1] : 0;
			args[0] = at;
			args[1] = end = next;
			found = true;
		} else if (starts(text + at, to - at, "::")) {
			found = false; /* those were the parameters of an enclosing function */
		}
	}
	return found;
}

/* Recognises "f(int) const::g", where the space does not end a return type. */
static bool is_qualifier(const char *text, size_t len)
{
	while (len && *text == ' ') {
		size_t word = 1;

		while (word < len && (is_identifier(text[word]) || text[word] == '&'))
			word++;
		if (!is_word(text, word, " const") && !is_word(text, word, " volatile") &&
		    !is_word(text, word, " &") && !is_word(text, word, " &&"))
			return false;
		text += word;
		len -= word;
	}
	return starts(text, len, "::");
}

/* Where the name begins: after the return type, which only templates have. */
static size_t name_begin(const char *text, size_t from, size_t to)
{
	size_t begin = from;

	for (size_t at = from, next; at < to; at = next) {
		next = step(text, at, to);
		if (operator_len(text, at, to)) {
			/* "operator bool", "operator new"; "operator< <int>" */
			if (next < to && (text[next] == ' ' || text[next] == '"') &&
			    !starts(text + next, to - next, " <"))
				break;
			next += next < to && text[next] == ' ';
		} else if (text[at] == ' ' && !is_qualifier(text + at, to - at)) {
			begin = next;
		}
	}
	return begin;
}

/* Splits a demangled name into its parts. */
static struct func_parts split(const char *text, size_t len)
{
	struct func_parts parts = {.name_to = len, .args_to = len};
	size_t args[2], inner[2];

	while (find_args(text, parts.from, parts.name_to, args, inner) && inner[1]) {
		parts.from = inner[0] + 1;
		while (parts.from < inner[1] - 1 && text[parts.from - 1] != '*' &&
		       text[parts.from - 1] != '&')
			parts.from++;
		parts.name_to = parts.args_to = inner[1] - 1;
	}
	if (find_args(text, parts.from, parts.name_to, args, inner)) {
		parts.name_to = args[0];
		parts.args_to = args[1];
	}
	parts.from = name_begin(text, parts.from, parts.name_to);
	return parts;
}

/* Whether the suffixes of a mangled name only distinguish functions of the same name. */
static bool is_renamed(const char *suffix)
{
	static const char *const renames[] = {"lto_priv", "llvm", "localalias", "__uniq"};

	for (; *suffix == '.'; suffix += strcspn(suffix, ".")) {
		size_t len = strcspn(++suffix, ".");
		bool known = strspn(suffix, "0123456789") == len;

		for (unsigned i = 0; i < sizeof(renames) / sizeof(renames[0]); i++)
			known = known || is_word(suffix, len, renames[i]);
		if (!known)
			return false;
	}
	return true;
}

#define HASH_DIGITS 16
#define HASH_LEN (sizeof("::h") - 1 + HASH_DIGITS)

static bool is_hash(const char *text)
{
	return strspn(text, "0123456789abcdef") >= HASH_DIGITS;
}

/* The end of a legacy mangled name of Rust, whose dots are parts of the name:
 * "…17h0123456789abcdefE". NULL: it is none. Names of version 0, "_R…", are not supported. */
static const char *rust_end(const char *symbol)
{
	const char *end = symbol;

	while ((end = strstr(end, "17h"))) {
		end += strlen("17h");
		if (is_hash(end) && end[HASH_DIGITS] == 'E' &&
		    (!end[HASH_DIGITS + 1] || end[HASH_DIGITS + 1] == '.'))
			return end + HASH_DIGITS + 1;
	}
	return NULL;
}

/* Drops the hash that distinguishes crates, versions and instances, since it is not part of the
 * name. */
static void leave_out_hash(struct func_name *name)
{
	struct func_parts *at = &name->at;
	const char *hash;

	if (at->args_to > at->name_to || at->name_to <= at->from + HASH_LEN)
		return;
	hash = name->whole + at->name_to - HASH_LEN;
	if (strncmp(hash, "::h", 3) != 0 || !is_hash(hash + 3))
		return;
	at->name_to -= HASH_LEN;
	at->args_to = at->name_to;
}

/* The demangler rejects suffixes after a name without parameters, so they are cut. */
static bool read_rust(struct func_name *name, const char *symbol, const char *end)
{
	size_t len = (size_t)(end - symbol);
	char mangled[DEMANGLE_MAX];

	if (len >= sizeof(mangled) || !is_renamed(end))
		return false;
	memcpy(mangled, symbol, len);
	mangled[len] = '\0';
	if (!demangle_as_written(mangled, name->whole))
		return false;
	name->clone = false;
	name->at = split(name->whole, strlen(name->whole));
	leave_out_hash(name);
	return name->at.from < name->at.name_to;
}

bool func_name_read(struct func_name *name, const char *symbol)
{
	const char *note, *end = rust_end(symbol);
	size_t len;

	if (!strncmp(symbol, "_ZT", 3) || !strncmp(symbol, "_ZG", 3))
		return false;
	if (end)
		return read_rust(name, symbol, end);
	if (!demangle_as_written(symbol, name->whole))
		return false;
	name->clone = !is_renamed(symbol + strcspn(symbol, "."));
	note = strstr(name->whole, " [clone ");
	len = note ? (size_t)(note - name->whole) : strlen(name->whole);
	name->at = split(name->whole, len);
	return name->at.from < name->at.name_to;
}

/* Compares without regard to spaces. */
static bool is_same(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t i = 0, k = 0;

	for (;; i++, k++) {
		while (i < a_len && a[i] == ' ')
			i++;
		while (k < b_len && b[k] == ' ')
			k++;
		if (i == a_len || k == b_len)
			return i == a_len && k == b_len;
		if (a[i] != b[k])
			return false;
	}
}

/* Removes text in <…>. */
static size_t without_templates(const char *text, size_t len, char bare[DEMANGLE_MAX])
{
	size_t put = 0;

	for (size_t at = 0, next; at < len; at = next) {
		next = step(text, at, len);
		if (text[at] == '<')
			continue;
		memcpy(bare + put, text + at, next - at);
		put += next - at;
	}
	return put;
}

bool func_name_has_args(const char *pattern)
{
	struct func_parts parts = split(pattern, strlen(pattern));

	return parts.args_to > parts.name_to;
}

bool func_name_is(const struct func_name *name, const char *pattern)
{
	const char *text = name->whole + name->at.from;
	size_t len = strlen(pattern), name_len = name->at.name_to - name->at.from;
	char bare[DEMANGLE_MAX];

	if (is_same(pattern, len, name->whole, strlen(name->whole)) ||
	    is_same(pattern, len, text, strlen(text)))
		return true;
	if (name->clone)
		return false;
	if (func_name_has_args(pattern))
		return is_same(pattern, len, text, name->at.args_to - name->at.from);
	if (is_same(pattern, len, text, name_len))
		return true;
	return !strchr(pattern, '<') && memchr(text, '<', name_len) &&
	       is_same(pattern, len, bare, without_templates(text, name_len, bare));
}

/* The last component of a name without templates: "handle" of "ns::Server<int>::handle". */
static void last_part(const char *text, size_t len, char part[DEMANGLE_MAX])
{
	size_t put = without_templates(text, len, part), from = 0;

	for (size_t at = 0; at < put; at = step(part, at, put))
		if (starts(part + at, put - at, "::"))
			from = at + 2;
	memmove(part, part + from, put - from);
	part[put - from] = '\0';
}

bool func_name_is_similar(const struct func_name *name, const char *pattern)
{
	struct func_parts parts = split(pattern, strlen(pattern));
	char wanted[DEMANGLE_MAX], here[DEMANGLE_MAX];

	last_part(pattern + parts.from, parts.name_to - parts.from, wanted);
	last_part(name->whole + name->at.from, name->at.name_to - name->at.from, here);
	return suggest_similar(wanted, here);
}

size_t func_name_put(const struct func_name *name, bool args, char text[DEMANGLE_MAX])
{
	size_t len = (args ? name->at.args_to : name->at.name_to) - name->at.from;

	memcpy(text, name->whole + name->at.from, len);
	text[len] = '\0';
	return len;
}
