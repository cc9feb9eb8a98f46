// SPDX-License-Identifier: Apache-2.0
#include "capture/requests_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "bpf/call.h"
#include "target/elf/request_site.h"
#include "target/process/listening.h"
#include "util/map.h"
#include "util/vec.h"
#include "waffle/abi.h"

#define REQUESTS_MAX 65536 /* that are not delivered yet */
#define ROUND_NS 100000000ull
#define SITES_MAX 200 /* clients choose the methods; past this number they share one name */
#define FOLLOWING_MAX (1u << 18) /* not delivered yet, of those that came with others: 60 MiB */
#define PROCESSES_MAX 1024       /* whose ports are remembered */

/* A request, from its first bytes on. */
struct server_request {
	uint64_t cookie;
	uint64_t id;
	uint64_t begin_ts;
	uint64_t end_ts; /* of the last send; 0: no answer yet */
	uint32_t tgid, begin_tid, end_tid;
	uint16_t begin_cpu, end_cpu;
	bool answered;
	struct request_head head;
	/* Those that came in the same receive (pipelining). Which bytes of the answers are of which
	 * request is not known, so they have the same end. */
	VEC(struct request_head) following;
};

/* The ports on which a process listened when its first connection of unknown origin was seen. */
struct process_ports {
	uint32_t tgid;
	struct listening listening;
};

/* The site of all requests of a method. It lives as long as arming, which has the pointer. */
struct request_site {
	struct site_info info;
	enum request_protocol protocol;
	char method[REQUEST_METHOD_MAX]; /* "": of all others */
	char name[REQUEST_METHOD_MAX + 8];
	uint32_t number; /* arming's; WAFFLE_SITE_UNKNOWN: the filter wants none of them */
};

struct requests {
	struct requests_options options;
	VEC(struct request_site *) sites;
	VEC(struct server_request) list;
	struct map at; /* cookie → index in `list` */
	VEC(struct process_ports) ports;
	size_t following; /* of all requests in `list` */
	uint64_t seed, round_ts;
	uint64_t hit[(sizeof(struct waffle_rec_hit) + WAFFLE_FRAME_MAX) / 8 + 1];
};

static const char *const protocols[REQUEST_PROTOCOLS] = {
	[REQUEST_HTTP] = REQUEST_SITE_HTTP,
	[REQUEST_RESP] = REQUEST_SITE_RESP,
};

int requests_open(struct requests **requests, const struct requests_options *options,
		  struct error *err)
{
	struct requests *made = calloc(1, sizeof(*made));

	*requests = NULL;
	if (!made || getrandom(&made->seed, sizeof(made->seed), 0) != sizeof(made->seed)) {
		free(made);
		return error_set(err, ENOMEM, "requests: out of memory");
	}
	made->options = *options;
	*requests = made;
	return 0;
}

void requests_close(struct requests *requests)
{
	if (!requests)
		return;
	for (size_t i = 0; i < requests->ports.len; i++)
		listening_free(&requests->ports.data[i].listening);
	vec_free(&requests->ports);
	for (size_t i = 0; i < requests->sites.len; i++)
		free(requests->sites.data[i]);
	vec_free(&requests->sites);
	for (size_t i = 0; i < requests->list.len; i++)
		vec_free(&requests->list.data[i].following);
	vec_free(&requests->list);
	map_free(&requests->at);
	free(requests);
}

static struct request_site *site_make(struct requests *requests, const struct request_head *head,
				      const char *method)
{
	const struct requests_options *options = &requests->options;
	struct request_site *site = calloc(1, sizeof(*site));
	bool http = head->protocol == REQUEST_HTTP;

	if (!site || !vec_push(&requests->sites, site)) {
		free(site);
		return NULL;
	}
	snprintf(site->method, sizeof(site->method), "%s", method);
	snprintf(site->name, sizeof(site->name), "%s%s%s", protocols[head->protocol],
		 *method ? " " : "", method);
	site->protocol = head->protocol;
	site->info = (struct site_info){.name = site->name,
					.category = "request",
					.file = "",
					.func = "",
					.object = "",
					.kind = WAFFLE_SITE_SPAN,
					.key_count = http ? 3 : 2,
					.keys = {{WAFFLE_KEY_STR, http ? "method" : "command"}}};
	if (http)
		site->info.keys[1] = (struct site_key){WAFFLE_KEY_STR, "path"};
	site->info.keys[http ? 2 : 1] = (struct site_key){WAFFLE_KEY_BOOL, "answered"};
	site->number = options->filter && !record_filter_wants(options->filter, &site->info)
			       ? WAFFLE_SITE_UNKNOWN
			       : arming_add_name(options->arming, &site->info);
	return site;
}

static const struct request_site *site_find(const struct requests *requests,
					    const struct request_head *head, const char *method)
{
	for (size_t i = 0; i < requests->sites.len; i++)
		if (requests->sites.data[i]->protocol == head->protocol &&
		    !strcmp(requests->sites.data[i]->method, method))
			return requests->sites.data[i];
	return NULL;
}

/* The number of the site of a method: "HTTP GET". WAFFLE_SITE_UNKNOWN: the filter wants none of
 * them, or there is no memory. */
static uint32_t site_of(struct requests *requests, const struct request_head *head)
{
	const struct request_site *site = site_find(requests, head, head->method);

	if (!site && requests->sites.len >= SITES_MAX)
		site = site_find(requests, head, "") ?: site_make(requests, head, "");
	else if (!site)
		site = site_make(requests, head, head->method);
	return site ? site->number : WAFFLE_SITE_UNKNOWN;
}

/* Appends a string to a frame of at most WAFFLE_FRAME_MAX bytes, which has room for it. */
static uint64_t *text_put(uint64_t *to, const char *text, bool cut)
{
	size_t len = strlen(text), words = (len + 7) / 8;

	*to++ = len | (cut ? WAFFLE_STR_CUT : 0);
	memset(to, 0, words * sizeof(*to));
	memcpy(to, text, len);
	return to + words;
}

static struct waffle_rec_hit *hit_make(struct requests *requests,
				       const struct server_request *request, uint64_t id,
				       const struct request_head *head, uint32_t site)
{
	struct waffle_rec_hit *hit = (struct waffle_rec_hit *)requests->hit;
	struct waffle_frame *frame = (struct waffle_frame *)(hit + 1);
	uint64_t *at = (uint64_t *)(frame + 1);

	*frame = (struct waffle_frame){.id = id};
	at = text_put(at, head->method, false);
	if (head->protocol == REQUEST_HTTP)
		at = text_put(at, head->path, head->path_cut);
	*at++ = request->answered;
	*hit = (struct waffle_rec_hit){
		.rec = {request->begin_ts, request->begin_tid, WAFFLE_REC_HIT, request->begin_cpu},
		.tgid = request->tgid,
		.site = site,
		.frame_bytes = (uint32_t)((char *)at - (char *)frame)};
	return hit;
}

/* Delivers a request, or one that came with it. It has an end unless the capture has ended. */
static int head_deliver(struct requests *requests, const struct server_request *request,
			uint64_t id, const struct request_head *head)
{
	const struct requests_options *options = &requests->options;
	uint32_t site = site_of(requests, head);
	struct waffle_rec_span_end end = {
		.rec = {request->end_ts, request->end_tid, 0, request->end_cpu},
		.span_id = id,
		.tgid = request->tgid,
		.site = site};
	struct waffle_rec_hit *hit;

	if (site == WAFFLE_SITE_UNKNOWN)
		return 0;
	hit = hit_make(requests, request, id, head, site);
	if (request->end_ts)
		end.rec.kind = WAFFLE_REC_SPAN_END;
	if (options->filter)
		return record_filter_pass_track(options->filter, hit, &end,
						request->end_ts ?: request->begin_ts);
	return options->deliver(&hit->rec, options->arg)
		       ?: (end.rec.kind ? options->deliver(&end.rec, options->arg) : 0);
}

static int request_deliver(struct requests *requests, const struct server_request *request)
{
	int result = head_deliver(requests, request, request->id, &request->head);

	for (size_t i = 0; i < request->following.len && !result; i++)
		result = head_deliver(requests, request,
				      waffle_call_id(request->begin_ts, request->begin_tid,
						     requests->seed ^ (i + 1)),
				      &request->following.data[i]);
	return result;
}

/* Delivers a request and removes it from the list, in which the last one takes its place. */
static int request_end(struct requests *requests, uint32_t at)
{
	struct server_request *request = &requests->list.data[at];
	int result = request_deliver(requests, request);
	struct server_request *last = &requests->list.data[--requests->list.len];

	map_remove(&requests->at, request->cookie);
	requests->following -= request->following.len;
	vec_free(&request->following);
	if (request != last) {
		*request = *last;
		map_set(&requests->at, last->cookie, at); /* replaces: always succeeds */
	}
	return result;
}

/* NULL: it can't be known. */
static const struct listening *ports_of(struct requests *requests, uint32_t tgid)
{
	struct process_ports made = {.tgid = tgid};

	for (size_t i = 0; i < requests->ports.len; i++)
		if (requests->ports.data[i].tgid == tgid)
			return &requests->ports.data[i].listening;
	if (requests->ports.len >= PROCESSES_MAX || !vec_reserve(&requests->ports, 1))
		return NULL;
	listening_read(&made.listening, (pid_t)tgid);
	requests->ports.data[requests->ports.len++] = made;
	return &requests->ports.data[requests->ports.len - 1].listening;
}

/*
 * Whether the peer of the connection is the client. An answer of redis may look like a request: an
 * array of texts. If the connection is older than the capture, this side is the server if its
 * process listens on the port.
 */
static bool is_server(struct requests *requests, const struct waffle_rec_socket *rec,
		      const struct request_head *head)
{
	const struct listening *ports;

	if (rec->flags & WAFFLE_SOCKET_SERVER || head->protocol == REQUEST_HTTP)
		return true;
	ports = ports_of(requests, rec->tgid);
	return ports && listening_has(ports, rec->local_port);
}

/* Adds the requests behind the first one, as far as the bytes were read. -EINVAL: there is no room
 * for all of them. */
static int following_add(struct requests *requests, struct server_request *request,
			 const char *bytes, size_t len)
{
	struct request_head head;
	size_t next;

	while ((next = request_head_next(bytes, len))) {
		bytes += next;
		len -= next;
		if (!request_head_read(&head, bytes, len) ||
		    head.protocol != request->head.protocol)
			break;
		if (requests->following >= FOLLOWING_MAX || !vec_push(&request->following, head))
			return -EINVAL;
		requests->following++;
	}
	return 0;
}

static int received(struct requests *requests, const struct waffle_rec_socket *rec)
{
	uint32_t at = map_get(&requests->at, rec->cookie);
	struct server_request request = {.cookie = rec->cookie,
					 .begin_ts = rec->rec.ts,
					 .tgid = rec->tgid,
					 .begin_tid = rec->rec.tid,
					 .begin_cpu = rec->rec.cpu};
	int result = 0, rejected;

	/* More of a request that is not answered yet. */
	if (at != MAP_NONE && !requests->list.data[at].answered)
		return 0;
	if (!request_head_read(&request.head, (const char *)(rec + 1), rec->frame_bytes))
		return 0;
	if (at == MAP_NONE && !is_server(requests, rec, &request.head))
		return 0;
	if (at != MAP_NONE)
		result = request_end(requests, at);
	request.id = waffle_call_id(rec->rec.ts, rec->rec.tid, requests->seed);
	if (requests->list.len >= REQUESTS_MAX || !vec_reserve(&requests->list, 1) ||
	    !map_set(&requests->at, rec->cookie, (uint32_t)requests->list.len))
		return result ?: -EINVAL;
	rejected = following_add(requests, &request, (const char *)(rec + 1), rec->frame_bytes);
	requests->list.data[requests->list.len++] = request;
	return result ?: rejected;
}

static int sent_or_closed(struct requests *requests, const struct waffle_rec_socket *rec)
{
	uint32_t at = map_get(&requests->at, rec->cookie);
	struct server_request *request;
	bool sent = rec->event == WAFFLE_SOCKET_SENT;

	if (at == MAP_NONE)
		return 0;
	request = &requests->list.data[at];
	if (sent || !request->answered) {
		request->end_ts = rec->rec.ts;
		request->end_tid = sent ? rec->rec.tid : request->begin_tid;
		request->end_cpu = rec->rec.cpu;
	}
	request->answered |= sent;
	return sent ? 0 : request_end(requests, at);
}

int requests_pass(struct requests *requests, const struct waffle_rec_socket *rec)
{
	switch (rec->event) {
	case WAFFLE_SOCKET_RECEIVED:
		return received(requests, rec);
	case WAFFLE_SOCKET_SENT:
	case WAFFLE_SOCKET_CLOSED:
		return sent_or_closed(requests, rec);
	default:
		return -EINVAL;
	}
}

int requests_round(struct requests *requests, uint64_t now)
{
	int result = 0;

	if (now < requests->round_ts + ROUND_NS)
		return 0;
	requests->round_ts = now;
	for (size_t i = requests->list.len; i > 0 && !result; i--) {
		const struct server_request *request = &requests->list.data[i - 1];

		if (request->answered && now > request->end_ts + REQUEST_QUIET_NS)
			result = request_end(requests, (uint32_t)i - 1);
	}
	return result;
}

int requests_finish(struct requests *requests)
{
	int result = 0;

	while (requests->list.len && !result)
		result = request_end(requests, (uint32_t)requests->list.len - 1);
	return result;
}
