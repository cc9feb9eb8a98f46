// SPDX-License-Identifier: Apache-2.0
#include "probe/args/fetch_program.h"

#include <string.h>

/* State while a fetch program is made. */
struct fetch_program_maker {
	struct fetch_program_made *made;
	const struct call_spec *spec;
	const struct call_at *at;
	const struct fetch_program_lookup *lookup;
	struct error *err;
	/* The fetches of the three parts of a fetch program, which are joined at the end. */
	struct waffle_fetch parts[3][WAFFLE_FETCHES_MAX];
	uint8_t counts[3];
	struct call_value saved[WAFFLE_SAVED_MAX]; /* bases that are saved for the return */
};

enum { PART_BEGINS, PART_SAVES, PART_RETURNS };

static int fault(const struct fetch_program_maker *maker, const struct call_value *value,
		 const char *message)
{
	return source_fault(&maker->spec->source, value->from, value->to, maker->err, "%s",
			    message);
}

static int push_fetch(struct fetch_program_maker *maker, const struct call_value *value,
		      unsigned part, const struct waffle_fetch *fetch)
{
	unsigned all = maker->counts[0] + maker->counts[1] + maker->counts[2];

	/* One slot stays free for the key of a pair. */
	if (all + 1 >= WAFFLE_FETCHES_MAX)
		return fault(maker, value, "more values than one call has room for");
	maker->parts[part][maker->counts[part]++] = *fetch;
	return 0;
}

static int load(const struct fetch_program_maker *maker, const struct call_value *value,
		struct waffle_fetch *fetch)
{
	if (fetch->loads == WAFFLE_FETCH_LOADS)
		return fault(maker, value, "goes through more than 4 pointers");
	fetch->offset[++fetch->loads] = 0;
	return 0;
}

/* The place of a value's base. count 0: unknown. */
static struct abi_place base_place(const struct fetch_program_maker *maker,
				   const struct call_value *value)
{
	struct abi_place place = {0};

	switch (value->base) {
	case VALUE_PARAM:
	case VALUE_RAW:
		if (value->index < maker->at->count)
			place = maker->at->args[value->index].at;
		break;
	case VALUE_RETURNED:
		place.pieces[place.count++] = abi_register(maker->at->abi->returned);
		break;
	case VALUE_DURATION:
		place.pieces[place.count++] = (struct waffle_fetch){
			.from = WAFFLE_FETCH_DURATION, .format = WAFFLE_FORMAT_WORD, .bytes = 8};
		break;
	case VALUE_THREAD:
		break;
	}
	return place;
}

/* At the return the arguments are gone, so the base is saved at the entry. */
static int save_base(struct fetch_program_maker *maker, const struct call_value *value,
		     struct abi_place *place)
{
	uint8_t slot = 0;

	while (slot < maker->counts[PART_SAVES] &&
	       (maker->saved[slot].base != value->base || maker->saved[slot].index != value->index))
		slot++;
	if (slot == maker->counts[PART_SAVES]) {
		if (slot == WAFFLE_SAVED_MAX)
			return fault(maker, value,
				     "the values at the return need more than 4 arguments");
		maker->saved[slot] = *value;
		if (push_fetch(maker, value, PART_SAVES, &place->pieces[0]))
			return -EINVAL;
	}
	place->count = 1;
	place->pieces[0] = (struct waffle_fetch){
		.from = WAFFLE_FETCH_SAVED, .format = WAFFLE_FORMAT_WORD, .reg = slot, .bytes = 8};
	return 0;
}

/* Finds an offset that has a name. False: this file does not have it, or it is not known yet. */
static bool offset_known(const struct fetch_program_maker *maker, const char *name, int32_t *offset)
{
	const struct fetch_program_lookup *lookup = maker->lookup;

	return lookup && lookup->offset && lookup->offset(lookup->arg, name, offset);
}

/* Follows the steps. *known is false if this file does not have an offset. */
static int follow(struct fetch_program_maker *maker, struct call_value *value,
		  struct waffle_fetch *fetch, bool *known)
{
	int result = 0;

	for (unsigned i = 0; i < value->step_count && !result; i++) {
		const struct value_step *step = &value->steps[i];
		int32_t offset = step->offset;

		if (step->kind == STEP_LOAD) {
			result = load(maker, value, fetch);
			continue;
		}
		if (step->name) {
			*known = offset_known(maker, step->name, &offset);
			if (!*known)
				return 0;
		}
		if (__builtin_add_overflow(fetch->offset[fetch->loads], offset,
					   &fetch->offset[fetch->loads]))
			return fault(maker, value, "its offset is too large");
	}
	return result;
}

/* If this file does not have the tag's offset, only the value itself is counted. */
static void set_sequence(const struct fetch_program_maker *maker, const struct call_value *value,
			 struct waffle_fetch *fetch)
{
	const struct value_step *tag = &value->tag;

	fetch->format = WAFFLE_FORMAT_SEQUENCE;
	fetch->constant = value->sequence_group;
	fetch->tag = tag->offset;
	if (value->tagged && (!tag->name || offset_known(maker, tag->name, &fetch->tag)))
		fetch->flags |= WAFFLE_FETCH_TAG;
}

/* Sets the format of a one-word value by its type. */
static void set_format(struct waffle_fetch *fetch, const struct call_type *type)
{
	fetch->format = WAFFLE_FORMAT_WORD;
	fetch->bytes = type->bytes ? type->bytes : 8;
	fetch->flags = type->is_signed ? WAFFLE_FETCH_SIGNED : 0;
	switch (type->kind) {
	case TYPE_STR:
		fetch->format = WAFFLE_FORMAT_STR;
		break;
	case TYPE_BYTES:
		fetch->format = WAFFLE_FORMAT_BYTES;
		fetch->bytes = (uint8_t)type->size;
		break;
	case TYPE_ENUM:
		fetch->format = WAFFLE_FORMAT_ENUM;
		fetch->constant = type->table;
		break;
	default:
		break;
	}
}

/* An operand of a USDT probe may be smaller than its declared type. The rest of its register is
 * undefined. */
static void narrow(const struct fetch_program_maker *maker, const struct call_value *value,
		   struct waffle_fetch *fetch)
{
	const struct place_arg *arg;

	if ((value->base != VALUE_PARAM && value->base != VALUE_RAW) || value->step_count ||
	    value->in_memory || fetch->format == WAFFLE_FORMAT_BYTES)
		return;
	arg = &maker->at->args[value->index];
	if (!arg->bytes || arg->bytes >= fetch->bytes)
		return;
	fetch->bytes = arg->bytes;
	fetch->flags = arg->is_signed ? WAFFLE_FETCH_SIGNED : 0;
}

/* Fetches a dim3 from memory at the address in the fetch. */
static int push_dim3_memory(struct fetch_program_maker *maker, const struct call_value *value,
			    unsigned part, struct waffle_fetch fetch)
{
	struct waffle_fetch z;

	if (load(maker, value, &fetch))
		return -EINVAL;
	fetch.bytes = 8;
	z = fetch;
	z.bytes = 4;
	if (__builtin_add_overflow(z.offset[z.loads - 1], 8, &z.offset[z.loads - 1]))
		return fault(maker, value, "its offset is too large");
	return push_fetch(maker, value, part, &fetch) ?: push_fetch(maker, value, part, &z);
}

static int push_place_pieces(struct fetch_program_maker *maker, const struct call_value *value,
			     unsigned part, struct abi_place *place)
{
	int result = 0;

	for (unsigned i = 0; i < place->count && !result; i++) {
		struct waffle_fetch *piece = &place->pieces[i];
		bool whole = value->type.kind == TYPE_DIM3 && i == 0;

		piece->bytes = whole ? 8 : 4;
		if (value->type.kind == TYPE_XYZ && i == 1)
			piece->format = WAFFLE_FORMAT_HIGH;
		result = push_fetch(maker, value, part, piece);
	}
	return result;
}

/* The parameter of a condition must be in a register of its own, as the first ones of a function
 * are. */
static int set_condition(struct fetch_program_maker *maker, const struct call_value *value,
			 struct waffle_fetch *fetch)
{
	struct call_value count = {
		.base = VALUE_PARAM,
		.index = value->count_index,
		.from = value->from,
		.to = value->to,
	};
	struct abi_place place = base_place(maker, &count);
	const struct waffle_fetch *at = &place.pieces[0];

	if (place.count != 1 || at->from != WAFFLE_FETCH_REGISTER || at->loads || at->scale ||
	    fetch->scale)
		return fault(maker, value, "its condition is not in a register");
	if (value->at_return && save_base(maker, &count, &place))
		return -EINVAL;
	fetch->flags |= WAFFLE_FETCH_IF;
	fetch->index = at->reg;
	fetch->tag = value->at_least;
	return 0;
}

/* *added: whether this file has the value. Its type is then known. */
static int push_value(struct fetch_program_maker *maker, struct call_value *value, bool save,
		      bool *added)
{
	unsigned part = value->at_return ? PART_RETURNS : PART_BEGINS;
	struct abi_place place = base_place(maker, value);
	struct waffle_fetch *fetch = &place.pieces[0];
	bool gone = value->base == VALUE_PARAM || value->base == VALUE_RAW;
	int32_t offset;
	int result = 0;

	*added = false;
	if (!place.count ||
	    (value->unless_offset && offset_known(maker, value->unless_offset, &offset)))
		return 0;
	if (value->by_fields) {
		unsigned first = 0;

		while (value->steps[first].kind != STEP_FIELD)
			first++;
		if (!maker->lookup || !maker->lookup->fields)
			return fault(maker, value, "fields can't be looked up here");
		result = maker->lookup->fields(maker->lookup->arg, maker->spec, value->type.name,
					       value, first, maker->err);
	}
	if (!result && save && value->at_return && gone)
		result = save_base(maker, value, &place);
	*added = true;
	if (!result)
		result = follow(maker, value, fetch, added);
	if (result || !*added)
		return result;
	if (!value->in_memory && (value->type.kind == TYPE_DIM3 || value->type.kind == TYPE_XYZ))
		return push_place_pieces(maker, value, part, &place);
	if (value->type.kind == TYPE_DIM3)
		return push_dim3_memory(maker, value, part, *fetch);
	if (value->in_memory && value->type.kind != TYPE_BYTES)
		result = load(maker, value, fetch);
	set_format(fetch, &value->type);
	narrow(maker, value, fetch);
	if (value->sequence)
		set_sequence(maker, value, fetch);
	if (!result && value->conditional)
		result = set_condition(maker, value, fetch);
	return result ?: push_fetch(maker, value, part, fetch);
}

static int push_key(struct fetch_program_maker *maker, const struct call_value *value)
{
	struct call_type type = value->type;
	struct site_key key = {.name = value->name};

	if (value->sequence)
		type = (struct call_type){.kind = TYPE_WORD, .bytes = 8};
	key.type = type_letter(&type);
	if (maker->made->key_count == WAFFLE_KEYS_MAX)
		return fault(maker, value, "a call has at most 16 values");
	maker->made->keys[maker->made->key_count++] = key;
	return 0;
}

/* USDT without a list: takes all arguments of the note. */
static int push_noted(struct fetch_program_maker *maker, bool at_return)
{
	static const char *const names[] = {"arg1", "arg2", "arg3", "arg4",  "arg5",  "arg6",
					    "arg7", "arg8", "arg9", "arg10", "arg11", "arg12"};
	int result = 0;

	for (unsigned i = 0;
	     i < maker->at->count && i < sizeof(names) / sizeof(names[0]) && !result; i++) {
		struct call_value value = {.name = names[i],
					   .base = VALUE_RAW,
					   .index = (uint8_t)i,
					   .at_return = at_return};
		bool added;

		value.type = (struct call_type){.kind = maker->at->args[i].is_float ? TYPE_FLOAT
										    : TYPE_WORD,
						.bytes = maker->at->args[i].bytes,
						.is_signed = maker->at->args[i].is_signed};
		result = push_value(maker, &value, false, &added);
		if (!result && added)
			result = push_key(maker, &value);
	}
	return result;
}

/* Number of keys whose values are in the frame made at the begin. A value takes one word, a dim3
 * two. */
static uint16_t keys_of_begin(const struct fetch_program_made *made)
{
	unsigned words = 0;
	uint16_t key = 0;

	for (unsigned i = 0; i < made->fetch_program.begins; i++)
		words += made->fetch_program.fetches[i].format != WAFFLE_FORMAT_HIGH;
	for (; key < made->key_count; key++) {
		unsigned need = made->keys[key].type == WAFFLE_KEY_DIM3 ? 2 : 1;

		if (words < need)
			break;
		words -= need;
	}
	return key;
}

/* Index of a fetch's word in struct waffle_call_thread. -1: it is not such a word. */
static int word_number(const struct abi *abi, const struct waffle_fetch *fetch)
{
	uint32_t index = (uint32_t)fetch->offset[0] / sizeof(uint64_t);

	if (fetch->from != WAFFLE_FETCH_REGISTER || fetch->scale ||
	    (fetch->format != WAFFLE_FORMAT_WORD && fetch->format != WAFFLE_FORMAT_HIGH))
		return -1;
	if (!fetch->loads)
		return fetch->reg;
	if (fetch->loads > 1 || fetch->reg != abi->sp || fetch->offset[0] % 8 ||
	    index >= WAFFLE_CALL_STACK_WORDS)
		return -1;
	return WAFFLE_CALL_REGS + (int)index;
}

/* Describes the values at the entry as words, if all of them are words. */
static void put_words(struct waffle_fetch_program *fetch_program, const struct abi *abi)
{
	uint16_t bytes = sizeof(struct waffle_frame);

	for (unsigned i = 0; i < fetch_program->begins; i++) {
		const struct waffle_fetch *fetch = &fetch_program->fetches[i];
		bool high = fetch->format == WAFFLE_FORMAT_HIGH;
		int number = word_number(abi, fetch);

		if (number < 0)
			return;
		if (number >= WAFFLE_CALL_REGS + fetch_program->stack_words)
			fetch_program->stack_words = (uint8_t)(number - WAFFLE_CALL_REGS + 1);
		fetch_program->words[i] = (struct waffle_word){
			.from = (uint8_t)number,
			.to = (uint8_t)((high ? bytes - 4 : bytes) / 4),
			.spare = !high && fetch->bytes && fetch->bytes < 8 ? 64 - 8 * fetch->bytes
									   : 0,
			.is_signed = fetch->flags & WAFFLE_FETCH_SIGNED,
			.offset = fetch->offset[fetch->loads],
		};
		bytes += high ? 0 : sizeof(uint64_t);
	}
	fetch_program->word_count = fetch_program->begins;
	fetch_program->word_bytes = bytes;
}

static void put_together(struct fetch_program_maker *maker)
{
	struct waffle_fetch_program *fetch_program = &maker->made->fetch_program;
	unsigned at = 0;

	fetch_program->begins = maker->counts[PART_BEGINS];
	fetch_program->saves = maker->counts[PART_SAVES];
	fetch_program->returns = maker->counts[PART_RETURNS];
	fetch_program->flags = maker->spec->flags;
	for (unsigned part = 0; part < 3; part++)
		for (unsigned i = 0; i < maker->counts[part]; i++)
			fetch_program->fetches[at++] = maker->parts[part][i];
	maker->made->begin_keys = keys_of_begin(maker->made);
	put_words(fetch_program, maker->at->abi);
}

/* Appends the key of a pair. */
static int put_pair_key(struct fetch_program_maker *maker, const struct spec_side *side)
{
	struct waffle_fetch_program *fetch_program = &maker->made->fetch_program;
	struct call_value key = side->key;
	bool added = true;
	int result;

	if (side->key.base == VALUE_THREAD)
		return 0;
	memset(maker->counts, 0, sizeof(maker->counts));
	result = push_value(maker, &key, false, &added);
	if (!result && (!added || maker->counts[PART_BEGINS] != 1))
		result = fault(maker, &side->key, "the key can't be read at this probe");
	if (!result)
		fetch_program->fetches[fetch_program->begins + fetch_program->saves +
				       fetch_program->returns] = maker->parts[PART_BEGINS][0];
	fetch_program->keys = 1;
	return result;
}

int fetch_program_make(struct fetch_program_made *made, const struct call_spec *spec,
		       const struct call_at *at, const struct fetch_program_lookup *lookup,
		       struct error *err)
{
	struct fetch_program_maker maker = {
		.made = made, .spec = spec, .at = at, .lookup = lookup, .err = err};
	const struct spec_side *side = &spec->sides[0];
	int result = 0;

	*made = (struct fetch_program_made){.key_count = 0};
	for (unsigned i = 0; i < side->value_count && !result; i++) {
		struct call_value value = side->values[i];
		bool added;

		result = push_value(&maker, &value, true, &added);
		if (!result && added)
			result = push_key(&maker, &value);
	}
	if (!result && spec->type == SPEC_USDT && !side->listed && !side->value_count)
		result = push_noted(&maker, false);
	put_together(&maker);
	if (!result && spec->pair)
		result = put_pair_key(&maker, side);
	return result;
}

static bool has_key(const struct fetch_program_made *made, const char *name)
{
	for (unsigned i = 0; i < made->key_count; i++)
		if (!strcmp(made->keys[i].name, name))
			return true;
	return false;
}

int fetch_program_make_end(struct fetch_program_made *made, const struct call_spec *spec,
			   const struct call_at *at, const struct fetch_program_lookup *lookup,
			   struct fetch_program_made *begin, struct error *err)
{
	struct fetch_program_maker maker = {
		.made = made, .spec = spec, .at = at, .lookup = lookup, .err = err};
	const struct spec_side *side = &spec->sides[1];
	int result = 0;

	*made = (struct fetch_program_made){.key_count = 0};
	for (unsigned i = 0; i < side->value_count && !result; i++) {
		struct call_value value = side->values[i];
		bool added;

		if (has_key(begin, value.name))
			continue;
		value.at_return = true; /* of the pair's span: uses this probe's registers */
		result = push_value(&maker, &value, false, &added);
		if (!result && added)
			result = push_key(&maker, &value);
	}
	put_together(&maker);
	return result ?: put_pair_key(&maker, side);
}

void call_at_function(struct call_at *at, const struct abi *abi, const struct spec_side *side)
{
	struct abi_walk walk = abi_walk_begin(abi);
	static const struct call_type word = {.kind = TYPE_WORD, .bytes = 8};

	*at = (struct call_at){.abi = abi};
	for (unsigned i = 0; i < side->param_count && i < PLACE_ARGS_MAX; i++)
		at->args[at->count++].at =
			abi_walk_next(&walk, side->params[i].out ? &word : &side->params[i].type);
	/* arg1… are consecutive words, independent of the listed parameters. */
	while (at->count < SPEC_RAW_ARGS)
		at->args[at->count++].at = abi_walk_next(&walk, &word);
}
