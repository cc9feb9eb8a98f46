// SPDX-License-Identifier: Apache-2.0
/*
 * Propagators: tables of headers and of what is read from them, and what is sent then. The cases of
 * traceparent and tracestate are those of the W3C's test suite for services, level 2
 * (w3c/trace-context, test/test.py), those of baggage follow w3c/baggage.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#include "waffle_propagate.h"

#define ALL                                                                                        \
	(WAFFLE_PROPAGATE_TRACECONTEXT | WAFFLE_PROPAGATE_B3 | WAFFLE_PROPAGATE_B3MULTI |          \
	 WAFFLE_PROPAGATE_BAGGAGE)
#define LINES 40

/* ---- a message ---- */

struct line {
	const char *name, *value;
};

struct message {
	struct line lines[LINES];
	size_t count;
	int fails; /* set() fails at this line, from 1 */
};

/* Of the message that was written last. */
static char sent[LINES][WAFFLE_BAGGAGE_MAX + 1];

static const char *get(void *user, const char *name, size_t index, size_t *length)
{
	const struct message *message = user;

	for (size_t i = 0; i < LINES && message->lines[i].name; i++) {
		if (strcasecmp(message->lines[i].name, name) != 0 || index--)
			continue;
		*length = strlen(message->lines[i].value);
		return message->lines[i].value;
	}
	return NULL;
}

static int set(void *user, const char *name, const char *value)
{
	struct message *message = user;

	assert_true(message->count < LINES);
	if (message->fails && (size_t)message->fails == message->count + 1)
		return -EPIPE;
	snprintf(sent[message->count], sizeof(*sent), "%s", value);
	message->lines[message->count] = (struct line){name, sent[message->count]};
	message->count++;
	return 0;
}

static bool extract(unsigned propagators, const struct message *message,
		    struct waffle_wire_context *wire)
{
	struct waffle_carrier carrier = {get, NULL, (void *)(uintptr_t)message};

	memset(wire, 0x55, sizeof(*wire));
	return waffle_propagate_extract(propagators, &carrier, wire);
}

static int inject(unsigned propagators, struct message *message, waffle_context_t context,
		  const struct waffle_wire_context *wire)
{
	struct waffle_carrier carrier = {NULL, set, message};

	memset(message->lines, 0, sizeof(message->lines));
	message->count = 0;
	return waffle_propagate_inject(propagators, &carrier, context, wire);
}

/* "name: value\n" for each line. */
static void assert_sent(const struct message *message, const char *expected)
{
	char text[4096];
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < message->count; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s: %s\n",
					message->lines[i].name, message->lines[i].value);
	assert_string_equal(text, expected);
}

/* ---- W3C Trace Context ---- */

#define TRACE "12345678901234567890123456789012"
#define PARENT "00-" TRACE "-1234567890123456-01"
#define DENIED "00-" TRACE "-1234567890123456-00"
#define TEN(n)                                                                                     \
	"bar" n "0=0,bar" n "1=1,bar" n "2=2,bar" n "3=3,bar" n "4=4,bar" n "5=5,bar" n            \
	"6=6,bar" n "7=7,bar" n "8=8,bar" n "9=9"
#define Z64 "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"
#define Z256 Z64 Z64 Z64 Z64
#define T241 Z64 Z64 Z64 "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz" /* 3 * 64 + 49 */
#define KEY "abcdefghijklmnopqrstuvwxyz0123456789_-*/"
#define VALUE                                                                                      \
	" !\"#$%&'()*+-./0123456789:;<>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`"                        \
	"abcdefghijklmnopqrstuvwxyz{|}~"

static const struct w3c_case {
	const char *name;
	struct message message;
	bool valid;
	const char *state;
} w3c_cases[] = {
	{"both missing", {.lines = {{"host", "x"}}}, false, ""},
	{"tracestate missing", {.lines = {{"traceparent", PARENT}}}, true, ""},
	{"twice",
	 {.lines = {{"traceparent", "00-12345678901234567890123456789011-1234567890123456-01"},
		    {"traceparent", PARENT}}},
	 false,
	 ""},
	{"wrong name", {.lines = {{"trace-parent", PARENT}, {"trace.parent", PARENT}}}, false, ""},
	{"case of the name", {.lines = {{"TrAcEpArEnT", PARENT}}}, true, ""},
	{"version 00, a dot more", {.lines = {{"traceparent", PARENT "."}}}, false, ""},
	{"version 00, more", {.lines = {{"traceparent", PARENT "-what-the-future"}}}, false, ""},
	{"version cc", {.lines = {{"traceparent", "cc-" TRACE "-1234567890123456-01"}}}, true, ""},
	{"version cc, more",
	 {.lines = {{"traceparent", "cc-" TRACE "-1234567890123456-01-what-the-future"}}},
	 true,
	 ""},
	{"version cc, a dot more",
	 {.lines = {{"traceparent", "cc-" TRACE "-1234567890123456-01.what-the-future"}}},
	 false,
	 ""},
	{"version ff", {.lines = {{"traceparent", "ff-" TRACE "-1234567890123456-01"}}}, false, ""},
	{"version .0", {.lines = {{"traceparent", ".0-" TRACE "-1234567890123456-01"}}}, false, ""},
	{"version 0.", {.lines = {{"traceparent", "0.-" TRACE "-1234567890123456-01"}}}, false, ""},
	{"version 000",
	 {.lines = {{"traceparent", "000-" TRACE "-1234567890123456-01"}}},
	 false,
	 ""},
	{"version 0000",
	 {.lines = {{"traceparent", "0000-" TRACE "-1234567890123456-01"}}},
	 false,
	 ""},
	{"version 0", {.lines = {{"traceparent", "0-" TRACE "-1234567890123456-01"}}}, false, ""},
	{"trace id of zeros",
	 {.lines = {{"traceparent", "00-00000000000000000000000000000000-1234567890123456-01"}}},
	 false,
	 ""},
	{"trace id, first digit",
	 {.lines = {{"traceparent", "00-.2345678901234567890123456789012-1234567890123456-01"}}},
	 false,
	 ""},
	{"trace id, last digit",
	 {.lines = {{"traceparent", "00-1234567890123456789012345678901.-1234567890123456-01"}}},
	 false,
	 ""},
	{"trace id too long",
	 {.lines = {{"traceparent", "00-" TRACE "3-1234567890123456-01"}}},
	 false,
	 ""},
	{"trace id too short",
	 {.lines = {{"traceparent", "00-1234567890123456789012345678901-1234567890123456-01"}}},
	 false,
	 ""},
	{"parent id of zeros",
	 {.lines = {{"traceparent", "00-" TRACE "-0000000000000000-01"}}},
	 false,
	 ""},
	{"parent id, first digit",
	 {.lines = {{"traceparent", "00-" TRACE "-.234567890123456-01"}}},
	 false,
	 ""},
	{"parent id, last digit",
	 {.lines = {{"traceparent", "00-" TRACE "-123456789012345.-01"}}},
	 false,
	 ""},
	{"parent id too long",
	 {.lines = {{"traceparent", "00-" TRACE "-12345678901234567-01"}}},
	 false,
	 ""},
	{"parent id too short",
	 {.lines = {{"traceparent", "00-" TRACE "-123456789012345-01"}}},
	 false,
	 ""},
	{"flags .0", {.lines = {{"traceparent", "00-" TRACE "-1234567890123456-.0"}}}, false, ""},
	{"flags 0.", {.lines = {{"traceparent", "00-" TRACE "-1234567890123456-0."}}}, false, ""},
	{"flags too long",
	 {.lines = {{"traceparent", "00-" TRACE "-1234567890123456-001"}}},
	 false,
	 ""},
	{"flags too short",
	 {.lines = {{"traceparent", "00-" TRACE "-1234567890123456-1"}}},
	 false,
	 ""},
	{"a space before", {.lines = {{"traceparent", " " PARENT}}}, true, ""},
	{"a tab before", {.lines = {{"traceparent", "\t" PARENT}}}, true, ""},
	{"a space behind", {.lines = {{"traceparent", PARENT " "}}}, true, ""},
	{"white space around", {.lines = {{"traceparent", "\t " PARENT " \t"}}}, true, ""},
	{"tracestate alone", {.lines = {{"tracestate", "foo=1"}}}, false, ""},
	{"tracestate",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", "foo=1,bar=2"}}},
	 true,
	 "foo=1,bar=2"},
	{"tracestate, wrong name",
	 {.lines = {{"traceparent", PARENT}, {"trace-state", "foo=1"}, {"trace.state", "foo=1"}}},
	 true,
	 ""},
	{"tracestate, case of the name",
	 {.lines = {{"traceparent", PARENT}, {"TraceState", "foo=1"}}},
	 true,
	 "foo=1"},
	{"tracestate, empty", {.lines = {{"traceparent", PARENT}, {"tracestate", ""}}}, true, ""},
	{"tracestate, empty line behind",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", "foo=1"}, {"tracestate", ""}}},
	 true,
	 "foo=1"},
	{"tracestate, empty line before",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", ""}, {"tracestate", "foo=1"}}},
	 true,
	 "foo=1"},
	{"tracestate, empty members",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", ",foo=1,, \t ,bar=2,"}}},
	 true,
	 "foo=1,bar=2"},
	{"tracestate, several lines",
	 {.lines = {{"traceparent", PARENT},
		    {"tracestate", "foo=1,bar=2"},
		    {"tracestate", "rojo=1,congo=2"},
		    {"tracestate", "baz=3"}}},
	 true,
	 "foo=1,bar=2,rojo=1,congo=2,baz=3"},
	{"tracestate, a key twice",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", "foo=1,foo=2,bar=3"}}},
	 true,
	 "foo=1,bar=3"},
	{"tracestate, a key twice in two lines",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", "foo=1"}, {"tracestate", "foo=2"}}},
	 true,
	 "foo=1"},
	{"tracestate, all characters",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", KEY "=" VALUE}}},
	 true,
	 KEY "=" VALUE},
	{"tracestate, all characters with a vendor",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", KEY "@a-z0-9_-*/=" VALUE}}},
	 true,
	 KEY "@a-z0-9_-*/=" VALUE},
	{"tracestate, white space",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", " foo=1 \t , \t bar=2,\t baz=3\t"}}},
	 true,
	 "foo=1,bar=2,baz=3"},
	{"tracestate, a space in a key",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", "foo =1"}}},
	 true,
	 ""},
	{"tracestate, capitals",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", "FOO=1"}}},
	 true,
	 ""},
	{"tracestate, a dot",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", "foo.bar=1"}}},
	 true,
	 ""},
	{"tracestate, an @ at the end of a key",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", "foo@=1,bar=2"}}},
	 true,
	 "foo@=1,bar=2"},
	{"tracestate, a key that begins with a digit",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", "0a=1,bar=2"}}},
	 true,
	 "0a=1,bar=2"},
	{"tracestate, an @ at the begin of a key",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", "@foo=1,bar=2"}}},
	 true,
	 ""},
	{"tracestate, @@",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", "foo@@bar=1,bar=2"}}},
	 true,
	 "foo@@bar=1,bar=2"},
	{"tracestate, two @",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", "foo@bar@baz=1,bar=2"}}},
	 true,
	 "foo@bar@baz=1,bar=2"},
	{"tracestate, 32 members",
	 {.lines = {{"traceparent", PARENT},
		    {"tracestate", TEN("0")},
		    {"tracestate", TEN("1")},
		    {"tracestate", TEN("2")},
		    {"tracestate", "bar31=31,bar32=32"}}},
	 true,
	 TEN("0") "," TEN("1") "," TEN("2") ",bar31=31,bar32=32"},
	{"tracestate, 33 members",
	 {.lines = {{"traceparent", PARENT},
		    {"tracestate", TEN("0")},
		    {"tracestate", TEN("1")},
		    {"tracestate", TEN("2")},
		    {"tracestate", "bar31=31,bar32=32,bar33=33"}}},
	 true,
	 ""},
	{"tracestate, a key of 256",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", "foo=1"}, {"tracestate", Z256 "=1"}}},
	 true,
	 "foo=1," Z256 "=1"},
	{"tracestate, a key of 257",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", "foo=1"}, {"tracestate", Z256 "z=1"}}},
	 true,
	 ""},
	{"tracestate, a tenant of 241 and a system of 14",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", "foo=1," T241 "@vvvvvvvvvvvvvv=1"}}},
	 true,
	 "foo=1," T241 "@vvvvvvvvvvvvvv=1"},
	{"tracestate, a tenant of 242",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", "foo=1," T241 "z@v=1"}}},
	 true,
	 "foo=1," T241 "z@v=1"},
	{"tracestate, a system of 15",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", "foo=1,t@vvvvvvvvvvvvvvv=1"}}},
	 true,
	 "foo=1,t@vvvvvvvvvvvvvvv=1"},
	{"tracestate, '=' in a value",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", "foo=bar=baz"}}},
	 true,
	 ""},
	{"tracestate, no value",
	 {.lines = {{"traceparent", PARENT}, {"tracestate", "foo=,bar=3"}}},
	 true,
	 ""},
	/* Over 512 bytes: members of more than 128 go first. */
	{"tracestate, long members are dropped first",
	 {.lines = {{"traceparent", PARENT},
		    {"tracestate", "a=1," Z256 "=1,b=2"},
		    {"tracestate", "c=" Z256 ",d=4"}}},
	 true,
	 "a=1,b=2,d=4"},
	{"tracestate, then the last ones",
	 {.lines = {{"traceparent", PARENT},
		    {"tracestate", "a=" Z64 ",b=" Z64 ",c=" Z64 ",d=" Z64},
		    {"tracestate", "e=" Z64 ",f=" Z64 ",g=" Z64 ",h=" Z64 ",i=5"}}},
	 true,
	 "a=" Z64 ",b=" Z64 ",c=" Z64 ",d=" Z64 ",e=" Z64 ",f=" Z64 ",g=" Z64},
};

static void test_w3c_cases_are_read_as_the_specification_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(w3c_cases) / sizeof(*w3c_cases); i++) {
		const struct w3c_case *c = &w3c_cases[i];
		struct waffle_wire_context wire;

		if (extract(ALL, &c->message, &wire) != c->valid ||
		    wire.context.span_id != (c->valid ? 0x1234567890123456ull : 0) ||
		    wire.context.trace_lo != (c->valid ? 0x7890123456789012ull : 0) ||
		    strcmp(wire.tracestate, c->state) != 0 || *wire.baggage)
			fail_msg("%s: tracestate '%s'", c->name, wire.tracestate);
	}
}

static const char *get_with_nul(void *user, const char *name, size_t index, size_t *length)
{
	(void)user;
	if (index || strcmp(name, "traceparent") != 0)
		return NULL;
	*length = sizeof("cc-" TRACE "-1234567890123456-01-\0");
	return "cc-" TRACE "-1234567890123456-01-\0";
}

static void test_a_value_with_nul_is_not_valid(void **state)
{
	struct waffle_carrier carrier = {get_with_nul, NULL, NULL};
	struct waffle_wire_context wire;

	(void)state;
	assert_false(waffle_propagate_extract(ALL, &carrier, &wire));
}

/* ---- B3 ---- */

#define B3_TRACE "463ac35c9f6413ad48485a3953bb6124"
#define B3_SPAN "a2fb4a1d1a96d312"

static const struct b3_case {
	struct message message;
	bool valid;
	enum waffle_sampling sampling;
	unsigned long long hi;
} b3_cases[] = {
	{{.lines = {{"b3", B3_TRACE "-" B3_SPAN "-1"}}}, true, WAFFLE_SAMPLING_ACCEPT, 1},
	{{.lines = {{"b3", B3_TRACE "-" B3_SPAN}}}, true, WAFFLE_SAMPLING_UNKNOWN, 1},
	{{.lines = {{"b3", B3_TRACE "-" B3_SPAN "-0"}}}, true, WAFFLE_SAMPLING_DENY, 1},
	{{.lines = {{"b3", B3_TRACE "-" B3_SPAN "-d"}}}, true, WAFFLE_SAMPLING_DEBUG, 1},
	{{.lines = {{"b3", B3_TRACE "-" B3_SPAN "-1-0020000000000001"}}},
	 true,
	 WAFFLE_SAMPLING_ACCEPT,
	 1},
	{{.lines = {{"b3", "48485a3953bb6124-" B3_SPAN "-1"}}}, true, WAFFLE_SAMPLING_ACCEPT, 0},
	{{.lines = {{"B3", " 48485a3953bb6124-" B3_SPAN "\t"}}}, true, WAFFLE_SAMPLING_UNKNOWN, 0},
	{{.lines = {{"b3", "0"}}}, false, WAFFLE_SAMPLING_DENY, 0},
	{{.lines = {{"b3", "1"}}}, false, WAFFLE_SAMPLING_ACCEPT, 0},
	{{.lines = {{"b3", "d"}}}, false, WAFFLE_SAMPLING_DEBUG, 0},
	{{.lines = {{"b3", ""}}}, false, WAFFLE_SAMPLING_UNKNOWN, 0},
	{{.lines = {{"b3", "2"}}}, false, WAFFLE_SAMPLING_UNKNOWN, 0},
	{{.lines = {{"b3", "-"}}}, false, WAFFLE_SAMPLING_UNKNOWN, 0},
	{{.lines = {{"b3", B3_TRACE}}}, false, WAFFLE_SAMPLING_UNKNOWN, 0},
	{{.lines = {{"b3", B3_TRACE "-"}}}, false, WAFFLE_SAMPLING_UNKNOWN, 0},
	{{.lines = {{"b3", B3_TRACE "-" B3_SPAN "-"}}}, false, WAFFLE_SAMPLING_UNKNOWN, 0},
	{{.lines = {{"b3", B3_TRACE "-" B3_SPAN "-2"}}}, false, WAFFLE_SAMPLING_UNKNOWN, 0},
	{{.lines = {{"b3", B3_TRACE "-" B3_SPAN "-1-"}}}, false, WAFFLE_SAMPLING_UNKNOWN, 0},
	{{.lines = {{"b3", B3_TRACE "-" B3_SPAN "-1-00200000000000010"}}},
	 false,
	 WAFFLE_SAMPLING_UNKNOWN,
	 0},
	{{.lines = {{"b3", "0" B3_TRACE "-" B3_SPAN "-1"}}}, false, WAFFLE_SAMPLING_UNKNOWN, 0},
	{{.lines = {{"b3", "463AC35C9F6413AD48485A3953BB6124-" B3_SPAN "-1"}}},
	 false,
	 WAFFLE_SAMPLING_UNKNOWN,
	 0},
	{{.lines = {{"b3", "00000000000000000000000000000000-" B3_SPAN "-1"}}},
	 false,
	 WAFFLE_SAMPLING_UNKNOWN,
	 0},
	{{.lines = {{"b3", B3_TRACE "-0000000000000000-1"}}}, false, WAFFLE_SAMPLING_UNKNOWN, 0},
	/* several headers */
	{{.lines = {{"X-B3-TraceId", B3_TRACE}, {"X-B3-SpanId", B3_SPAN}, {"X-B3-Sampled", "1"}}},
	 true,
	 WAFFLE_SAMPLING_ACCEPT,
	 1},
	{{.lines = {{"X-B3-TraceId", B3_TRACE}, {"X-B3-SpanId", B3_SPAN}}},
	 true,
	 WAFFLE_SAMPLING_UNKNOWN,
	 1},
	{{.lines = {{"X-B3-TraceId", "48485a3953bb6124"},
		    {"X-B3-ParentSpanId", "0020000000000001"},
		    {"X-B3-SpanId", B3_SPAN},
		    {"X-B3-Flags", "1"}}},
	 true,
	 WAFFLE_SAMPLING_DEBUG,
	 0},
	{{.lines = {{"X-B3-TraceId", B3_TRACE},
		    {"X-B3-SpanId", B3_SPAN},
		    {"X-B3-Sampled", "false"}}},
	 true,
	 WAFFLE_SAMPLING_DENY,
	 1},
	{{.lines = {{"X-B3-Sampled", "true"}}}, false, WAFFLE_SAMPLING_ACCEPT, 0},
	{{.lines = {{"X-B3-Sampled", "0"}}}, false, WAFFLE_SAMPLING_DENY, 0},
	{{.lines = {{"X-B3-SpanId", B3_SPAN}, {"X-B3-Sampled", "0"}}},
	 false,
	 WAFFLE_SAMPLING_DENY,
	 0},
	{{.lines = {{"X-B3-TraceId", B3_TRACE},
		    {"X-B3-ParentSpanId", "1"},
		    {"X-B3-SpanId", B3_SPAN}}},
	 false,
	 WAFFLE_SAMPLING_UNKNOWN,
	 0},
	/* The first value counts; one header counts before several. */
	{{.lines = {{"X-B3-TraceId", B3_TRACE},
		    {"X-B3-TraceId", "1111111111111111"},
		    {"X-B3-SpanId", B3_SPAN}}},
	 true,
	 WAFFLE_SAMPLING_UNKNOWN,
	 1},
	{{.lines = {{"X-B3-TraceId", "1111111111111111"},
		    {"X-B3-SpanId", "2222222222222222"},
		    {"b3", B3_TRACE "-" B3_SPAN "-1"}}},
	 true,
	 WAFFLE_SAMPLING_ACCEPT,
	 1},
};

static void test_b3_cases_are_read_as_the_specification_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(b3_cases) / sizeof(*b3_cases); i++) {
		const struct b3_case *c = &b3_cases[i];
		struct waffle_wire_context wire;

		if (extract(ALL, &c->message, &wire) != c->valid || wire.sampling != c->sampling ||
		    wire.context.trace_hi != (c->hi ? 0x463ac35c9f6413adull : 0) ||
		    wire.context.trace_lo != (c->valid ? 0x48485a3953bb6124ull : 0) ||
		    wire.context.span_id != (c->valid ? 0xa2fb4a1d1a96d312ull : 0))
			fail_msg("%zu: %s: %s", i, c->message.lines[0].name,
				 c->message.lines[0].value);
	}
}

/* ---- baggage ---- */

static const struct baggage_case {
	const char *lines[3];
	const char *kept;
} baggage_cases[] = {
	{{"SomeKey=SomeValue"}, "SomeKey=SomeValue"},
	{{"a=1;p,b=2;q=3"}, "a=1;p,b=2;q=3"},
	{{"a \t = \t 1 \t ; \t p \t , \t b \t = \t 2 \t ; \t q \t = \t 3"}, "a=1;p,b=2;q=3"},
	{{"userId=alice", "serverNode=DF%2028,isProduction=false"},
	 "userId=alice,serverNode=DF%2028,isProduction=false"},
	{{"k=a=b=c"}, "k=a=b=c"},
	{{"k="}, "k="},
	{{"k=1,k=2"}, "k=1,k=2"}, /* may occur several times, in their order */
	{{"", "a=1", ""}, "a=1"},
	{{",,a=1, ,b=2,"}, "a=1,b=2"},
	/* What is not valid is dropped, the others stay. */
	{{"a,b=2"}, "b=2"},
	{{"=1,b=2"}, "b=2"},
	{{"a b=1,b=2"}, "b=2"},
	{{"a(=1,b=2"}, "b=2"},
	{{"a=\"1\",b=2"}, "b=2"},
	{{"a=1 2,b=2"}, "b=2"},
	{{"a=\\,b=2"}, "b=2"},
	{{"a=\xc3\xa4,b=2"}, "b=2"},
	{{"a=1;,b=2"}, "b=2"},
	{{"a=1;p p,b=2"}, "b=2"},
	{{"a=1;=p,b=2"}, "b=2"},
	{{"!#$%&'*+-.^_`|~=1"}, "!#$%&'*+-.^_`|~=1"},
};

static void test_baggage_cases_are_read_as_the_specification_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(baggage_cases) / sizeof(*baggage_cases); i++) {
		const struct baggage_case *c = &baggage_cases[i];
		struct waffle_wire_context wire;
		struct message message = {0};

		for (size_t l = 0; l < 3 && c->lines[l]; l++)
			message.lines[l] = (struct line){"Baggage", c->lines[l]};
		assert_false(extract(ALL, &message, &wire));
		if (strcmp(wire.baggage, c->kept) != 0)
			fail_msg("'%s' became '%s'", c->lines[0], wire.baggage);
	}
}

static void test_baggage_of_8192_bytes_is_kept_and_what_exceeds_it_is_dropped_whole(void **state)
{
	static char text[WAFFLE_BAGGAGE_MAX + 100];
	struct message message = {.lines = {{"baggage", text}}};
	struct waffle_wire_context wire;

	(void)state;
	for (int i = 0; i < 512; i++) /* 512 members of 15 bytes, and commas */
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%03d=0123456789a",
			 i ? "," : "", i);
	strcat(text, "b");
	assert_int_equal(strlen(text), 8192);
	extract(ALL, &message, &wire);
	assert_string_equal(wire.baggage, text);
	strcat(text, "c");
	extract(ALL, &message, &wire);
	assert_int_equal(strlen(wire.baggage), 511 * 16 - 1);
	assert_memory_equal(wire.baggage, text, 511 * 16 - 1);
	memset(text, 'x', 8190);
	memcpy(text, "a=", 2);
	text[8192] = '\0';
	memset(text + 2, '0', 8190);
	extract(ALL, &message, &wire);
	assert_string_equal(wire.baggage, text);
}

static void test_values_of_baggage_are_decoded_and_encoded(void **state)
{
	struct waffle_wire_context wire = {
		.baggage = "k=%09%20%22%27%3B%3Dasdf!%25,k2=a%2,k3=%ff%e2%82"
			   "%acz,k4=%C3%A4+"};
	char value[32];

	(void)state;
	assert_int_equal(waffle_baggage_get(&wire, "k", value, sizeof(value)), 12);
	assert_string_equal(value, "\t \"';=asdf!%");
	assert_int_equal(waffle_baggage_get(&wire, "k2", value, sizeof(value)), 3);
	assert_string_equal(value, "a%2");
	waffle_baggage_get(&wire, "k3", value, sizeof(value));
	assert_string_equal(value, "\xef\xbf\xbd\xe2\x82\xacz");
	waffle_baggage_get(&wire, "k4", value, sizeof(value));
	assert_string_equal(value, "\xc3\xa4+");
	assert_int_equal(waffle_baggage_get(&wire, "K", value, sizeof(value)), -ENOENT);
	assert_int_equal(waffle_baggage_get(&wire, "k", value, 3), 12);
	assert_string_equal(value, "\t ");
	assert_int_equal(waffle_baggage_get(&wire, "k", NULL, 0), 12);

	assert_int_equal(waffle_baggage_set(&wire, "k", "1,2;3 +\xc3\xa4", "secret; ttl = 5"), 0);
	assert_int_equal(waffle_baggage_set(&wire, "k2", NULL, NULL), 0);
	assert_int_equal(waffle_baggage_set(&wire, "k3", NULL, NULL), 0);
	assert_int_equal(waffle_baggage_set(&wire, "k4", NULL, NULL), 0);
	assert_string_equal(wire.baggage, "k=1%2C2%3B3%20%2B%C3%A4;secret;ttl=5");
	assert_int_equal(waffle_baggage_set(&wire, "k", NULL, NULL), 0);
	assert_string_equal(wire.baggage, "");
	assert_int_equal(waffle_baggage_set(&wire, "a b", "1", NULL), -EINVAL);
	assert_int_equal(waffle_baggage_set(&wire, "a", "1", "p p"), -EINVAL);
}

static void test_baggage_that_does_not_fit_changes_nothing(void **state)
{
	static char large[WAFFLE_BAGGAGE_MAX];
	struct waffle_wire_context wire = {.baggage = "a=1"};

	(void)state;
	memset(large, 'x', sizeof(large) - 1);
	assert_int_equal(waffle_baggage_set(&wire, "b", large, NULL), -ENOSPC);
	assert_int_equal(waffle_baggage_set(&wire, "a", large, NULL), -ENOSPC);
	assert_string_equal(wire.baggage, "a=1");
	large[sizeof(large) - 3] = '\0'; /* 8189 and "a=" */
	assert_int_equal(waffle_baggage_set(&wire, "a", large, NULL), 0);
	assert_int_equal(strlen(wire.baggage), 8191);
}

/* ---- tracestate ---- */

static void test_a_member_of_tracestate_is_set_at_the_front(void **state)
{
	struct waffle_wire_context wire = {.tracestate = "foo=1,bar=2"};
	char value[8];

	(void)state;
	assert_int_equal(waffle_tracestate_set(&wire, "bar", "3"), 0);
	assert_string_equal(wire.tracestate, "bar=3,foo=1");
	assert_int_equal(waffle_tracestate_get(&wire, "foo", value, sizeof(value)), 1);
	assert_string_equal(value, "1");
	assert_int_equal(waffle_tracestate_get(&wire, "fo", value, sizeof(value)), -ENOENT);
	assert_int_equal(waffle_tracestate_set(&wire, "bar", NULL), 0);
	assert_string_equal(wire.tracestate, "foo=1");
	assert_int_equal(waffle_tracestate_set(&wire, "Bar", "1"), -EINVAL);
	assert_int_equal(waffle_tracestate_set(&wire, "bar", "a,b"), -EINVAL);
	assert_int_equal(waffle_tracestate_set(&wire, Z256, Z256), -ENOSPC);
	assert_int_equal(waffle_tracestate_set(&wire, "foo", NULL), 0);
	assert_string_equal(wire.tracestate, "");
	for (int i = 0; i < 40; i++) {
		char key[16];

		snprintf(key, sizeof(key), "k%d", i);
		assert_int_equal(waffle_tracestate_set(&wire, key, "v"), 0);
	}
	assert_int_equal(waffle_tracestate_get(&wire, "k8", NULL, 0), 1);
	assert_int_equal(waffle_tracestate_get(&wire, "k7", NULL, 0), -ENOENT);
}

/* ---- what is sent ---- */

static const waffle_context_t upstream = {0x0af7651916cd43ddull, 0x8448eb211c80319cull,
					  0xb7ad6b7169203331ull};
static const waffle_context_t child = {0x0af7651916cd43ddull, 0x8448eb211c80319cull, 0x17};
static const waffle_context_t other = {0, 0x99, 0x18};
static const waffle_context_t null_context = {0, 0, 0};

#define UPSTREAM "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"
#define CHILD "0af7651916cd43dd8448eb211c80319c-0000000000000017"
#define OTHER "00000000000000000000000000000099-0000000000000018"

static void test_a_relay_sends_its_span_with_the_senders_state_and_decision(void **state)
{
	struct message message = {0};
	struct waffle_wire_context wire = {.context = upstream,
					   .sampling = WAFFLE_SAMPLING_DENY,
					   .flags = 2,
					   .tracestate = "foo=1",
					   .baggage = "k=v"};

	(void)state;
	assert_int_equal(inject(ALL, &message, child, &wire), 0);
	assert_sent(&message, "traceparent: 00-" CHILD "-02\ntracestate: foo=1\nb3: " CHILD "-0\n"
			      "x-b3-traceid: 0af7651916cd43dd8448eb211c80319c\n"
			      "x-b3-spanid: 0000000000000017\nx-b3-sampled: 0\nbaggage: k=v\n");
	/* Dormant sites pass on what came. */
	inject(WAFFLE_PROPAGATE_TRACECONTEXT, &message, null_context, &wire);
	assert_sent(&message, "traceparent: 00-" UPSTREAM "-02\ntracestate: foo=1\n");
	/* A new trace has nothing of the other one, but the baggage. */
	inject(WAFFLE_PROPAGATE_TRACECONTEXT | WAFFLE_PROPAGATE_BAGGAGE, &message, other, &wire);
	assert_sent(&message, "traceparent: 00-" OTHER "-01\nbaggage: k=v\n");
}

static void test_a_first_sender_samples_what_it_records(void **state)
{
	struct message message = {0};
	struct waffle_wire_context wire = {.baggage = "k=v"};

	(void)state;
	inject(WAFFLE_PROPAGATE_TRACECONTEXT | WAFFLE_PROPAGATE_B3, &message, other, NULL);
	assert_sent(&message,
		    "traceparent: 00-" OTHER "-01\nb3: 0000000000000099-0000000000000018-1\n");
	inject(ALL, &message, null_context, NULL);
	assert_sent(&message, "");
	inject(ALL, &message, null_context, &wire);
	assert_sent(&message, "baggage: k=v\n");
}

static void test_a_decision_without_a_context_is_passed_on(void **state)
{
	struct message message = {0};
	struct waffle_wire_context wire = {.sampling = WAFFLE_SAMPLING_DENY};

	(void)state;
	inject(ALL, &message, null_context, &wire);
	assert_sent(&message, "b3: 0\nx-b3-sampled: 0\n");
	inject(WAFFLE_PROPAGATE_TRACECONTEXT | WAFFLE_PROPAGATE_B3, &message, other, &wire);
	assert_sent(&message,
		    "traceparent: 00-" OTHER "-00\nb3: 0000000000000099-0000000000000018-0\n");
	wire.sampling = WAFFLE_SAMPLING_DEBUG;
	inject(WAFFLE_PROPAGATE_TRACECONTEXT | WAFFLE_PROPAGATE_B3MULTI, &message, other, &wire);
	assert_sent(&message, "traceparent: 00-" OTHER "-01\nx-b3-traceid: 0000000000000099\n"
			      "x-b3-spanid: 0000000000000018\nx-b3-flags: 1\n");
}

static void test_an_open_decision_stays_open_until_something_is_recorded(void **state)
{
	struct message message = {0};
	struct waffle_wire_context wire = {.context = upstream};

	(void)state;
	inject(WAFFLE_PROPAGATE_B3, &message, upstream, &wire);
	assert_sent(&message, "b3: " UPSTREAM "\n");
	inject(WAFFLE_PROPAGATE_B3, &message, child, &wire);
	assert_sent(&message, "b3: " CHILD "-1\n");
}

static void test_inject_ends_with_the_error_of_the_carrier(void **state)
{
	struct message message = {.fails = 2};

	(void)state;
	assert_int_equal(inject(ALL, &message, child, NULL), -EPIPE);
	assert_int_equal(message.count, 1);
}

/* ---- the choice of formats ---- */

static void test_propagators_are_parsed(void **state)
{
	static const struct {
		const char *text;
		int result;
		unsigned propagators;
	} cases[] = {
		{NULL, 0, WAFFLE_PROPAGATE_TRACECONTEXT | WAFFLE_PROPAGATE_BAGGAGE},
		{"", 0, WAFFLE_PROPAGATE_TRACECONTEXT | WAFFLE_PROPAGATE_BAGGAGE},
		{"tracecontext", 0, WAFFLE_PROPAGATE_TRACECONTEXT},
		{" b3 ,\tb3multi", 0, WAFFLE_PROPAGATE_B3 | WAFFLE_PROPAGATE_B3MULTI},
		{"none", 0, 0},
		{"baggage,none,", 0, WAFFLE_PROPAGATE_BAGGAGE},
		{"b3,jaeger", -EINVAL, WAFFLE_PROPAGATE_B3},
		{"B3", -EINVAL, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned propagators = 77;

		assert_int_equal(waffle_propagators_parse(cases[i].text, &propagators),
				 cases[i].result);
		assert_int_equal(propagators, cases[i].propagators);
	}
}

/* ---- the environment ---- */

static void test_a_childs_environment_has_the_new_context_alone(void **state)
{
	char *const envp[] = {"PATH=/bin",      ("TRACEPARENT=" PARENT), "X_B3_PARENTSPANID=1",
			      "TRACEPARENTS=2", "BAGGAGE=old=1",         NULL};
	struct waffle_wire_context wire = {.context = upstream,
					   .sampling = WAFFLE_SAMPLING_ACCEPT,
					   .tracestate = "foo=1",
					   .baggage = "k=v"};
	char **made = waffle_propagate_environment(ALL, envp, child, &wire);
	static const char *const expected[] = {
		("PATH=/bin"),
		("TRACEPARENTS=2"),
		("TRACEPARENT=00-" CHILD "-01"),
		("TRACESTATE=foo=1"),
		("B3=" CHILD "-1"),
		("X_B3_TRACEID=0af7651916cd43dd8448eb211c80319c"),
		("X_B3_SPANID=0000000000000017"),
		("X_B3_SAMPLED=1"),
		("BAGGAGE=k=v"),
	};
	size_t count = sizeof(expected) / sizeof(*expected);

	(void)state;
	assert_non_null(made);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(made[i], expected[i]);
	assert_null(made[count]);
	free(made);
	made = waffle_propagate_environment(0, envp, child, &wire);
	assert_string_equal(made[1], "TRACEPARENTS=2");
	assert_null(made[2]);
	free(made);
	made = waffle_propagate_environment(ALL, NULL, null_context, NULL);
	assert_null(*made);
	free(made);
}

static void test_the_parents_context_is_read_from_the_environment(void **state)
{
	struct waffle_wire_context wire;

	(void)state;
	setenv("TRACEPARENT", PARENT, 1);
	setenv("TRACESTATE", "foo=1", 1);
	setenv("BAGGAGE", "k=v", 1);
	assert_true(waffle_propagate_from_environment(ALL, &wire));
	assert_true(wire.context.span_id == 0x1234567890123456ull);
	assert_string_equal(wire.tracestate, "foo=1");
	assert_string_equal(wire.baggage, "k=v");
	unsetenv("TRACEPARENT");
	setenv("X_B3_TRACEID", B3_TRACE, 1);
	setenv("X_B3_SPANID", B3_SPAN, 1);
	assert_true(waffle_propagate_from_environment(ALL, &wire));
	assert_true(wire.context.span_id == 0xa2fb4a1d1a96d312ull);
	assert_false(waffle_propagate_from_environment(0, &wire));
	assert_string_equal(wire.baggage, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_w3c_cases_are_read_as_the_specification_says),
		cmocka_unit_test(test_a_value_with_nul_is_not_valid),
		cmocka_unit_test(test_b3_cases_are_read_as_the_specification_says),
		cmocka_unit_test(test_baggage_cases_are_read_as_the_specification_says),
		cmocka_unit_test(
			test_baggage_of_8192_bytes_is_kept_and_what_exceeds_it_is_dropped_whole),
		cmocka_unit_test(test_values_of_baggage_are_decoded_and_encoded),
		cmocka_unit_test(test_baggage_that_does_not_fit_changes_nothing),
		cmocka_unit_test(test_a_member_of_tracestate_is_set_at_the_front),
		cmocka_unit_test(test_a_relay_sends_its_span_with_the_senders_state_and_decision),
		cmocka_unit_test(test_a_first_sender_samples_what_it_records),
		cmocka_unit_test(test_a_decision_without_a_context_is_passed_on),
		cmocka_unit_test(test_an_open_decision_stays_open_until_something_is_recorded),
		cmocka_unit_test(test_inject_ends_with_the_error_of_the_carrier),
		cmocka_unit_test(test_propagators_are_parsed),
		cmocka_unit_test(test_a_childs_environment_has_the_new_context_alone),
		cmocka_unit_test(test_the_parents_context_is_read_from_the_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
