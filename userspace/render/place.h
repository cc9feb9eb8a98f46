/* SPDX-License-Identifier: Apache-2.0 */
/* Where a thread or process runs: its number, the rank of its process, and its host if the job has
 * more than one. Every output that names a thread says it in this way. */
#ifndef WAFFLE_RENDER_PLACE_H
#define WAFFLE_RENDER_PLACE_H

#include "model/model.h"
#include "util/json.h"

#define PLACE_TEXT 384

/* "4711", "4711, rank 3" or "4711, rank 3 on node-7", with the number of the thread; "track of
 * 4711", with that of its process, for a track. Not cleaned for a terminal. `text` has PLACE_TEXT
 * bytes. */
const char *place_thread(char *text, const struct model *model, uint32_t thread);
/* The same, or "thread 4713" if the thread has the name of its process: next to that name, the
 * number alone looks like that of another process. For texts in which threads of several processes
 * appear. */
const char *place_thread_apart(char *text, const struct model *model, uint32_t thread);
/* As place_thread(), with the number of the thread's process. */
const char *place_process(char *text, const struct model *model, uint32_t thread);

#define PLACE_THREADS_TEXT (PLACE_TEXT + 128)
/* "worker (4711)"; for several threads "40 threads of worker (4711)", with the process, or "40
 * processes named cc1". `text` has PLACE_THREADS_TEXT bytes; `name` is that of all of them. */
const char *place_threads(char *text, const struct model *model, uint32_t thread, const char *name,
			  uint32_t threads, uint32_t processes);
/* "rank 3 on node-7", "rank 3", "node-7" or "" for a process. */
const char *place_of_process(char *text, const struct model *model,
			     const struct model_process *process);

/* Writes "rank" if it is known, "host" if the job has several, and of a track "track" and "group",
 * as members of the open object. */
void place_json(struct json *json, const struct model *model, uint32_t thread);

/* Writes only "track" and "group". */
void place_track_json(struct json *json, const struct model *model, uint32_t thread);

/* The number that the host itself gives the thread or process. 0: unknown. */
static inline uint32_t place_tid(const struct model *model, uint32_t thread)
{
	return thread < model->threads.len ? model_pid_real(model, model->threads.data[thread].tid)
					   : 0;
}
static inline uint32_t place_pid(const struct model *model, uint32_t thread)
{
	return thread < model->threads.len ? model_pid_real(model, model->threads.data[thread].pid)
					   : 0;
}

#endif
