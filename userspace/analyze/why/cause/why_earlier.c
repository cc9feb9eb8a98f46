// SPDX-License-Identifier: Apache-2.0
/* A wait that goes on when the capture ends, as the thread's earlier ones. */
#include "analyze/why/cause/why_blocked_internal.h"

#include <string.h>

#include "analyze/why/lookup/why_at_end.h"
#include "analyze/why/parts/why_connections.h"
#include "analyze/why/parts/why_sums.h"
#include "util/text.h"

/* The length of "pipe:[4711]" at the begin of "pipe:[4711] (write end of …)"; 0: the text begins
 * with no inode. */
static size_t inode_len(const char *text)
{
	size_t len = strcspn(text, ":");

	if (!text_begins(text + len, ":["))
		return 0;
	len += strlen(":[");
	return len + strspn(text + len, "0123456789");
}

/* Whether both texts name the same pipe or socket. Only that of an open wait also names who holds
 * the other end. */
static bool is_same_inode(const char *a, const char *b)
{
	size_t len = inode_len(a);

	return len && len == inode_len(b) && !memcmp(a, b, len) && a[len] == ']' && b[len] == ']';
}

/* A client has another connection for each request. */
static bool is_same_object(const struct why_walk *walk, uint32_t a, uint32_t b)
{
	uint32_t server;

	if (a == b)
		return a;
	if (is_same_inode(strtab_get(walk->why->texts, a), strtab_get(walk->why->texts, b)))
		return true;
	server = why_connections_to(walk->why->texts, a);
	return server && server == why_connections_to(walk->why->texts, b);
}

/* Whether the chain of a sum begins with a wait of the same thread, in the same functions, for the
 * same thing. */
static bool is_alike(const struct why_walk *walk, const struct why_blocked *blocked,
		     const struct why_sum *sum)
{
	const struct why_step *own = &walk->chains.data[sum->chain].steps[0];
	const struct model_wait *waits = walk->model->waits.data;
	bool timed = sum->part.cause == WHY_TIMER && sum->part.thread == blocked->thread;

	if (own->state != WAFFLE_THREAD_BLOCKED || own->thread != blocked->thread ||
	    own->syscall != blocked->interval->syscall || own->wait == MODEL_NONE ||
	    !is_same_object(walk, own->object, blocked->object))
		return false;
	return (waits[own->wait].user_stack &&
		waits[own->wait].user_stack == blocked->wait->user_stack) ||
	       why_wait_at_end(walk, own->wait, timed) != MODEL_NONE;
}

/* Time of earlier waits that are like an open one. */
struct earlier {
	const struct why_sum *most;
	uint64_t longest_ns, all_ns;
	uint64_t cause_ns;  /* with the cause and the culprit of `most` */
	uint64_t object_ns; /* the part of cause_ns that is for the same object */
};

static void add_longest(struct earlier *earlier, const struct why_walk *walk,
			const struct why_sum *sum)
{
	const struct why_step *own = &walk->chains.data[sum->chain].steps[0];

	earlier->all_ns += sum->part.ns;
	if (own->to_ts - own->from_ts > earlier->longest_ns)
		earlier->longest_ns = own->to_ts - own->from_ts;
	if (!earlier->most || sum->part.ns > earlier->most->part.ns)
		earlier->most = sum;
}

static void add_same(struct earlier *earlier, const struct why_walk *walk,
		     const struct why_sum *sum)
{
	const struct why_part *part = &sum->part, *most = &earlier->most->part;

	if (part->cause != most->cause || part->thread != most->thread)
		return;
	earlier->cause_ns += part->ns;
	if (part->object == most->object || is_same_object(walk, part->object, most->object))
		earlier->object_ns += part->ns;
}

static struct earlier earlier_of(const struct why_walk *walk, const struct why_blocked *blocked)
{
	struct earlier earlier = {.most = NULL};

	for (size_t i = 0; i < walk->sums.len; i++)
		if (is_alike(walk, blocked, &walk->sums.data[i]))
			add_longest(&earlier, walk, &walk->sums.data[i]);
	for (size_t i = 0; earlier.most && i < walk->sums.len; i++)
		if (is_alike(walk, blocked, &walk->sums.data[i]))
			add_same(&earlier, walk, &walk->sums.data[i]);
	return earlier;
}

struct why_verdict why_blocked_as_earlier(const struct why_walk *walk,
					  const struct why_blocked *blocked)
{
	const struct why_part *most;
	struct earlier earlier;

	if (blocked->link || !blocked->interval->open || !blocked->wait || walk->no_chains)
		return WHY_UNDECIDED;
	earlier = earlier_of(walk, blocked);
	if (!earlier.most || earlier.most->part.cause == WHY_UNKNOWN ||
	    earlier.longest_ns < blocked->to - blocked->from)
		return WHY_UNDECIDED;
	most = &earlier.most->part;
	if (earlier.object_ns > earlier.all_ns / 2)
		return (struct why_verdict){.kind = WHY_VERDICT_JOIN,
					    .sum = (uint32_t)(earlier.most - walk->sums.data)};
	/* A server that reads another file for each request is the culprit, but no file is. */
	return earlier.cause_ns > earlier.all_ns / 2
		       ? why_verdict_end(walk, most->cause, WHY_GRADE_LIKELY, most->thread, 0)
		       : WHY_UNDECIDED;
}
