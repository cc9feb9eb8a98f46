// SPDX-License-Identifier: Apache-2.0
/*
 * A pushed range is a scope of waffle_named.h, and so the parent of what its thread records
 * meanwhile, such as launches. NVTX nests the ranges of a thread in each domain separately. They
 * are in one stack here, from which a pop takes the latest range of its domain.
 *
 * A program may end ranges that began before it was armed, and not end those that did not. So
 * nothing here relies on calls that come in pairs.
 */
#include "usdt/gpu/nvtx_ranges.h"

#include <stddef.h>

#include "usdt/gpu/nvtx_payload.h"
#include "usdt/gpu/nvtx_reserve.h"
#include "usdt/gpu/nvtx_text.h"
#include "usdt/gpu/per_thread.h"
#include "waffle_named.h"

struct level {
	waffle_scope_t scope;
	unsigned domain;
	bool open; /* false: it was popped before the levels above it */
};

struct stack {
	struct per_thread memory;
	uint32_t session; /* in which the levels were pushed */
	unsigned depth;
	unsigned beyond; /* levels that had no room */
	struct level levels[NVTX_DEPTH_MAX];
};

/* A range of RangeStart. */
struct started {
	uint64_t id; /* 0: free, STARTED_BUSY: being made or ended */
	waffle_span_t span;
};
#define STARTED_BUSY UINT64_MAX
/* Places that a new range looks at. */
#define STARTED_TRIES 64

static struct {
	uint32_t session;
	struct started *started; /* NVTX_STARTED_MAX of them, of which memory has those used */
	uint64_t next;           /* numbers of ranges, which make their ids unique */
	uint64_t left_out;
} ranges;

static struct per_thread_list stacks;
/* In the part of a thread's storage that exists from its start, so that access allocates nothing.
 */
static __thread struct per_thread *own __attribute__((tls_model("initial-exec")));

/* ---- what a call says ---- */

struct nvtx_event {
	struct nvtx_text *text; /* of the message; NULL: there is none, or no room for it */
	const char *message;    /* NULL: there is none */
	unsigned domain;        /* 0: the default one */
	uint32_t category;      /* 0: none */
	const struct nvtx_attributes *attributes; /* NULL: the call has none */
	char narrow[NVTX_TEXT_BYTES + 4];         /* a message of wide characters */
};

static void event_ascii(struct nvtx_event *event, const char *message)
{
	event->message = message;
	event->text = nvtx_text_of(message);
	event->domain = 0;
	event->category = 0;
	event->attributes = NULL;
}

static void event_wide(struct nvtx_event *event, const wchar_t *message)
{
	nvtx_text_narrow(event->narrow, sizeof(event->narrow), message);
	event_ascii(event, message ? event->narrow : NULL);
}

static void event_attributes(struct nvtx_event *event, const void *domain,
			     const struct nvtx_attributes *attributes)
{
	bool whole = attributes && attributes->size >= sizeof(*attributes);

	if (whole && attributes->message_type == NVTX_MESSAGE_WIDE)
		event_wide(event, attributes->message.wide);
	else
		event_ascii(event, whole && attributes->message_type == NVTX_MESSAGE_ASCII
					   ? attributes->message.ascii
					   : NULL);
	if (whole && attributes->message_type == NVTX_MESSAGE_REGISTERED)
		event->text = nvtx_text_of_handle(attributes->message.registered);
	event->domain = nvtx_domain_number(domain);
	event->category = whole ? attributes->category : 0;
	event->attributes = whole ? attributes : NULL;
}

/* ---- what is recorded of it ---- */

struct values {
	waffle_name_t *name; /* NULL: nobody records it */
	waffle_value_t all[NVTX_KEYS_MAX + NVTX_MEMBERS_MAX];
	unsigned count;
	char number[11]; /* a category without a name */
};

static const char *number_write(char text[11], uint32_t number)
{
	char *at = text + 10;

	*at = '\0';
	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	return at;
}

/* Returns false if the payload has no type that we know. */
static bool payload_read(waffle_value_t *value, const struct nvtx_attributes *attributes)
{
	switch (attributes ? attributes->payload_type : 0) {
	case NVTX_PAYLOAD_U64:
		*value = waffle_u64(attributes->payload.u64);
		return true;
	case NVTX_PAYLOAD_I64:
		*value = waffle_i64(attributes->payload.i64);
		return true;
	case NVTX_PAYLOAD_F64:
		*value = waffle_f64(attributes->payload.f64);
		return true;
	case NVTX_PAYLOAD_U32:
		*value = waffle_u64(attributes->payload.u32);
		return true;
	case NVTX_PAYLOAD_I32:
		*value = waffle_i64(attributes->payload.i32);
		return true;
	case NVTX_PAYLOAD_F32:
		*value = waffle_f64(attributes->payload.f32);
		return true;
	default:
		return false;
	}
}

static bool is_recording(void)
{
	return __atomic_load_n(waffle_named_gate(), __ATOMIC_RELAXED) != 0;
}

static void values_make(struct values *values, const struct nvtx_event *event, bool span)
{
	const struct nvtx_schema *schema = NULL;
	waffle_value_t payload;
	unsigned keys = 0;

	values->name = NULL;
	values->count = 0;
	if (!is_recording())
		return;
	keys |= event->domain ? NVTX_KEY_DOMAIN : 0;
	keys |= event->category ? NVTX_KEY_CATEGORY : 0;
	keys |= payload_read(&payload, event->attributes) ? NVTX_KEY_PAYLOAD : 0;
	if (event->text && event->attributes)
		schema = nvtx_payload_schema(event->domain, event->attributes);
	if (schema)
		values->name = nvtx_payload_name(event->text, span, keys, schema);
	if (!values->name) {
		values->name = nvtx_name(event->text, span, keys);
		schema = NULL;
	}
	if (!waffle_name_armed(values->name)) {
		values->name = NULL;
		return;
	}
	if (keys & NVTX_KEY_DOMAIN)
		values->all[values->count++] = waffle_str(nvtx_domain_name(event->domain));
	if (keys & NVTX_KEY_CATEGORY)
		values->all[values->count++] =
			waffle_str(nvtx_category_name(event->domain, event->category)
					   ?: number_write(values->number, event->category));
	if (keys & NVTX_KEY_PAYLOAD)
		values->all[values->count++] = payload;
	if (schema)
		values->count +=
			nvtx_payload_values(schema, event->attributes, values->all + values->count);
	if (!event->text)
		values->all[values->count++] = waffle_str(event->message);
}

static void event_mark(const struct nvtx_event *event)
{
	struct values values;

	values_make(&values, event, false);
	if (values.name)
		waffle_event_named(values.name, values.all, values.count);
}

/* ---- ranges that nest ---- */

/* Leaves what was open when an earlier recording ended, so that it is no parent any more. */
static void stack_renew(struct stack *stack, uint32_t session)
{
	while (stack->depth)
		waffle_scope_end(&stack->levels[--stack->depth].scope);
	stack->beyond = 0;
	stack->session = session;
}

/* NULL: out of memory. */
static struct stack *stack_get(void)
{
	struct stack *stack =
		(struct stack *)(own ?: per_thread_open(&stacks, &own, sizeof(*stack)));
	uint32_t session = __atomic_load_n(&ranges.session, __ATOMIC_RELAXED);

	if (stack && stack->session != session)
		stack_renew(stack, session);
	return stack;
}

/* How many ranges of the domain are open. */
static int stack_level(const struct stack *stack, unsigned domain)
{
	int level = 0;

	for (unsigned i = 0; i < stack->depth; i++)
		level += stack->levels[i].open && stack->levels[i].domain == domain;
	return level;
}

static int range_push(const struct nvtx_event *event)
{
	struct stack *stack = stack_get();
	struct values values;
	struct level *level;

	if (!stack || stack->depth == NVTX_DEPTH_MAX) {
		if (stack)
			stack->beyond++;
		__atomic_fetch_add(&ranges.left_out, 1, __ATOMIC_RELAXED);
		return NVTX_NO_PUSH_POP_TRACKING;
	}
	values_make(&values, event, true);
	level = &stack->levels[stack->depth];
	level->domain = event->domain;
	level->open = true;
	level->scope.words_[0] = 0;
	/* A signal handler may push and pop above it from now on. */
	__atomic_store_n(&stack->depth, stack->depth + 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (values.name)
		waffle_scope_begin_named(&level->scope, values.name, values.all, values.count);
	return stack_level(stack, event->domain) - 1;
}

static int range_pop(unsigned domain)
{
	struct stack *stack = stack_get();
	unsigned at = stack ? stack->depth : 0;
	int level;

	if (stack && stack->beyond) {
		stack->beyond--;
		return NVTX_NO_PUSH_POP_TRACKING;
	}
	while (at && !(stack->levels[at - 1].open && stack->levels[at - 1].domain == domain))
		at--;
	if (!at) /* it was pushed before it was armed */
		return NVTX_NO_PUSH_POP_TRACKING;
	level = stack_level(stack, domain) - 1;
	waffle_scope_end(&stack->levels[at - 1].scope);
	stack->levels[at - 1].open = false;
	at = stack->depth;
	while (at && !stack->levels[at - 1].open)
		at--;
	__atomic_store_n(&stack->depth, at, __ATOMIC_RELAXED);
	return level;
}

/* ---- ranges that may end on another thread ---- */

/* NULL: out of memory. */
static struct started *started_map(void)
{
	return nvtx_reserve((void **)&ranges.started, sizeof(struct started) * NVTX_STARTED_MAX);
}

/* A free place, which is busy from now on. NULL: none was found. */
static struct started *started_take(uint64_t number)
{
	struct started *all = started_map();

	for (unsigned i = 0; all && i < STARTED_TRIES; i++) {
		struct started *one = &all[(number + i) % NVTX_STARTED_MAX];
		uint64_t free = 0;

		if (__atomic_compare_exchange_n(&one->id, &free, STARTED_BUSY, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return one;
	}
	__atomic_fetch_add(&ranges.left_out, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* The id has the number of the range, which is unique, and its place. */
static uint64_t range_start(const struct nvtx_event *event)
{
	uint64_t number = __atomic_add_fetch(&ranges.next, 1, __ATOMIC_RELAXED);
	uint64_t id = number * NVTX_STARTED_MAX;
	struct started *one;
	struct values values;

	values_make(&values, event, true);
	one = values.name ? started_take(number) : NULL;
	if (!one)
		return id;
	id += (uint64_t)(one - ranges.started);
	one->span = waffle_span_begin_named(values.name, values.all, values.count);
	__atomic_store_n(&one->id, id, __ATOMIC_RELEASE);
	return id;
}

static void range_end(uint64_t id)
{
	struct started *all = __atomic_load_n(&ranges.started, __ATOMIC_ACQUIRE);
	struct started *one = all ? &all[id % NVTX_STARTED_MAX] : NULL;
	waffle_span_t span;

	if (!one || id < NVTX_STARTED_MAX || id == STARTED_BUSY ||
	    !__atomic_compare_exchange_n(&one->id, &id, STARTED_BUSY, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return;
	span = one->span;
	__atomic_store_n(&one->id, 0, __ATOMIC_RELEASE);
	waffle_span_end(span);
}

/* ---- recordings ---- */

void nvtx_ranges_forget(void)
{
	struct started *all = __atomic_load_n(&ranges.started, __ATOMIC_ACQUIRE);

	__atomic_add_fetch(&ranges.session, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&ranges.left_out, 0, __ATOMIC_RELAXED);
	for (unsigned i = 0; all && i < NVTX_STARTED_MAX; i++) {
		uint64_t id = __atomic_load_n(&all[i].id, __ATOMIC_RELAXED);

		if (id && id != STARTED_BUSY)
			__atomic_compare_exchange_n(&all[i].id, &id, 0, false, __ATOMIC_RELAXED,
						    __ATOMIC_RELAXED);
	}
}

bool nvtx_ranges_are_open(void)
{
	struct started *all = __atomic_load_n(&ranges.started, __ATOMIC_ACQUIRE);

	for (struct per_thread *one = per_thread_first(&stacks); one; one = one->next) {
		const struct stack *stack = (const struct stack *)one;

		if (__atomic_load_n(&stack->depth, __ATOMIC_RELAXED) &&
		    __atomic_load_n(&stack->session, __ATOMIC_RELAXED) == ranges.session)
			return true;
	}
	for (unsigned i = 0; all && i < NVTX_STARTED_MAX; i++)
		if (__atomic_load_n(&all[i].id, __ATOMIC_RELAXED))
			return true;
	return false;
}

uint64_t nvtx_ranges_left_out(void)
{
	return __atomic_load_n(&ranges.left_out, __ATOMIC_RELAXED);
}

/* ---- the functions themselves, as NVTX declares them ---- */

#define MARK(name, parameter, read)                                                                \
	static void mark_##name parameter                                                          \
	{                                                                                          \
		struct nvtx_event event;                                                           \
                                                                                                   \
		read;                                                                              \
		event_mark(&event);                                                                \
	}
#define START(name, parameter, read)                                                               \
	static uint64_t start_##name parameter                                                     \
	{                                                                                          \
		struct nvtx_event event;                                                           \
                                                                                                   \
		read;                                                                              \
		return range_start(&event);                                                        \
	}
#define PUSH(name, parameter, read)                                                                \
	static int push_##name parameter                                                           \
	{                                                                                          \
		struct nvtx_event event;                                                           \
                                                                                                   \
		read;                                                                              \
		return range_push(&event);                                                         \
	}
/* Each kind of call, with each kind of message. */
#define ALL(name, parameter, read)                                                                 \
	MARK(name, parameter, read)                                                                \
	START(name, parameter, read)                                                               \
	PUSH(name, parameter, read)

ALL(ascii, (const char *message), event_ascii(&event, message))
ALL(wide, (const wchar_t *message), event_wide(&event, message))
ALL(attributes, (const struct nvtx_attributes *given), event_attributes(&event, NULL, given))
ALL(domain, (const void *domain, const struct nvtx_attributes *given),
    event_attributes(&event, domain, given))

static int pop(void)
{
	return range_pop(0);
}

static int pop_domain(const void *domain)
{
	return range_pop(nvtx_domain_number(domain));
}

static void end_domain(const void *domain, uint64_t id)
{
	(void)domain;
	range_end(id);
}

static void category_ascii(uint32_t category, const char *name)
{
	nvtx_category_set(0, category, name);
}

static void category_domain(const void *domain, uint32_t category, const char *name)
{
	nvtx_category_set(nvtx_domain_number(domain), category, name);
}

static void category_domain_wide(const void *domain, uint32_t category, const wchar_t *name)
{
	char narrow[NVTX_TEXT_BYTES + 1];

	nvtx_text_narrow(narrow, sizeof(narrow), name);
	category_domain(domain, category, narrow);
}

static void category_wide(uint32_t category, const wchar_t *name)
{
	category_domain_wide(NULL, category, name);
}

static const void *string_ascii(const void *domain, const char *text)
{
	(void)domain;
	return nvtx_text_of(text);
}

static const void *string_wide(const void *domain, const wchar_t *text)
{
	char narrow[NVTX_TEXT_BYTES + 4];

	(void)domain;
	nvtx_text_narrow(narrow, sizeof(narrow), text);
	return text ? nvtx_text_of(narrow) : NULL;
}

static const void *domain_wide(const wchar_t *name)
{
	char narrow[NVTX_TEXT_BYTES + 4];

	nvtx_text_narrow(narrow, sizeof(narrow), name);
	return name ? nvtx_domain(narrow) : NULL;
}

/* ---- the payload extension ---- */

/* Ranges whose message is in the payload have the name "nvtx". */
static void event_domain(struct nvtx_event *event, const void *domain)
{
	event_ascii(event, NULL);
	event->domain = nvtx_domain_number(domain);
}

static uint64_t schema_register(const void *domain, const struct nvtx_schema_attributes *given)
{
	return nvtx_schema_register(nvtx_domain_number(domain), given);
}

static uint64_t enum_register(const void *domain, const struct nvtx_enum_attributes *given)
{
	return nvtx_enum_register(nvtx_domain_number(domain), given);
}

static void mark_payload(const void *domain, const struct nvtx_payload_data *data, size_t count)
{
	struct nvtx_event event;

	(void)data, (void)count;
	event_domain(&event, domain);
	event_mark(&event);
}

static int push_payload(const void *domain, const struct nvtx_payload_data *data, size_t count)
{
	struct nvtx_event event;

	(void)data, (void)count;
	if (!is_recording())
		return NVTX_NO_PUSH_POP_TRACKING;
	event_domain(&event, domain);
	return range_push(&event);
}

static int pop_payload(const void *domain, const struct nvtx_payload_data *data, size_t count)
{
	(void)data, (void)count;
	return pop_domain(domain);
}

static uint64_t start_payload(const void *domain, const struct nvtx_payload_data *data,
			      size_t count)
{
	struct nvtx_event event;

	(void)data, (void)count;
	event_domain(&event, domain);
	return range_start(&event);
}

static void end_payload(const void *domain, uint64_t id, const struct nvtx_payload_data *data,
			size_t count)
{
	(void)data, (void)count;
	end_domain(domain, id);
}

const nvtx_function nvtx_extension_tools[NVTX_SLOTS] = {
	[NVTX_SLOT_SCHEMA_REGISTER] = (nvtx_function)schema_register,
	[NVTX_SLOT_ENUM_REGISTER] = (nvtx_function)enum_register,
	[NVTX_SLOT_MARK] = (nvtx_function)mark_payload,
	[NVTX_SLOT_PUSH] = (nvtx_function)push_payload,
	[NVTX_SLOT_POP] = (nvtx_function)pop_payload,
	[NVTX_SLOT_START] = (nvtx_function)start_payload,
	[NVTX_SLOT_END] = (nvtx_function)end_payload,
};

/* ---- tables ---- */

#define TOOL(function, purpose)                                                                    \
	{                                                                                          \
		(nvtx_function)(function), (purpose)                                               \
	}

const struct nvtx_tool nvtx_core_tools[NVTX_CORE_COUNT] = {
	[NVTX_MARK_EX] = TOOL(mark_attributes, NVTX_RECORDS),
	[NVTX_MARK_A] = TOOL(mark_ascii, NVTX_RECORDS),
	[NVTX_MARK_W] = TOOL(mark_wide, NVTX_RECORDS),
	[NVTX_START_EX] = TOOL(start_attributes, NVTX_RECORDS),
	[NVTX_START_A] = TOOL(start_ascii, NVTX_RECORDS),
	[NVTX_START_W] = TOOL(start_wide, NVTX_RECORDS),
	[NVTX_END] = TOOL(range_end, NVTX_ENDS),
	[NVTX_PUSH_EX] = TOOL(push_attributes, NVTX_RECORDS),
	[NVTX_PUSH_A] = TOOL(push_ascii, NVTX_RECORDS),
	[NVTX_PUSH_W] = TOOL(push_wide, NVTX_RECORDS),
	[NVTX_POP] = TOOL(pop, NVTX_ENDS),
	[NVTX_NAME_CATEGORY_A] = TOOL(category_ascii, NVTX_REGISTERS),
	[NVTX_NAME_CATEGORY_W] = TOOL(category_wide, NVTX_REGISTERS),
};

const struct nvtx_tool nvtx_core2_tools[NVTX_CORE2_COUNT] = {
	[NVTX_DOMAIN_MARK_EX] = TOOL(mark_domain, NVTX_RECORDS),
	[NVTX_DOMAIN_START_EX] = TOOL(start_domain, NVTX_RECORDS),
	[NVTX_DOMAIN_END] = TOOL(end_domain, NVTX_ENDS),
	[NVTX_DOMAIN_PUSH_EX] = TOOL(push_domain, NVTX_RECORDS),
	[NVTX_DOMAIN_POP] = TOOL(pop_domain, NVTX_ENDS),
	[NVTX_DOMAIN_NAME_CATEGORY_A] = TOOL(category_domain, NVTX_REGISTERS),
	[NVTX_DOMAIN_NAME_CATEGORY_W] = TOOL(category_domain_wide, NVTX_REGISTERS),
	[NVTX_DOMAIN_REGISTER_STRING_A] = TOOL(string_ascii, NVTX_REGISTERS),
	[NVTX_DOMAIN_REGISTER_STRING_W] = TOOL(string_wide, NVTX_REGISTERS),
	[NVTX_DOMAIN_CREATE_A] = TOOL(nvtx_domain, NVTX_REGISTERS),
	[NVTX_DOMAIN_CREATE_W] = TOOL(domain_wide, NVTX_REGISTERS),
};
