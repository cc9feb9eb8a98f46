/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coroutines that keep their context (C++20): spans that are open at a co_await are still current
 * behind it, on whatever thread it resumes, and the thread that runs on has its own context back.
 *
 *	Waffle::task<int> load(std::string path)
 *	{
 *		WAFFLE_SPAN("load", "path", path);
 *		std::string text = co_await read(path);
 *		co_return parse(text);
 *	}
 *
 * Waffle::task is lazy: it runs when it is awaited, by one co_await or by Waffle::SyncWait(). The
 * promise types of other libraries get the same by deriving from Waffle::ContextPromise.
 */
#ifndef WAFFLE_TASK_HPP
#define WAFFLE_TASK_HPP

#include <condition_variable>
#include <coroutine>
#include <exception>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "context.h"
#include "variant.hpp"

namespace Waffle
{

namespace Detail_
{

inline namespace WAFFLE_VARIANT_
{

#ifdef WAFFLE_DISABLE
struct Strand_ {
	void begin_()
	{
	}
	void swap_()
	{
	}
};
#else

/* What a thread's state has of the code that it runs: its open scopes, without the ids. */
class Strand_
{
      public:
	/* A new strand has the context of the thread that makes it, and no scope. */
	void begin_()
	{
		const waffle_thread_ *thread_ = waffle_thread_get_();

		context_ = thread_->context_;
		mode_ = thread_->mode_;
		depth_ = 0;
	}

	/* Exchanges it with that of this thread. The links that are not in use stay as they are. A
	 * signal handler in between finds a depth that its links cover, as it restores all it
	 * changes. */
	void swap_()
	{
		waffle_thread_ *thread_ = waffle_thread_get_();
		unsigned here_ = thread_->depth_, count_ = here_ > depth_ ? here_ : depth_;

		for (unsigned i_ = 0; i_ < count_ && i_ < WAFFLE_LINKS_; i_++) {
			std::swap(thread_->places_[i_], places_[i_]);
			std::swap(thread_->links_[i_], links_[i_]);
		}
		std::swap(thread_->context_, context_);
		std::swap(thread_->mode_, mode_);
		thread_->depth_ = depth_;
		depth_ = here_;
	}

      private:
	waffle_context_t context_ = {0, 0, 0};
	unsigned depth_ = 0, mode_ = 0;
	__UINTPTR_TYPE__ places_[WAFFLE_LINKS_] = {};
	waffle_link_ links_[WAFFLE_LINKS_] = {};
};

#endif

} // namespace WAFFLE_VARIANT_

/* An awaiter that is a variable of the program is used itself, and not a copy. */
template <class A> decltype(auto) awaiter_of_(A &&awaitable_)
{
	if constexpr (requires { std::forward<A>(awaitable_).operator co_await(); })
		return std::forward<A>(awaitable_).operator co_await();
	else if constexpr (requires { operator co_await(std::forward<A>(awaitable_)); })
		return operator co_await(std::forward<A>(awaitable_));
	else
		return static_cast<A>(std::forward<A>(awaitable_));
}

} // namespace Detail_

inline namespace WAFFLE_VARIANT_
{

/*
 * For promise types: gives the coroutine a context of its own, which begins as that of the code
 * that calls the coroutine. The promise's initial_suspend() returns Begin(), its final_suspend()
 * calls Leave() first, and it leaves await_transform() to this class.
 */
class ContextPromise
{
      public:
	ContextPromise()
	{
		strand_.begin_();
	}

	/* From here to the next Leave() the coroutine runs on this thread. */
	void Enter()
	{
		strand_.swap_();
	}
	void Leave()
	{
		strand_.swap_();
	}

	struct BeginAwaiter {
		ContextPromise *promise_;

		bool await_ready() const noexcept
		{
			return false;
		}
		void await_suspend(std::coroutine_handle<>) const noexcept
		{
		}
		void await_resume() const
		{
			promise_->Enter();
		}
	};
	/* Suspends the coroutine before it begins. */
	BeginAwaiter Begin()
	{
		return {this};
	}

	template <class A> auto await_transform(A &&awaitable_)
	{
		using Inner = decltype(Detail_::awaiter_of_(std::forward<A>(awaitable_)));

		return Awaiter<Inner>{Detail_::awaiter_of_(std::forward<A>(awaitable_)), this,
				      false};
	}

      private:
	template <class Inner> struct Awaiter {
		Inner inner_;
		ContextPromise *promise_;
		bool left_;

		bool await_ready()
		{
			return inner_.await_ready();
		}
		/* As soon as inner_ has the handle, the coroutine may run on another thread. */
		template <class Promise> auto await_suspend(std::coroutine_handle<Promise> handle_)
		{
			left_ = true;
			promise_->Leave();
#ifdef __cpp_exceptions
			try {
				return inner_.await_suspend(handle_);
			} catch (...) {
				left_ = false;
				promise_->Enter();
				throw;
			}
#else
			return inner_.await_suspend(handle_);
#endif
		}
		decltype(auto) await_resume()
		{
			if (left_)
				promise_->Enter();
			return inner_.await_resume();
		}
	};

	Detail_::Strand_ strand_;
};

template <class T = void> class task;

} // namespace WAFFLE_VARIANT_

namespace Detail_
{

template <class T> struct TaskResult_ {
	std::optional<T> value_;

	template <class V> void return_value(V &&value)
	{
		value_.emplace(std::forward<V>(value));
	}
	T take_()
	{
		return std::move(*value_);
	}
};
template <> struct TaskResult_<void> {
	void return_void()
	{
	}
	void take_()
	{
	}
};

} // namespace Detail_

inline namespace WAFFLE_VARIANT_
{

template <class T> class [[nodiscard]] task
{
      public:
	struct promise_type : ContextPromise, Detail_::TaskResult_<T> {
		std::coroutine_handle<> continuation_ = std::noop_coroutine();
		std::exception_ptr failed_;

		task get_return_object()
		{
			return task(std::coroutine_handle<promise_type>::from_promise(*this));
		}
		auto initial_suspend()
		{
			return this->Begin();
		}
		struct FinalAwaiter {
			bool await_ready() const noexcept
			{
				return false;
			}
			std::coroutine_handle<>
			await_suspend(std::coroutine_handle<promise_type> ended) const noexcept
			{
				return ended.promise().continuation_;
			}
			void await_resume() const noexcept
			{
			}
		};
		/* The frame is destroyed while no one runs in it, so that the context is left now.
		 */
		FinalAwaiter final_suspend() noexcept
		{
			this->Leave();
			return {};
		}
		void unhandled_exception()
		{
			failed_ = std::current_exception();
		}
		/* What final_suspend() returns must not be wrapped; all else is. */
		using ContextPromise::await_transform;
	};

	task(task &&other) noexcept : handle_(std::exchange(other.handle_, nullptr))
	{
	}
	task &operator=(task &&other) noexcept
	{
		std::swap(handle_, other.handle_);
		return *this;
	}
	~task()
	{
		if (handle_)
			handle_.destroy();
	}

	struct Awaiter {
		std::coroutine_handle<promise_type> task_;

		bool await_ready() const noexcept
		{
			return false;
		}
		std::coroutine_handle<> await_suspend(std::coroutine_handle<> continuation) noexcept
		{
			task_.promise().continuation_ = continuation;
			return task_;
		}
		T await_resume()
		{
			if (task_.promise().failed_)
				std::rethrow_exception(task_.promise().failed_);
			return task_.promise().take_();
		}
	};
	/* Runs the task, and then the coroutine that awaits it. The task object must live until
	 * then. */
	Awaiter operator co_await() const noexcept
	{
		return {handle_};
	}

      private:
	explicit task(std::coroutine_handle<promise_type> handle) : handle_(handle)
	{
	}

	std::coroutine_handle<promise_type> handle_;
};

} // namespace WAFFLE_VARIANT_

namespace Detail_
{

/* A coroutine that runs at once, and nobody awaits. */
struct Detached_ {
	struct promise_type {
		Detached_ get_return_object()
		{
			return {};
		}
		std::suspend_never initial_suspend() noexcept
		{
			return {};
		}
		std::suspend_never final_suspend() noexcept
		{
			return {};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
			std::terminate();
		}
	};
};

class Done_
{
      public:
	void set_()
	{
		std::lock_guard<std::mutex> lock_(mutex_);

		done_ = true;
		changed_.notify_all();
	}
	void wait_()
	{
		std::unique_lock<std::mutex> lock_(mutex_);

		changed_.wait(lock_, [this] { return done_; });
	}

      private:
	std::mutex mutex_;
	std::condition_variable changed_;
	bool done_ = false;
};

inline namespace WAFFLE_VARIANT_
{

template <class T> struct Waited_ {
	const task<T> *task_;
	std::exception_ptr failed_;
	TaskResult_<T> result_;
	Done_ done_;

	Detached_ run_()
	{
#ifdef __cpp_exceptions
		try {
#endif
			if constexpr (std::is_void_v<T>)
				co_await *task_;
			else
				result_.return_value(co_await *task_);
#ifdef __cpp_exceptions
		} catch (...) {
			failed_ = std::current_exception();
		}
#endif
		done_.set_();
	}
};

} // namespace WAFFLE_VARIANT_

} // namespace Detail_

inline namespace WAFFLE_VARIANT_
{

/* Runs a task and waits until it has ended, perhaps on another thread. */
template <class T> T SyncWait(const task<T> &task)
{
	Detail_::Waited_<T> waited{&task, nullptr, {}, {}};

	waited.run_();
	waited.done_.wait_();
	if (waited.failed_)
		std::rethrow_exception(waited.failed_);
	return waited.result_.take_();
}

} // namespace WAFFLE_VARIANT_

} // namespace Waffle

#endif
