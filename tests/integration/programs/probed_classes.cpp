// SPDX-License-Identifier: Apache-2.0
// Methods, overloads and a namespace, to be probed by the names that people write.
#include <cstdio>

namespace shop
{
class Base
{
      public:
	long stock = 12;
};

class Cart : public Base
{
      public:
	int items = 3;
	__attribute__((noinline)) int add(int count);
	__attribute__((noinline)) int add(int count, long price);
};

int Cart::add(int count)
{
	asm volatile("" ::"r"(this) : "memory");
	return items += count;
}

int Cart::add(int count, long price)
{
	asm volatile("" ::"r"(this) : "memory");
	return items += count + static_cast<int>(price);
}
} // namespace shop

int main()
{
	shop::Cart cart;
	char line[16];

	std::puts("ready");
	std::fflush(stdout);
	while (std::fgets(line, sizeof(line), stdin)) {
		cart.add(1);
		cart.add(2, 10);
		cart.add(3);
		std::puts("done");
		std::fflush(stdout);
	}
	return 0;
}
