// SPDX-License-Identifier: Apache-2.0
/* Spans in templates, lambdas, and scopes that an exception leaves. */
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>

#include "waffle.h"

template <typename T> static T twice(T value)
{
	WAFFLE_SPAN("twice", KV_U64("size", sizeof(T)));
	return value + value;
}

struct Guard {
	Guard()
	{
		WAFFLE_EVENT("made");
	}
	~Guard()
	{
		WAFFLE_EVENT("destroyed", KV_U64("span", WAFFLE_SPAN_ID().value));
	}
};

static void throws(int depth)
{
	WAFFLE_SPAN("throws", KV_I64("depth", depth));
	Guard guard;
	if (!depth)
		throw std::runtime_error("at the bottom");
	throws(depth - 1);
}

static inline int inlined(int n)
{
	WAFFLE_SPAN("inlined", KV_I64("n", n));
	return n + 1;
}

int main()
{
	std::function<int(int)> lambda = [](int n) {
		WAFFLE_SPAN("lambda", KV_I64("n", n));
		return n;
	};
	auto generic = [](auto value) {
		WAFFLE_EVENT("generic", KV_U64("size", sizeof(value)));
		return value;
	};
	std::string name = "std::string";
	int sum = 0;

	sum += twice(1) + int(twice(2.0)) + int(twice(std::string("x")).size());
	for (int i = 0; i < 5; i++)
		sum += lambda(i) + inlined(i);
	sum += generic(1) + generic('a') + int(generic(1.0));
	for (int i = 0; i < 3; i++) {
		try {
			throws(2);
		} catch (const std::exception &e) {
			WAFFLE_EVENT("caught", KV_STR("what", e.what()),
				     KV_U64("span", WAFFLE_SPAN_ID().value));
		}
	}
	WAFFLE_EVENT("string", KV_STR("name", name.c_str()));
	WAFFLE_COUNTER("sum", sum);
	return 0;
}
