// SPDX-License-Identifier: Apache-2.0
#include "capture/transport/ring_process_internal.h"

#include "bpf/record.h"
#include "target/process/process_tids.h"

#define SITES_MAX 1048576 /* addresses of probes */
#define THREADS_MAX 65536 /* that are remembered at a time */
#define UNKNOWN_MAX 256   /* lookups in a second */

void ring_process_free(struct ring_process *process)
{
	map_free(&process->threads);
	map_free(&process->seen);
	map_free(&process->missing);
	map_free(&process->sites);
	vec_free(&process->site_list);
}

void ring_process_thread_set(struct ring_process *process, uint32_t seen_tid, uint32_t tid)
{
	/* Most of them have ended. Those that live are found again in /proc. */
	if (process->threads.len >= THREADS_MAX) {
		map_free(&process->threads);
		map_free(&process->seen);
	}
	if (map_set(&process->seen, tid, seen_tid))
		map_set(&process->threads, seen_tid, tid);
}

void ring_process_thread_ended(struct ring_process *process, uint32_t tid)
{
	uint32_t seen_tid = map_remove(&process->seen, tid);

	if (seen_tid != MAP_NONE && map_get(&process->threads, seen_tid) == tid)
		map_remove(&process->threads, seen_tid);
}

void ring_process_mapped(struct ring_process *process, uint64_t start, uint64_t end, uint64_t ts)
{
	process->mapped[process->mapped_next++ % RING_PROCESS_MAPPED_MAX] =
		(struct ring_mapped){start, end, ts};
}

/* The last time at which code was mapped at an address, as far as it is known. */
static uint64_t mapped_ts(const struct ring_process *process, uint64_t address)
{
	uint64_t ts = 0;

	for (unsigned i = 0; i < RING_PROCESS_MAPPED_MAX; i++) {
		const struct ring_mapped *mapped = &process->mapped[i];

		if (mapped->start <= address && address < mapped->end && mapped->ts > ts)
			ts = mapped->ts;
	}
	return ts;
}

void ring_process_site_set(struct ring_process *process, uint64_t probe, uint32_t site)
{
	uint32_t at = map_get(&process->sites, probe);
	struct ring_site *known = at == MAP_NONE ? NULL : &process->site_list.data[at];

	if (known && known->site != site)
		*known = (struct ring_site){site, known->site, mapped_ts(process, probe)};
	if (known || process->site_list.len >= SITES_MAX ||
	    !vec_push(&process->site_list,
		      (struct ring_site){.site = site, .before = WAFFLE_SITE_UNKNOWN}))
		return;
	if (!map_set(&process->sites, probe, (uint32_t)process->site_list.len - 1))
		process->site_list.len--;
}

bool ring_process_may_search(struct ring_process *process, uint64_t now_ns)
{
	uint64_t second = now_ns / 1000000000ull;

	if (process->ended)
		return false;
	if (process->unknown_s != second)
		process->unknown = 0;
	process->unknown_s = second;
	return process->unknown++ < UNKNOWN_MAX;
}

bool ring_process_site(struct ring_process *process, uint64_t ts, uint64_t probe, uint32_t *site)
{
	const struct ring_site *known;

	/* Mostly it is that of the last record. */
	if (probe != process->last_probe || process->last_at == MAP_NONE) {
		process->last_at = map_get(&process->sites, probe);
		process->last_probe = probe;
	}
	if (process->last_at == MAP_NONE)
		return false;
	known = &process->site_list.data[process->last_at];
	*site = ts < known->since ? known->before : known->site;
	return true;
}

static void thread_found(uint32_t seen_tid, uint32_t tid, void *arg)
{
	ring_process_thread_set(arg, seen_tid, tid);
}

uint32_t ring_process_tid(struct ring_process *process, uint32_t seen_tid, uint64_t now_ns)
{
	uint64_t second = now_ns / 1000000000ull;
	uint32_t tid = map_get(&process->threads, seen_tid);

	if (tid != MAP_NONE)
		return tid;
	if (process->missing_s != second)
		map_free(&process->missing);
	if (map_get(&process->missing, seen_tid) != MAP_NONE ||
	    !ring_process_may_search(process, now_ns))
		return 0;
	if (process_has_tid(process->pid, seen_tid)) /* mostly it is in our namespace */
		return seen_tid;
	if (process->missing_s != second)
		process_tids_each(process->pid, thread_found, process);
	process->missing_s = second;
	tid = map_get(&process->threads, seen_tid);
	if (tid != MAP_NONE)
		return tid;
	map_set(&process->missing, seen_tid, 0);
	return 0;
}
