// SPDX-License-Identifier: Apache-2.0
/*
 * pairs WHAT: spans and events of waffle.hpp, whose recorded values test_cpp.py knows.
 *	values    an event for each type of value
 *	once      counts how often values are evaluated; prints the count
 *	queue     a dispatcher passes its context with each piece of work to a worker
 *	bound     std::thread, std::async and a pool by Waffle::Bind()
 *	full      keys for full mode, with the mode given by WAFFLE_MODE
 */
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include <waffle.hpp>
#include <waffle/threads.hpp>

enum class Colour : short { red = -2 };
enum Flag : unsigned long long { flag = 1ull << 63 };

struct Bits {
	unsigned three : 3;
	int rank;
};

static void values()
{
	std::string longer(300, 'y');
	char raw[] = {'a', 'b', 'c'};
	Bits bits = {5, -7};
	waffle_span_t begun = WAFFLE_BEGIN("begun", "n", 1);

	WAFFLE_EVENT("integers", "char", static_cast<signed char>(-1), "long", 1L << 40, "huge",
		     ~0ull, "bool", true, "scoped", Colour::red, "flag", flag, "bits", bits.three,
		     "rank", bits.rank);
	WAFFLE_EVENT("reals", "float", 1.5f, "double", -0.25, "long double", 2.0l, "nan",
		     __builtin_nan(""));
	WAFFLE_EVENT("texts", "literal", "x", "string", std::string("temporary"), "view",
		     std::string_view(raw, 3), "empty", std::string_view(), "null",
		     static_cast<const char *>(nullptr), "longer", longer, "longer view",
		     std::string_view(longer));
	WAFFLE_EVENT("durations", "ms", std::chrono::milliseconds(3), "half",
		     std::chrono::duration<double>(0.5), "back", std::chrono::seconds(-1));
	WAFFLE_EVENT("optionals", "some", std::optional<int>(4), "none", std::optional<int>(),
		     "after", 5, "text", std::optional<std::string>("t"), "no text",
		     std::optional<std::string>(), "real", std::optional<double>(0.5), "last", 6);
	WAFFLE_EVENT("pointers", "null", nullptr, "number", reinterpret_cast<void *>(0x1234));
	WAFFLE_EVENT("linked", Waffle::CausedBy(Waffle::EventId()),
		     Waffle::CausedBy(Waffle::SpanId(waffle_span_id_t{begun.id})), "n", 1);
	WAFFLE_EVENT("of C", KV_I64("i", -1), KV_STR("s", "text"), KV_BOOL("b", 2));
	WAFFLE_END(begun);
}

static int evaluated;

static int count(int n)
{
	evaluated++;
	return n;
}

static void once()
{
	WAFFLE_SPAN("span", "n", count(1), "text", std::to_string(count(2)));
	WAFFLE_EVENT("event", "n", count(3));
	std::printf("%d\n", evaluated);
}

class Queue
{
      public:
	void push(int work)
	{
		std::lock_guard<std::mutex> lock(mutex);

		items.push_back({Waffle::ExtractContext(), work});
		changed.notify_one();
	}
	void run()
	{
		for (;;) {
			std::unique_lock<std::mutex> lock(mutex);

			changed.wait(lock, [this] { return !items.empty(); });
			Item item = items.front();
			items.pop_front();
			lock.unlock();
			if (item.work < 0)
				return;
			Waffle::InjectContext injector(item.context);
			WAFFLE_SPAN("work", "number", item.work);
		}
	}

      private:
	struct Item {
		Waffle::Context context;
		int work;
	};
	std::mutex mutex;
	std::condition_variable changed;
	std::deque<Item> items;
};

static void queue()
{
	Queue queue;
	std::thread worker(&Queue::run, &queue);

	for (int i = 0; i < 3; i++) {
		WAFFLE_SPAN("dispatch", "number", i);
		queue.push(i);
	}
	queue.push(-1);
	worker.join();
}

static void bound()
{
	WAFFLE_SPAN("starter");
	std::thread thread = Waffle::Thread([](int n) { WAFFLE_EVENT("in thread", "n", n); }, 1);
	auto future = Waffle::Async(std::launch::async, [] {
		WAFFLE_EVENT("in async");
		return 2;
	});
	auto work = Waffle::Bind([](int n) { WAFFLE_EVENT("in pool", "n", n); });
	std::thread pool([&work] {
		WAFFLE_SPAN("of the pool");
		work(3);
		WAFFLE_EVENT("after the work");
	});

	thread.join();
	pool.join();
	std::printf("%d\n", future.get());
}

static void full()
{
	WAFFLE_FRAME();
	WAFFLE_EVENT("debug", "always", 1, KV_DEBUG("number", count(2)), KV_DEBUG("text", "t"));
	WAFFLE_LOG_ERROR("failed", "n", 3);
	std::printf("%d\n", evaluated);
}

int main(int, char **argv)
{
	static const struct {
		const char *name;
		void (*run)();
	} ways[] = {{"values", values},
		    {"once", once},
		    {"queue", queue},
		    {"bound", bound},
		    {"full", full}};

	for (const auto &way : ways)
		if (!std::strcmp(argv[1], way.name))
			way.run();
	return 0;
}
