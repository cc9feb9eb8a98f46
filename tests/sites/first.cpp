/* SPDX-License-Identifier: Apache-2.0 */
/* The C++ program of the site matrix: the shapes of C, and those only C++ has. As in inline.h. */
// clang-format off
#include "classes.hpp"
#include "shapes.h"

int pairs(int n);

template <typename A, typename B> struct Pair {
	A a;
	B b;
};

namespace {
/* IN hidden */
int hidden(int n)
{
	WAFFLE_SPAN("anonymous namespace"); /* SITE span "anonymous namespace" */
	return n;
}

struct Derived : Widget {
	using Widget::Widget;
	/* IN method */
	int method(int n) const override
	{
		WAFFLE_SPAN("Derived::method"); /* SITE span "Derived::method" */
		return Widget::method(n);
	}
};

/* IN operator() */
const int initialized = [] { WAFFLE_EVENT("before main"); return 1; }(); /* SITE event "before main" */
Derived global_object(initialized);
} // namespace

/* IN lambdas */
static int lambdas(int n)
{
	WAFFLE_SPAN("lambdas"); /* SITE span "lambdas" */
	auto twice = [n](int by) {
		WAFFLE_SPAN("lambda", KV_I64("by", by), KV_I64("n", n)); /* SITE span "lambda" "by":i64 "n":i64 IN operator() */
		auto nested = [&] { WAFFLE_EVENT("nested lambda"); return by; }; /* SITE event "nested lambda" IN operator() */
		return n * nested();
	};
	return twice(2) + [] { WAFFLE_SPAN("called at once"); return 1; }(); /* SITE span "called at once" IN operator() */
}

/* IN thrower */
static int thrower(int n)
{
	WAFFLE_SPAN("unwound", KV_I64("n", n)); /* SITE span "unwound" "n":i64 */
	if (n)
		throw n;
	return n;
}

/* IN exceptions */
static int exceptions(int n)
{
	try {
		WAFFLE_SPAN("try"); /* SITE span "try" */
		return thrower(n);
	} catch (int caught) {
		WAFFLE_SPAN("catch", KV_I64("caught", caught)); /* SITE span "catch" "caught":i64 */
		return caught;
	}
}

/* IN cxx_values */
static void cxx_values(const Widget &widget)
{
	WAFFLE_EVENT("commas", KV_U64("pair", sizeof(Pair<int, long>)), KV_I64("pick", pick<int, short>(1, 2))); /* SITE event "commas" "pair":u64 "pick":i64 */
	WAFFLE_EVENT(R"(raw "string" \n)", KV_BOOL("true", true), KV_PTR("null", nullptr), KV_STR("text", "x")); /* SITE event "raw \"string\" \\n" "true":bool "null":ptr "text":str */
	const int numbers[] = {1, 2, 3};

	for (int i : numbers) WAFFLE_EVENT("range for", KV_I64("i", i)); /* SITE event "range for" "i":i64 */
	if (waffle_event_id_t id = WAFFLE_EVENT("if with initializer"); id.value) sink = sink + 1; /* SITE event "if with initializer" */
	static int once = (WAFFLE_EVENT("static local"), 1); /* SITE event "static local" */
	WAFFLE_COUNTER("method", widget.method(once)); /* SITE counter "method" "value":number */
	WAFFLE_COUNTER("bool", once == 1); /* SITE counter "bool" "value":number */
}

/* IN noexcept_function */
static int noexcept_function(int n) noexcept
{
	WAFFLE_SPAN("noexcept"); /* SITE span "noexcept" */
	return n;
}

/* IN main */
int main(int argc, char **argv)
{
	WAFFLE_SPAN("main", KV_STR("program", argv[0])); /* SITE span "main" "program":str */
	Widget widget = Widget::make(argc) + global_object;

	shared_inline(argc);
	cxx_values(widget);
	sink = fold(1, 2, 3) + fold(1) + fold();
	sink = hidden(1) + lambdas(argc) + exceptions(argc) + noexcept_function(argc);
	sink = pick(1, 2) + static_cast<int>(pick(1.5, 2L) + pick('c', 3u));
	sink = Box<int>{1}.get() + static_cast<int>(Box<double>{1.0}.get());
	return shapes(argc) < 0 || pairs(argc) < 0 || global_object.method(1) < 0;
}
