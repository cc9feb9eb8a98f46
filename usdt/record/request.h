/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the collector's thread: what a flush waits for. Their state is static, since threads
 * and signal handlers may still look at it when the recording has ended.
 *
 *	a thread or handler                    the collector
 *	request_wait: asked++, wake ────────→  request_pause ends; asked = request_asked()
 *	              sleep                    writes all that was recorded by then
 *	              returns true  ←────────  request_serve(asked)
 *	              returns       ←────────  request_end: nobody serves any more
 */
#ifndef WAFFLE_USDT_RECORD_REQUEST_H
#define WAFFLE_USDT_RECORD_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

/* ---- for all threads; async-signal-safe, except for request_forget() ---- */

/* Waits until what was recorded so far is in the file. False: not within `wait_ns`, or it can't be.
 */
bool request_wait(uint64_t wait_ns);
/* Waits until nobody serves any more. False: the collector was stuck for a second, or, without
 * patience, has used no CPU for three: it waits for a lock that the caller has. All its other waits
 * are shorter. */
bool request_wait_end(bool (*is_stuck)(void), bool patient);
/* Whether anybody serves. */
bool request_is_served(void);
/* Whether the calling thread is the one that serves, or served last. It must not wait for itself.
 */
bool request_is_self(void);
/* Ends a pause of the collector's thread. */
void request_wake(void);
/* In the child of a fork(), whose parent has the collector. */
void request_forget(void);

/* ---- for the collector ---- */

/* From now on requests may be made. Before the thread is started. Returns the number of the last
 * one that was made before. */
uint32_t request_begin(void);
/* In the collector's thread, before all that follow. */
void request_begin_self(void);
/* The number of the latest request, and of all before it. */
uint32_t request_asked(void);
/* All requests up to this number are done. */
void request_serve(uint32_t asked);
/* Sleeps until there is a request after this one, but no longer than `ns`. */
void request_pause(uint32_t asked, uint64_t ns);
/* Requests are not served any more. `done`: the file has everything. */
void request_end(bool done);

#endif
