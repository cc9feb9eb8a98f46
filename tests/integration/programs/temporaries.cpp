// SPDX-License-Identifier: Apache-2.0
/* Values that are temporaries of C++: each must live until its site has been recorded. */
#include <cstdio>
#include <string>

#include "waffle.h"

/* Its end overwrites what it held, so that a read after it is seen without a sanitizer too. */
struct Held {
	char text[32];
	explicit Held(long n)
	{
		std::snprintf(text, sizeof(text), "held %ld", n);
	}
	Held(const Held &) = delete;
	~Held()
	{
		std::snprintf(text, sizeof(text), "gone");
	}
	const char *get() const
	{
		return text;
	}
};

int main()
{
	for (long n = 0; n < 3; n++) {
		WAFFLE_SPAN("span", KV_STR("held", Held(n).get()),
			    KV_STR("number", std::to_string(n).c_str()));
		WAFFLE_EVENT("event", KV_STR("held", Held(n).get()),
			     KV_STR("long", std::string(1 << 20, 'x').c_str()));
		WAFFLE_LOG_WARN("log", KV_STR("held", Held(n).get()));
		WAFFLE_END(WAFFLE_BEGIN(
			"begun", KV_STR("held", Held(n).get()),
			KV_CAUSE_EVENT(WAFFLE_EVENT("cause", KV_STR("held", Held(n + 10).get())))));
		WAFFLE_COUNTER("counter", static_cast<double>(std::to_string(n).size()));
	}
	return 0;
}
