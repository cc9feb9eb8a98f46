// SPDX-License-Identifier: Apache-2.0
/*
 * Records of any bytes in the kernel's queues are drained, enriched and written. All are delivered
 * or counted as lost, in order. The records in the file can be read and are consistent. Processes
 * are simulated by fake_proc.h.
 *
 * The input is a list. Each entry starts with a byte for its type, and a byte with the number of
 * words that follow. Types: a record of exactly that length in a queue; one with the length of its
 * kind; a CPU's switch; a mapping event of the kernel.
 */
#include "capture/drain_internal.h"
#include "capture/stages_internal.h"
#include "fake_proc.h"
#include "records.h"
#include "target/process/mmap_watch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CPUS 2
#define QUEUES 2
#define SLOTS 16
#define PAGES 4
#define PIDS 4

/* The mappings as the process sees them. The first one's file can be opened. */
static const char maps[] = "400000-500000 r-xp 00000000 08:01 99 /nowhere/train\n"
			   "7f0000000000-7f0000100000 r-xp 00001000 08:01 98 /nowhere/libx.so\n"
			   "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]\n";

struct kernel {
	const uint8_t *at, *end;
	struct address_spaces *spaces;
	struct waffle_cpu cpu[CPUS];
	struct waffle_tail tail[CPUS];
	struct waffle_rec_switch slots[CPUS][SLOTS];
	struct waffle_unwind_page pages[PAGES];
	uint32_t page_count;
};

/* ---- stand-ins for the kernel's functions that capture/ calls ---- */

#include "../unit/fake_kernel.h"

void kernel_skipped(const struct kernel *kernel, uint64_t counts[WAFFLE_SOURCE_COUNT])
{
	(void)kernel;
	memset(counts, 0, WAFFLE_SOURCE_COUNT * sizeof(*counts));
}

uint64_t kernel_fork_count(const struct kernel *kernel)
{
	(void)kernel;
	return 0;
}

const struct waffle_rec_switch *kernel_slot(const struct kernel *kernel, uint32_t cpu,
					    uint64_t position)
{
	require(cpu < CPUS && position >= kernel->tail[cpu].tail &&
		position < kernel->cpu[cpu].head);
	return &kernel->slots[cpu][position % SLOTS];
}

bool kernel_program_is_privileged(const struct kernel *kernel, pid_t pid)
{
	(void)kernel;
	return pid == FAKE_PID + 1;
}

uint64_t kernel_program_since(const struct kernel *kernel, pid_t pid)
{
	(void)kernel;
	return pid == FAKE_PID ? 0 : UINT64_MAX;
}

bool kernel_stacks_wanted(const struct kernel *kernel)
{
	(void)kernel;
	return true;
}

bool kernel_waits_for_descriptor(int syscall)
{
	(void)syscall;
	return true;
}

uint32_t kernel_wait_sources(const struct kernel *kernel)
{
	(void)kernel;
	return UINT32_MAX;
}

uint32_t kernel_stack_number(struct kernel *kernel)
{
	(void)kernel;
	return 1;
}

void kernel_stack_file(struct kernel *kernel, const struct waffle_inode *inode,
		       const struct waffle_stack_file *file)
{
	require(inode->ino && (!file->pages || file->page + file->pages <= kernel->page_count));
}

int kernel_stack_process(struct kernel *kernel, pid_t pid,
			 const struct waffle_stack_process *process)
{
	(void)pid;
	require(!process || process->mappings <= WAFFLE_STACK_MAPPINGS_MAX);
	require(!process || !process->mappings || process->page < kernel->page_count);
	return 0;
}

int kernel_unwind_reserve(struct kernel *kernel, uint64_t count)
{
	return count > PAGES - kernel->page_count ? -ENOSPC : 0;
}

int64_t kernel_unwind_pages(struct kernel *kernel, uint32_t count)
{
	if (!count || count > PAGES - kernel->page_count)
		return -ENOSPC;
	kernel->page_count += count;
	return kernel->page_count - count;
}

struct waffle_unwind_page *kernel_unwind_page(struct kernel *kernel, uint32_t page)
{
	require(page < kernel->page_count);
	return &kernel->pages[page];
}

bool kernel_symbol_find(const struct kernel *kernel, uint64_t address, struct kernel_symbol *symbol)
{
	static const char *const names[] = {"vfs_read", "bpf_prog_1 [bpf]", "__bpf_trace_x",
					    "asm_sysvec_apic_timer_interrupt"};

	(void)kernel;
	*symbol = (struct kernel_symbol){.offset = address & 0xff};
	snprintf(symbol->name, sizeof(symbol->name), "%s", names[address % 4]);
	return address % 8 < 4;
}

/* ---- stand-ins for the functions of capture/arming that the stages call: no site is armed ---- */

bool arming_concerns_functions(const struct arming *arming)
{
	(void)arming;
	return true;
}

const struct arming_site *arming_site(const struct arming *arming, uint32_t number)
{
	(void)arming;
	(void)number;
	return NULL;
}

uint32_t arming_site_at(struct arming *arming, pid_t pid, uint64_t probe_addr)
{
	(void)arming;
	(void)pid;
	return probe_addr % 2 ? WAFFLE_SITE_UNKNOWN : (uint32_t)probe_addr;
}

uint32_t arming_number(struct arming *arming, uint32_t site)
{
	(void)arming;
	return site;
}

/* ---- records ---- */

/* Small numbers, so that records refer to the same processes. They match no process of this
 * machine. */
static uint32_t tame_pid(uint32_t pid)
{
	return FAKE_PID + pid % PIDS;
}

static void tame(void *bytes, size_t size)
{
	struct record_buffer *rec = bytes;
	struct waffle_rec_frames *frames = bytes;
	struct waffle_rec_code *code = bytes;
	struct waffle_rec_trace *trace = bytes;

	rec->rec.tid = tame_pid(rec->rec.tid);
	if (!record_size(bytes, size))
		return;
	switch (rec->rec.kind) {
	case WAFFLE_REC_FRAMES:
		frames->tgid = frames->tgid & 8 ? 0 : tame_pid(frames->tgid);
		break;
	case WAFFLE_REC_CODE:
		code->tgid = tame_pid(code->tgid);
		break;
	case WAFFLE_REC_TRACE:
		trace->tgid = trace->tgid & 8 ? 0 : tame_pid(trace->tgid);
		break;
	case WAFFLE_REC_FORK:
		rec->child.tgid = tame_pid(rec->child.tgid);
		rec->child.child_tgid = tame_pid(rec->child.child_tgid);
		break;
	case WAFFLE_REC_EXEC:
	case WAFFLE_REC_EXIT:
		rec->end.tgid = tame_pid(rec->end.tgid);
		break;
	case WAFFLE_REC_TASK:
		rec->task.tgid = tame_pid(rec->task.tgid);
		break;
	default:
		break;
	}
}

/* A CPU has room for SLOTS switches, in order. */
static void add_switch(struct kernel *kernel, const struct record_buffer *rec)
{
	unsigned cpu = rec->rec.cpu % CPUS;
	struct waffle_cpu *to = &kernel->cpu[cpu];
	struct waffle_rec_switch *slot = &kernel->slots[cpu][to->head % SLOTS];
	uint64_t ts = to->head ? kernel->slots[cpu][(to->head - 1) % SLOTS].rec.ts : 0;

	to->produced[WAFFLE_SOURCE_SCHED]++;
	if (to->head - kernel->tail[cpu].tail >= SLOTS) {
		to->dropped[WAFFLE_SOURCE_SCHED]++;
		return;
	}
	*slot = rec->sw;
	slot->rec.kind = WAFFLE_REC_SWITCH;
	slot->rec.tid = tame_pid(slot->rec.tid);
	slot->rec.ts &= RECORD_TS_MAX;
	slot->rec.ts = slot->rec.ts > ts ? slot->rec.ts : ts;
	to->head++;
}

static void add_mapping(struct kernel *kernel, const struct record_buffer *rec)
{
	const uint64_t *words = rec->words + sizeof(rec->rec) / 8;
	struct mmap_event event = {.kind = rec->rec.kind % (MMAP_LOST + 1),
				   .pid = (pid_t)tame_pid(rec->rec.tid),
				   .ts = rec->rec.ts,
				   .mapping = {.start = words[0],
					       .end = words[0] + words[1] % (1u << 20) + 1,
					       .offset = words[2],
					       .ino = words[3],
					       .executable = true,
					       .path = words[4] % 2 ? "/nowhere/late.so" : ""}};

	if (event.kind != MMAP_MAPPED)
		event.mapping = (struct mapping){0};
	if (event.kind != MMAP_MAPPED || event.mapping.end > event.mapping.start)
		address_spaces_push(kernel->spaces, &event, words[4] & 2);
}

void kernel_take_enough(struct kernel *kernel)
{
	(void)kernel;
}

bool kernel_ring_take(struct kernel *kernel, uint32_t queue, size_t bytes, kernel_take_fn *take,
		      void *arg)
{
	size_t taken = 0;

	while (!queue && kernel->at < kernel->end && taken < bytes) {
		struct record_buffer rec = {0};
		unsigned how = *kernel->at++ % 4, source;
		size_t size, left = (size_t)(kernel->end - kernel->at);

		if (!left)
			break;
		size = (size_t)*kernel->at++ * 8;
		size = size < left - 1 ? size : left - 1;
		memcpy(&rec, kernel->at, size);
		kernel->at += size;
		if (how == 2 || how == 3) {
			(how == 2 ? add_switch : add_mapping)(kernel, &rec);
			continue;
		}
		if (how == 1)
			size = record_size(&rec, sizeof(rec));
		if (size >= sizeof(rec.rec))
			tame(&rec, size);
		source =
			record_size(&rec, size) ? record_source(rec.rec.kind) : WAFFLE_SOURCE_SPANS;
		/* The kernel does not count what only tells that a thread has made a ring. */
		if (!record_size(&rec, size) || rec.rec.kind != WAFFLE_REC_RING)
			kernel->cpu[0]
				.produced[source < WAFFLE_SOURCE_COUNT ? source
								       : WAFFLE_SOURCE_SPANS]++;
		take(&rec, size, arg);
		taken += size;
	}
	return queue || kernel->at >= kernel->end;
}

/* ---- the session ---- */

struct session {
	struct stages stages;
	uint64_t before_ts, last_ts, appended;
	uint64_t reported_lost; /* reported by records */
	struct error err;
};

/* The rings themselves have a fuzzer of their own (fuzz_ring_set.c). */
static void ring(const struct waffle_rec_ring *rec, void *arg)
{
	(void)rec;
	(void)arg;
}

static int deliver(struct waffle_rec *rec, void *arg)
{
	struct session *session = arg;
	int result;

	if (rec->kind == WAFFLE_REC_LOSS) { /* only those of the drain itself */
		session->reported_lost += ((const struct waffle_rec_loss *)rec)->count;
	} else {
		require(record_source(rec->kind) < WAFFLE_SOURCE_COUNT);
		require(rec->ts < session->before_ts && rec->ts >= session->last_ts);
		session->last_ts = rec->ts;
	}
	require(record_size(rec, RECORD_BYTES_MAX));
	result = stages_pass(&session->stages, rec);
	require(record_size(rec, RECORD_BYTES_MAX));
	session->appended += !result && rec->kind < WAFFLE_REC_KIND_COUNT;
	return result;
}

static void notice(const struct waffle_rec *rec, void *arg)
{
	(void)arg;
	require(rec->kind == WAFFLE_REC_FORK || rec->kind == WAFFLE_REC_EXEC ||
		rec->kind == WAFFLE_REC_EXIT);
}

static int begin_round(uint64_t before_ts, void *arg)
{
	struct session *session = arg;

	session->before_ts = before_ts;
	session->last_ts = 0;
	return stages_round(&session->stages, before_ts);
}

/* Everything that has a number in the file is in it. */
static void check_stack(const struct store_reader *reader, uint32_t number)
{
	require(!number || store_reader_stack(reader, number));
}

static void check_file(const char *path, uint64_t appended)
{
	struct error err = ERROR_INIT;
	const struct waffle_rec *rec;
	struct store_reader *reader;

	require(!store_reader_open(&reader, path, &err));
	require(!store_reader_seek(reader, STORE_ALL, &err));
	for (; store_reader_next(reader, &rec, &err) > 0; appended--) {
		const struct waffle_rec_stack *stack = (const void *)rec;
		const struct waffle_rec_wait *wait = (const void *)rec;
		const struct waffle_rec_wake *wake = (const void *)rec;

		require(appended && record_size(rec, RECORD_BYTES_MAX));
		if (rec->kind == WAFFLE_REC_STACK) {
			check_stack(reader, stack->kernel_stack);
			check_stack(reader, stack->user_stack);
			check_stack(reader, stack->python_stack);
		} else if (rec->kind == WAFFLE_REC_WAIT) {
			check_stack(reader, wait->kernel_stack);
			check_stack(reader, wait->user_stack);
			require(!wait->object || store_reader_object(reader, wait->object));
		} else if (rec->kind == WAFFLE_REC_WAKE) {
			check_stack(reader, wake->kernel_stack);
			check_stack(reader, wake->user_stack);
		}
	}
	require(!appended && !err.message[0]);
	store_reader_close(reader);
}

/* Switches that arrive during the last round belong to the next one. */
static void drain_all(struct drain *drain, const struct kernel *kernel)
{
	bool more = true;

	while (more) {
		int result = drain_round(drain, true);

		require(result >= 0);
		more = result > 0;
		for (unsigned i = 0; i < CPUS; i++)
			more = more || kernel->tail[i].tail < kernel->cpu[i].head;
	}
}

static void capture(struct kernel *kernel, struct session *session, const char *path)
{
	const struct drain_callbacks callbacks = {deliver, notice, ring, begin_round, session};
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	struct stages *stages = &session->stages;
	struct drain *drain;

	stages->err = &session->err;
	require(!store_writer_open(&stages->writer, path, &fixture_meta, stages->err));
	for (unsigned i = 0; i < FIXTURE_SITES; i++)
		require(!store_writer_add_site(stages->writer, &fixture_sites[i], stages->err));
	require(!address_spaces_open(&stages->spaces, kernel, stages->writer, stages->err));
	require(!enrich_open(&stages->enrich, kernel, stages->spaces, stages->writer, stages->err));
	require(!code_names_open(&stages->names, kernel, stages->spaces, stages->writer,
				 stages->err));
	kernel->spaces = stages->spaces;
	require(!enrich_process(stages->enrich, FAKE_PID, true, stages->err));
	require(!drain_open(&drain, kernel, &callbacks, &session->err));
	drain_all(drain, kernel);
	drain_counts(drain, counts);
	for (unsigned i = 0; i < WAFFLE_SOURCE_COUNT; i++)
		require(counts[i].produced == counts[i].delivered + counts[i].lost);
	require(session->reported_lost == kernel->cpu[0].dropped[WAFFLE_SOURCE_SCHED] +
						  kernel->cpu[1].dropped[WAFFLE_SOURCE_SCHED]);
	drain_close(drain);
	code_names_close(stages->names);
	enrich_close(stages->enrich);
	address_spaces_close(stages->spaces);
	require(!store_writer_close(stages->writer, fixture_meta.start_ts + 1000000, counts,
				    stages->err));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kernel *kernel = calloc(1, sizeof(*kernel));
	struct session session = {.err = ERROR_INIT};
	char path[64];

	require(kernel);
	kernel->at = data;
	kernel->end = data + size;
	fake.bytes = maps;
	fake.size = sizeof(maps) - 1;
	fake.folder = -1;
	snprintf(path, sizeof(path), "/dev/shm/waffle-fuzz-%d", (int)getpid());
	capture(kernel, &session, path);
	fake.bytes = NULL;
	check_file(path, session.appended);
	unlink(path);
	free(kernel);
	return 0;
}
