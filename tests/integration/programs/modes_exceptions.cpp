// SPDX-License-Identifier: Apache-2.0
// Exceptions end the modes and frames of the blocks that they leave. Prints the depth of frames,
// the mode and the depth of scopes that are left.
#include <cstdio>
#include <stdexcept>

#include <waffle_macros.h>

template <class T> struct Box {
	T value;

	explicit Box(T from) : value(from)
	{
		FRAME();
		MODE_SCOPE(WAFFLE_MODE_FULL);
		SPAN("box", KV_DEBUG(KV_I64("value", static_cast<long>(value))));
	}

	~Box()
	{
		FRAME();
		EVENT("end of box");
	}

	template <class U> T add(U more)
	{
		auto sum = [&](int n) {
			FRAME();
			MODE_SCOPE(WAFFLE_MODE_OFF);
			return value + static_cast<T>(more) + n;
		};

		FRAME();
		return sum(1);
	}
};

namespace
{

void fail(int n)
{
	FRAME();
	MODE_SCOPE(n % 2 ? WAFFLE_MODE_OFF : WAFFLE_MODE_FULL);
	Box<int> box(n);

	if (n)
		fail(n - 1);
	throw std::runtime_error("at the end");
}

void say()
{
	std::printf("frames %u, mode %d, scopes %u\n", waffle_thread_get_()->frame_depth_,
		    static_cast<int>(waffle_mode_get()), waffle_thread_get_()->depth_);
}

} // namespace

int main()
{
	waffle_mode_set(WAFFLE_MODE_FULL);
	{
		FRAME();
		Box<int> box(3);

		std::printf("sum %d\n", box.add(2.5));
		for (int i = 0; i < 100; i++) {
			try {
				fail(i);
			} catch (const std::runtime_error &) {
			}
		}
		say();
	}
	say();
	return 0;
}
