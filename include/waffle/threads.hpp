/* SPDX-License-Identifier: Apache-2.0 */
/*
 * std::thread and std::async that pass the context on: spans of the function have the span that is
 * current where it is started as their parent. This file is not part of waffle.hpp, since <future>
 * and <thread> are large.
 *
 *	Waffle::Thread worker(run, &queue);              // a std::thread
 *	auto sum = Waffle::Async(std::launch::async, add, 1, 2);
 */
#ifndef WAFFLE_THREADS_HPP
#define WAFFLE_THREADS_HPP

#include <future>
#include <thread>
#include <utility>

#include "../waffle.hpp"

namespace Waffle
{

inline namespace WAFFLE_VARIANT_
{

template <class F, class... A> std::thread Thread(F &&function, A &&...arguments)
{
	return std::thread(Bind(std::forward<F>(function)), std::forward<A>(arguments)...);
}

template <class F, class... A> auto Async(std::launch policy, F &&function, A &&...arguments)
{
	return std::async(policy, Bind(std::forward<F>(function)), std::forward<A>(arguments)...);
}

#if defined(__cpp_lib_jthread)
/* A function that takes a std::stop_token as its first argument gets the thread's. */
template <class F, class... A> std::jthread JThread(F &&function, A &&...arguments)
{
	return std::jthread(Bind(std::forward<F>(function)), std::forward<A>(arguments)...);
}
#endif

} // namespace WAFFLE_VARIANT_

} // namespace Waffle

#endif
