/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By which way the hits of each traced process with libwaffle come: through rings, or through the
 * kernel as those of all other processes. Sites are armed in the same way for both. The tracer
 * selects the way by two more probes (usdt/ring/tracer.h), which arming/ arms as well.
 *
 * Rings are for one tracer. It locks the directory of the process in /proc while it lives. A second
 * one gets all hits through the kernel, and so does the first one meanwhile.
 */
#ifndef WAFFLE_CAPTURE_TRANSPORT_TRANSPORT_H
#define WAFFLE_CAPTURE_TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/record.h"
#include "capture/transport/name_set.h"
#include "capture/transport/ring_set.h"
#include "target/elf/object.h"
#include "util/error.h"

enum transport_mode {
	TRANSPORT_AUTO, /* rings where that is possible */
	TRANSPORT_RING, /* rings, or an error */
	TRANSPORT_USDT, /* the kernel */
	TRANSPORT_MODE_COUNT
};
/* The names of the modes, for the option. NULL: there are no more. */
const char *transport_mode_choice(size_t mode, const char **help);

struct transport;

struct transport_way {
	pid_t pid;
	bool ring;
	/* Why the kernel, for all of its hits or, with `ring`, for those of some threads; else
	 * NULL. */
	const char *why;
	uint64_t records; /* that came through rings so far */
	bool ended;
	bool expected; /* it may never load its libwaffle, which is libwaffle-gpu */
};

struct transport_options {
	enum transport_mode mode;
	/* Why this capture can't use rings at all, as the end of a sentence; NULL: it can. */
	const char *refusal;
	struct ring_set *rings; /* both are owned by the caller */
	struct name_set *names;
	/* The way of a process was decided or has changed, or the process has ended. */
	void (*decided)(const struct transport_way *way, void *arg);
	void *arg;
};

int transport_open(struct transport **transport, const struct transport_options *options,
		   struct error *err);
void transport_close(struct transport *transport);

/* The probe of libwaffle to arm in a process that has mapped the file `object`. Decides the way of
 * the process if this is the first such file. Existing rings are taken over. */
struct object_probe transport_probe(struct transport *transport, pid_t pid,
				    const struct object *object);
/* The process has mapped a file with libwaffle. */
void transport_loaded(struct transport *transport, pid_t pid);
/* The process opens libwaffle while the kernel filters its hits. To change the place of the filter
 * would lose some. So it goes on with the kernel, if it is not known yet. */
void transport_keeps_kernel(struct transport *transport, pid_t pid);
/* Whether hits of the process come through rings, as far as it is known. */
bool transport_has_rings(const struct transport *transport, pid_t pid);
/* Whether hits of the process are filtered in user space, since some came through rings. */
bool transport_filters(const struct transport *transport, pid_t pid);
/* The process executes another program. Whether that one must not use rings, as this process did
 * until now, because it is in a sandbox. Then the probe of libwaffle is to be armed again. */
bool transport_confines(struct transport *transport, pid_t pid);
/* A probe of a process that has rings: ring_set_site(). */
void transport_site(struct transport *transport, pid_t pid, uint64_t probe, uint32_t site);
/* A process has mapped code: ring_set_mapped(). */
void transport_mapped(struct transport *transport, pid_t pid, uint64_t start, uint64_t end,
		      uint64_t ts);
/* A thread has made a ring, or was given one, or there is memory for names. `add`: what is new is
 * read from now on. */
void transport_ring(struct transport *transport, const struct waffle_rec_ring *rec, bool add);
/* The process runs another program. */
void transport_exec(struct transport *transport, pid_t pid);
/* Tells the ways of all processes again, at the end of a capture or of a part of it. */
void transport_finish(struct transport *transport);
/* The process has ended. */
void transport_forget(struct transport *transport, pid_t pid);

#endif
