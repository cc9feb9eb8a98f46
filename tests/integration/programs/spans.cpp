// SPDX-License-Identifier: Apache-2.0
/*
 * Spans as objects, and names that are made at run time. `literal` needs no libwaffle, unless the
 * file is compiled with NAMED.
 */
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <waffle.hpp>

static void literal()
{
	std::vector<Waffle::Span> open;
	Waffle::Span none, taken;

	for (int i = 0; i < 3; i++)
		open.emplace_back(WAFFLE_BEGIN("literal", "i", i));
	taken = std::move(open[0]);
	open.erase(open.begin());
	std::printf("%d %d %d\n", bool(none), bool(taken), taken.id() == open[0].id());
	{
		Waffle::InjectContext inside(open[0].context());

		WAFFLE_EVENT("inside", "i", 1);
	}
	taken.End();
	taken.End();
	std::printf("%d\n", bool(taken.id()));
	std::thread([span = std::move(open[0])] { WAFFLE_EVENT("elsewhere"); }).join();
}

#ifdef NAMED
static void named()
{
	using namespace std::chrono_literals;
	char buffer[] = "from a buffer, cut here";
	std::optional<int> empty, some = -4;
	Waffle::EventId cause = Waffle::Event(std::string("cause"), "n", 7u, "none", empty);

	for (const char *name : {"parse", "bind"}) {
		Waffle::Span span(name, "text", std::string("t"), "view",
				  std::string_view("abc\0d", 5), "real", 0.5f, "yes", true, "ms",
				  3ms, "some", some, "none", empty, "address", (void *)0x10,
				  Waffle::CausedBy(cause));
		Waffle::InjectContext inside(span.context());
		Waffle::EventId event = Waffle::Event(std::string_view(buffer, 13));

		(void)event;
	}
	Waffle::Span after("after", Waffle::CausedBy(Waffle::SpanId()));
	Waffle::Span moved(std::move(after));
	std::thread([&moved] { moved.End(); }).join();
}
#endif

int main(int, char **argv)
{
	if (!std::strcmp(argv[1], "literal"))
		literal();
#ifdef NAMED
	if (!std::strcmp(argv[1], "named"))
		named();
#endif
	return 0;
}
