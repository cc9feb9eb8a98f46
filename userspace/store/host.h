/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts of a capture. A file of one capture has one host. A job of several files may have several,
 * each with its own clock, pids, CPUs and kernel. A host is one boot of one machine.
 *
 * In a job, a pid or tid of host h is `h << STORE_PID_BITS | pid`, so that equal numbers of two
 * hosts differ. Host 0 keeps its numbers, and so does every capture of one host.
 */
#ifndef WAFFLE_STORE_HOST_H
#define WAFFLE_STORE_HOST_H

#include <stdbool.h>
#include <stdint.h>

#define STORE_PID_BITS 22 /* PID_MAX_LIMIT of include/linux/threads.h is 2^22 */
#define STORE_HOSTS_MAX (1u << (32 - STORE_PID_BITS))

/* Index of the host of a pid or tid. In a file that anybody made it may be any number up to
 * STORE_HOSTS_MAX - 1. */
static inline uint32_t store_pid_host(uint32_t pid)
{
	return pid >> STORE_PID_BITS;
}

/* The number that the host itself gives it. */
static inline uint32_t store_pid_real(uint32_t pid)
{
	return pid & ((1u << STORE_PID_BITS) - 1);
}

/* 0 stays 0: it is no process. */
static inline uint32_t store_pid_of(uint32_t host, uint32_t pid)
{
	return pid ? host << STORE_PID_BITS | pid : 0;
}

/* Inode numbers below 2^54 and addresses of the kernel get the host in bits that they do not use:
 * an address of the kernel has only ones there. 0 stays 0. */
#define STORE_INO_BITS 54
#define STORE_KERNEL_BITS 52

static inline uint64_t store_ino_of(uint32_t host, uint64_t ino)
{
	return ino ? ino ^ (uint64_t)host << STORE_INO_BITS : 0;
}

static inline uint64_t store_ino_real(uint64_t ino)
{
	return ino & ((1ull << STORE_INO_BITS) - 1);
}

static inline uint64_t store_kernel_address_of(uint32_t host, uint64_t address)
{
	return address ? address ^ (uint64_t)host << STORE_KERNEL_BITS : 0;
}

/* Of an address in the upper half, as all of the kernel are. */
static inline uint64_t store_kernel_address_real(uint64_t address)
{
	return address | (uint64_t)(STORE_HOSTS_MAX - 1) << STORE_KERNEL_BITS;
}

enum store_clock_kind {
	STORE_CLOCK_REFERENCE, /* all times are in this host's clock */
	STORE_CLOCK_WALL,      /* by CLOCK_REALTIME, whose error is unknown */
	STORE_CLOCK_ALIGNED,   /* by what the hosts did together */
	STORE_CLOCK_NONE,      /* not corrected at all */
};

#define STORE_CLOCK_ERRORS 17

/*
 * What has to be done to a host's times: ts + offset_ns + drift * (ts - at_ts), with ts and at_ts
 * in the host's own clock. The result is monotonic in ts, because |drift| is at most
 * STORE_DRIFT_MAX.
 */
struct store_clock {
	int64_t offset_ns;
	double drift;
	uint64_t at_ts;
	uint64_t error_ns;    /* the largest of the errors below; UINT64_MAX: unknown */
	uint64_t collectives; /* number of collectives and messages that it was computed from */
	enum store_clock_kind kind;
	/* By how much the correction may be wrong, at times in the clock of the job, which rise.
	 * Between two of them it is at most what the straight line between the errors is. */
	uint32_t error_count; /* 0: none, or unknown */
	struct store_clock_error {
		uint64_t ts, ns;
	} errors[STORE_CLOCK_ERRORS];
};
#define STORE_DRIFT_MAX 1e-3 /* a clock that is off by more is broken */

/* The time in the clock of the job, at most RECORD_TS_MAX and at least 0. */
uint64_t store_clock_apply(const struct store_clock *clock, uint64_t ts);

/* By how much the time of a host may be wrong; `ts` is in the clock of the job. 0 for the
 * reference, UINT64_MAX: unknown. */
uint64_t store_clock_error_at(const struct store_clock *clock, uint64_t ts);

/* A host. Strings may be empty, never NULL. */
struct store_host {
	const char *name;    /* uname nodename */
	const char *boot_id; /* /proc/sys/kernel/random/boot_id; empty: an older file */
	const char *kernel;  /* uname release */
	const char *machine; /* uname machine */
	/* Its CPU n has the number cpu_base + n. */
	uint32_t cpu_base, cpu_count;
	/* Three clocks of the host at one moment, uncorrected: CLOCK_MONOTONIC, CLOCK_BOOTTIME and
	 * CLOCK_REALTIME, in ns. */
	uint64_t mono_ns, boot_ns, real_ns;
	struct store_clock clock;
};

/* One capture of a job: what one waffle-bpf recorded. */
struct store_capture {
	const char *file; /* as it was named when the job was opened or merged */
	const char *command;
	uint32_t host;
	uint64_t start_ts, end_ts; /* in the clock of the job; end_ts 0: it was not finished */
	uint64_t last_ts;          /* of its last record */
	bool sched;                /* the scheduler was recorded */
	bool truncated;
	/* Its entries in the table of processes. */
	uint32_t first_process, process_count;
};

/* The correction of a host's clock to that of `reference` by CLOCK_REALTIME, which is the same
 * everywhere if somebody sets it. STORE_CLOCK_NONE: a host does not tell its CLOCK_REALTIME. */
struct store_clock store_clock_by_wall(const struct store_host *host,
				       const struct store_host *reference);

#define STORE_RANK_NONE UINT32_MAX

/* What a process is in an MPI or torch job, from its environment at `ts`. */
struct store_rank {
	uint64_t ts;
	uint32_t pid;
	uint32_t rank;       /* STORE_RANK_NONE: unknown */
	uint32_t world_size; /* 0: unknown */
	/* What started it and its number there, such as "slurm:4711"; empty: unknown. */
	const char *job;
};

#define STORE_CONTAINER_ID "container.id"
/* The process was found by a name or a cgroup, not by its number: of several such, the order says
 * nothing. The value is "yes". */
#define STORE_FOUND "waffle.found"
/* The process was not named: it is recorded since then, as it had woken others that are. The value
 * is "yes". */
#define STORE_WAKER "waffle.waker"
/* The inode of the process's network namespace, in decimal. Each namespace has addresses and ports
 * of its own. */
#define STORE_NETWORK "waffle.network"
/* The nice value of the process's main thread, in decimal. Earlier versions left out 0. */
#define STORE_NICE "waffle.nice"

/* What else is known of a process as the conventions of OpenTelemetry name it, such as
 * STORE_CONTAINER_ID, at `ts`. Of several entries with a key the last one counts. */
struct store_attribute {
	uint64_t ts;
	uint32_t pid;
	const char *key, *value;
};

/* By which way the hits of a process with libwaffle came (docs/transports.md). Of several entries
 * of a process the last one counts. */
struct store_transport {
	uint64_t ts; /* from when on */
	uint32_t pid;
	bool ring;        /* through rings; otherwise through the kernel */
	uint64_t records; /* that came through rings, counted at the end */
	const char
		*why; /* why through the kernel although rings were wanted; empty: they were not */
};

#endif
