// SPDX-License-Identifier: Apache-2.0
/*
 * waffle-bpf check: tests what the kernel, the privileges and the libraries allow, and tells what
 * is missing and what to do. It tries features of the kernel instead of comparing versions. Each
 * check is a row.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <elfutils/libdwfl.h>
#include <protobuf-c/protobuf-c.h>
#include <yajl/yajl_version.h>
#include <zstd.h>

#include "cmd/command_internal.h"
#include "kernel/gate.h"
#include "kernel/kernel.h"
#include "probe/find/tracefs.h"
#include "target/process/process.h"
#include "util/json.h"
#include "util/units.h"

/* Unknown: needs privileges to try, which is a finding of its own. */
enum check_status { CHECK_OK, CHECK_LIMITED, CHECK_MISSING, CHECK_UNKNOWN, CHECK_STATUS_COUNT };

static const char *const status_names[] = {"ok", "limited", "missing", "unknown"};

_Static_assert(sizeof(status_names) / sizeof(status_names[0]) == CHECK_STATUS_COUNT,
	       "a name for every status");

#define DETAIL 160 /* size of a finding in bytes */

struct facts {
	struct utsname uname;
	unsigned major, minor; /* version of the kernel */
	uint64_t capabilities; /* effective set */
	bool privileged;       /* can load BPF programs and attach them to any process */
};

struct check {
	const char *name;
	/* What to do if the status is not ok. */
	const char *advice;
	enum check_status (*probe)(const struct facts *facts, char detail[DETAIL]);
};

static size_t file_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[len > 0 ? len : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return len > 0 ? (size_t)len : 0;
}

static bool kernel_at_least(const struct facts *facts, unsigned major, unsigned minor)
{
	return facts->major > major || (facts->major == major && facts->minor >= minor);
}

static bool has_capability(const struct facts *facts, unsigned capability)
{
	return facts->capabilities >> capability & 1;
}

static uint64_t effective_capabilities(void)
{
	char line[256];
	unsigned long long mask = 0;
	FILE *file = fopen("/proc/self/status", "re");

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "CapEff:", 7))
			mask = strtoull(line + 7, NULL, 16);
	if (file)
		fclose(file);
	return mask;
}

static struct facts facts_gather(void)
{
	struct facts facts = {.capabilities = effective_capabilities()};
	char *end;

	uname(&facts.uname);
	facts.major = (unsigned)strtoul(facts.uname.release, &end, 10);
	facts.minor = *end == '.' ? (unsigned)strtoul(end + 1, NULL, 10) : 0;
	facts.privileged = has_capability(&facts, CAP_SYS_ADMIN) ||
			   (has_capability(&facts, CAP_BPF) && has_capability(&facts, CAP_PERFMON));
	return facts;
}

/* Linux 5.18 added the state of the previous thread to sched_switch; 6.1 is the next long-term
 * kernel. */
static enum check_status check_kernel(const struct facts *facts, char detail[DETAIL])
{
	snprintf(detail, DETAIL, "Linux %.64s on %.32s; 6.1 or later is needed",
		 facts->uname.release, facts->uname.machine);
	return kernel_at_least(facts, 6, 1) ? CHECK_OK : CHECK_MISSING;
}

static enum check_status check_privileges(const struct facts *facts, char detail[DETAIL])
{
	bool bpf = has_capability(facts, CAP_BPF), perfmon = has_capability(facts, CAP_PERFMON);

	if (facts->privileged)
		snprintf(detail, DETAIL, "may load BPF programs");
	else
		snprintf(detail, DETAIL, "lacks%s%s%s", bpf ? "" : " CAP_BPF",
			 bpf || perfmon ? "" : ",", perfmon ? "" : " CAP_PERFMON");
	return facts->privileged ? CHECK_OK : CHECK_MISSING;
}

static enum check_status check_capability(const struct facts *facts, unsigned capability,
					  char detail[DETAIL])
{
	bool held = has_capability(facts, capability);

	snprintf(detail, DETAIL, "%s", held ? "available" : "is missing");
	return held ? CHECK_OK : CHECK_LIMITED;
}

static enum check_status check_cap_ptrace(const struct facts *facts, char detail[DETAIL])
{
	return check_capability(facts, CAP_SYS_PTRACE, detail);
}

static enum check_status check_cap_files(const struct facts *facts, char detail[DETAIL])
{
	return check_capability(facts, CAP_DAC_READ_SEARCH, detail);
}

static enum check_status check_cap_rings(const struct facts *facts, char detail[DETAIL])
{
	return check_capability(facts, CAP_CHECKPOINT_RESTORE, detail);
}

static enum check_status check_cap_kill(const struct facts *facts, char detail[DETAIL])
{
	return check_capability(facts, CAP_KILL, detail);
}

static enum check_status check_btf(const struct facts *facts, char detail[DETAIL])
{
	const char *path = "/sys/kernel/btf/vmlinux";

	(void)facts;
	if (access(path, R_OK)) {
		snprintf(detail, DETAIL, "%s: %s", path, strerror(errno));
		return CHECK_MISSING;
	}
	snprintf(detail, DETAIL, "%s", path);
	return CHECK_OK;
}

/* Result of libbpf's probes: 1: it works, 0: it does not, negative: the probe itself failed. */
static enum check_status probe_status(const struct facts *facts, int answer, char detail[DETAIL])
{
	if (!facts->privileged) {
		snprintf(detail, DETAIL, "cannot be tried without privileges");
		return CHECK_UNKNOWN;
	}
	if (answer == 1) {
		snprintf(detail, DETAIL, "tried, works");
		return CHECK_OK;
	}
	snprintf(detail, DETAIL, "tried: %s", answer < 0 ? strerror(-answer) : "not supported");
	return CHECK_MISSING;
}

static enum check_status check_ring_buffer(const struct facts *facts, char detail[DETAIL])
{
	return probe_status(facts, libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL), detail);
}

static enum check_status check_task_storage(const struct facts *facts, char detail[DETAIL])
{
	return probe_status(facts, libbpf_probe_bpf_map_type(BPF_MAP_TYPE_TASK_STORAGE, NULL),
			    detail);
}

/* The shortest program: returns 0. */
static const struct bpf_insn program_nothing[] = {
	{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
	{.code = BPF_JMP | BPF_EXIT},
};
#define PROGRAM_NOTHING program_nothing, sizeof(program_nothing) / sizeof(program_nothing[0])

/* Attaches to a tracepoint by its BTF. libbpf's own probe uses fentry, which waffle does not
 * need. */
static int tracepoint_try(void)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_RAW_TP);
	int link, program, id = libbpf_find_vmlinux_btf_id("sched_switch", BPF_TRACE_RAW_TP);

	if (id < 0)
		return id;
	opts.attach_btf_id = (unsigned)id;
	program = bpf_prog_load(BPF_PROG_TYPE_TRACING, NULL, "GPL", PROGRAM_NOTHING, &opts);
	if (program < 0)
		return program;
	link = bpf_raw_tracepoint_open(NULL, program);
	close(program);
	if (link < 0)
		return link;
	close(link);
	return 1;
}

static enum check_status check_tracepoints(const struct facts *facts, char detail[DETAIL])
{
	return probe_status(facts, tracepoint_try(), detail);
}

static enum check_status check_cookie(const struct facts *facts, char detail[DETAIL])
{
	return probe_status(
		facts,
		libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_get_attach_cookie, NULL),
		detail);
}

static enum check_status check_uprobe(const struct facts *facts, char detail[DETAIL])
{
	const char *path = "/sys/bus/event_source/devices/uprobe/type";

	(void)facts;
	if (access(path, R_OK)) {
		snprintf(detail, DETAIL, "%s: %s", path, strerror(errno));
		return CHECK_MISSING;
	}
	snprintf(detail, DETAIL, "the kernel can probe programs");
	return CHECK_OK;
}

static enum check_status check_uprobe_multi(const struct facts *facts, char detail[DETAIL])
{
	enum check_status status = probe_status(facts, uprobe_multi_try(), detail);

	return status == CHECK_MISSING ? CHECK_LIMITED : status;
}

static enum check_status check_lockdown(const struct facts *facts, char detail[DETAIL])
{
	char text[DETAIL];

	(void)facts;
	if (!file_read("/sys/kernel/security/lockdown", text, sizeof(text))) {
		snprintf(detail, DETAIL, "this kernel has no lockdown");
		return CHECK_OK;
	}
	snprintf(detail, DETAIL, "%.100s", text);
	return strstr(text, "[confidentiality]") ? CHECK_MISSING : CHECK_OK;
}

/* Matters only without CAP_PERFMON. */
static enum check_status check_paranoid(const struct facts *facts, char detail[DETAIL])
{
	char text[32];

	if (!file_read("/proc/sys/kernel/perf_event_paranoid", text, sizeof(text))) {
		snprintf(detail, DETAIL, "the kernel was built without perf events");
		return CHECK_MISSING;
	}
	snprintf(detail, DETAIL, "%s%s", text,
		 facts->privileged ? ", which does not bind these privileges" : "");
	return facts->privileged || text[0] == '-' ? CHECK_OK : CHECK_LIMITED;
}

/* Before Linux 5.11 BPF maps count as locked memory of the process, later as memory of its
 * cgroup. */
static enum check_status check_memlock(const struct facts *facts, char detail[DETAIL])
{
	struct rlimit limit = {0};
	char bytes[UNITS_TEXT] = "unlimited";
	bool counts = !kernel_at_least(facts, 5, 11);

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur != RLIM_INFINITY)
		units_format_bytes(bytes, limit.rlim_cur);
	snprintf(detail, DETAIL, "%s%s", bytes, counts ? "" : ", not used by this kernel for BPF");
	return counts && limit.rlim_cur < (64u << 20) ? CHECK_LIMITED : CHECK_OK;
}

static enum check_status check_schedstat(const struct facts *facts, char detail[DETAIL])
{
	char text[128];

	(void)facts;
	if (!file_read("/proc/self/schedstat", text, sizeof(text))) {
		snprintf(detail, DETAIL, "/proc/self/schedstat: %s", strerror(errno));
		return CHECK_LIMITED;
	}
	snprintf(detail, DETAIL, "/proc/PID/schedstat is available");
	return CHECK_OK;
}

static enum check_status check_tracefs(const struct facts *facts, char detail[DETAIL])
{
	struct error err = ERROR_INIT;
	int events = tracefs_open_events(&err);

	(void)facts;
	if (events < 0) {
		snprintf(detail, DETAIL, "%s", strerror(-events));
		return CHECK_LIMITED;
	}
	close(events);
	snprintf(detail, DETAIL, "the formats of tracepoints can be read");
	return CHECK_OK;
}

static enum check_status check_hold(const struct facts *facts, char detail[DETAIL])
{
	const char *missing = gate_missing();

	(void)facts;
	snprintf(detail, DETAIL, "%s",
		 missing ? missing : "run holds new programs until they are armed");
	return missing ? CHECK_LIMITED : CHECK_OK;
}

static enum check_status check_namespaces(const struct facts *facts, char detail[DETAIL])
{
	const char *own = process_own_namespace();

	(void)facts;
	if (own)
		snprintf(detail, DETAIL, "this is a %s namespace of its own", own);
	else
		snprintf(detail, DETAIL, "process numbers and times are the host's");
	return own ? CHECK_MISSING : CHECK_OK;
}

static enum check_status check_libbpf(const struct facts *facts, char detail[DETAIL])
{
	unsigned major = libbpf_major_version(), minor = libbpf_minor_version();

	(void)facts;
	snprintf(detail, DETAIL, "libbpf %s; 1.3 or later is needed", libbpf_version_string());
	return major > 1 || (major == 1 && minor >= 3) ? CHECK_OK : CHECK_MISSING;
}

static enum check_status check_libraries(const struct facts *facts, char detail[DETAIL])
{
	unsigned yajl = (unsigned)yajl_version();

	(void)facts;
	snprintf(detail, DETAIL, "elfutils %s, zstd %s, protobuf-c %s, yajl %u.%u.%u",
		 dwfl_version(NULL), ZSTD_versionString(), protobuf_c_version(), yajl / 10000,
		 yajl / 100 % 100, yajl % 100);
	return CHECK_OK;
}

static const struct check checks[] = {
	{"kernel", "run a newer kernel", check_kernel},
	{"privileges",
	 "run as root (sudo waffle-bpf …), or give the program capabilities with setcap, mode 0750 "
	 "and "
	 "a group of its own: users who may run it can become root (SECURITY.md)",
	 check_privileges},
	{"CAP_SYS_PTRACE",
	 "without it, sites, calls, stacks and files of other users' processes can't be seen",
	 check_cap_ptrace},
	{"CAP_DAC_READ_SEARCH",
	 "without it, no sites are found in programs that only their owner may read",
	 check_cap_files},
	{"CAP_CHECKPOINT_RESTORE",
	 "without it, hits of programs with libwaffle come through the kernel, not through rings",
	 check_cap_rings},
	{"CAP_KILL", "without it, run can't pass signals on to programs that change their user",
	 check_cap_kill},
	{"namespaces",
	 "start waffle-bpf in the host's namespaces (docker run --pid=host, nsenter -t 1 -p -T); "
	 "it traces programs in containers from there",
	 check_namespaces},
	{"BTF", "run a kernel built with CONFIG_DEBUG_INFO_BTF=y (distributions' are)", check_btf},
	{"lockdown",
	 "boot with lockdown=integrity or none: in confidentiality mode, BPF may not read memory",
	 check_lockdown},
	{"ring buffer", "run Linux 5.8 or later, built with CONFIG_BPF_SYSCALL=y",
	 check_ring_buffer},
	{"task storage", "run Linux 5.11 or later", check_task_storage},
	{"tracepoints", "run a kernel built with CONFIG_BPF_EVENTS=y and CONFIG_DEBUG_INFO_BTF=y",
	 check_tracepoints},
	{"uprobes", "run a kernel built with CONFIG_UPROBES=y and CONFIG_UPROBE_EVENTS=y",
	 check_uprobe},
	{"attach cookie", "run Linux 6.1 or later", check_cookie},
	{"uprobe.multi",
	 "nothing is lost, but sites are armed one by one, which is slow for thousands of them; "
	 "Linux 6.10 or later, or 6.6.33, arms them at once",
	 check_uprobe_multi},
	{"exec hold",
	 "run as root, or with CAP_SYS_ADMIN; without it, the first calls of programs that the "
	 "command starts may be missing, and are counted",
	 check_hold},
	{"perf_event_paranoid", "run as root, or with CAP_PERFMON", check_paranoid},
	{"locked memory", "raise it: ulimit -l unlimited", check_memlock},
	{"schedstat", "the times of threads that began before the capture will not be checked",
	 check_schedstat},
	{"tracefs",
	 "run as root or mount it on /sys/kernel/tracing; only probes on tracepoints need it",
	 check_tracefs},
	{"libbpf", "install libbpf 1.3 or later, or build with make STATIC=1", check_libbpf},
	{"libraries", "", check_libraries},
};

#define CHECK_COUNT (sizeof(checks) / sizeof(checks[0]))

struct finding {
	enum check_status status;
	char detail[DETAIL];
};

static void findings_print(const struct finding *findings, unsigned missing)
{
	for (size_t i = 0; i < CHECK_COUNT; i++) {
		printf("%-8s %-20s %s\n", status_names[findings[i].status], checks[i].name,
		       findings[i].detail);
		if (findings[i].status == CHECK_LIMITED || findings[i].status == CHECK_MISSING)
			printf("%-8s %-20s → %s\n", "", "", checks[i].advice);
	}
	if (missing)
		printf("\nNot ready: %u needed thing%s missing.\n", missing,
		       units_plural((uint64_t)missing, " is", "s are"));
	else
		printf("\nReady to trace.\n");
}

static int findings_print_json(const struct finding *findings, unsigned missing)
{
	struct json *json = json_new(stdout, true);

	json_object_begin(json);
	json_field_bool(json, "ready", !missing);
	json_key(json, "checks");
	json_array_begin(json);
	for (size_t i = 0; i < CHECK_COUNT; i++) {
		json_object_begin(json);
		json_field_string(json, "name", checks[i].name);
		json_field_string(json, "status", status_names[findings[i].status]);
		json_field_string(json, "detail", findings[i].detail);
		if (findings[i].status == CHECK_LIMITED || findings[i].status == CHECK_MISSING)
			json_field_string(json, "advice", checks[i].advice);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
	return json_close(json);
}

static int check_run(const struct command *command, int argc, char **argv)
{
	struct finding findings[CHECK_COUNT];
	struct error err = ERROR_INIT;
	struct facts facts;
	unsigned missing = 0;
	bool as_json = false;
	int first;
	int ret = options_parse(command, argc, argv, false, &as_json, &first, &err);

	if (!ret && first < argc)
		ret = error_set(&err, EINVAL, "'%s': takes no arguments", argv[first]);
	if (ret)
		return command_parse_failed(command, ret, &err);
	libbpf_set_print(NULL);
	facts = facts_gather();
	for (size_t i = 0; i < CHECK_COUNT; i++) {
		findings[i].status = checks[i].probe(&facts, findings[i].detail);
		missing += findings[i].status == CHECK_MISSING;
	}
	if (!as_json)
		findings_print(findings, missing);
	else if (findings_print_json(findings, missing))
		return EXIT_FAILED;
	return missing ? EXIT_FAILED : EXIT_DONE;
}

static const struct option_row options[] = {
	{"json", 0, NULL, "Print one JSON object.", .at = 0 /* the bool is the only option */},
};

const struct command command_check = {
	.name = "check",
	.arguments = "",
	.summary = "Check whether this machine can trace",
	.details = "Tries what tracing needs of the kernel, the privileges and the libraries. If "
		   "something is missing, says what to do about it. Exits with 1 if waffle-bpf "
		   "cannot trace here.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.run = check_run,
};
