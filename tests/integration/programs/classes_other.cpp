// SPDX-License-Identifier: Apache-2.0
// See programs/classes.cpp.
#include "classes.h"

namespace depot
{
Parcel::Parcel(int width) : box{"label", width}
{
}

Parcel::~Parcel()
{
}
} // namespace depot
