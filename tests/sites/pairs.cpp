/* SPDX-License-Identifier: Apache-2.0 */
/* Values of all types in C++, and all places where a site may stand. Comments as in inline.h. */
// clang-format off
#include "pairs.hpp"

#define PAIRS_NAME "pairs " "macro"
#define PAIRS_KEY "key " "by macro"
#define BOTH(n) "first", (n), "second", (n) + 1

enum Plain { PLAIN_ONE = 1 };
enum class Scoped : unsigned char { one = 1 };

/* IN numbers */
static void numbers(signed char c, short s, unsigned u, long long l, bool b, float f, long double d)
{
	WAFFLE_EVENT("integers", "c", c, "s", s, "u", u, "l", l, "b", b); /* SITE event "integers" "c":i64 "s":i64 "u":u64 "l":i64 "b":bool */
	WAFFLE_EVENT("reals", "f", f, "d", d, "sum", f + 1.5); /* SITE event "reals" "f":f64 "d":f64 "sum":f64 */
	WAFFLE_EVENT("enums", "plain", PLAIN_ONE, "scoped", Scoped::one); /* SITE event "enums" "plain":u64 "scoped":u64 */
	WAFFLE_EVENT("durations", "ms", std::chrono::milliseconds(2), "s", std::chrono::duration<double>(0.5)); /* SITE event "durations" "ms":i64 "s":i64 */
}

/* IN texts */
static void texts(const char *text, std::string_view view, char *mutable_text)
{
	const std::string string = "string";
	char array[4] = "abc";

	WAFFLE_EVENT("texts", "text", text, "view", view, "string", string, "array", array); /* SITE event "texts" "text":str "view":str "string":str "array":str */
	WAFFLE_EVENT("temporaries", "sum", string + "more", "part", view.substr(1), "mutable", mutable_text, "literal", "x"); /* SITE event "temporaries" "sum":str "part":str "mutable":str "literal":str */
	WAFFLE_EVENT("pointers", "null", nullptr, "object", &string, "function", &numbers, "void", static_cast<const void *>(text)); /* SITE event "pointers" "null":ptr "object":ptr "function":ptr "void":ptr */
}

/* IN optionals */
static void optionals(std::optional<int> number, std::optional<std::string> text)
{
	WAFFLE_EVENT("empty optionals", "number", number, "text", text, "real", std::optional<double>(), "view", std::optional<std::string_view>()); /* SITE event "empty optionals" "number":number "text":str "real":number "view":str */
}

/* IN odd_keys */
static void odd_keys(int n)
{
	WAFFLE_EVENT("comma, \"quote\"", "a, b", n, "\"q\"\\", n, "tab\t\x41\102", n); /* SITE event "comma, \"quote\"" "a, b":i64 "\"q\"\\":i64 "tab\tAB":i64 */
	WAFFLE_EVENT("odd values", "char", +'"', "paren", +')', "raw", R"x(,")")x", "digits", 1'000, "braces", std::array{n, 2}[0], "ternary", n ? 1 : 2); /* SITE event "odd values" "char":i64 "paren":i64 "raw":str "digits":i64 "braces":i64 "ternary":i64 */
	WAFFLE_EVENT(PAIRS_NAME, PAIRS_KEY, n, BOTH(n)); /* SITE event "pairs macro" "key by macro":i64 "first":i64 "second":i64 */
	WAFFLE_EVENT("of C", KV_I64("i", n), KV_U64("u", n), KV_F64("f", n), KV_BOOL("b", n), KV_STR("s", "x"), KV_PTR("p", &n)); /* SITE event "of C" "i":i64 "u":u64 "f":f64 "b":bool "s":str "p":ptr */
	WAFFLE_EVENT("in full mode", KV_DEBUG("n", n), KV_DEBUG(KV_STR("s", "x"))); /* SITE event "in full mode" "n":number "s":str */
}

/* IN all_causes */
static void all_causes(int n)
{
	Waffle::EventId none, event = WAFFLE_EVENT("first cause"); /* SITE event "first cause" */
	waffle_span_t span = WAFFLE_BEGIN("begun", "n", n, Waffle::CausedBy(event)); /* SITE span "begun" "n":i64 "cause":cause_event */

	WAFFLE_SPAN("caused", Waffle::CausedBy(none), Waffle::CausedBy(Waffle::CurrentSpanId()), "n", n); /* SITE span "caused" "cause":cause_event "cause":cause_span "n":i64 */
	WAFFLE_END(span);
	if (event == none) sink = sink + 1;
	WAFFLE_COUNTER("pairs counter", n); /* SITE counter "pairs counter" "value":number */
}

/* IN severities */
static void severities(int n)
{
	WAFFLE_LOG_INFO("pairs info", "n", n); /* SITE log_info "pairs info" "n":i64 */
	WAFFLE_LOG_WARN("pairs warn"); /* SITE log_warn "pairs warn" */
	WAFFLE_LOG_ERROR("pairs error", "n", n); /* SITE log_error "pairs error" "n":i64 "frames":str */
	WAFFLE_LOG_ERROR("pairs sixteen", "a", 1, "b", 2, "c", 3, "d", 4, "e", 5, "f", 6, "g", 7, "h", 8, "i", 9, "j", 1, "k", 1, "l", 1, "m", 1, "o", 1, "p", 1, "q", 1); /* SITE log_error "pairs sixteen" "a":i64 "b":i64 "c":i64 "d":i64 "e":i64 "f":i64 "g":i64 "h":i64 "i":i64 "j":i64 "k":i64 "l":i64 "m":i64 "o":i64 "p":i64 "q":i64 */
}

/* IN bindings */
static void bindings(const std::map<std::string, int> &ranks)
{
	for (const auto &[name, rank] : ranks) WAFFLE_EVENT("binding", "name", name, "rank", rank); /* SITE event "binding" "name":str "rank":i64 */
}

/* IN pairs */
int pairs(int n)
{
	char text[] = "text";
	Rank rank(n);

	WAFFLE_SPAN("pairs"); /* SITE span "pairs" */
	numbers(3, 1, 2, 3, true, 1.5f, 2.5l);
	texts("text", std::string_view("view", 3), text);
	optionals(n, std::nullopt);
	odd_keys(n);
	all_causes(n);
	severities(n);
	bindings({{"a", 0}, {"b", 1}});
	rank.source = pairs_inline("shard", n);
	return rank.reduce(7) + pairs_of(n) + static_cast<int>(pairs_of(static_cast<long>(n))) + folded(n, 2L, short(3));
}
