/* SPDX-License-Identifier: Apache-2.0 */
/* Sites in what C++ translation units share: inline functions, templates, classes. As in inline.h. */
// clang-format off
#ifndef TESTS_SITES_CLASSES_HPP
#define TESTS_SITES_CLASSES_HPP

#include "inline.h"

/* IN shared_inline */
inline void shared_inline(int n)
{
	WAFFLE_SPAN("shared inline", KV_I64("n", n)); /* SITE span "shared inline" "n":i64 */
	WAFFLE_EVENT("shared inline event"); /* SITE event "shared inline event" */
	sink = sink + n;
}

/* IN pick */
template <typename A, typename B> A pick(A a, B b)
{
	WAFFLE_SPAN("pick", KV_U64("size", sizeof(A)), KV_I64("b", b)); /* SITE span "pick" "size":u64 "b":i64 */
	WAFFLE_COUNTER("picked", a); /* SITE counter "picked" "value":number */
	auto inner = [&](auto value) { WAFFLE_EVENT("generic lambda", KV_F64("value", value)); return value; }; /* SITE event "generic lambda" "value":f64 IN operator() */
	return inner(a);
}

/* IN fold */
template <typename... T> int fold(T... values)
{
	WAFFLE_EVENT("variadic", KV_U64("count", sizeof...(values))); /* SITE event "variadic" "count":u64 */
	if constexpr (sizeof...(values) > 1) {
		WAFFLE_EVENT("if constexpr"); /* SITE event "if constexpr" */
	}
	return (0 + ... + values);
}

struct Widget {
	int value;
	/* IN Widget */
	explicit Widget(int n) : value((WAFFLE_EVENT("initializer list"), n)) /* SITE event "initializer list" */
	{
		WAFFLE_SPAN("Widget::Widget", KV_PTR("this", this)); /* SITE span "Widget::Widget" "this":ptr */
	}
	/* IN ~Widget */
	virtual ~Widget()
	{
		WAFFLE_EVENT("Widget::~Widget"); /* SITE event "Widget::~Widget" */
	}
	/* IN method */
	virtual int method(int n) const
	{
		WAFFLE_SPAN("Widget::method", KV_I64("value", value), KV_I64("n", n)); /* SITE span "Widget::method" "value":i64 "n":i64 */
		return value + n;
	}
	/* IN operator+ */
	Widget operator+(const Widget &other) const
	{
		WAFFLE_EVENT("operator+"); /* SITE event "operator+" */
		return Widget(value + other.value);
	}
	/* IN make */
	static Widget make(int n)
	{
		WAFFLE_SPAN("Widget::make"); /* SITE span "Widget::make" */
		return Widget(n);
	}
};

template <typename T> struct Box {
	T held;
	/* IN get */
	T get() const
	{
		WAFFLE_SPAN("Box::get", KV_STR("type", "template")); /* SITE span "Box::get" "type":str */
		return held;
	}
};

#endif
