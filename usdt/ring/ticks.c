// SPDX-License-Identifier: Apache-2.0
#include "usdt/ring/ticks.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

#define ATTEMPTS 8
/* More attempts if all were interrupted. CLOCK_MONOTONIC takes some tens of ns to read. */
#define ATTEMPTS_MAX 64
#define WIDTH_GOOD 2000 /* ticks */

static bool forbidden;

bool ticks_is_forbidden(void)
{
	int state = PR_TSC_ENABLE;

	return !prctl(PR_GET_TSC, &state) && state == PR_TSC_SIGSEGV;
}

void ticks_look(void)
{
	forbidden = ticks_is_forbidden();
}

bool ticks_was_forbidden(void)
{
	return forbidden;
}

uint64_t ticks_ns(void)
{
	struct timespec now;

	if (!forbidden)
		return clock_monotonic_ns();
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* Whether the counter has a constant rate in all states of power, and is the same on all CPUs. The
 * kernel watches the latter, and uses another clock source otherwise. */
static bool counter_is_good(void)
{
#ifdef __x86_64__
	static const char wanted[] = "tsc\n";
	unsigned a, b, c, d;
	char text[32];
	ssize_t len;
	int fd;

	if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & 1u << 8))
		return false;
	fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		  O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, text, sizeof(text));
	close(fd);
	return len == sizeof(wanted) - 1 && !memcmp(text, wanted, sizeof(wanted) - 1);
#else
	return true; /* the architecture guarantees it */
#endif
}

enum ticks_kind ticks_choose(void)
{
	return !forbidden && counter_is_good() ? TICKS_COUNTER : TICKS_NS;
}

struct ticks_pair ticks_pair_take(uint32_t kind)
{
	struct ticks_pair best = {0};
	uint64_t width = UINT64_MAX;

	if (kind != TICKS_COUNTER) {
		best.ticks = best.ns = ticks_ns();
		return best;
	}
	for (unsigned i = 0; i < ATTEMPTS || (width > WIDTH_GOOD && i < ATTEMPTS_MAX); i++) {
		uint64_t before = ticks_counter(), ns = clock_monotonic_ns(),
			 after = ticks_counter();

		if (after - before >= width)
			continue;
		width = after - before;
		best = (struct ticks_pair){.ticks = before + width / 2, .ns = ns};
	}
	return best;
}

/* Drops every other pair of the older half. So the latest ones are dense, and the time before them
 * is still covered. */
static void map_thin(struct ticks_map *map)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < map->count; i++)
		if (i % 2 == 0 || i >= map->count / 2)
			map->pairs[kept++] = map->pairs[i];
	map->count = kept;
}

void ticks_map_add(struct ticks_map *map, struct ticks_pair pair)
{
	struct ticks_pair *last = map->count ? &map->pairs[map->count - 1] : NULL;

	if (last && (pair.ticks <= last->ticks || pair.ns <= last->ns))
		return;
	if (map->count == TICKS_PAIRS)
		map_thin(map);
	map->pairs[map->count++] = pair;
}

/* A line through two pairs gives the rate only if they are not too close, since each is wrong by
 * some nanoseconds. */
#define RATE_NS 1000000ull

uint64_t ticks_map_ns(const struct ticks_map *map, uint64_t ticks)
{
	unsigned at = map->count - 1;
	const struct ticks_pair *from, *to, *origin;
	int64_t product;
	__int128 ns;

	if (!at) /* a single pair */
		return map->pairs[0].ns;
	/* The latest ones are asked for most. */
	while (at > 1 && ticks < map->pairs[at - 1].ticks)
		at--;
	from = origin = &map->pairs[at - 1];
	to = &map->pairs[at];
	if (ticks > to->ticks) {
		origin = to;
		while (from > map->pairs && to->ns - from->ns < RATE_NS)
			from--;
	}
	/* The distance is signed: `ticks` may be before the first pair. Mostly all of it fits into
	 * a word, whose division is much faster. */
	if (__builtin_mul_overflow((int64_t)(ticks - origin->ticks), (int64_t)(to->ns - from->ns),
				   &product))
		ns = (__int128)origin->ns + (__int128)(int64_t)(ticks - origin->ticks) *
						    (int64_t)(to->ns - from->ns) /
						    (int64_t)(to->ticks - from->ticks);
	else
		ns = (__int128)origin->ns + product / (int64_t)(to->ticks - from->ticks);
	return ns < 0 ? 0 : ns > INT64_MAX ? INT64_MAX : (uint64_t)ns;
}
