/* SPDX-License-Identifier: Apache-2.0 */
/* See programs/classes.cpp. */
#ifndef PROGRAMS_CLASSES_H
#define PROGRAMS_CLASSES_H

namespace depot
{
class Counted
{
      public:
	int count = 4;
};

class Parcel : public Counted
{
      public:
	struct Box {
		char label[12];
		int width;
	};
	explicit Parcel(int width);
	virtual ~Parcel();
	Box box;
	static int limit; /* is not in the object */
};
} // namespace depot

#endif
