// SPDX-License-Identifier: Apache-2.0
/* Two units of one program: with -DOTHER the other one. */
#include "variants.h"

bool other_use();

#ifdef OTHER
bool other_use()
{
	return use();
}
#else
int main()
{
	bool first = other_use(), second = use();

	std::printf("%d %d\n", first, second);
	return 0;
}
#endif
