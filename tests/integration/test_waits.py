# SPDX-License-Identifier: Apache-2.0
"""What explains waits, source by source, against what the program and the kernel say themselves."""

import collections
import os
import pathlib
import subprocess
import sys
import time

import pytest

from tracer import PROGRAMS, Capture, parse_log, tries
from why_json import asker

CGROUPS = pathlib.Path("/sys/fs/cgroup")
MIB = 1 << 20
MS = 1_000_000
NAMES = ["spans", "cuda", "nccl", "frameworks", "sched", "stacks", "files", "faults", "io", "signals", "quota",
         "samples"]  # fmt: skip
OF_MACHINE = {"steal", "frequency"}  # test_cpu.py


class Explained:
    """A capture of explain MODE, with what the program said."""

    def __init__(self, waffle, program, mode, *arguments, options=()):
        self.capture = waffle.run(program, mode, *arguments, options=options)
        self.capture.check_sums(lost=0)
        self.all = self.capture.rows()
        self.said = {row["kind"]: row for row in parse_log(self.capture.result.stdout.splitlines())}
        self.tid = self.said["thread"]["tid"]
        [self.span] = self.rows("span")

    def rows(self, kind, **equal):
        return [
            row
            for row in self.all
            if row["kind"] == kind and all(row.get(key) == value for key, value in equal.items())
        ]

    def waits(self):
        """Of the main thread inside the span, long ones."""
        return [
            row
            for row in self.rows("wait", tid=self.tid)
            if self.span["start_ns"] <= row["start_ns"] <= row["end_ns"] <= self.span["end_ns"]
            and row["end_ns"] - row["start_ns"] > 8_000_000
        ]

    def within(self, kind, said, **equal):
        """Rows of a kind that lie in the interval that the program printed."""
        start, end = said["start"], said["end"]
        return [
            row
            for row in self.rows(kind, **equal)
            if start <= row["start_ns"] and row.get("end_ns", row["start_ns"]) <= end
        ]

    def function(self, address):
        """The name that nm and the recorded mapping give for an address of the program."""
        at = int(address, 16)
        for row in self.rows("mapping", pid=self.tid):
            args = row["args"]
            start, end = int(args["start"], 16), int(args["end"], 16)
            if start <= at < end:
                out = subprocess.run(
                    ["addr2line", "-f", "-e", args["path"], hex(at - start + args["offset"])],
                    capture_output=True, text=True, check=True,
                ).stdout
                return args["path"], out.split()[0], args.get("build_id")
        return None

    def symbols(self, stack):
        names = {row["args"]["address"]: row["args"]["name"] for row in self.rows("symbol")}
        return [names.get(address) for address in stack]


@pytest.fixture
def explain(waffle, built):
    program = built("explain.c", "-fno-omit-frame-pointer")

    def run(mode, *arguments, **options):
        return Explained(waffle, program, mode, *arguments, **options)

    return run


@tries(3)
def test_sleep_is_ended_by_the_timer_interrupt(explain):
    ran = explain("sleep")
    assert len(ran.waits()) == 5
    told = 0
    for wait in ran.waits():
        assert "object" not in wait["args"] and "fault_address" not in wait["args"]
        wakes = [
            row
            for row in ran.rows("wake")
            if row["args"]["woken_tid"] == ran.tid
            and wait["start_ns"] <= row["start_ns"] <= wait["end_ns"]
        ]
        assert len(wakes) == 1, wakes
        # One that came during somebody's system call is known by its stack only, if there is one.
        assert "interrupt" in wakes[0]["args"] or "kernel_stack" not in wakes[0]["args"], wakes
        if "kernel_stack" not in wakes[0]["args"]:
            continue
        told += 1
        names = ran.symbols(wakes[0]["args"]["kernel_stack"])
        assert names[0] == "try_to_wake_up" and "hrtimer_wakeup" in names
        assert not any(name.startswith(("bpf_", "__traceiter")) for name in names if name)
    assert told >= 4


SLEEPS = """
import threading, time
for length in [0.0005] * 40 + [0.02] * 5:
    time.sleep(length)
print(threading.get_native_id())
"""


@pytest.mark.parametrize("option", [(), ("--min-wait", "10ms")])
def test_waits_are_explained_from_min_wait_on(waffle, option):
    capture = waffle.run(sys.executable, "-c", SLEEPS, options=option)
    rows = [row for row in capture.rows() if row.get("tid") == int(capture.result.stdout)]

    def lengths(kind, **equal):
        return sorted(row["end_ns"] - row["start_ns"] for row in rows if row["kind"] == kind
                      and all(row.get(key) == value for key, value in equal.items()))

    blocked, waits = lengths("sched", name="blocked"), lengths("wait")
    assert len([ns for ns in blocked if 500_000 <= ns < 10_000_000]) >= 30
    assert len([ns for ns in blocked if ns >= 20_000_000]) >= 5
    # Stacks have a budget. The short waits before it may have spent that of the first long one.
    assert len([ns for ns in waits if ns >= 20_000_000]) >= 4
    if option:
        assert waits[0] >= 10_000_000
    else:
        assert 50_000 <= waits[0] < 10_000_000


def waits_with_stacks(capture, min_ns):
    """Waits of the thread whose id the program printed."""
    return [row for row in capture.rows("wait", tid=int(capture.result.stdout))
            if row["end_ns"] - row["start_ns"] >= min_ns and row["args"].get("user_stack")]


def test_a_few_short_waits_do_not_hide_the_next_long_one(waffle):
    program = (
        "import threading, time\n"
        "for length in [0.02, 0.0001, 0.0001, 0.0001] * 6:\n"
        "    time.sleep(length)\n"
        "print(threading.get_native_id())\n"
    )
    capture = waffle.run(sys.executable, "-c", program, options=("--min-wait", "10ms"))
    assert len(waits_with_stacks(capture, 20_000_000)) >= 5


def test_threads_that_tick_leave_the_stacks_of_long_waits(waffle):
    """The budget is that of a CPU, and ten threads on the same one use up more than that."""
    program = (
        "import os, threading, time\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "def tick():\n"
        "    while True:\n"
        "        time.sleep(0.003)\n"
        "for _ in range(10):\n"
        "    threading.Thread(target=tick, daemon=True).start()\n"
        "for _ in range(30):\n"
        "    time.sleep(0.04)\n"
        "print(threading.get_native_id())\n"
    )
    capture = waffle.run(sys.executable, "-c", program, options=("--stacks", "sched"))
    assert len(waits_with_stacks(capture, 40_000_000)) >= 25


@tries(3)
def test_lock_is_named_by_who_waits_and_who_wakes(explain):
    ran = explain("lock")
    [wait] = ran.waits()
    assert "object" not in wait["args"]
    [wake] = [
        row for row in ran.rows("wake", pid=ran.tid) if row["args"]["woken_tid"] == ran.tid
        and wait["start_ns"] <= row["start_ns"] <= wait["end_ns"]
    ]
    assert wake["tid"] != ran.tid and "interrupt" not in wake["args"]
    path, _, build_id = ran.function(wait["args"]["user_stack"][0])
    assert pathlib.Path(path).name.startswith("libc")
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True)
    assert f"Build ID: {build_id}" in notes.stdout
    blocked = ran.rows("sched", tid=ran.tid, name="blocked", start_ns=wait["start_ns"])
    assert blocked[0]["args"]["syscall"] == "futex"
    # The lock lies in a mapping of the program's data, so it can be named.
    lock = ran.said["lock"]["address"]
    assert [
        row
        for row in ran.rows("mapping", pid=ran.tid)
        if int(row["args"]["start"], 16) <= lock < int(row["args"]["end"], 16)
        and row["args"]["path"].endswith("explain")
    ]


@pytest.mark.parametrize(
    "mode, name", [("pipe", "pipe:[{ino}]"), ("eventfd", "anon_inode:[eventfd]"),
                   ("tcp", "socket:[{ino}]"), ("unix", "socket:[{ino}]")]
)
def test_read_names_the_file_behind_the_descriptor(explain, tmp_path, mode, name):
    path = tmp_path / "socket"
    ran = explain(mode, path)
    [wait] = ran.waits()
    ino = ran.said["inode"]["ino"]
    assert wait["args"]["object"] == name.format(ino=ino)
    assert wait["args"]["ino"] == ino
    details = {
        "tcp": "tcp 127.0.0.1:{local} <-> 127.0.0.1:{remote}".format(
            **{"local": 0, "remote": 0, **ran.said.get("ports", {})}
        ),
        "unix": f"unix {path}",
    }
    assert wait["args"].get("detail") == details.get(mode)


def test_sockets_that_are_closed_at_once_have_their_peers(waffle):
    capture = waffle.run(sys.executable, PROGRAMS / "short_sockets.py")
    stream, datagrams = capture.result.stdout.split()
    waits = [row for row in capture.rows() if row["kind"] == "wait" and row["tid"] == row["pid"]
             and row["args"].get("object", "").startswith("socket:")]
    peers = collections.Counter(row["args"].get("detail", "").rpartition(" <-> ")[2] for row in waits)
    assert peers[f"127.0.0.1:{stream}"] >= 5 and peers[f"127.0.0.1:{datagrams}"] >= 9
    assert sum(peers.values()) == peers[f"127.0.0.1:{stream}"] + peers[f"127.0.0.1:{datagrams}"]
    # A server that answers several clients has no peer.
    served = {row["args"].get("detail") for row in capture.rows() if row["kind"] == "wait"
              and row["args"].get("detail", "").startswith(f"udp 127.0.0.1:{datagrams}")}
    assert f"udp 127.0.0.1:{datagrams}" in served and len(served) <= 2


def test_waits_for_sockets_say_what_tcp_sent_again_meanwhile(waffle):
    capture = waffle.run(sys.executable, PROGRAMS / "lossy_sockets.py")
    said = [line.split() for line in capture.result.stdout.splitlines()]
    counts = {what: int(count) for what, _, count in said}
    waits = [row for row in capture.rows() if row["kind"] == "wait" and row["tid"] == row["pid"]
             and row["args"].get("detail", "").startswith("tcp ")]
    details = [row["args"]["detail"].rpartition(" <-> ")[2] for row in waits]

    def expected(what, port, count):
        times = "once" if count == 1 else f"{count} times"
        return f"127.0.0.1:{port}, {what} sent again {times}" if count else f"127.0.0.1:{port}"

    assert counts["dead"] >= 2 and counts["late"] >= 1 and counts["data"] >= 1
    texts = [expected("data" if what in ("data", "quick") else "SYN", port,
                      # What was sent again before the second answer was no part of that wait.
                      int(count) - (counts["data"] if what == "quick" else 0)) for what, port, count in said]
    assert details == texts
    [instance] = asker(waffle)(capture.path, "--thread", waits[0]["tid"])["instances"]
    causes = {(row["cause"], (row["culprit"]["object"] or "").rpartition(" <-> ")[2].rstrip(")"))
              for row in instance["causes"]}
    # The third one's peer waits, too: what was sent again is the cause, not the peer.
    assert {("socket", text) for text in texts[1:3]} <= causes, causes


def test_files_of_one_inode_are_told_apart_by_their_descriptors(explain):
    ran = explain("timerfd")
    assert [row["args"]["object"] for row in ran.waits()] == [
        "anon_inode:[timerfd]",
        "anon_inode:[timerfd]",  # that became ready in the epoll
        "anon_inode:[eventpoll]",  # whose time is over
    ]
    assert ran.waits()[2]["args"]["detail"] == "anon_inode:[timerfd]"


def io_sum(rows):
    return sum(row["args"]["bytes"] for row in rows)


@pytest.mark.parametrize("mode", ["read", "direct"])
def test_read_requests_sum_to_what_the_kernel_counted(explain, tmp_path, mode):
    ran = explain(mode, tmp_path / "data")
    said = ran.said["io"]
    rows = [
        row for row in ran.within("io", said, tid=ran.tid) if not row["args"]["write"]
    ]
    assert said["bytes"] == 8 * MIB
    # A few blocks more: where the file lies on the disk.
    assert said["bytes"] <= io_sum(rows) <= said["bytes"] + 16 * 4096
    assert all(row["start_ns"] < row["end_ns"] and "error" not in row["args"] for row in rows)


@tries(3)
def test_fsync_names_the_file_and_its_requests_carry_the_data(explain, tmp_path):
    path = tmp_path / "data"
    ran = explain("fsync", path)
    said = ran.said["io"]
    rows = [row for row in ran.within("io", said) if row["args"]["write"]]
    assert io_sum([row for row in rows if row["tid"] == ran.tid]) >= 4 * MIB
    waits = [
        row
        for row in ran.rows("wait", tid=ran.tid)
        if said["start"] <= row["start_ns"] and row["end_ns"] <= said["end"]
    ]
    assert waits
    for wait in waits:
        assert wait["args"]["object"] == str(path) and wait["args"]["ino"] == ran.said["inode"]["ino"]
        assert wait["args"]["detail"] == filesystem(path)
        names = ran.symbols(wait["args"]["kernel_stack"])
        assert any(name and "fsync" in name for name in names)


def filesystem(path):
    out = subprocess.run(["stat", "-f", "-c", "%T", path.parent], capture_output=True, text=True,
                         check=True).stdout.strip()
    return {"ext2/ext3": "ext4"}.get(out, out)


def faults(ran, major):
    return sum(
        row["args"]["count"]
        for row in ran.within("fault", ran.said["faults"], tid=ran.tid)
        if row["args"]["major"] is major
    )


def test_minor_faults_are_counted_as_getrusage_counts_them(explain):
    ran = explain("minor")
    said = ran.said["faults"]
    assert said["minor"] >= 16384 and said["major"] == 0
    assert faults(ran, True) == 0
    # A record in which the interval begins or ends is not within it: 1 ms at most at each end.
    rows = ran.within("fault", said, tid=ran.tid)
    around = [
        row
        for row in ran.rows("fault", tid=ran.tid)
        if row["end_ns"] >= said["start"] and row["start_ns"] <= said["end"]
    ]
    assert sum(row["args"]["count"] for row in rows) <= said["minor"] + 5
    total = sum(row["args"]["count"] for row in around)
    assert said["minor"] <= total <= said["minor"] + 5
    for row in rows:
        assert said["first"] <= int(row["args"]["address"], 16) <= said["last"] or (
            row["args"]["count"] < 5
        )
        assert 0 < row["args"]["total_ns"] <= row["end_ns"] - row["start_ns"]


@tries(3)  # a data mapping is known only if it was read before the program was gone
def test_major_faults_are_records_of_their_own_with_address_and_wait(explain, tmp_path):
    ran = explain("major", tmp_path / "data")
    said = ran.said["faults"]
    assert said["major"] > 200
    rows = [
        row for row in ran.within("fault", said, tid=ran.tid) if row["args"]["major"]
    ]
    assert len(rows) == said["major"]
    pages = {int(row["args"]["address"], 16) & ~4095 for row in rows}
    assert len(pages) == len(rows) and said["first"] <= min(pages) <= max(pages) <= said["last"]
    assert all(row["args"]["count"] == 1 for row in rows)
    for row in rows:
        path, function, _ = ran.function(row["args"]["ip"])
        assert path.endswith("explain") and function in ("touch", "mode_major")
    waits = ran.within("wait", said, tid=ran.tid)
    assert waits
    for wait in waits:
        assert int(wait["args"]["fault_address"], 16) & ~4095 in pages
    data = [row for row in ran.rows("mapping", pid=ran.tid)
            if row["args"]["path"] == str(tmp_path / "data")]
    assert data and int(data[0]["args"]["start"], 16) == said["first"]


def test_faults_in_system_calls_are_counted(explain):
    ran = explain("copy")
    said = ran.said["faults"]
    around = [
        row
        for row in ran.rows("fault", tid=ran.tid)
        if row["end_ns"] >= said["start"] and row["start_ns"] <= said["end"]
    ]
    total = sum(row["args"]["count"] for row in around)
    assert said["minor"] <= total <= said["minor"] + 5 and said["minor"] >= 256


@tries(3)
def test_signals_name_sender_and_target(explain):
    ran = explain("stop")
    child = ran.said["child"]["pid"]
    sent = [row for row in ran.rows("signal", tid=child) if row["args"]["target_tid"] == ran.tid]
    assert [row["args"]["signo"] for row in sent] == [19, 18, 17]
    assert [row["args"]["code"] for row in sent] == [0, 0, 1]  # SI_USER, SI_USER, CLD_EXITED
    stop, go = sent[0]["start_ns"], sent[1]["start_ns"]
    assert 50_000_000 <= go - stop < 150_000_000
    stopped = [
        row
        for row in ran.rows("sched", tid=ran.tid, name="blocked")
        if row["args"]["state"] == "T" and row["start_ns"] >= stop
    ]
    # The kernel wakes the thread before it reports the signal.
    assert len(stopped) == 1 and abs(stopped[0]["end_ns"] - go) < 20_000_000


def cpu_cgroup(name):
    """A new cgroup that gets 10 ms of CPU time in 50, and what reads how long it was throttled."""
    v1 = CGROUPS / "cpu"
    folder = (v1 if v1.is_dir() else CGROUPS) / name
    if not v1.is_dir():
        (CGROUPS / "cgroup.subtree_control").write_text("+cpu")
    folder.mkdir()
    if v1.is_dir():
        (folder / "cpu.cfs_period_us").write_text("50000")
        (folder / "cpu.cfs_quota_us").write_text("10000")
    else:
        (folder / "cpu.max").write_text("10000 50000")

    def throttled_ns():
        stat = dict(line.split() for line in (folder / "cpu.stat").read_text().splitlines())
        return int(stat["throttled_time"]) if v1.is_dir() else int(stat["throttled_usec"]) * 1000

    return folder, throttled_ns


@pytest.mark.parametrize("inner", ("", "inner"))
@tries(3)
def test_quota_sums_to_the_time_that_the_cgroup_was_throttled(waffle, built, explain, inner):
    """Also if that is the parent of the one that the program is in."""
    folder, throttled_ns = cpu_cgroup(f"waffle-test-{os.getpid()}")
    (folder / inner).mkdir(exist_ok=True)
    program = built("explain.c", "-fno-omit-frame-pointer")
    try:
        # On one CPU: the group is throttled on each CPU for itself, also where it has no thread.
        cpu = min(os.sched_getaffinity(0))
        shell = f'echo $$ > {folder / inner}/cgroup.procs && exec taskset -c {cpu} "$0" "$@"'
        capture = waffle.run("sh", "-c", shell, program, "spin")
        total = throttled_ns()
        rows = capture.rows("quota")
        assert total > 0 and len(rows) >= 5
        assert {row["args"]["quota_ns"] for row in rows} == {10_000_000}
        assert {row["args"]["period_ns"] for row in rows} == {50_000_000}
        assert {row["args"]["cgroup"] for row in rows} == {folder.stat().st_ino}
        # A throttling that began or ended while the thread did not wait for it is not one of it.
        throttled = sum(row["args"]["throttled_ns"] for row in rows)
        assert 0.9 * total - MS <= throttled <= 1.02 * total + MS
    finally:
        for _ in range(100):
            try:
                for part in (folder / inner, folder):
                    if part.exists():
                        part.rmdir()
                break
            except OSError:
                time.sleep(0.01)


def recorded(capture):
    """The sources, but for those that depend on the machine."""
    return [name for name in capture.info()["sources"] if name not in OF_MACHINE]


def test_source_that_cannot_be_had_is_left_out_and_said(waffle, built, tmp_path):
    path = tmp_path / "without.waffle"
    argv = [built("without_perf.c"), waffle.program, "run", "--no-report", "-o", path, "--",
            built("explain.c", "-fno-omit-frame-pointer"), "stop"]
    result = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "provide these sources, so they are not recorded: faults,samples" in result.stderr
    capture = Capture(waffle, path)
    assert recorded(capture) == [name for name in NAMES if name not in ("faults", "samples")]
    assert {"wait", "wake", "signal", "span"} <= kinds(capture) and "fault" not in kinds(capture)
    capture.check_sums(lost=0)


def kinds(capture):
    return {row["kind"] for row in capture.rows()}


@tries(3)
def test_sources_are_switched_on_one_by_one(waffle, built, tmp_path):
    program = built("explain.c", "-fno-omit-frame-pointer")
    path = tmp_path / "data"
    always = {"span", "sched", "wait", "wake", "summary"}
    for name, more in [
        ("faults", {"fault"}), ("io", {"io"}), ("signals", {"signal"}), ("stacks", set()),
    ]:
        command = ["sh", "-c", 'kill -CONT $$; exec "$0" "$@"', program, "major", path]
        capture = waffle.run(*command, options=["--sources", f"spans,sched,{name}"])
        assert capture.info()["sources"] == ["spans", "sched", name]
        found = kinds(capture)
        assert more <= found and found - {"mapping", "symbol"} <= always | more
        stacks = [row for row in capture.rows("wait") if "user_stack" in row["args"]]
        assert bool(stacks) == (name == "stacks")
    capture = waffle.run(program, "major", path, options=["--sources", "spans,sched"])
    assert kinds(capture) == {"span", "sched", "summary"}
    capture = waffle.run(program, "pipe", options=["--sources=-files"])
    assert recorded(capture) == [name for name in NAMES if name != "files"]
    assert not [row for row in capture.rows("wait") if "object" in row["args"]]
    capture = waffle.run(program, "sleep", options=["--sources=sched"])
    assert "span" not in kinds(capture) and capture.info()["sources"] == ["sched"]


@pytest.mark.parametrize(
    "text, says",
    [
        ("stack", "--sources: there is no 'stack'; did you mean stacks\\?"),
        ("zebra", "--sources: there is no 'zebra'; there are spans,cuda,nccl,frameworks,sched,stacks,files,"),
        ("spans,-io", "mixes names with and without a sign"),
        ("spans,io", "lacks sched"),
        ("", "there is no ''"),
    ],
)
def test_sources_that_make_no_sense_are_refused(waffle, text, says):
    waffle.fails(2, "run", f"--sources={text}", "--", "true", says=says)


def test_nothing_is_recorded_after_the_end(waffle, start):
    """Disarming takes a while, in which the program goes on."""
    training = pathlib.Path(waffle.program).parent / "examples" / "training"
    program = start(training, "--steps", "100000", "--directory", waffle.path().parent)
    attached = waffle.attach("-p", program.pid, "-d", "500ms", "-q", "--no-report")
    capture = attached.wait()
    ends = {row["kind"]: row["ts"] for row in capture.records()}
    assert "wake" in ends
    assert max(ends.values()) - ends["state"] < 5_000_000


POLLS_BESIDE_NAPS = """
import os, select, threading, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
def polls():
    epoll = select.epoll()
    while True:
        epoll.poll(0.01)
for _ in range(12):
    threading.Thread(target=polls, daemon=True).start()
print("ready", flush=True)
while True:
    time.sleep(0.06)
"""


def test_long_waits_have_stacks_beside_many_threads_that_poll(waffle, start):
    """All share the budget of one CPU, which the threads that poll would use up alone."""
    program = start(sys.executable, "-c", POLLS_BESIDE_NAPS)
    program.until("ready")
    attached = waffle.attach("-p", program.pid, "-q", "--no-report", "--duration", "3s", "--stacks", "sched")
    capture = attached.wait()
    mine = [row for row in capture.rows() if row.get("tid") == program.pid
            and row.get("end_ns", 0) - row["start_ns"] > 50 * MS]
    slept = {row["start_ns"] for row in mine if row["kind"] == "sched" and row["name"] == "blocked"}
    known = {row["start_ns"] for row in mine if row["kind"] == "wait" and row["args"].get("user_stack")}
    assert len(slept) >= 20 and len(slept & known) >= 0.9 * len(slept)
