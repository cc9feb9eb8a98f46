// SPDX-License-Identifier: Apache-2.0
#include "filter/eval.h"

#include <math.h>
#include <string.h>

/* ---- operands ---- */

enum operand_type {
	OPERAND_NONE,    /* missing: every comparison is false */
	OPERAND_UNKNOWN, /* available when the span has ended */
	OPERAND_TEXT,
	OPERAND_NUMBER,
	OPERAND_KIND
};

/* An integer with 65 bits, or a float. */
struct eval_number {
	bool is_float, negative; /* negative: the value is -magnitude, and not 0 */
	uint64_t magnitude;
	double f64;
};

struct eval_operand {
	enum operand_type type;
	struct eval_number number; /* NUMBER; of a KIND the magnitude is the enum filter_kind */
	uint64_t also;             /* KIND: another kind of the record, or the same */
	const char *text;          /* TEXT: not terminated */
	size_t len;
	bool cut;  /* TEXT: truncated */
	bool path; /* TEXT: only the last component is compared, unless the literal is a path */
};

static struct eval_number number_unsigned(uint64_t value)
{
	return (struct eval_number){.magnitude = value};
}

static struct eval_number number_signed(int64_t value)
{
	return (struct eval_number){.negative = value < 0,
				    .magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value};
}

static struct eval_number number_float(double value)
{
	return (struct eval_number){.is_float = true, .f64 = value};
}

static struct eval_operand operand_number(struct eval_number number)
{
	return (struct eval_operand){.type = OPERAND_NUMBER, .number = number};
}

static struct eval_operand operand_text(const char *text, size_t len)
{
	return (struct eval_operand){.type = OPERAND_TEXT, .text = text, .len = len};
}

static const struct eval_operand operand_none = {.type = OPERAND_NONE};

/* ---- fields ---- */

typedef struct eval_operand (*field_get_fn)(const struct filter_predicate *predicate,
					    const struct filter_subject *subject);

static struct eval_operand get_kind(const struct filter_predicate *predicate,
				    const struct filter_subject *subject)
{
	static const enum filter_kind kinds[] = {
		[WAFFLE_SITE_SPAN] = FILTER_KIND_SPAN,
		[WAFFLE_SITE_SPAN_END] = FILTER_KIND_SPAN,
		[WAFFLE_SITE_EVENT] = FILTER_KIND_EVENT,
		[WAFFLE_SITE_COUNTER] = FILTER_KIND_COUNTER,
		[WAFFLE_SITE_LOG_INFO] = FILTER_KIND_LOG,
		[WAFFLE_SITE_LOG_WARN] = FILTER_KIND_LOG,
		[WAFFLE_SITE_LOG_ERROR] = FILTER_KIND_LOG,
	};
	static const struct {
		const char *category;
		enum filter_kind kind;
	} calls[] = {
		{"cuda", FILTER_KIND_CUDA}, {"hip", FILTER_KIND_CUDA}, {"nccl", FILTER_KIND_NCCL}};
	unsigned kind = subject->site->kind;
	struct eval_operand operand = {.type = OPERAND_KIND};

	_Static_assert(sizeof(kinds) / sizeof(*kinds) == WAFFLE_SITE_KIND_COUNT,
		       "a word for every kind of site");
	(void)predicate;
	if (!kind || kind >= WAFFLE_SITE_KIND_COUNT)
		return operand_none;
	operand.number = number_unsigned(kinds[kind]);
	operand.also = kinds[kind];
	for (size_t i = 0; subject->site->call && i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strcmp(subject->site->category, calls[i].category))
			operand.also = calls[i].kind;
	return operand;
}

static struct eval_operand get_name(const struct filter_predicate *predicate,
				    const struct filter_subject *subject)
{
	(void)predicate;
	return operand_text(subject->site->name, strlen(subject->site->name));
}

static struct eval_operand get_category(const struct filter_predicate *predicate,
					const struct filter_subject *subject)
{
	(void)predicate;
	return operand_text(subject->site->category, strlen(subject->site->category));
}

static struct eval_operand get_func(const struct filter_predicate *predicate,
				    const struct filter_subject *subject)
{
	(void)predicate;
	return operand_text(subject->site->func, strlen(subject->site->func));
}

static struct eval_operand operand_path(const char *path)
{
	struct eval_operand operand = operand_text(path, strlen(path));

	operand.path = true;
	return operand;
}

static struct eval_operand get_file(const struct filter_predicate *predicate,
				    const struct filter_subject *subject)
{
	(void)predicate;
	return operand_path(subject->site->file);
}

static struct eval_operand get_lib(const struct filter_predicate *predicate,
				   const struct filter_subject *subject)
{
	(void)predicate;
	return operand_path(subject->site->object);
}

static struct eval_operand get_line(const struct filter_predicate *predicate,
				    const struct filter_subject *subject)
{
	(void)predicate;
	return operand_number(number_unsigned(subject->site->line));
}

static struct eval_operand get_pid(const struct filter_predicate *predicate,
				   const struct filter_subject *subject)
{
	(void)predicate;
	return operand_number(number_unsigned(subject->pid));
}

static struct eval_operand get_tid(const struct filter_predicate *predicate,
				   const struct filter_subject *subject)
{
	(void)predicate;
	return operand_number(number_unsigned(subject->tid));
}

static struct eval_operand get_cpu(const struct filter_predicate *predicate,
				   const struct filter_subject *subject)
{
	(void)predicate;
	return operand_number(number_unsigned(subject->cpu));
}

/* The kernel's TASK_COMM_LEN, without the NUL. */
#define COMM_LEN_MAX 15

static struct eval_operand get_comm(const struct filter_predicate *predicate,
				    const struct filter_subject *subject)
{
	(void)predicate;
	if (!subject->comm)
		return operand_none;
	return operand_text(subject->comm, strnlen(subject->comm, COMM_LEN_MAX));
}

static struct eval_operand get_dur(const struct filter_predicate *predicate,
				   const struct filter_subject *subject)
{
	(void)predicate;
	if (subject->site->kind != WAFFLE_SITE_SPAN)
		return operand_none;
	if (!subject->ended)
		return (struct eval_operand){.type = OPERAND_UNKNOWN};
	return operand_number(number_unsigned(subject->dur_ns));
}

static struct eval_operand get_depth(const struct filter_predicate *predicate,
				     const struct filter_subject *subject)
{
	(void)predicate;
	return subject->depth < 0 ? operand_none : operand_number(number_signed(subject->depth));
}

static struct eval_operand get_parent_name(const struct filter_predicate *predicate,
					   const struct filter_subject *subject)
{
	(void)predicate;
	if (!subject->parent_name)
		return operand_none;
	return operand_text(subject->parent_name, strlen(subject->parent_name));
}

static struct eval_operand operand_value(const struct value *value)
{
	struct eval_operand operand;

	switch (value->type) {
	case WAFFLE_KEY_STR:
		if (value->null)
			return operand_none;
		operand = operand_text(value->text, value->text_len);
		operand.cut = value->cut;
		return operand;
	case WAFFLE_KEY_I64:
		return operand_number(number_signed(value->i64));
	case WAFFLE_KEY_F64:
		return operand_number(number_float(value->f64));
	case WAFFLE_KEY_DIM3:
		return operand_none;
	default:
		return operand_number(number_unsigned(value->u64));
	}
}

/* Whether a missing value is one that is available only when a call ends. */
static bool awaits_end(const struct filter_subject *subject, const char *key)
{
	const struct site_info *site = subject->site;

	if (!site->call || site->kind != WAFFLE_SITE_SPAN || subject->ended)
		return false;
	for (unsigned i = 0; i < site->key_count && i < WAFFLE_KEYS_MAX; i++)
		if (!strcmp(site->keys[i].name, key))
			return true;
	return false;
}

/* The first key of this name is used. */
static struct eval_operand get_kv(const struct filter_predicate *predicate,
				  const struct filter_subject *subject)
{
	struct value_walk walk = subject->head ? subject->values
					       : value_walk_begin(subject->site, subject->frame,
								  subject->frame_bytes);
	struct value value;

	while (value_walk_next(&walk, &value))
		if (!strcmp(value.key->name, predicate->key))
			return operand_value(&value);
	if (awaits_end(subject, predicate->key))
		return (struct eval_operand){.type = OPERAND_UNKNOWN};
	return operand_none;
}

static const field_get_fn field_get[] = {
	[FILTER_KIND] = get_kind,
	[FILTER_NAME] = get_name,
	[FILTER_CATEGORY] = get_category,
	[FILTER_FILE] = get_file,
	[FILTER_LINE] = get_line,
	[FILTER_FUNC] = get_func,
	[FILTER_LIB] = get_lib,
	[FILTER_PID] = get_pid,
	[FILTER_TID] = get_tid,
	[FILTER_COMM] = get_comm,
	[FILTER_CPU] = get_cpu,
	[FILTER_DUR] = get_dur,
	[FILTER_DEPTH] = get_depth,
	[FILTER_PARENT_NAME] = get_parent_name,
	[FILTER_KV] = get_kv,
};
_Static_assert(sizeof(field_get) / sizeof(*field_get) == FILTER_FIELD_COUNT, "every field");

/* ---- comparisons ---- */

/* Order of the left and the right side; a bit each. */
enum order { ORDER_LESS = 1, ORDER_EQUAL = 2, ORDER_GREATER = 4, ORDER_NONE = 8 };

/* Orders for which an operator is true. */
static const unsigned char op_orders[FILTER_OP_COUNT] = {
	[FILTER_EQ] = ORDER_EQUAL,   [FILTER_NE] = ORDER_LESS | ORDER_GREATER | ORDER_NONE,
	[FILTER_LT] = ORDER_LESS,    [FILTER_LE] = ORDER_LESS | ORDER_EQUAL,
	[FILTER_GT] = ORDER_GREATER, [FILTER_GE] = ORDER_GREATER | ORDER_EQUAL,
	[FILTER_IN] = ORDER_EQUAL,
};

static enum order order_turned(enum order order)
{
	return order == ORDER_LESS ? ORDER_GREATER : order == ORDER_GREATER ? ORDER_LESS : order;
}

static enum order order_u64(uint64_t a, uint64_t b)
{
	return a < b ? ORDER_LESS : a > b ? ORDER_GREATER : ORDER_EQUAL;
}

static enum order order_integers(const struct eval_number *a, const struct eval_number *b)
{
	if (a->negative != b->negative)
		return a->negative ? ORDER_LESS : ORDER_GREATER;
	return a->negative ? order_u64(b->magnitude, a->magnitude)
			   : order_u64(a->magnitude, b->magnitude);
}

/* Compares a magnitude and a float that have the same sign or are 0, without rounding. */
static enum order order_magnitude(uint64_t magnitude, double positive)
{
	uint64_t whole;

	if (positive >= 0x1p64)
		return ORDER_LESS;
	whole = (uint64_t)positive;
	if (magnitude != whole)
		return order_u64(magnitude, whole);
	return positive > trunc(positive) ? ORDER_LESS : ORDER_EQUAL;
}

static enum order order_integer_float(const struct eval_number *integer, double f64)
{
	if (isnan(f64))
		return ORDER_NONE;
	if (integer->negative)
		return f64 >= 0 ? ORDER_LESS
				: order_turned(order_magnitude(integer->magnitude, -f64));
	return f64 < 0 ? ORDER_GREATER : order_magnitude(integer->magnitude, f64);
}

static enum order order_floats(double a, double b)
{
	if (isnan(a) || isnan(b))
		return ORDER_NONE;
	return a < b ? ORDER_LESS : a > b ? ORDER_GREATER : ORDER_EQUAL;
}

static enum order order_numbers(const struct eval_number *a, const struct eval_number *b)
{
	if (a->is_float && b->is_float)
		return order_floats(a->f64, b->f64);
	if (a->is_float)
		return order_turned(order_integer_float(b, a->f64));
	if (b->is_float)
		return order_integer_float(a, b->f64);
	return order_integers(a, b);
}

static struct eval_number literal_number(const struct filter_literal *literal)
{
	if (literal->type == FILTER_LITERAL_FLOAT)
		return number_float(literal->f64);
	return (struct eval_number){.negative = literal->negative, .magnitude = literal->magnitude};
}

/* The part of a text to compare with a literal. */
static struct eval_operand text_for(const struct eval_operand *operand,
				    const struct filter_literal *literal)
{
	struct eval_operand text = *operand;
	const char *slash;

	if (!text.path || memchr(literal->text, '/', literal->text_len))
		return text;
	slash = memrchr(text.text, '/', text.len);
	if (slash) {
		text.len -= (size_t)(slash + 1 - text.text);
		text.text = slash + 1;
	}
	return text;
}

static bool text_is(const struct eval_operand *operand, enum filter_op op,
		    const struct filter_literal *literal)
{
	struct eval_operand text = text_for(operand, literal);
	bool equal;

	if (op == FILTER_MATCH || op == FILTER_NOT_MATCH)
		return glob_matches(literal->glob, text.text, text.len) == (op == FILTER_MATCH);
	equal = !text.cut && text.len == literal->text_len &&
		!memcmp(text.text, literal->text, text.len);
	/* Texts are only equal or different; all other operators are false. */
	return op_orders[op] == op_orders[FILTER_NE] ? !equal
						     : op_orders[op] == ORDER_EQUAL && equal;
}

static bool number_is(const struct eval_operand *operand, enum filter_op op,
		      const struct filter_literal *literal)
{
	struct eval_number right = literal_number(literal);

	return op_orders[op] & order_numbers(&operand->number, &right);
}

static bool kind_is(const struct eval_operand *operand, enum filter_op op,
		    const struct filter_literal *literal)
{
	bool equal = literal->magnitude == operand->number.magnitude ||
		     literal->magnitude == operand->also;

	return op == FILTER_NE ? !equal : equal;
}

/* Compares an operand with a literal; false if their types differ. */
static bool operand_is(const struct eval_operand *operand, enum filter_op op,
		       const struct filter_literal *literal)
{
	static const enum operand_type types[] = {
		[FILTER_LITERAL_INTEGER] = OPERAND_NUMBER, [FILTER_LITERAL_FLOAT] = OPERAND_NUMBER,
		[FILTER_LITERAL_BOOL] = OPERAND_NUMBER,    [FILTER_LITERAL_TEXT] = OPERAND_TEXT,
		[FILTER_LITERAL_KIND] = OPERAND_KIND,
	};

	if (operand->type != types[literal->type])
		return false;
	if (operand->type == OPERAND_KIND)
		return kind_is(operand, op, literal);
	return operand->type == OPERAND_TEXT ? text_is(operand, op, literal)
					     : number_is(operand, op, literal);
}

enum filter_truth filter_eval_predicate(const struct filter_expr *filter,
					const struct filter_predicate *predicate,
					const struct filter_subject *subject)
{
	struct eval_operand operand = field_get[predicate->field](predicate, subject);
	const struct filter_literal *literals = &filter->literals.data[predicate->literal];

	if (operand.type == OPERAND_UNKNOWN)
		return FILTER_UNKNOWN;
	for (uint32_t i = 0; i < predicate->count; i++)
		if (operand_is(&operand, predicate->op, &literals[i]))
			return FILTER_YES;
	return FILTER_NO;
}

/* ---- the tree ---- */

static bool sample_subject(const struct filter_node *node, const struct filter_subject *subject)
{
	struct waffle_frame frame = {0};

	if (subject->head)
		frame = *subject->head;
	else if (subject->frame && subject->frame_bytes >= sizeof(frame))
		memcpy(&frame, subject->frame, sizeof(frame));
	return filter_sample(node->keep, node->of, frame.trace_hi, frame.trace_lo, frame.id);
}

static enum filter_truth truth(bool yes)
{
	return yes ? FILTER_YES : FILTER_NO;
}

/* FILTER_DEPTH_MAX limits parentheses only. A chain of && is as deep as it is long, which the limit
 * of predicates and samples bounds. */
enum filter_truth filter_eval_nodes(const struct filter_expr *filter,
				    const struct filter_node *nodes, uint32_t root,
				    const struct filter_subject *subject)
{
	const struct filter_node *node = &nodes[root];
	enum filter_truth left, right, decided;

	switch (node->type) {
	case FILTER_TRUE:
		return FILTER_YES;
	case FILTER_NOT:
		left = filter_eval_nodes(filter, nodes, node->left, subject);
		return left == FILTER_UNKNOWN ? left : truth(left == FILTER_NO);
	case FILTER_AND:
	case FILTER_OR:
		decided = truth(node->type == FILTER_OR);
		left = filter_eval_nodes(filter, nodes, node->left, subject);
		if (left == decided)
			return left;
		right = filter_eval_nodes(filter, nodes, node->right, subject);
		return right == decided || left != FILTER_UNKNOWN ? right : left;
	case FILTER_TEST:
		return filter_eval_predicate(filter, &filter->predicates.data[node->predicate],
					     subject);
	case FILTER_SAMPLE:
		return truth(sample_subject(node, subject));
	default:
		return FILTER_NO;
	}
}

enum filter_truth filter_eval(const struct filter_expr *filter,
			      const struct filter_subject *subject)
{
	return filter_eval_nodes(filter, filter->nodes.data, filter->root, subject);
}

/* ---- sample() and rate() ---- */

bool filter_sample(uint32_t keep, uint32_t of, uint64_t trace_hi, uint64_t trace_lo, uint64_t id)
{
	uint64_t x = trace_hi ^ (trace_lo << 32 | trace_lo >> 32);

	x = x ? x : id;
	if (!x)
		return true;
	x = (x ^ x >> 33) * 0xff51afd7ed558ccdull;
	x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ull;
	x ^= x >> 33;
	return x >> 32 < ((uint64_t)keep << 32) / of;
}

bool filter_rate_take(const struct filter_rate *rate, struct filter_rate_state *state, uint64_t ts)
{
	uint64_t window = ts / rate->unit_ns;

	if (window > state->window)
		*state = (struct filter_rate_state){.window = window};
	if (state->used >= rate->count)
		return false;
	state->used++;
	return true;
}
