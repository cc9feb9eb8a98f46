// SPDX-License-Identifier: Apache-2.0
#include "filter/plan.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter/split.h"
#include "util/map.h"
#include "util/suggest.h"
#include "util/strtab.h"
#include "util/units.h"

/* A declared key, for warnings about keys that no site declares. */
#define KEY_SITES_MAX 3
struct plan_key {
	uint32_t name;                 /* its number in `names` */
	uint32_t sites[KEY_SITES_MAX]; /* names of the first sites that declare it */
	uint32_t site_count;           /* number of names in `sites` */
	bool more;                     /* more sites declare it */
};

/* For a predicate on a key: whether a site declares the key, and with a type for which the
 * predicate can be true. */
struct plan_asked {
	bool fits, declared;
	char type;     /* if it does not fit: the type declared first … */
	uint32_t site; /* … by this site */
	/* It does not fit at `code_site`, where it is a function address without a name yet. */
	bool code;
	uint32_t code_site;
};

/* The part of a plan that is private to this file. */
struct plan_state {
	struct plan plan; /* must be the first member */
	struct strtab *names;
	struct map key_by_name;
	VEC(struct plan_key) keys;
	struct plan_asked asked[FILTER_PREDICATES_MAX];
	/* The expression asks this of calls, but only a file can answer. */
	bool parents, children, traces;
};

static struct plan_state *state_of(struct plan *plan)
{
	return (struct plan_state *)plan;
}

int plan_open(struct plan **plan, const struct filter_expr *filter, bool keep_children,
	      struct error *err)
{
	struct plan_state *state = calloc(1, sizeof(*state));

	*plan = NULL;
	if (!state)
		return error_set(err, ENOMEM, "filter: out of memory");
	state->names = strtab_new();
	if (!state->names) {
		free(state);
		return error_set(err, ENOMEM, "filter: out of memory");
	}
	state->plan.filter = filter;
	state->plan.keep_children = keep_children;
	state->plan.tracks =
		filter_uses(filter, FILTER_DEPTH) || filter_uses(filter, FILTER_PARENT_NAME);
	state->plan.arms_spans = state->plan.tracks || filter_samples(filter);
	state->plan.is_static = filter_asks_sites_only(filter) && !keep_children;
	*plan = &state->plan;
	return 0;
}

static void class_free(struct plan_class *class)
{
	filter_code_free(&class->hit);
	filter_code_free(&class->end);
	filter_code_free(&class->point);
}

void plan_free(struct plan *plan)
{
	struct plan_state *state = state_of(plan);

	if (!plan)
		return;
	for (size_t i = 0; i < plan->classes.len; i++)
		class_free(&plan->classes.data[i]);
	vec_free(&plan->classes);
	vec_free(&state->keys);
	map_free(&state->key_by_name);
	strtab_free(state->names);
	free(state);
}

/* ---- declared keys ---- */

static bool key_declared(struct plan_state *state, const char *name, uint32_t site)
{
	uint32_t index = strtab_add(state->names, name, strlen(name)), at;
	struct plan_key *key;

	if (index == STRTAB_NONE || site == STRTAB_NONE)
		return false;
	at = map_get(&state->key_by_name, index);
	if (at == MAP_NONE) {
		at = (uint32_t)state->keys.len;
		if (!vec_push(&state->keys, (struct plan_key){.name = index}) ||
		    !map_set(&state->key_by_name, index, at))
			return false;
	}
	key = &state->keys.data[at];
	for (uint32_t i = 0; i < key->site_count; i++)
		if (key->sites[i] == site)
			return true;
	if (key->site_count < KEY_SITES_MAX)
		key->sites[key->site_count++] = site;
	else
		key->more = true;
	return true;
}

static bool site_seen(struct plan_state *state, const struct site_info *site)
{
	const struct filter_expr *filter = state->plan.filter;
	uint32_t name = strtab_add(state->names, site->name, strlen(site->name));
	const struct site_key *key;
	unsigned index;

	for (unsigned i = 0; i < site->key_count && i < WAFFLE_KEYS_MAX; i++)
		if (!key_declared(state, site->keys[i].name, name))
			return false;
	for (size_t i = 0; i < filter->predicates.len && i < FILTER_PREDICATES_MAX; i++) {
		const struct filter_predicate *predicate = &filter->predicates.data[i];
		struct plan_asked *asked = &state->asked[i];

		key = predicate->field == FILTER_KV ? site_key_find(site, predicate->key, &index)
						    : NULL;
		if (!key)
			continue;
		if (key_can_be(filter, predicate, key->type) ||
		    (key->type == WAFFLE_KEY_CODE && state->plan.of_file)) {
			asked->fits = true;
		} else if (key->type == WAFFLE_KEY_CODE && !asked->code) {
			asked->code = true;
			asked->code_site = name;
		}
		if (asked->declared)
			continue;
		asked->declared = true;
		asked->type = key->type;
		asked->site = name;
	}
	return true;
}

/* ---- classes ---- */

static int class_code(const struct plan *plan, struct plan_class *class,
		      const struct residual *residual, const struct site_info *site)
{
	struct codegen_options options = codegen_options_default();
	struct residual rest;
	int err;

	options.on_accept = class->is_span ? WAFFLE_NEXT_KEEP : WAFFLE_NEXT_HIT;
	options.on_defer = WAFFLE_NEXT_DEFER;
	options.on_reject = plan->keep_children || (plan->tracks && class->is_span)
				    ? (int)WAFFLE_NEXT_REJECT
				    : CODEGEN_EXIT;
	err = codegen(&class->hit, plan->filter, residual, site, &options);
	if (err || !class->defers)
		return err;
	options.at_end = true;
	options.on_accept = WAFFLE_NEXT_RELEASE;
	options.on_reject = WAFFLE_NEXT_DISCARD;
	if (!residual_rest(&rest, plan->filter, residual))
		return -ENOMEM;
	err = codegen(&class->end, plan->filter, &rest, site, &options);
	residual_free(&rest);
	return err;
}

/* Whether anything can be decided at the start of a call if the expression also depends on its
 * end. */
static int decides_begin(const struct plan *plan, const struct residual *residual,
			 const struct site_info *site, bool *decides)
{
	struct residual upper = {0}, lower = {0};
	int result = residual_bound(&upper, plan->filter, residual, site, true) &&
				     residual_bound(&lower, plan->filter, residual, site, false)
			     ? 0
			     : -ENOMEM;

	*decides = !result && (upper.nodes.data[upper.nodes.len - 1].type != FILTER_TRUE ||
			       lower.nodes.data[lower.nodes.len - 1].type != FILTER_FALSE);
	residual_free(&upper);
	residual_free(&lower);
	return result;
}

/* Both programs of a call, at its start and its end, read the call's data from its thread. */
static int class_code_call(const struct plan *plan, struct plan_class *class,
			   const struct residual *residual, const struct site_info *site)
{
	struct codegen_options options = codegen_options_default();
	bool begins = true;
	int err = class->defers ? decides_begin(plan, residual, site, &begins) : 0;

	options.at_end = true;
	options.call = true;
	options.begins = true;
	options.slot = offsetof(struct waffle_call_thread, slots[WAFFLE_CALL_AT_UPROBE]);
	options.on_accept = WAFFLE_CALL_ACCEPT;
	options.on_defer = WAFFLE_CALL_DEFER;
	if (!err && begins)
		err = codegen(&class->hit, plan->filter, residual, site, &options);
	if (err)
		return err;
	options.begins = false;
	options.on_defer = CODEGEN_EXIT;
	if (class->defers)
		return codegen(&class->end, plan->filter, residual, site, &options);
	if (class->is_span)
		return 0;
	options.slot = offsetof(struct waffle_call_thread, slots[WAFFLE_CALL_AT_POINT]);
	return codegen(&class->point, plan->filter, residual, site, &options);
}

static int class_make(const struct plan *plan, struct plan_class *class,
		      const struct residual *residual, const struct site_info *site)
{
	enum filter_node_type root = residual->nodes.data[residual->nodes.len - 1].type;

	*class = (struct plan_class){
		.is_span = site->kind == WAFFLE_SITE_SPAN,
		.always = root == FILTER_TRUE,
		.context = root == FILTER_FALSE,
		.call = site->call,
	};
	if (class->is_span)
		class->name_bits = codegen_name_bits(plan->filter, site);
	if (class->always || class->context)
		return 0;
	class->defers = residual_asks_end(plan->filter, residual, site);
	if (class->call)
		return class_code_call(plan, class, residual, site);
	if (class->defers)
		class->deferred = site_deferred_size(site);
	return class_code(plan, class, residual, site);
}

static bool class_equal(const struct plan_class *a, const struct plan_class *b)
{
	return a->is_span == b->is_span && a->always == b->always && a->context == b->context &&
	       a->call == b->call && a->defers == b->defers && a->deferred == b->deferred &&
	       a->name_bits == b->name_bits && filter_code_equal(&a->hit, &b->hit) &&
	       filter_code_equal(&a->end, &b->end);
}

/* Takes ownership of the class. *index is its index, or that of an equal class. */
static int class_add(struct plan *plan, struct plan_class *class, uint32_t *index)
{
	size_t i = 0;

	while (i < plan->classes.len && !class_equal(&plan->classes.data[i], class))
		i++;
	if (i < plan->classes.len) {
		class_free(class);
	} else if (plan->classes.len >= WAFFLE_CLASSES_MAX) {
		class_free(class);
		return -ENOSPC;
	} else if (!vec_push(&plan->classes, *class)) {
		class_free(class);
		return -ENOMEM;
	}
	plan->classes.data[i].sites++;
	*index = (uint32_t)i;
	return 0;
}

static enum plan_use use_of(const struct plan *plan, const struct residual *residual,
			    const struct site_info *site)
{
	if (residual->nodes.data[residual->nodes.len - 1].type != FILTER_FALSE)
		return PLAN_MATCHES;
	/* The kernel does not know the parents of calls. */
	if (site->call)
		return PLAN_DORMANT;
	if (plan->keep_children || (plan->arms_spans && site->kind == WAFFLE_SITE_SPAN))
		return PLAN_CONTEXT;
	return PLAN_DORMANT;
}

/* Declares each key that the expression uses, so that it may have any value. */
static void keys_declare(struct site_info *site, const struct filter_expr *filter)
{
	static const char letters[] = {WAFFLE_KEY_I64, WAFFLE_KEY_STR, WAFFLE_KEY_F64,
				       WAFFLE_KEY_BOOL};
	unsigned index;

	for (size_t i = 0; i < filter->predicates.len; i++) {
		const struct filter_predicate *predicate = &filter->predicates.data[i];
		unsigned letter = 0;

		if (predicate->field != FILTER_KV || site->key_count == WAFFLE_KEYS_MAX ||
		    site_key_find(site, predicate->key, &index))
			continue;
		while (letter + 1 < sizeof(letters) &&
		       !key_can_be(filter, predicate, letters[letter]))
			letter++;
		site->keys[site->key_count++] =
			(struct site_key){.type = letters[letter], .name = predicate->key};
	}
}

/*
 * The end site of a pair of calls. The decision concerns the start, whose keys and class the kernel
 * has at that time. The end is armed unless no values of the start can match.
 */
static int end_use(struct plan *plan, const struct site_info *site, enum plan_use *use,
		   uint32_t *class)
{
	struct plan_class always = {.always = true, .call = true};
	struct site_info span = *site;
	struct residual residual;

	span.kind = WAFFLE_SITE_SPAN;
	keys_declare(&span, plan->filter);
	if (!residual_make(&residual, plan->filter, &span))
		return -ENOMEM;
	*use = use_of(plan, &residual, &span);
	residual_free(&residual);
	return *use == PLAN_DORMANT ? 0 : class_add(plan, &always, class);
}

/* A site whose hits serve to make spans of others, which the filter concerns. */
static int counter_use(struct plan *plan, enum plan_use *use, uint32_t *class)
{
	struct plan_class always = {.always = true, .call = true};

	*use = PLAN_MATCHES;
	return class_add(plan, &always, class);
}

static int site_error(struct error *err, const struct site_info *site, int code)
{
	if (code == -ENOMEM)
		return error_set(err, ENOMEM, "filter: out of memory");
	if (code == -ENOSPC)
		return error_set(err, E2BIG,
				 "filter: it comes down to more than %u different programs; ask "
				 "for fewer keys, or narrow it by name or lib",
				 WAFFLE_CLASSES_MAX);
	return error_set(err, E2BIG,
			 "filter: too long for a kernel program at site %s (%s:%u); use fewer or "
			 "shorter patterns with text between two stars, or lists",
			 site->name, site->file, site->line);
}

/* Notes facts about calls that are unknown during a capture but would be known in a file. */
static void call_seen(struct plan_state *state, enum plan_use use, const struct plan_class *class)
{
	if (state->plan.of_file)
		return;
	state->parents |= state->plan.tracks;
	state->children |= state->plan.keep_children && !class->always;
	state->traces |= use != PLAN_DORMANT && filter_samples(state->plan.filter);
}

int plan_site(struct plan *plan, const struct site_info *site, enum plan_use *use, uint32_t *class,
	      struct error *err)
{
	struct residual residual;
	struct plan_class made = {0};
	int code = 0;

	if (site_is_counter(site)) {
		code = counter_use(plan, use, class);
		return code ? site_error(err, site, code) : 0;
	}
	if (!site_seen(state_of(plan), site))
		return site_error(err, site, -ENOMEM);
	if (site->call && site->kind == WAFFLE_SITE_SPAN_END) {
		code = end_use(plan, site, use, class);
		plan->uses[*use] += !code;
		return code ? site_error(err, site, code) : 0;
	}
	if (!residual_make(&residual, plan->filter, site))
		return site_error(err, site, -ENOMEM);
	*use = use_of(plan, &residual, site);
	if (*use != PLAN_DORMANT)
		code = class_make(plan, &made, &residual, site);
	if (site->call)
		call_seen(state_of(plan), *use, &made);
	if (*use != PLAN_DORMANT) {
		if (code)
			class_free(&made);
		else
			code = class_add(plan, &made, class);
	}
	residual_free(&residual);
	if (code)
		return site_error(err, site, code);
	plan->uses[*use]++;
	return 0;
}

/* ---- warnings ---- */

#define NAMES_MAX 12 /* number of keys in one line */

struct line {
	char text[1024];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void line_add(struct line *line, const char *format,
							   ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line->text + line->len, sizeof(line->text) - line->len, format, args);
	va_end(args);
	if (len > 0)
		line->len += (size_t)len < sizeof(line->text) - line->len
				     ? (size_t)len
				     : sizeof(line->text) - line->len - 1;
}

static void line_key(struct line *line, const struct plan_state *state, const struct plan_key *key)
{
	line_add(line, "%s (of ", strtab_get(state->names, key->name));
	for (uint32_t i = 0; i < key->site_count; i++)
		line_add(line, "%s%s", i ? ", " : "", strtab_get(state->names, key->sites[i]));
	line_add(line, "%s)", key->more ? ", …" : "");
}

/* Adds the keys with a name similar to `near`, or all keys. Returns their number. */
static unsigned line_keys(struct line *line, const struct plan_state *state, const char *near)
{
	char more[UNITS_TEXT];
	unsigned count = 0;

	for (size_t i = 0; i < state->keys.len; i++) {
		const struct plan_key *key = &state->keys.data[i];

		if (near && !suggest_similar(near, strtab_get(state->names, key->name)))
			continue;
		if (count < NAMES_MAX) {
			line_add(line, count ? ", " : near ? "; did you mean " : "; keys are: ");
			line_key(line, state, key);
		}
		count++;
	}
	if (count > NAMES_MAX)
		line_add(line, "%s", units_format_more(more, count - NAMES_MAX));
	return count;
}

static const char *type_name(char type)
{
	switch (type) {
	case WAFFLE_KEY_STR:
		return "a string";
	case WAFFLE_KEY_BOOL:
		return "a bool";
	case WAFFLE_KEY_F64:
		return "a float";
	case WAFFLE_KEY_I64:
	case WAFFLE_KEY_U64:
		return "an integer";
	case WAFFLE_KEY_NUMBER:
		return "a number";
	case WAFFLE_KEY_CODE:
		return "an address while it is recorded; filter the file to compare its name";
	case WAFFLE_KEY_DIM3:
		return "[x,y,z], which can't be compared";
	default:
		return "a pointer or an id";
	}
}

/* Whether a predicate on the same key came before: each key is warned about once. */
static bool told(const struct filter_expr *filter, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (filter->predicates.data[i].field == FILTER_KV &&
		    !strcmp(filter->predicates.data[i].key, filter->predicates.data[index].key))
			return true;
	return false;
}

static void line_unfit(struct line *line, const struct plan_state *state, size_t index)
{
	const struct filter_predicate *predicate = &state->plan.filter->predicates.data[index];
	const struct plan_asked *asked = &state->asked[index];
	bool code = asked->fits;
	const char *site = strtab_get(state->names, code ? asked->code_site : asked->site);

	line_add(line, "'%.*s' is never true%s: the key '%s' of %s is %s",
		 (int)(predicate->to - predicate->from),
		 state->plan.filter->source + predicate->from, code ? " there" : "", predicate->key,
		 site, type_name(code ? WAFFLE_KEY_CODE : asked->type));
}

void plan_warn(const struct plan *plan, void (*say)(const char *line, void *arg), void *arg)
{
	const struct plan_state *state = (const struct plan_state *)plan;
	const struct filter_expr *filter = plan->filter;

	for (size_t i = 0; i < filter->predicates.len && i < FILTER_PREDICATES_MAX; i++) {
		const struct filter_predicate *predicate = &filter->predicates.data[i];
		struct line line = {.len = 0};

		if (predicate->field != FILTER_KV ||
		    (state->asked[i].fits && !state->asked[i].code))
			continue;
		if (state->asked[i].declared) {
			line_unfit(&line, state, i);
		} else {
			if (told(filter, i))
				continue;
			line_add(&line, "no site declares the key '%s'", predicate->key);
			if (!line_keys(&line, state, predicate->key) &&
			    !line_keys(&line, state, NULL))
				line_add(&line, "; none of them has keys");
		}
		say(line.text, arg);
	}
	if (state->parents)
		say("depth and parent.name of calls are not known while they are recorded: "
		    "comparisons with them are false; filter the file instead",
		    arg);
	if (state->children)
		say("--keep-children: what span a call is in is not known while it is recorded: "
		    "calls are kept only if they match themselves; filter the file instead",
		    arg);
	if (state->traces)
		say("sample(): the trace of a call is not known while it is recorded: each call is "
		    "sampled by itself; filter the file instead",
		    arg);
}
