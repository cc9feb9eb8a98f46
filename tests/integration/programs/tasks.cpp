// SPDX-License-Identifier: Apache-2.0
/* Coroutines that resume on other threads, with spans that are open at each suspension. */
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include <waffle.hpp>

/* A new thread may start the next one before its own object is in the list. */
static std::mutex lock;
static std::vector<std::thread> threads;

/* Goes on in a new thread. */
struct Elsewhere {
	bool await_ready() const
	{
		return false;
	}
	void await_suspend(std::coroutine_handle<> handle) const
	{
		std::lock_guard<std::mutex> locked(lock);

		threads.emplace_back([handle] { handle.resume(); });
	}
	void await_resume() const
	{
	}
};

static Waffle::task<int> inner(int n)
{
	WAFFLE_SPAN("inner", "n", n);
	Waffle::SpanId id = Waffle::CurrentSpanId();

	co_await Elsewhere();
	if (id != Waffle::CurrentSpanId())
		std::puts("another span is current behind the suspension");
	WAFFLE_EVENT("in inner");
	co_return n + 1;
}

static Waffle::task<int> outer()
{
	WAFFLE_SPAN("outer");
	int sum = 0;

	for (int i = 0; i < 3; i++) {
		sum += co_await inner(i);
		WAFFLE_EVENT("in outer");
	}
	co_return sum;
}

static Waffle::task<> thrower()
{
	WAFFLE_SPAN("thrower");
	co_await Elsewhere();
	throw std::runtime_error("thrown");
}

int main()
{
	WAFFLE_SPAN("main");
	Waffle::SpanId id = Waffle::CurrentSpanId();

	std::printf("%d\n", Waffle::SyncWait(outer()));
	try {
		Waffle::SyncWait(thrower());
	} catch (const std::runtime_error &) {
		std::puts("caught");
	}
	if (id != Waffle::CurrentSpanId())
		std::puts("main has another span");
	WAFFLE_EVENT("after");
	std::lock_guard<std::mutex> locked(lock);

	for (std::thread &thread : threads)
		thread.join();
	return 0;
}
