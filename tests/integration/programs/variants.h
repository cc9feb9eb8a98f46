// SPDX-License-Identifier: Apache-2.0
/* Inline functions and classes of waffle.hpp in two units, of which one is compiled with
 * WAFFLE_DISABLE. */
#include <cstdio>
#include <cstring>

#include <waffle.hpp>
#include <waffle/task.hpp>
#include <waffle/threads.hpp>

namespace
{

/* Objects beside those of waffle, which must not write into them. */
struct Guarded {
	char before[64];
	Waffle::InjectContext inject;
	char after[256];

	explicit Guarded(Waffle::Context context) : inject(context)
	{
		std::memset(before, 1, sizeof(before));
		std::memset(after, 1, sizeof(after));
	}
	bool is_whole() const
	{
		for (char c : before)
			if (c != 1)
				return false;
		for (char c : after)
			if (c != 1)
				return false;
		return true;
	}
};

Waffle::task<int> twice(int number)
{
	WAFFLE_SPAN("task");
	co_return 2 * number;
}

Waffle::task<int> four_times(int number)
{
	int result = co_await twice(number);

	(void)Waffle::Event("behind", "number", number);
	co_return 2 * result;
}

bool use()
{
	Waffle::Span span("span");
	Guarded guarded(span.context());
	bool called = false;

	Waffle::Thread([&] {
		(void)Waffle::Event("in thread");
		called = true;
	}).join();
	return Waffle::SyncWait(four_times(3)) == 12 && called && guarded.is_whole();
}

} // namespace
