// SPDX-License-Identifier: Apache-2.0
/* Adds up the sleeps of threads that poll (why_polling.c). */
#include "analyze/why/parts/why_polls.h"

void why_polls_add(struct why_polls *to, const struct why_polls *polls)
{
	if (!polls->sleeps)
		return;
	if (!to->sleeps) {
		*to = *polls;
		return;
	}
	/* The more frequent call wins (Boyer-Moore majority vote). */
	if (to->call == polls->call) {
		to->votes += polls->votes;
	} else if (to->votes >= polls->votes) {
		to->votes -= polls->votes;
	} else {
		to->call = polls->call;
		to->votes = polls->votes - to->votes;
	}
	/* The first stacks may be cut: they are taken while the files' tables are still read. */
	if (polls->wait != MODEL_NONE)
		to->wait = polls->wait;
	to->sleeps += polls->sleeps;
	to->slept_ns += polls->slept_ns;
	to->checks += polls->checks;
	to->ran_ns += polls->ran_ns;
}

/* Fewer sleeps may be a program that waits a little, twice. */
#define SLEEPS_MIN 5

bool why_polls_are(const struct why_polls *polls, uint64_t stretches, uint64_t ns)
{
	return polls->sleeps >= SLEEPS_MIN && polls->sleeps >= stretches - stretches / 4 &&
	       polls->slept_ns >= ns / 2;
}
