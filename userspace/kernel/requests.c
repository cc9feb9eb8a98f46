// SPDX-License-Identifier: Apache-2.0
/* The programs that follow the requests of servers (bpf/request.bpf.c). */
#include <bpf/libbpf.h>
#include <errno.h>

#include "kernel/kernel_internal.h"
#include "waffle.skel.h"

#define SOCKETS_MAX 16384 /* with requests at a time; the kernel forgets the least used ones */

/* The types of the tracepoints to which the programs are attached. */
static const char *const tracepoints[] = {"btf_trace_sock_recv_length",
					  "btf_trace_sock_send_length",
					  "btf_trace_inet_sock_set_state"};

/* Decides before loading, since an object with a program that can't be loaded fails as a whole. */
int requests_configure(struct kernel *kernel, const struct kernel_options *options)
{
	struct waffle_bpf *bpf = kernel->bpf;

	kernel->requests = options->requests;
	for (size_t i = 0; i < sizeof(tracepoints) / sizeof(tracepoints[0]) && kernel->requests;
	     i++)
		if (kernel->types.bytes && !kernel_types_has(&kernel->types, tracepoints[i])) {
			kernel->requests = false;
			kernel->requests_problem = ENOENT;
		}
	bpf_program__set_autoload(bpf->progs.on_received, kernel->requests);
	bpf_program__set_autoload(bpf->progs.on_sent, kernel->requests);
	bpf_program__set_autoload(bpf->progs.on_state, kernel->requests);
	return kernel->requests ? bpf_map__set_max_entries(bpf->maps.request_sockets, SOCKETS_MAX)
				: 0;
}

/* If that fails, all else is recorded. */
void requests_attach(struct kernel *kernel)
{
	struct waffle_bpf *bpf = kernel->bpf;

	if (!kernel->requests)
		return;
	bpf->links.on_state = bpf_program__attach(bpf->progs.on_state);
	bpf->links.on_sent = bpf_program__attach(bpf->progs.on_sent);
	if (bpf->links.on_state && bpf->links.on_sent)
		bpf->links.on_received = bpf_program__attach(bpf->progs.on_received);
	if (!bpf->links.on_received)
		kernel->requests_problem = errno;
}

void requests_detach(struct kernel *kernel)
{
	struct waffle_bpf *bpf = kernel->bpf;
	struct bpf_link **const links[] = {&bpf->links.on_received, &bpf->links.on_sent,
					   &bpf->links.on_state};

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		bpf_link__destroy(*links[i]);
		*links[i] = NULL;
	}
}

int kernel_requests_problem(const struct kernel *kernel)
{
	return kernel->requests_problem;
}
