// SPDX-License-Identifier: Apache-2.0
/* By which way the hits of the targets come: what a capture asks of transport/, and what it tells.
 */
#include <stdio.h>
#include <string.h>

#include "capture/session_internal.h"

static uint32_t ring_site(uint64_t ts, pid_t pid, uint64_t probe, void *arg)
{
	struct session *session = arg;
	struct error ignored = ERROR_INIT;

	uint32_t name = name_set_site(session->named, pid, probe);

	if (name != WAFFLE_SITE_UNKNOWN)
		return name;
	/* The mappings at the time of the hit. The stages come to the same time next. */
	address_spaces_advance(session->spaces, ts, &ignored);
	return arming_site_at(session->arming, pid, probe);
}

static uint32_t name_found(const struct site_info *site, void *arg)
{
	struct session *session = arg;

	if (session->stages.filter && !record_filter_wants(session->stages.filter, site))
		return WAFFLE_SITE_UNKNOWN;
	return arming_add_name(session->arming, site);
}

static void names_full(void *arg)
{
	session_notify(arg, "some names or tracks that programs make at run time are not recorded: "
			    "there are too many");
}

void session_ring(const struct waffle_rec_ring *rec, void *arg)
{
	struct session *session = arg;

	/* At the end no ring is added, but threads that have just begun have records in others. */
	if (session->transport)
		transport_ring(session->transport, rec, !session->end_ts);
}

/* Each reason is told once, however many processes there are. */
static bool is_told(struct session *session, const char *why)
{
	for (size_t i = 0; i < session->told.len; i++)
		if (!strcmp(session->told.data[i], why))
			return true;
	vec_push(&session->told, why);
	return false;
}

static void way_tell(struct session *session, const struct transport_way *way)
{
	char line[300];

	if (session->options->transport == TRANSPORT_RING && !way->ring && !session->no_rings_pid) {
		session->no_rings_pid = way->pid;
		session->no_rings_why = way->why;
		return;
	}
	if (is_told(session, way->why))
		return;
	snprintf(line, sizeof(line),
		 "pid %d: %s come through the kernel instead of rings, which is slower: %s",
		 way->pid, way->ring ? "the hits of some threads" : "its hits", way->why);
	session_notify(session, line);
}

static void way_decided(const struct transport_way *way, void *arg)
{
	struct session *session = arg;
	struct error ignored = ERROR_INIT;
	struct store_transport transport = {.ts = clock_monotonic_ns(),
					    .pid = (uint32_t)way->pid,
					    .ring = way->ring,
					    .records = way->records,
					    .why = way->why ? way->why : ""};

	if (way->ring && session->stages.filter)
		record_filter_process(session->stages.filter, way->pid);
	if (way->expected)
		return;
	store_writer_add_transport(session->writer, &transport, &ignored);
	if (way->why && !way->ended)
		way_tell(session, way);
}

/* Why a capture with these options can't use rings. NULL: it can. */
static const char *refusal(const struct session *session)
{
	/* The kernel's filter can't be left out for single processes then. */
	if (session->plan && !session->plan->is_static && session->options->machine_wide)
		return "the filter asks for more than the site (--machine-wide)";
	if (stack_choice_has_sites(session->options->stacks))
		return "only the kernel takes stacks of spans (--stacks)";
	if (!ring_set_may_map(session->rings))
		return "to map rings needs CAP_CHECKPOINT_RESTORE";
	return NULL;
}

int session_transport_open(struct session *session)
{
	struct ring_set_options rings = {
		.cpu_count = kernel_cpu_count(session->kernel), .site = ring_site, .arg = session};
	struct track_stage_options tracks = {.arming = session->arming,
					     .keep_children =
						     session->options->kernel.config.keep_children,
					     .deliver = stages_deliver_track,
					     .arg = &session->stages};
	struct name_set_options named = {.found = name_found, .full = names_full, .arg = session};
	struct transport_options options = {
		.mode = session->options->transport, .decided = way_decided, .arg = session};
	int result;

	if (!(session->options->sources & CAPTURE_SPANS))
		return 0;
	result = session_filter_open(session)
			 ?: ring_set_open(&session->rings, &rings, session->err);
	named.rings = options.rings = session->rings;
	result = result ?: name_set_open(&session->named, &named, session->err);
	options.names = tracks.names = session->named;
	tracks.filter = session->stages.filter;
	result = result ?: track_stage_open(&session->stages.tracks, &tracks, session->err);
	options.refusal = result ? NULL : refusal(session);
	result = result ?: transport_open(&session->transport, &options, session->err);
	if (result)
		return result;
	drain_use_rings(session->drain, session->rings);
	arming_use_transport(session->arming, session->transport);
	return 0;
}

void session_transport_close(struct session *session)
{
	transport_close(session->transport);
	track_stage_close(session->stages.tracks);
	name_set_close(session->named);
	ring_set_close(session->rings);
	record_filter_close(session->stages.filter);
	vec_free(&session->told);
}

int session_transport_check(struct session *session)
{
	const struct session_options *options = session->options;

	if (options->transport != TRANSPORT_RING)
		return 0;
	if (session->no_rings_pid)
		return error_set(session->err, ENOTSUP,
				 "pid %d: its hits can't come through rings: %s; leave out "
				 "--transport ring",
				 session->no_rings_pid, session->no_rings_why);
	for (size_t i = 0; i < session->targets.len; i++) {
		pid_t pid = session->targets.data[i].pid;

		if (session->transport && transport_has_rings(session->transport, pid))
			continue;
		return error_set(session->err, ENOTSUP,
				 "pid %d: it has no libwaffle, so its hits can't come through "
				 "rings; link it with libwaffle, or leave out --transport ring",
				 pid);
	}
	return 0;
}
