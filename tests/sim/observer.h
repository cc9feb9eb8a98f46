/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the stand-in of CUPTI sees of the other stand-ins: the begin and the end of each call, and
 * each operation that has ended. The observer is a variable of the driver's stand-in. The real
 * libraries have something of that kind, which is not public.
 */
#ifndef SIM_OBSERVER_H
#define SIM_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>

enum sim_domain { SIM_NO_DOMAIN, SIM_DRIVER, SIM_RUNTIME }; /* as CUPTI numbers them */

enum sim_op { SIM_NOT_SEEN, SIM_KERNEL, SIM_COPY, SIM_SET, SIM_WAIT, SIM_HOST };

/* The properties of an operation that an observer sees. */
struct op_about {
	enum sim_op op;
	uint32_t kind; /* CUPTI's number of the kind of copy or wait */
	uint32_t correlation;
	uint32_t graph; /* number of the instantiated graph; 0: it is in none */
	uint64_t node;
	bool graph_ends;   /* the last one of its graph */
	bool graph_is_old; /* the graph was instantiated before graphs were observed */
	uint32_t grid[3], block[3], shared;
	uint64_t bytes;
	const char *name;
};

struct sim_observer {
	/* `params` are those of the function, or NULL. */
	void (*enter)(enum sim_domain domain, const char *function, const void *params);
	/* The call returns `result`. */
	void (*leave)(enum sim_domain domain, const char *function, const void *params, int result);
	/* The number of the call that this thread is in. */
	uint32_t (*correlation)(void);
	/* stream UINT32_MAX: none. */
	void (*done)(const struct op_about *about, uint32_t stream, uint64_t start_ns,
		     uint64_t end_ns);
	/* A node of a graph was captured (13) or cloned (20), or a graph instantiated (18). */
	void (*graph)(uint32_t callback, uint32_t graph, uint64_t node, uint64_t from);
	/* Returns whether a launched graph is one operation, not one for each node. */
	bool (*graphs)(void);
};

/* Points to where the observer of this stand-in is stored. */
extern const struct sim_observer **sim_observer_at __attribute__((visibility("hidden")));
extern enum sim_domain sim_domain __attribute__((visibility("hidden")));

/* NULL: nobody observes. */
static inline const struct sim_observer *sim_observer(void)
{
	return __atomic_load_n(sim_observer_at, __ATOMIC_ACQUIRE);
}

/* A call that is observed, from its declaration to the end of the function. */
struct sim_api {
	const struct sim_observer *observer;
	const char *function;
	const void *params;
	int result;
};

static inline struct sim_api sim_api_begin(const char *function, const void *params)
{
	struct sim_api api = {.observer = sim_observer()};

	if (__builtin_expect(api.observer != NULL, 0)) {
		api.function = function;
		api.params = params;
		api.observer->enter(sim_domain, function, params);
	}
	return api;
}

static inline void sim_api_end(const struct sim_api *api)
{
	if (__builtin_expect(api->observer != NULL, 0))
		api->observer->leave(sim_domain, api->function, api->params, api->result);
}

/* Notes what the call returns, and returns it. */
static inline int sim_api_result(struct sim_api *api, int result)
{
	api->result = result;
	return result;
}

#endif
