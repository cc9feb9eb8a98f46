// SPDX-License-Identifier: Apache-2.0
// A function of which the compiler puts the unlikely part elsewhere (work(long) [clone .cold]),
// overloads and a template. Prints what came out, which no probe may change.
#include <cstdio>

namespace shop
{
__attribute__((cold, noinline)) void complain(long *prices)
{
	asm volatile("" ::"r"(prices) : "memory");
}

__attribute__((noinline)) void fill(long *prices, long first)
{
	for (int i = 0; i < 16; i++)
		prices[i] = first + i;
	asm volatile("" ::: "memory");
}

__attribute__((noinline)) long work(long first)
{
	long prices[16], sum = 0;

	fill(prices, first);
	if (__builtin_expect(first % 3 == 0, 0)) {
		complain(prices);
		complain(prices + 1);
		std::fprintf(stderr, "%s", "");
	}
	for (long price : prices)
		sum += price;
	return sum;
}

__attribute__((noinline)) long work(int first, int second)
{
	asm volatile("");
	return first + second;
}

template <class T> __attribute__((noinline)) T twice(T x)
{
	asm volatile("");
	return x + x;
}
} // namespace shop

int main()
{
	long sum = 0;

	for (int i = 0; i < 30; i++)
		sum += shop::work(i) + shop::work(i, 1) + shop::twice(i) +
		       static_cast<long>(shop::twice(i / 2.0));
	std::printf("%ld\n", sum);
	return 0;
}
