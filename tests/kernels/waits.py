# SPDX-License-Identifier: Apache-2.0
"""What the guest captured of programs that wait, judged against what they and the kernel said:

    verdicts(folder)    {check: reason it failed, or ""}; the folder is `out` of the guest

Of `explain` (tests/integration/programs), which waits for one thing in a known way, the records;
of programs of the zoo (tests/zoo) what `why` says.
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "zoo"))

import judge  # noqa: E402
import scenarios  # noqa: E402
import zoo  # noqa: E402

MIB = 1 << 20
SOURCES = {"spans", "sched", "stacks", "files", "faults", "io", "signals", "quota"}
EXPLAIN = {
    "pipe": "explain pipe",
    "futex": "explain lock",
    "file": "explain fsync /mnt/fsync",
    "read": "explain read /mnt/read",
    "minor": "explain minor",
    "major": "explain major /mnt/major",
    "stop": "explain stop",
    # On a slow machine only a program that is run directly is armed before it begins.
    "quota": "explain spin /sys/fs/cgroup/throttled/cgroup.procs",
}
# Those that need one CPU only, no controller of cgroups, and no measuring of what a fault costs: it
# costs much in a machine that is emulated, and what programs in the kernel add to it no less.
ZOO = ("mutex_sleeps", "mutex_computes", "pipe_full", "retry_sleep", "fault_major", "stopped")


def rows_of_zoo():
    return [row for row in scenarios.SCENARIOS if row.name in ZOO]


def commands():
    """What the guest runs: {name: command}."""
    found = dict(EXPLAIN)
    for row in rows_of_zoo():
        source = pathlib.Path(row.source).stem
        found[row.name] = " ".join([f"zoo_{source}", *row.arguments, "1"])
    return found


class Capture:
    """One of them: what the program said, and the rows of its export."""

    def __init__(self, folder, name):
        self.said = {row["kind"]: row for row in zoo.parse(read(folder, name, "said").splitlines())}
        self.all = [json.loads(line) for line in read(folder, name, "ndjson").splitlines()]
        self.folder = folder
        self.tid = self.said["thread"]["tid"]

    def rows(self, kind, **equal):
        return [row for row in self.all
                if row["kind"] == kind and all(row.get(k) == v for k, v in equal.items())]

    def lost(self):
        [summary] = self.rows("summary")
        return summary["records"]["lost"]

    def within(self, kind, said):
        """Rows of the main thread that lie in the interval that the program printed."""
        start, end = self.said[said]["start"], self.said[said]["end"]
        return [row for row in self.rows(kind, tid=self.tid)
                if start <= row["start_ns"] and row.get("end_ns", row["start_ns"]) <= end]

    def long_wait(self):
        """The longest wait inside the span, which is the program's own: a slow host adds others."""
        [span] = self.rows("span", tid=self.tid)

        def longest(rows):
            lengths = [(row["end_ns"] - row["start_ns"], row["start_ns"], row) for row in rows
                       if span["start_ns"] <= row["start_ns"] and row["end_ns"] <= span["end_ns"]]
            return max(lengths, default=(0, 0, None))

        blocked = longest(self.rows("sched", tid=self.tid, name="blocked"))
        # It came too late to what it should wait for: the scheduler's records say so, too.
        assert blocked[0] > 8_000_000, "the program did not have to wait on this busy machine"
        length, _, wait = longest(self.rows("wait", tid=self.tid))
        assert length > 8_000_000, f"no wait is recorded of {blocked}"
        return wait

    def wake_of(self, wait):
        """Who ended it."""
        [wake] = [row for row in self.rows("wake") if row["args"]["woken_tid"] == self.tid
                  and wait["start_ns"] <= row["start_ns"] <= wait["end_ns"]]
        return wake


def read(folder, name, kind):
    return (folder / f"{name}.{kind}").read_text(encoding="utf-8")


def symbols(capture, stack):
    names = {row["args"]["address"]: row["args"]["name"] for row in capture.rows("symbol")}
    return [names.get(address) or "" for address in stack]


# ---- the checks: each gives what is wrong, with what was found ----


def check_pipe(capture):
    wait, ino = capture.long_wait(), capture.said["inode"]["ino"]
    yield wait["args"].get("object") == f"pipe:[{ino}]", "object", wait["args"]
    yield wait["args"].get("ino") == ino, "inode", wait["args"]
    yield wait["end_ns"] - wait["start_ns"] < 200_000_000, "length", wait
    wake = capture.wake_of(wait)
    yield wake["pid"] == capture.tid != wake["tid"], "waker", wake
    names = symbols(capture, wake["args"].get("kernel_stack", []))
    yield names[:1] == ["try_to_wake_up"] and any("pipe" in n for n in names), "stack", names


def check_futex(capture):
    wait = capture.long_wait()
    yield "object" not in wait["args"], "object", wait["args"]
    yield bool(wait["args"].get("user_stack")), "user stack", wait["args"]
    blocked = capture.rows("sched", tid=capture.tid, name="blocked", start_ns=wait["start_ns"])
    yield [b["args"]["syscall"] for b in blocked] == ["futex"], "system call", blocked
    wake = capture.wake_of(wait)
    yield wake["pid"] == capture.tid != wake["tid"], "waker", wake
    yield "interrupt" not in wake["args"], "waker", wake


def check_file(capture):
    waits = capture.within("wait", "io")
    blocked = [row for row in capture.within("sched", "io") if row["name"] == "blocked"
               and row["end_ns"] - row["start_ns"] > 8_000_000]
    # The disk may be done before the program is on a CPU again.
    assert waits or blocked, "the program did not have to wait on this busy machine"
    yield bool(waits), "waits", blocked
    for wait in waits:
        yield wait["args"].get("object") == "/mnt/fsync", "object", wait["args"]
        yield wait["args"].get("detail") == "ext4", "file system", wait["args"]
        names = symbols(capture, wait["args"].get("kernel_stack", []))
        yield any("fsync" in name for name in names), "stack", names
    written = sum(row["args"]["bytes"] for row in capture.within("io", "io")
                  if row["args"]["write"])
    yield written >= 4 * MIB, "bytes written", written


def check_read(capture):
    rows = [row for row in capture.within("io", "io") if not row["args"]["write"]]
    total, said = sum(row["args"]["bytes"] for row in rows), capture.said["io"]["bytes"]
    yield said == 8 * MIB <= total <= said + 16 * 4096, "bytes read", (total, said)
    yield all(row["start_ns"] < row["end_ns"] for row in rows), "times", rows


def faults_around(capture, major):
    said = capture.said["faults"]
    return sum(row["args"]["count"] for row in capture.rows("fault", tid=capture.tid)
               if row["args"]["major"] is major
               and row["end_ns"] >= said["start"] and row["start_ns"] <= said["end"])


def check_minor(capture):
    said, total = capture.said["faults"]["minor"], faults_around(capture, False)
    yield 16384 <= said <= total <= said + 5, "minor faults", (total, said)
    rows = capture.within("fault", "faults")
    for row in rows:
        yield row["args"]["total_ns"] <= row["end_ns"] - row["start_ns"], "time", row
    yield sum(row["args"]["total_ns"] for row in rows) > 0, "time", rows


def check_major(capture):
    said, lost = capture.said["faults"], capture.lost()
    rows = [row for row in capture.within("fault", "faults") if row["args"]["major"]]
    # A kernel that preempts a thread within bpf() hides faults of others on its CPU.
    yield 200 < len(rows) <= said["major"] == len(rows) + lost, "major faults", (len(rows), lost)
    yield lost < 10, "lost", lost
    pages = {int(row["args"]["address"], 16) & ~4095 for row in rows}
    yield len(pages) == len(rows), "addresses", len(pages)
    yield said["first"] <= min(pages) <= max(pages) <= said["last"], "addresses", said
    waits = capture.within("wait", "faults")
    yield bool(waits), "waits", waits
    yield all(int(wait["args"].get("fault_address", "0"), 16) & ~4095 in pages
              for wait in waits), "fault addresses", waits[:3]


def check_stop(capture):
    sent = [row for row in capture.rows("signal", tid=capture.said["child"]["pid"])
            if row["args"]["target_tid"] == capture.tid]
    found = [(row["args"]["signo"], row["args"]["code"]) for row in sent]
    # SIGSTOP and SIGCONT by the user, SIGCHLD because it exited.
    yield found == [(19, 0), (18, 0), (17, 1)], "signals", found
    stopped = [row for row in capture.rows("sched", tid=capture.tid, name="blocked")
               if row["args"]["state"] == "T" and row["start_ns"] >= sent[0]["start_ns"]]
    yield len(stopped) == 1, "stops", stopped
    took = stopped[0]["end_ns"] - stopped[0]["start_ns"]
    yield 45_000_000 <= took <= sent[1]["start_ns"] - sent[0]["start_ns"] + 5_000_000, "length", took


def check_quota(capture):
    stat = dict(line.split() for line in (capture.folder / "cpu.stat").read_text().splitlines())
    rows, total = capture.rows("quota"), int(stat["throttled_usec"]) * 1000
    # Few if the host stops the emulated machine for long: that is CPU time of the program, too.
    yield rows and total > 20_000_000, "throttlings", (len(rows), total)
    for row in rows:
        got = (row["args"]["quota_ns"], row["args"]["period_ns"])
        yield got == (10_000_000, 50_000_000), "quota", got
    own = sum(row["args"]["throttled_ns"] for row in rows)
    yield 0.85 * total <= own <= 1.02 * total, "time throttled", (own, total)


CHECKS = {"pipe": check_pipe, "futex": check_futex, "file": check_file, "read": check_read,
          "minor": check_minor, "major": check_major, "stop": check_stop, "quota": check_quota}


def judge_records(folder, name):
    """The first problem of a capture of `explain`, or ""."""
    capture = Capture(folder, name)
    if capture.lost() and name != "major":
        return f"{capture.lost()} records were lost"
    late = [line for line in read(folder, name, "err").splitlines() if "began before being armed" in line]
    if late:
        return f"the command is armed before it begins, but: {late[0]}"
    for good, what, found in CHECKS[name](capture):
        if not good:
            return f"{what}: {found}"
    return ""


def judge_zoo(folder, row):
    instances = json.loads(read(folder, row.name, "why"))["instances"]
    judge.check(row, zoo.parse(read(folder, row.name, "said").splitlines()),
                [one for one in instances if one["span"] == "victim"], judge.EMULATED)
    return ""


def judge_sources(folder):
    """All sources are recorded; the tracer must report those that are missing."""
    missing = SOURCES - set(json.loads(read(folder, "pipe", "info"))["sources"])
    said = " | ".join(read(folder, "pipe", "err").splitlines())
    return f"not recorded: {', '.join(sorted(missing))}: {said}" if missing else ""


def attempt(check, *arguments):
    """Its reason; a check that could not even find what it looks at has failed, too."""
    try:
        return check(*arguments)
    except (AssertionError, LookupError, ValueError, OSError) as error:
        return " ".join(f"{type(error).__name__}: {error}".split())


def verdicts(folder):
    found = {"sources": attempt(judge_sources, folder)}
    for name in CHECKS:
        found[name] = attempt(judge_records, folder, name)
    for row in rows_of_zoo():
        found[f"why {row.name}"] = attempt(judge_zoo, folder, row)
    return found
