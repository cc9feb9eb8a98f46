/* SPDX-License-Identifier: Apache-2.0 */
/* Sites of every shape that C and C++ share. Comments as in inline.h. */
// clang-format off
#include <stdint.h>
#include <string.h>

#include "inline.h"

volatile int sink;
enum colour { RED, GREEN };

#define NAME "by macro"
#define KEY "key by macro"
#define MARK(label) WAFFLE_EVENT("mark " #label)
#define STEP(n)                                                                                    \
	do {                                                                                       \
		WAFFLE_SPAN("in macro", KV_I64("n", n));                                           \
		WAFFLE_EVENT("also in macro", KV_STR("what", "a step"));                           \
	} while (0)
#define NESTED_STEP(n) STEP((n) + 1)

void plain(int n);
void all_types(int n, double d, const char *text, const void *pointer);
void sixteen(int n);
void odd_names(void);
waffle_span_t begin_only(int n);
void end_only(waffle_span_t span);
void end_elsewhere(int n);
void several(int n);
void macros(int n);
void causes(int rank);
void counters(int n);
void logs(const char *text);
int expressions(int n);
void loops(int n);
int choose(int n);
int jump(int n);
int recurse(int n);
void across_lines(int n);
void contexts(void);
void unnamed_values(int n, unsigned char u, short s, float f, enum colour c, size_t z);
void not_called(int n);
void debug_keys(int n);
void modes(int n);
int framed(int n);
int shapes(int n);

/* IN plain */
void plain(int n)
{
	WAFFLE_SPAN("plain span"); /* SITE span "plain span" */
	WAFFLE_SPAN("plain keys", KV_I64("n", n), KV_STR("s", "text")); /* SITE span "plain keys" "n":i64 "s":str */
	WAFFLE_EVENT("plain event"); /* SITE event "plain event" */
	SPAN("short"); /* SITE span "short" */
	EVENT("short event", KV_I64("n", n)); /* SITE event "short event" "n":i64 */
}

/* IN all_types */
void all_types(int n, double d, const char *text, const void *pointer)
{
	waffle_event_id_t event = {0};
	waffle_span_id_t span = WAFFLE_SPAN_ID();

	WAFFLE_SPAN("all types", KV_I64("i", n), KV_U64("u", (unsigned)n + 1u), KV_F64("f", d), KV_BOOL("b", n > 1), KV_STR("s", text), KV_PTR("p", pointer), KV_CAUSE_SPAN(span), KV_CAUSE_EVENT(event)); /* SITE span "all types" "i":i64 "u":u64 "f":f64 "b":bool "s":str "p":ptr "cause":cause_span "cause":cause_event */
	WAFFLE_EVENT("types backwards", KV_CAUSE_EVENT(event), KV_CAUSE_SPAN(span), KV_PTR("p", pointer), KV_STR("s", text), KV_BOOL("b", n > 1), KV_F64("f", d), KV_U64("u", (unsigned)n + 1u), KV_I64("i", n)); /* SITE event "types backwards" "cause":cause_event "cause":cause_span "p":ptr "s":str "b":bool "f":f64 "u":u64 "i":i64 */
}

/* IN sixteen */
void sixteen(int n)
{
	WAFFLE_SPAN("sixteen", KV_I64("a", n), KV_I64("b", n), KV_I64("c", n), KV_I64("d", n), KV_I64("e", n), KV_I64("f", n), KV_I64("g", n), KV_I64("h", n), KV_STR("i", "i"), KV_STR("j", "j"), KV_U64("k", 1), KV_U64("l", 2), KV_F64("m", 3), KV_F64("n", 4), KV_BOOL("o", 5), KV_PTR("p", &sink)); /* SITE span "sixteen" "a":i64 "b":i64 "c":i64 "d":i64 "e":i64 "f":i64 "g":i64 "h":i64 "i":str "j":str "k":u64 "l":u64 "m":f64 "n":f64 "o":bool "p":ptr */
	WAFFLE_EVENT("fifteen", KV_I64("a", n), KV_I64("b", n), KV_I64("c", n), KV_I64("d", n), KV_I64("e", n), KV_I64("f", n), KV_I64("g", n), KV_I64("h", n), KV_I64("i", n), KV_I64("j", n), KV_U64("k", 1), KV_U64("l", 2), KV_F64("m", 3), KV_F64("n", 4), KV_BOOL("o", 5)); /* SITE event "fifteen" "a":i64 "b":i64 "c":i64 "d":i64 "e":i64 "f":i64 "g":i64 "h":i64 "i":i64 "j":i64 "k":u64 "l":u64 "m":f64 "n":f64 "o":bool */
}

/* IN odd_names */
void odd_names(void)
{
	WAFFLE_SPAN("100% %s %d %%"); /* SITE span "100% %s %d %%" */
	WAFFLE_SPAN("{braces|and|bars}", KV_I64("{a|b}", 1)); /* SITE span "{braces|and|bars}" "{a|b}":i64 */
	WAFFLE_EVENT("a \"quote\" and a \\ backslash", KV_STR("\"k\\\"", "\"")); /* SITE event "a \"quote\" and a \\ backslash" "\"k\\\"":str */
	WAFFLE_EVENT("späte Größe → 火", KV_I64("ключ", 1)); /* SITE event "späte Größe → 火" "ключ":i64 */
	WAFFLE_EVENT("tab\tand\nline"); /* SITE event "tab\tand\nline" */
	WAFFLE_EVENT(""); /* SITE event "" */
	WAFFLE_EVENT("two " "literals", KV_I64("two" " parts", 1)); /* SITE event "two literals" "two parts":i64 */
	WAFFLE_EVENT("# , ; ( ) [ ] @ $ ' ` ~ ? !"); /* SITE event "# , ; ( ) [ ] @ $ ' ` ~ ? !" */
	WAFFLE_EVENT("%c[meta] 990b %= %%rdi"); /* SITE event "%c[meta] 990b %= %%rdi" */
	WAFFLE_SPAN("12345"); /* SITE span "12345" */
	WAFFLE_EVENT("a long name that goes on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on to its end"); /* SITE event "a long name that goes on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on to its end" */
}

/* IN begin_only */
waffle_span_t begin_only(int n)
{
	waffle_span_t span = WAFFLE_BEGIN("begun", KV_I64("n", n)); /* SITE span "begun" "n":i64 */

	return span;
}

void end_only(waffle_span_t span)
{
	WAFFLE_END(span);
}

/* IN end_elsewhere */
void end_elsewhere(int n)
{
	waffle_span_t a = WAFFLE_BEGIN("begun without keys"); /* SITE span "begun without keys" */
	waffle_span_t b = SPAN_BEGIN("begun short"); /* SITE span "begun short" */

	end_only(begin_only(n));
	SPAN_END(b);
	WAFFLE_END(a);
}

/* IN several */
void several(int n)
{
	WAFFLE_EVENT("one"); WAFFLE_EVENT("two", KV_I64("n", n)); WAFFLE_SPAN("three"); WAFFLE_EVENT("one"); /* SITE event "one" */ /* SITE event "two" "n":i64 */ /* SITE span "three" */
	WAFFLE_EVENT("outer", KV_CAUSE_EVENT(WAFFLE_EVENT("inner", KV_CAUSE_EVENT(WAFFLE_EVENT("innermost", KV_I64("n", n)))))); /* SITE event "outer" "cause":cause_event */ /* SITE event "inner" "cause":cause_event */ /* SITE event "innermost" "n":i64 */
	WAFFLE_SPAN("caused", KV_CAUSE_EVENT(WAFFLE_EVENT("causing")), KV_CAUSE_SPAN(WAFFLE_SPAN_ID())); /* SITE span "caused" "cause":cause_event "cause":cause_span */ /* SITE event "causing" */
}

/* IN macros */
void macros(int n)
{
	STEP(n); /* SITE span "in macro" "n":i64 */ /* SITE event "also in macro" "what":str */
	NESTED_STEP(n); /* SITE span "in macro" "n":i64 */ /* SITE event "also in macro" "what":str */
	MARK(here); MARK(there); /* SITE event "mark here" */ /* SITE event "mark there" */
	WAFFLE_SPAN(NAME, KV_I64(KEY, n)); /* SITE span "by macro" "key by macro":i64 */
	inline_span(n);
	inline_event("x");
}

/* IN causes */
void causes(int rank)
{
	waffle_event_id_t cause_id = {0};

	if (rank == 1) cause_id = WAFFLE_EVENT("Creating NaN on purpose", KV_I64("rank", rank)); /* SITE event "Creating NaN on purpose" "rank":i64 */
	SPAN("MPI_Allreduce_op", KV_CAUSE_EVENT(cause_id), KV_I64("rank", rank)); /* SITE span "MPI_Allreduce_op" "cause":cause_event "rank":i64 */
	if (sink) WAFFLE_EVENT("MPI_Allreduce result is NaN"); /* SITE event "MPI_Allreduce result is NaN" */
	else WAFFLE_EVENT("or not"); /* SITE event "or not" */
}

/* IN counters */
void counters(int n)
{
	uint64_t big = UINT64_MAX;

	WAFFLE_COUNTER("int", n); /* SITE counter "int" "value":number */
	WAFFLE_COUNTER("u64", big); /* SITE counter "u64" "value":number */
	WAFFLE_COUNTER("double", n * 0.5); /* SITE counter "double" "value":number */
	WAFFLE_COUNTER("float", (float)n); /* SITE counter "float" "value":number */
	WAFFLE_COUNTER("char", (char)n); /* SITE counter "char" "value":number */
	COUNTER("constant", 7); /* SITE counter "constant" "value":number */
	if (n) COUNTER("in if", sizeof(big)); /* SITE counter "in if" "value":number */
}

/* IN logs */
#undef WAFFLE_CATEGORY
#define WAFFLE_CATEGORY "logging"
/* CATEGORY logging */
void logs(const char *text)
{
	WAFFLE_LOG_INFO("info", KV_STR("text", text)); /* SITE log_info "info" "text":str */
	WAFFLE_LOG_WARN("warn"); /* SITE log_warn "warn" */
	WAFFLE_LOG_ERROR("error", KV_I64("errno", 5)); /* SITE log_error "error" "errno":i64 "frames":str */
	WAFFLE_LOG_ERROR("error of sixteen keys", KV_I64("a", 1), KV_I64("b", 1), KV_I64("c", 1), KV_I64("d", 1), KV_I64("e", 1), KV_I64("f", 1), KV_I64("g", 1), KV_I64("h", 1), KV_I64("i", 1), KV_I64("j", 1), KV_I64("k", 1), KV_I64("l", 1), KV_I64("m", 1), KV_I64("n", 1), KV_I64("o", 1), KV_I64("p", 1)); /* SITE log_error "error of sixteen keys" "a":i64 "b":i64 "c":i64 "d":i64 "e":i64 "f":i64 "g":i64 "h":i64 "i":i64 "j":i64 "k":i64 "l":i64 "m":i64 "n":i64 "o":i64 "p":i64 */
	LOG_INFO("short info"); /* SITE log_info "short info" */
	SPAN("in a category"); /* SITE span "in a category" */
	COUNTER("counter in a category", 1); /* SITE counter "counter in a category" "value":number */
}
#undef WAFFLE_CATEGORY
#define WAFFLE_CATEGORY ""
/* CATEGORY */

static int first_of(int a, int b)
{
	return a < b ? a : b;
}

static waffle_event_id_t pass(waffle_event_id_t id)
{
	return id;
}

/* IN expressions */
int expressions(int n)
{
	waffle_event_id_t id = n > 1 ? WAFFLE_EVENT("left") : WAFFLE_EVENT("right"); /* SITE event "left" */ /* SITE event "right" */

	if (WAFFLE_EVENT("condition").value) /* SITE event "condition" */
		n++;
	id = pass(WAFFLE_EVENT("argument", KV_I64("min", first_of(n, 2)))); /* SITE event "argument" "min":i64 */
	for (WAFFLE_EVENT("for"); n < 3; n++) /* SITE event "for" */
		sink = sink + ((int)(id.value & 1));
	return n + (int)WAFFLE_EVENT("returned").value; /* SITE event "returned" */
}

/* IN loops */
void loops(int n)
{
	int i;

	for (i = 0; i < 4; i++) {
		WAFFLE_SPAN("unrolled", KV_I64("i", i)); /* SITE span "unrolled" "i":i64 */
		sink = sink + i;
	}
	for (i = 0; i < n; i++) {
		WAFFLE_SPAN("loop"); /* SITE span "loop" */
		if (i == 2)
			continue;
		if (i == 5)
			break;
		WAFFLE_EVENT("in loop", KV_I64("i", forced(i))); /* SITE event "in loop" "i":i64 */
	}
	do
		WAFFLE_EVENT("do"); /* SITE event "do" */
	while (sink < 0);
}

/* IN choose */
int choose(int n)
{
	switch (n) {
	case 0: {
		WAFFLE_SPAN("case 0"); /* SITE span "case 0" */
		return 1;
	}
	case 1:
		WAFFLE_EVENT("case 1"); /* SITE event "case 1" */
		/* fall through */
	case 2: {
		WAFFLE_SPAN("case 2", KV_I64("n", n)); /* SITE span "case 2" "n":i64 */
		sink = sink + 1;
		break;
	}
	default:
		WAFFLE_COUNTER("default", n); /* SITE counter "default" "value":number */
	}
	return 0;
}

/* IN jump */
int jump(int n)
{
again:
	{
		WAFFLE_SPAN("left by goto", KV_I64("n", n)); /* SITE span "left by goto" "n":i64 */
		if (n > 4)
			goto out;
		if (n++ < 3)
			goto again;
	}
	WAFFLE_EVENT("not jumped"); /* SITE event "not jumped" */
out:
	WAFFLE_EVENT("jumped"); /* SITE event "jumped" */
	return n;
}

/* IN recurse */
int recurse(int n)
{
	WAFFLE_SPAN("recurse", KV_I64("n", n)); /* SITE span "recurse" "n":i64 */

	return n > 0 ? recurse(n - 1) + recurse(n - 2) : 1;
}

/* IN across_lines */
void across_lines(int n)
{
	WAFFLE_SPAN("across lines", /* SITE+3 span "across lines" "n":i64 "text":str "min":i64 */
		    KV_I64("n", n),
		    KV_STR("text", n ? "yes" : "no"),
		    KV_I64("min", first_of(n, 3)));
	WAFFLE_EVENT( /* SITE+2 event "event across lines" */
		"event across lines"
	);
}

/* IN contexts */
void contexts(void)
{
	waffle_context_t context = waffle_context_extract();
	char text[WAFFLE_TRACEPARENT_SIZE];

	WAFFLE_INJECT(context);
	{
		WAFFLE_INJECT(waffle_context_extract());
		WAFFLE_SPAN("injected"); /* SITE span "injected" */
		if (waffle_context_to_traceparent(waffle_context_extract(), text))
			sink = sink + (waffle_context_from_traceparent(text, &context));
	}
}

/* IN unnamed_values */
void unnamed_values(int n, unsigned char u, short s, float f, enum colour c, size_t z)
{
	char buffer[8] = "abc";

	WAFFLE_EVENT("values", KV_I64("u", u), KV_I64("s", s), KV_F64("f", f), KV_I64("c", c), KV_U64("z", z), KV_STR("b", buffer), KV_BOOL("p", strlen(buffer)), KV_F64("n", n), KV_PTR("at", buffer)); /* SITE event "values" "u":i64 "s":i64 "f":f64 "c":i64 "z":u64 "b":str "p":bool "n":f64 "at":ptr */
	WAFFLE_EVENT("operators", KV_I64("or", n | 1), KV_BOOL("cond", n ? 1 : 0), KV_U64("shift", z << 1), KV_I64("not", ~n), KV_BOOL("and", n && u), KV_F64("neg", -f)); /* SITE event "operators" "or":i64 "cond":bool "shift":u64 "not":i64 "and":bool "neg":f64 */
}

/* IN not_called */
void not_called(int n)
{
	WAFFLE_SPAN("not called", KV_I64("n", n)); /* SITE? span "not called" "n":i64 */
	WAFFLE_EVENT("not called either"); /* SITE? event "not called either" */
	sink = sink + n;
}

/* Debug keys follow the others. */
/* IN debug_keys */
void debug_keys(int n)
{
	WAFFLE_SPAN("debug span", KV_DEBUG(KV_I64("first", n)), KV_STR("s", "text"), KV_DEBUG(KV_STR("last", "text")), KV_I64("n", n)); /* SITE span "debug span" "s":str "n":i64 "first":i64 "last":str */
	WAFFLE_EVENT("debug event", KV_DEBUG(KV_CAUSE_EVENT(WAFFLE_EVENT("debug inner", KV_DEBUG(KV_BOOL("b", n)))))); /* SITE event "debug event" "cause":cause_event */ /* SITE event "debug inner" "b":bool */
	WAFFLE_END(WAFFLE_BEGIN("debug begun", KV_DEBUG(KV_F64("half", 0.5)), KV_DEBUG(KV_PTR("p", &n)))); /* SITE span "debug begun" "half":f64 "p":ptr */
}

/* IN modes */
void modes(int n)
{
	WAFFLE_MODE_SCOPE(n ? WAFFLE_MODE_FAST : WAFFLE_MODE_OFF);
	WAFFLE_SPAN("mode"); /* SITE span "mode" */
	{
		MODE_SCOPE(WAFFLE_MODE_FULL);
		WAFFLE_EVENT("inner mode"); /* SITE event "inner mode" */
	}
	waffle_mode_set(waffle_mode_get());
}

/* IN framed */
int framed(int n)
{
	WAFFLE_FRAME();
	if (n > 0) {
		FRAME();
		WAFFLE_EVENT("framed", KV_I64("n", n)); /* SITE event "framed" "n":i64 */
		if (n == 2)
			return framed(n - 1);
	}
	return waffle_backtrace_fd(1);
}

/* IN shapes */
int shapes(int n)
{
	WAFFLE_SPAN("shapes"); /* SITE span "shapes" */
	plain(n);
	all_types(n, 0.5, "text", &n);
	sixteen(n);
	odd_names();
	end_elsewhere(n);
	several(n);
	macros(n);
	causes(n);
	counters(n);
	logs("text");
	loops(n);
	across_lines(n);
	contexts();
	unnamed_values(n, 1, 2, 3, GREEN, sizeof(n));
	second(n);
	debug_keys(n);
	modes(n);
	sink = sink + framed(n);
	return expressions(n) + choose(n) + jump(n) + recurse(n % 4) + forced(n);
}
