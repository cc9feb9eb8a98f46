// SPDX-License-Identifier: Apache-2.0
// Classes of a namespace, one of them in another; classes_other.cpp has the constructor.
#include <cstdio>

#include "classes.h"
#include "kept.h"

namespace depot
{
KEPT int look(Parcel *parcel)
{
	asm volatile("");
	return parcel->box.width + parcel->count;
}

KEPT long peek(Parcel::Box *box)
{
	asm volatile("");
	return box->width;
}
} // namespace depot

int main()
{
	depot::Parcel parcel(31);

	std::printf("%ld\n", depot::look(&parcel) + depot::peek(&parcel.box));
	return 0;
}
