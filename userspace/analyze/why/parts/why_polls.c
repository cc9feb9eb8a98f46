// SPDX-License-Identifier: Apache-2.0
/* Adds up the sleeps of threads that poll (why_polling.c). */
#include "analyze/why/parts/why_polls.h"

/* The more frequent call wins (Boyer-Moore majority vote). */
static void vote(int16_t *call, uint32_t *votes, int16_t other, uint32_t others)
{
	if (*call == other) {
		*votes += others;
	} else if (*votes >= others) {
		*votes -= others;
	} else {
		*call = other;
		*votes = others - *votes;
	}
}

void why_polls_add(struct why_polls *to, const struct why_polls *polls)
{
	vote(&to->waited, &to->waited_votes, polls->waited, polls->waited_votes);
	if (!polls->sleeps)
		return;
	if (!to->sleeps)
		to->wait = MODEL_NONE;
	vote(&to->call, &to->votes, polls->call, polls->votes);
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

/* A call in which it waits after at least this part of the sleeps does not only check something. */
#define WAITED_PARTS 20

static bool is_in_waits(const struct why_polls *polls)
{
	return polls->votes && polls->call == polls->waited &&
	       polls->waited_votes >= polls->sleeps / WAITED_PARTS && polls->waited_votes;
}

bool why_polls_are(const struct why_polls *polls, uint64_t stretches, uint64_t ns)
{
	return !is_in_waits(polls) && polls->sleeps >= SLEEPS_MIN &&
	       polls->sleeps >= stretches - stretches / 4 && polls->slept_ns >= ns / 2;
}
