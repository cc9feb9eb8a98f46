#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""verify.py [--seeds N] [--no-shield] [NAME…]: is each program of the zoo slow for the reason that
its row says? Runs them without waffle and looks by other means: samples of /proc/PID/task/TID/
{stat,syscall,schedstat,io} every few ms while they run, who wakes the victim (bpftrace, if
there is one), and cpu.stat. By hand, as root; exit status 1 if a row is not what it says.
"""

import argparse
import collections
import dataclasses
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time

import scenarios
import zoo

INTERVAL = 0.005
OBJECTS = {
    "file": r"/.*\.dat",
    "lock": r"0x[0-9a-f]+",
    "variable": r"\w+",
    "pipe": r"pipe:\[\d+\]",
    "ready": r"pipe:\[\d+\]",
    "socket": r"127\.0\.0\.1:\d+",
    "timerfd": r"anon_inode:\[timerfd\]",
    "cgroup": r"/sys/fs/cgroup/.*",
    "kernel": "gemm",
    "collective": "ncclAllReduce",
    "send": "ncclSend",
}


def system_calls():
    """Names of the system calls of this machine, by number, from the C headers."""
    text = subprocess.run(
        ["gcc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", os.devnull],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return {int(number): name for name, number in re.findall(r"__NR_(\w+) (\d+)", text)}


CALLS = system_calls()


@dataclasses.dataclass
class Sample:
    """What /proc said of a thread at a time (ns)."""

    time: int
    state: str
    call: str
    cpu: int
    minor: int
    major: int
    user: int
    system: int
    running: int
    runnable: int


def read(path):
    try:
        return path.read_text()
    except OSError:
        return ""


def sample(task):
    """One thread now, or None if it is gone."""
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    stat, sched = read(task / "stat"), read(task / "schedstat").split()
    call = read(task / "syscall").split()
    if not stat or not sched:
        return None
    # Field 3, the state, is the first behind the name, which may hold anything.
    fields = [None, None, None, *stat.rpartition(")")[2].split()]
    name = CALLS.get(int(call[0]), "") if call and call[0] != "running" else ""
    return Sample(
        now,
        fields[3],
        name,
        int(fields[39]),
        int(fields[10]),
        int(fields[12]),
        int(fields[14]),
        int(fields[15]),
        int(sched[0]),
        int(sched[1]),
    )


class Sampler(threading.Thread):
    """Samples all threads of some processes until they end."""

    def __init__(self, pids):
        super().__init__(daemon=True)
        self.tasks = [pathlib.Path(f"/proc/{pid}/task") for pid in pids]
        self.samples = collections.defaultdict(list)
        self.read_bytes = {}
        self.over = False

    def run(self):
        while not self.over:
            for tasks in self.tasks:
                try:
                    names = os.listdir(tasks)
                except OSError:
                    continue
                for name in names:
                    got = sample(tasks / name)
                    if got:
                        self.samples[int(name)].append(got)
                    found = re.search(r"^read_bytes: (\d+)", read(tasks / name / "io"), re.M)
                    if found:
                        self.read_bytes[int(name)] = int(found.group(1))
            time.sleep(INTERVAL)

    def within(self, tid, spans):
        """Samples of a thread, a list for each of the spans (begin, end)."""
        return [[s for s in self.samples[tid] if b <= s.time <= e] for b, e in spans]


class Wakers:
    """Who wakes threads named "victim", as bpftrace sees it: (ns, thread, name of the waker)."""

    SCRIPT = """
tracepoint:sched:sched_waking /args.comm == "victim"/ {
    printf("%lld %d %s\\n", nsecs, args.pid, comm);
}
BEGIN { printf("ready\\n"); }
"""

    def __init__(self):
        self.rows = []
        self.process = None
        if not shutil.which("bpftrace"):
            return
        script = self.SCRIPT.replace("args.", "args->") if self.old() else self.SCRIPT
        self.process = subprocess.Popen(
            ["bpftrace", "-B", "line", "-e", script],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        if not any(line.startswith("ready") for line in self.process.stdout):
            print("bpftrace does not work here: nobody looks at who wakes the victims")
            self.process = None
            return
        threading.Thread(target=self.read, daemon=True).start()

    @staticmethod
    def old():
        text = subprocess.run(
            ["bpftrace", "--version"], capture_output=True, text=True, check=False
        ).stdout
        found = re.search(r"v(\d+)\.(\d+)", text)
        return bool(found) and (int(found.group(1)), int(found.group(2))) < (0, 21)

    def read(self):
        for line in self.process.stdout:
            words = line.split(None, 2)
            if len(words) == 3 and words[0].isdigit():
                self.rows.append((int(words[0]), int(words[1]), words[2].strip()))

    def last(self, tid, spans):
        """Names of those who woke a thread last within each of the spans."""
        names = []
        for begin, end in spans:
            woken = [name for at, who, name in self.rows if who == tid and begin <= at <= end]
            if woken:
                names.append(woken[-1])
        return names

    def end(self):
        if self.process:
            self.process.terminate()
            self.process.wait()


# ---- what was seen, against the row ----


def rate(samples, field):
    """How much of the time between samples a counter of schedstat went on."""
    gone = sum(getattr(s[-1], field) - getattr(s[0], field) for s in samples if len(s) > 1)
    span = sum(s[-1].time - s[0].time for s in samples if len(s) > 1)
    return gone / span if span else 0.0


def matches(seen, samples, who, wrong):
    """A line of what was seen of a thread; adds to `wrong` what is not as expected."""
    flat = [s for of_span in samples for s in of_span]
    states = collections.Counter(s.state for s in flat)
    calls = collections.Counter(s.call for s in flat if s.state != "R" and s.call)
    if not flat:
        wrong.append(f"{who}: never sampled")
        return "-"
    hits = sum(
        s.state in seen.states and (not seen.calls or s.call in seen.calls) for s in flat
    ) / len(flat)
    if seen.states and hits < seen.share:
        wrong.append(f"{who}: {seen.states} {seen.calls} in {hits:.2f} of the samples")
    running, runnable = rate(samples, "running"), rate(samples, "runnable")
    if running < seen.running:
        wrong.append(f"{who}: ran {running:.2f} of the time")
    if runnable < seen.runnable:
        wrong.append(f"{who}: runnable {runnable:.2f} of the time")
    text = " ".join(f"{state}:{100 * n // len(flat)}%" for state, n in states.most_common(2))
    if calls:
        text += f" {calls.most_common(1)[0][0]}"
    return f"{text} run {running:.2f} rq {runnable:.2f}"


def check_log(row, log, wrong):
    """The program's own numbers: shares of the first cause."""
    rounds, shares = zoo.rounds(log), []
    for i, (_, ranked) in rounds.items():
        if not ranked:
            wrong.append(f"round {i}: no cause logged")
            continue
        first, names = ranked[0], [c["cause"] for c in ranked]
        shares.append(first["share"])
        got = (first["cause"], first["comm"], first["span"])
        right = (row.cause, row.culprit, row.span) if row.culprit else (row.cause, *got[1:])
        if got != right:
            wrong.append(f"round {i}: first is {got}")
        expected = [name for name in row.second if name in names]
        if names[1 : 1 + len(expected)] != expected:
            wrong.append(f"round {i}: order {names}")
        if row.object and not re.fullmatch(OBJECTS[row.object], first["object"] or ""):
            wrong.append(f"round {i}: object {first['object']}")
    if len(rounds) < row.rounds:
        wrong.append(f"only {len(rounds)} rounds")
    # The middle one, since a busy machine takes its part of some.
    if shares and statistics.median(shares) < row.share:
        wrong.append(f"share {statistics.median(shares):.2f} < {row.share}")
    return {i: victim for i, (victim, _) in rounds.items()}, shares


def culprit_samples(row, log, sampler, victims):
    """Samples of the culprit, or of row.watch, in the victim's spans."""
    found = []
    roles = {r["role"]: r.get("tid", r["pid"]) for r in log if r["kind"] in ("thread", "process")}
    for i, victim in victims.items():
        tid = roles.get(row.watch)
        for cause in log:
            if not tid and cause["kind"] == "cause" and cause["i"] == i:
                tid = cause["tid"] if cause["comm"] == row.culprit else tid
        found += sampler.within(tid, [(victim["begin"], victim["end"])])
    return found


def check_special(row, log, sampler, samples, others, throttled, wrong):
    """What only this kind of stall leaves behind."""
    all_of = [s for of_span in samples for s in of_span]
    touched = sum(r["touched"] for r in log if r["kind"] == "faults")
    if row.check == "same_cpu":
        seen = [s for of_span in (others or samples) for s in of_span]
        hog = next(r["pid"] for r in log if r.get("role") == "hog")
        cpus = {s.cpu for s in seen} | {s.cpu for s in sampler.samples[hog][-50:]}
        if len(cpus) != 1:
            wrong.append(f"not on one CPU: {cpus}")
        return f"both on cpu {cpus}, hog ran {rate([sampler.samples[hog]], 'running'):.2f}"
    if row.check == "bytes_read":
        tid = next(r["tid"] for r in log if r.get("comm") == row.culprit)
        read_bytes = sampler.read_bytes.get(tid, 0)
        if read_bytes < 2 << 20:
            wrong.append(f"read only {read_bytes} bytes from the disk")
        return f"read {read_bytes >> 10} KiB from the disk"
    if row.check in ("major_faults", "minor_faults"):
        field = row.check.removesuffix("_faults")
        gone = getattr(all_of[-1], field)
        if gone < 0.8 * touched:
            wrong.append(f"{gone} {field} faults for {touched} pages")
        user, system = (getattr(all_of[-1], f) - getattr(all_of[0], f) for f in ("user", "system"))
        if field == "minor" and system < 4 * user:
            wrong.append(f"ticks: {user} user, {system} system")
        return f"{gone} {field} faults for {touched} pages, ticks {user} user {system} system"
    if row.check == "throttled":
        if throttled["nr_throttled"] < 10:
            wrong.append(f"throttled {throttled['nr_throttled']} times")
        return f"throttled {throttled['nr_throttled']} times, {throttled['throttled_time'] // 10**6} ms"
    return ""


def cpu_stat(folder):
    words = read(pathlib.Path(folder) / "cpu.stat").split() if folder else []
    return {key: int(value) for key, value in zip(words[::2], words[1::2])}


def verify(row, built, seed, shield, wakers):
    """Runs a row once; returns (what was seen, what is wrong)."""
    wrong = []
    with zoo.running(row, built, seed, shield) as program:
        sampler = Sampler(program.pids())
        sampler.start()
        started = time.monotonic()
        program.go()
        log = program.finish()
        took = time.monotonic() - started
        sampler.over = True
        sampler.join()
        throttled = cpu_stat(program.environment.get("ZOO_CPU"))
    victims, shares = check_log(row, log, wrong)
    spans = [(v["begin"], v["end"]) for v in victims.values()]
    tid = next(iter(victims.values()))["tid"]
    samples, others = sampler.within(tid, spans), []
    seen = {
        "seconds": f"{took:.1f}",
        "spans": f"{len(spans)}x{statistics.median(e - b for b, e in spans) / 1e6:.0f}ms",
        "share": f"{min(shares):.2f} {statistics.median(shares):.2f} {max(shares):.2f}",
        "victim": matches(row.victim, samples, "victim", wrong),
    }
    if row.other:
        others = culprit_samples(row, log, sampler, victims)
        seen[row.watch or row.culprit] = matches(row.other, others, "culprit", wrong)
    seen["check"] = check_special(row, log, sampler, samples, others, throttled, wrong)
    if row.wakers and wakers.process:
        time.sleep(0.3)  # what bpftrace has seen comes a little later
        names = wakers.last(tid, spans)
        good = sum(name.split("/")[0] in row.wakers for name in names)
        if good < 0.8 * len(spans):
            wrong.append(f"woken by {names}")
        seen["woken by"] = " ".join(f"{n}:{c}" for n, c in collections.Counter(names).items())
    return seen, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--no-shield", action="store_true", help="bear what else the machine does")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    wakers, bad = Wakers(), 0
    with zoo.temporary() as folder:
        for row in scenarios.SCENARIOS:
            if options.names and row.name not in options.names:
                continue
            why = zoo.missing(row)
            if why:
                print(f"SKIPPED {row.name}: {why}")
                bad += 1
                continue
            built = zoo.build(row, folder)
            for seed in range(1, options.seeds + 1):
                seen, wrong = verify(row, built, seed, not options.no_shield, wakers)
                bad += bool(wrong)
                print(f"{'WRONG' if wrong else 'ok':5} {row.name} seed {seed}: {row.cause} |",
                      " | ".join(f"{k} {v}" for k, v in seen.items() if v), flush=True)
                for text in wrong:
                    print("      -", text)
    wakers.end()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
