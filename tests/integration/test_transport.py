# SPDX-License-Identifier: Apache-2.0
"""The two ways of hits: through the rings of libwaffle, and through the kernel. Both give the same
records. Programs that die, fork or exec lose nothing, and hostile ones harm only their own records."""

import bisect
import collections
import itertools
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time

import pytest

from recorder import compile_inside
from tracer import Capture, children_of, compile_program, named, semaphores, wait_until

LIBWAFFLE = ["-Wl,-u,waffle_trace_start", "-Wl,--push-state,--no-as-needed", "-lwaffle",
             "-Wl,--pop-state"]
ARCHIVE = ["-Wl,-u,waffle_trace_start"]
SIGNALS = ["SIGKILL", "SIGTERM", "SIGSEGV", "SIGABRT", "SIGBUS", "SIGQUIT", "SIGPIPE"]


@pytest.fixture(scope="module")
def libraries(waffle_program):
    return waffle_program.parent


@pytest.fixture(scope="module")
def ringed(libraries, tmp_path_factory):
    """The program, linked with libwaffle."""
    folder = tmp_path_factory.mktemp("ringed")
    flags = [f"-L{libraries}", *LIBWAFFLE, f"-Wl,-rpath,{libraries}"]
    return compile_program("transport.c", folder / "ringed", *flags)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The same program without libwaffle."""
    return compile_program("transport.c", tmp_path_factory.mktemp("plain") / "plain")


def private_libs(libraries):
    """What a program needs that is linked with the archive."""
    text = (libraries / "waffle.pc").read_text(encoding="utf-8")
    return re.search(r"Libs.private:(.*)", text).group(1).split()


def process_of(capture, pid):
    [process] = [p for p in capture.info()["processes"] if p["pid"] == pid]
    return process


def ring_records(capture):
    return sum(p.get("ring_records", 0) for p in capture.info()["processes"])


def begin(start, program):
    made = start(program)
    made.until("ready")
    made.path = program
    return made


def rings_of(program):
    """The number of rings that a program has mapped, as it sees them."""
    count = int(program.ask("rings", "rings"))
    program.until("done")
    return count


def check_steps(rows, count, first=0):
    """All steps of transport.c, in their order, at the times that the program saw itself."""
    wanted = range(first, first + count)
    spans = sorted((r for r in named(rows, "step") if r["args"]["i"] in wanted),
                   key=lambda r: r["args"]["i"])
    causes = {r["args"]["i"]: r for r in named(rows, "cause")}
    ticks = collections.defaultdict(list)
    for row in named(rows, "tick"):
        ticks[row["args"]["i"]].append(row)
    assert [s["args"]["i"] for s in spans] == list(wanted)
    for i, span in enumerate(spans, first):
        [tick] = ticks[i]
        assert tick["args"]["text"] == ("odd" if i % 2 else "even")
        assert tick["args"]["half"] == i / 2
        assert tick["parent"] == span["id"]
        # The clock of rings is converted: 1 us is its bound.
        assert span["args"]["before"] <= span["start_ns"] + 1000
        assert span["start_ns"] <= tick["start_ns"] <= span["end_ns"]
        assert tick["args"]["after"] <= tick["start_ns"] + 1000
        assert causes[i]["start_ns"] <= span["start_ns"] and span["end_ns"] <= causes[i]["end_ns"]


def values(rows):
    """What must be equal for both ways: everything but ids and times."""
    ids = {r["id"]: (r["name"], r["args"].get("i")) for r in rows if r["kind"] in ("span", "event")}
    found = []
    for row in rows:
        for link in row.get("links", ()):
            found.append(("link", ids[row["id"]], ids[link["id"]]))
        if row["kind"] in ("span", "event", "counter", "log"):
            args = {k: v for k, v in row.get("args", {}).items() if k not in ("before", "after")}
            found.append((row["kind"], row["name"], tuple(sorted(map(str, args.items()))),
                          ids.get(row.get("parent"))))
    return sorted(map(str, found))


def test_both_ways_give_the_same_spans_events_and_links(waffle, ringed):
    captures = {}
    for way in ("ring", "usdt", "auto"):
        captures[way] = waffle.run(ringed, "steps 0 500 100", "threads 4 100",
                                   options=["--transport", way])
        rows = captures[way].rows()
        check_steps(rows, 500)
        for number in range(1, 5):
            check_steps(rows, 100, first=number * 1000000)
        captures[way].check_sums(lost=0)
    rows = {way: values(capture.rows()) for way, capture in captures.items()}
    assert rows["ring"] == rows["usdt"] == rows["auto"]
    assert len(rows["ring"]) == 900 * 5  # a cause, its span, event and counter, and the link
    assert ring_records(captures["usdt"]) == 0
    # The first hits of a thread come through the kernel until its ring is mapped.
    assert ring_records(captures["ring"]) > 500 * 4
    assert ring_records(captures["auto"]) > 500 * 4


def test_threads_have_their_own_tids_and_names(waffle, start, ringed):
    program = begin(start, ringed)
    attached = waffle.attach_to(program, ringed, options=["--transport", "ring"])
    program.ask("threads 8 300 100", "done")
    capture = attached.stop()
    rows = capture.rows()
    tids = {row["tid"] for row in named(rows, "step")}
    assert len(tids) == 8
    for number in range(1, 9):
        check_steps(rows, 300, first=number * 1000000)
        assert len({r["tid"] for r in named(rows, "step")
                    if r["args"]["i"] // 1000000 == number}) == 1
    capture.check_sums(lost=0)
    assert process_of(capture, program.pid)["transport"] == "ring"


WAITING = """
import threading
lock = threading.Lock()
lock.acquire()
for _ in range(100):
    threading.Thread(target=lock.acquire).start()
print("ready", flush=True)
"""


def test_rings_and_the_scheduler_end_at_the_same_time(waffle, start, ringed):
    """The program pauses after each tick, so that a switch follows it. It goes on while the tracer looks
    at what the threads of Python wait for."""
    program = begin(start, ringed)
    with subprocess.Popen([sys.executable, "-c", WAITING], stdout=subprocess.PIPE) as python:
        python.stdout.readline()
        try:
            attached = waffle.attach_to(program, ringed, options=["-p", str(python.pid)])
            program.say("steps 0 100000 100")
            wait_until(lambda: attached.capture.path.stat().st_size > 20000, "much was recorded")
            records = attached.stop().records()
        finally:
            python.kill()
    last = max(r["ts"] for r in records if r["kind"] == "switch" and r["tid"] == program.pid)
    assert len([r for r in records if r["kind"] == "hit" and r["ts"] > last]) < 20


def test_info_says_which_way_each_process_used(waffle, start, ringed, plain):
    programs = [begin(start, ringed), begin(start, plain)]
    attached = waffle.attach("-p", programs[0].pid, "-p", programs[1].pid, "-q", "--no-report")
    for program in programs:
        attached.wait_armed(program.pid, program.path)
    for program in programs:
        program.ask("steps 0 200 500", "done")
    capture = attached.stop()
    capture.check_sums(lost=0)
    one, other = (process_of(capture, program.pid) for program in programs)
    assert one["transport"] == "ring" and one["ring_records"] > 500
    assert "transport" not in other
    rows = capture.rows()
    for program in programs:
        check_steps([r for r in rows if r.get("pid") == program.pid], 200)
    text = waffle.ok("info", capture.path).stdout
    assert re.search(rf"{programs[0].pid}  .*\[ring: [\d,]+ records\]", text)
    assert not re.search(rf"{programs[1].pid}  .*\[", text)


def test_programs_with_and_without_rings_share_a_rate(waffle, start, ringed, plain):
    programs = [begin(start, ringed), begin(start, plain)]
    attached = waffle.attach("-p", programs[0].pid, "-p", programs[1].pid, "-q", "--no-report",
                             "--filter", 'name == "step" && rate(100/min)').wait_links()
    for program in programs:
        program.ask("steps 0 200 100", "done")
    rows = named(attached.stop().rows(), "step")
    windows = collections.Counter(row["start_ns"] // 60_000_000_000 for row in rows)
    assert all(count <= 100 for count in windows.values()), windows
    assert sum(windows.values()) >= 100


def test_ring_is_an_error_without_libwaffle(waffle, start, plain):
    program = begin(start, plain)
    waffle.fails(1, "attach", "-p", program.pid, "--transport", "ring", "-o", waffle.path(),
                 says=f"pid {program.pid}: it has no libwaffle")
    waffle.fails(1, "run", "-q", "--transport", "ring", "-o", waffle.path(), "--", plain,
                 "steps 0 1", says="has no libwaffle")


def test_ring_with_stacks_of_spans_is_an_error(waffle, start, ringed):
    program = begin(start, ringed)
    waffle.fails(1, "attach", "-p", program.pid, "--transport", "ring", "--stacks", "spans",
                 "-o", waffle.path(), says="only the kernel takes stacks of spans")


def test_archive_linked_into_the_program_has_rings(waffle, libraries, tmp_path):
    program = compile_program("transport.c", tmp_path / "archive", *ARCHIVE,
                              str(libraries / "libwaffle.a"), *private_libs(libraries))
    capture = waffle.run(program, "steps 0 500 100", options=["--transport", "ring"])
    check_steps(capture.rows(), 500)
    assert ring_records(capture) > 500 * 4


def test_program_that_is_never_traced_has_no_ring(start, ringed):
    program = begin(start, ringed)
    program.ask("steps 0 1000", "done")
    assert rings_of(program) == 0


@pytest.mark.parametrize("name", SIGNALS)
def test_records_of_a_program_that_dies_by_a_signal_are_read(waffle, start, ringed, name):
    program = begin(start, ringed)
    attached = waffle.attach_to(program, ringed, options=["--transport", "ring"])
    program.ask("steps 0 300 100", "done")
    program.ask("steps 300 2000", "done")
    program.say(f"die {int(getattr(signal, name))}")
    assert program.process.wait(60) == -getattr(signal, name)
    capture = attached.wait()
    check_steps(capture.rows(), 2300)
    capture.check_sums(lost=0)


def test_killed_tracer_leaves_a_dormant_program_that_another_one_can_trace(waffle, start, ringed,
                                                                          libraries):
    program = begin(start, ringed)
    for number in range(3):
        attached = waffle.attach_to(program, ringed, options=["--transport", "ring"])
        program.ask(f"steps {number * 1000} 400 100", "done")
        assert rings_of(program) == 1
        attached.kill()
        wait_until(lambda: not any(semaphores(program.pid, ringed)), "dormant sites")
        wait_until(lambda: not any(semaphores(program.pid, libraries / "libwaffle.so")[:2]),
                   "dormant libwaffle")
        program.ask("steps 500000 100", "done")
    attached = waffle.attach_to(program, ringed, options=["--transport", "ring"])
    program.ask("steps 7000 500 100", "done")
    capture = attached.stop()
    check_steps(capture.rows(), 500, first=7000)
    assert {r["args"]["i"] for r in named(capture.rows(), "step")} == set(range(7000, 7500))
    capture.check_sums(lost=0)
    # The ring is taken over, so that not one hit needs the kernel.
    assert ring_records(capture) >= 500 * 6
    assert rings_of(program) == 1


def test_second_tracer_gets_every_record_and_so_does_the_first(waffle, start, ringed):
    program = begin(start, ringed)
    first = waffle.attach_to(program, ringed)
    program.ask("steps 0 300 100", "done")
    second = waffle.attach("-p", program.pid, "--no-report")
    assert "another waffle-bpf traces it" in second.wait_notice()
    second.wait_links()
    program.ask("steps 1000 300 100", "done")
    second = second.stop()
    program.ask("steps 2000 300 100", "done")
    first = first.stop()
    check_steps(second.rows(), 300, first=1000)
    second.check_sums(lost=0)
    for number in range(3):
        check_steps(first.rows(), 300, first=number * 1000)
    first.check_sums(lost=0)
    process = process_of(second, program.pid)
    assert (process["transport"], process["ring_records"]) == ("usdt", 0)
    assert "another waffle-bpf" in process["transport_why"]
    assert ring_records(first) > 300 * 6


def test_tracer_that_wants_the_kernel_takes_nothing_from_one_that_comes_later(waffle, start,
                                                                             ringed):
    program = begin(start, ringed)
    kernel = waffle.attach_to(program, ringed, options=["--transport", "usdt"])
    ring = waffle.attach("-p", program.pid, "-q", "--no-report").wait_links()
    program.ask("steps 0 400 100", "done")
    for attached in (kernel, ring):
        capture = attached.stop()
        check_steps(capture.rows(), 400)
        capture.check_sums(lost=0)


def test_process_that_records_itself_meanwhile_gets_every_record_too(waffle, start, ringed):
    own = waffle.path()
    program = start(ringed, env={**os.environ, "WAFFLE_TRACE": str(own)})
    program.until("ready")
    attached = waffle.attach("-p", program.pid, "-q", "--no-report").wait_links(3)
    program.ask("steps 0 500 100", "done")
    capture = attached.stop()
    program.finish()
    for one in (capture, Capture(waffle, own)):
        check_steps(one.rows(), 500)
        one.check_sums(lost=0)
    assert ring_records(capture) > 500


def test_many_short_threads_keep_their_records_and_few_rings(waffle, start, ringed):
    program = begin(start, ringed)
    attached = waffle.attach_to(program, ringed, options=["--transport", "ring"])
    program.ask("brief 4000", "done")
    assert rings_of(program) <= 16
    capture = attached.stop()
    rows = named(capture.rows(), "brief")
    assert sorted(r["args"]["i"] for r in rows) == list(range(4000))
    assert all(r["args"]["tid"] == r["tid"] for r in rows)
    capture.check_sums(lost=0)


def test_children_have_rings_of_their_own(waffle, start, ringed):
    program = begin(start, ringed)
    attached = waffle.attach_to(program, ringed, options=["--follow"])
    program.ask("steps 0 200 100", "done")
    program.ask("children 3 500 100", "done")
    program.ask("steps 500 200", "done")
    capture = attached.stop()
    rows = capture.rows()
    check_steps(rows, 200)
    check_steps(rows, 200, first=500)
    pids = set()
    for number in range(1, 4):
        mine = [r for r in rows if r.get("args", {}).get("i", 0) // 1000000 == number]
        check_steps(rows, 500, first=number * 1000000)
        [pid] = {r["pid"] for r in mine}
        pids.add(pid)
    assert len(pids) == 3 and program.pid not in pids
    capture.check_sums(lost=0)
    assert all(process_of(capture, pid)["ring_records"] > 500 for pid in pids)


def test_program_after_an_exec_has_rings_of_its_own(waffle, start, ringed):
    program = begin(start, ringed)
    attached = waffle.attach_to(program, ringed)
    program.ask("steps 0 300 100", "done")
    program.say("exec")
    program.until("ready")
    attached.wait_armed(program.pid, ringed)
    program.ask("steps 1000 300 100", "done")
    capture = attached.stop()
    check_steps(capture.rows(), 300)
    check_steps(capture.rows(), 300, first=1000)
    capture.check_sums(lost=0)
    assert ring_records(capture) > 300 * 6  # more than one of the two has made


def test_program_in_other_namespaces_has_its_real_tids(waffle, start, ringed):
    program = start("unshare", "--pid", "--fork", "--mount-proc", "--mount", ringed)
    program.until("ready")
    [pid] = children_of(program.pid)
    attached = waffle.attach("-p", pid, "-q", "--no-report", "--transport", "ring").wait_links(3)
    program.ask("steps 0 300 100", "done")
    program.ask("threads 3 300 100", "done")
    tids = {int(tid) for tid in os.listdir(f"/proc/{pid}/task")}
    capture = attached.stop()
    rows = capture.rows()
    check_steps(rows, 300)
    assert {r["tid"] for r in named(rows, "step") if r["args"]["i"] < 1000} == tids == {pid}
    for number in range(1, 4):
        check_steps(rows, 300, first=number * 1000000)
    assert all(r["tid"] >= pid and r["pid"] == pid for r in named(rows, "step"))
    assert ring_records(capture) > 1000
    # Taken over by the tid that the process sees.
    attached = waffle.attach("-p", pid, "-q", "--no-report", "--transport", "ring").wait_links(3)
    program.ask("steps 0 300 100", "done")
    assert {r["tid"] for r in named(attached.stop().rows(), "step")} == {pid}


def test_program_without_shared_memory_and_privileges_has_rings(waffle, start, ringed, libraries, public):
    library = public(libraries / "libwaffle.so.0")
    program = start("unshare", "--mount", "sh", "-c",
                    "mount -t tmpfs -o ro none /dev/shm && exec setpriv --reuid=65534 "
                    "--regid=65534 --clear-groups --no-new-privs \"$0\"", public(ringed),
                    env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)})
    program.until("ready")
    attached = waffle.attach("-p", program.pid, "-q", "--no-report",
                             "--transport", "ring").wait_links(3)
    program.ask("steps 0 300 100", "done")
    capture = attached.stop()
    check_steps(capture.rows(), 300)
    assert ring_records(capture) > 300


def test_child_that_is_not_followed_goes_on_and_disturbs_nobody(waffle, start, ringed):
    program = begin(start, ringed)
    attached = waffle.attach_to(program, ringed)
    program.ask("steps 0 200 100", "done")
    program.ask("children 3 500 0", "done")
    program.ask("steps 500 200", "done")
    capture = attached.stop()
    rows = capture.rows()
    check_steps(rows, 200)
    check_steps(rows, 200, first=500)
    assert {r["pid"] for r in named(rows, "step")} == {program.pid}
    capture.check_sums(lost=0)


def test_files_armed_for_the_whole_machine_have_rings_in_the_targets(waffle, start, ringed):
    other = begin(start, ringed)
    program = begin(start, ringed)
    attached = waffle.attach_to(program, ringed, options=["--follow", "--machine-wide"])
    other.ask("steps 0 300 100", "done")
    program.ask("steps 0 300 100", "done")
    capture = attached.stop()
    check_steps(capture.rows(), 300)
    capture.check_sums(lost=0)
    assert rings_of(other) == 0
    assert ring_records(capture) > 300 * 4


def test_libwaffle_that_is_opened_late_has_rings_from_then_on(waffle, start, libraries, tmp_path):
    program = begin(start, compile_program("transport.c", tmp_path / "late", "-rdynamic"))
    attached = waffle.attach_to(program, program.path)
    program.ask("steps 0 200 100", "done")
    program.ask(f"open {libraries / 'libwaffle.so'}", "done")
    attached.wait_links(3)
    program.ask("steps 1000 300 100", "done")
    capture = attached.stop()
    check_steps(capture.rows(), 200)
    check_steps(capture.rows(), 300, first=1000)
    capture.check_sums(lost=0)
    assert ring_records(capture) > 300 * 4


def test_libwaffle_that_is_opened_late_loses_nothing_with_a_filter(waffle, start, libraries, tmp_path):
    program = begin(start, compile_program("transport.c", tmp_path / "late", "-rdynamic"))
    attached = waffle.attach("-p", program.pid, "--no-report", "--filter", "dur >= 0")
    # The sites of events stay dormant.
    wait_until(lambda: any(semaphores(program.pid, program.path)), "arming")
    program.ask("steps 0 200 100", "done")
    program.ask(f"open {libraries / 'libwaffle.so'}", "done")
    program.ask("steps 200 20000 10", "done")
    capture = attached.stop()
    steps = [r["args"]["i"] for r in named(capture.rows(), "step")]
    assert sorted(steps) == list(range(20200))
    capture.check_sums(lost=0)
    assert process_of(capture, program.pid)["transport"] == "usdt"


def test_libraries_that_are_closed_give_way_to_others(waffle, start, ringed, tmp_path):
    program = begin(start, ringed)
    libraries = [compile_program("inside_library.c", tmp_path / f"lib{name}.so", "-fPIC", "-shared")
                 for name in "ab"]
    attached = waffle.attach_to(program, ringed)
    program.ask("steps 0 100 100", "done")
    for number in range(6):
        program.ask(f"library {libraries[number % 2]} {number * 100} 50", "done")
    capture = attached.stop()
    rows = named(capture.rows(), "late work")
    assert sorted(r["args"]["i"] for r in rows) == [n * 100 + i for n in range(6) for i in range(50)]
    for number, library in enumerate(libraries):
        out = waffle.folder / f"{number}.ndjson"
        waffle.ok("export", capture.path, "--format", "ndjson", "-o", out, "--filter",
                  f'lib ~ "*{library.name}"')
        found = named([json.loads(line) for line in out.read_text().splitlines()], "late work")
        assert len(found) == 150
        assert {r["args"]["i"] // 100 % 2 for r in found} == {number}
    capture.check_sums(lost=0)
    assert ring_records(capture) > 100 * 4 + 5 * 50


def test_size_of_rings_is_set_by_a_variable(waffle, start, ringed):
    program = start(ringed, env={**os.environ, "WAFFLE_RING_SIZE": "1MiB"})
    program.until("ready")
    attached = waffle.attach_to(program, ringed)
    program.ask("steps 0 300 100", "done")
    with open(f"/proc/{program.pid}/maps", encoding="utf-8") as maps:
        [line] = [line for line in maps if "waffle-ring" in line]
    first, last = (int(x, 16) for x in line.split()[0].split("-"))
    assert 1 << 20 < last - first < 2 << 20
    capture = attached.stop()
    check_steps(capture.rows(), 300)
    assert ring_records(capture) > 300 * 4
    for size in ("", "65", "100KiB", "2GiB", "many"):
        done = subprocess.run([ringed, "steps 0 1"], env={"WAFFLE_RING_SIZE": size}, check=True,
                              stderr=subprocess.PIPE, text=True)
        assert done.stderr == (f"waffle: WAFFLE_RING_SIZE: '{size}': expected a power of two from "
                               "16KiB to 1GiB; the program runs untraced\n")


def test_program_with_a_limit_on_files_goes_through_the_kernel(waffle, start, ringed):
    """A memfd beyond the limit would end it by SIGXFSZ."""
    program = start("prlimit", "--fsize=65536", ringed)
    program.until("ready")
    attached = waffle.attach_to(program, ringed)
    program.ask("steps 0 100", "done")
    capture = attached.stop()
    check_steps(capture.rows(), 100)
    assert ring_records(capture) == 0
    program.ask("steps 0 1", "done")


def test_ring_that_is_full_counts_what_it_loses(waffle, ringed):
    """The tracer can't read 64 KiB as often as a loop fills them."""
    capture = waffle.run(ringed, "steps 0 100 1000", "steps 1000 20000",
                         options=["--transport", "ring"],
                         env={**os.environ, "WAFFLE_RING_SIZE": "16KiB"})
    records = capture.info()["records"]
    assert records["lost"] > 0
    assert records["produced"] == records["delivered"] + records["lost"]
    assert records["produced"] >= 20100 * 6
    check_steps([r for r in capture.rows() if r.get("args", {}).get("i", 1000) < 100], 100)
    assert capture.rows("loss")


def room_for(pid, count):
    """The limit of descriptors with which a process can open this many more."""
    used = {int(number) for number in os.listdir(f"/proc/{pid}/fd")}
    return next(itertools.islice((number for number in itertools.count() if number not in used), count, None))


def test_threads_without_room_for_a_ring_use_the_kernel(waffle, start, ringed):
    program = begin(start, ringed)
    attached = waffle.attach("-p", program.pid, "--no-report").wait_links(3)
    limit = room_for(attached.process.pid, 32)
    resource.prlimit(attached.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
    program.ask("threads 60 100 1000", "done")
    assert "the hits of some threads come through the kernel" in attached.wait_notice()
    capture = attached.stop()
    rows = capture.rows()
    for number in range(1, 61):
        check_steps(rows, 100, first=number * 1000000)
    capture.check_sums(lost=0)
    process = process_of(capture, program.pid)
    assert process["transport"] == "ring" and process["ring_records"] > 0
    assert process["transport_why"] == "there are too many rings"
    text = waffle.ok("info", capture.path).stdout
    assert "records; some threads use the kernel: there are too many rings]" in text


def attach_to_confined(waffle, start, ringed):
    program = begin(start, ringed)
    program.ask("confine", "done")
    attached = waffle.attach("-p", program.pid, "--no-report")
    assert "seccomp" in attached.wait_notice()
    attached.wait_links(3)
    return program, attached


def test_program_in_a_sandbox_lives_and_uses_the_kernel(waffle, start, ringed):
    program, attached = attach_to_confined(waffle, start, ringed)
    program.ask("steps 0 300 100", "done")
    program.ask("threads 2 100", "done")
    capture = attached.stop()
    check_steps(capture.rows(), 300)
    capture.check_sums(lost=0)
    assert rings_of(program) == 0


def test_threads_of_a_sandboxed_program_record_together_through_the_kernel(waffle, start, ringed):
    """No thread makes a system call that its sandbox would kill it for."""
    program, attached = attach_to_confined(waffle, start, ringed)
    program.ask("threads 16 50", "done")
    rows = attached.stop().rows()
    for number in range(1, 17):
        check_steps(rows, 50, first=number * 1000000)


# ---- handlers and cancellation ----

@pytest.fixture(scope="module")
def hard(waffle_program, tmp_path_factory):
    return compile_inside(waffle_program, "inside_hard.c", tmp_path_factory.mktemp("hard") / "hard")


@pytest.fixture(scope="module")
def inside(waffle_program, tmp_path_factory):
    return compile_inside(waffle_program, "inside.c", tmp_path_factory.mktemp("inside") / "inside")


def interrupted_run(waffle, program, mode):
    """The numbers of the events of a run over rings whose handler interrupts them, by their names,
    and how often the handler ran."""
    capture = waffle.run(program, mode, "30000", options=["--transport", "ring"])
    assert ring_records(capture) > 30000 / 2
    capture.check_sums(lost=0)
    numbers = collections.defaultdict(list)
    for row in capture.rows("event"):
        numbers[row["name"]].append(row["args"]["i"])
    handled = int(re.search(r"handled (\d+)", capture.result.stdout)[1])
    assert handled > 0
    return numbers, handled


def test_handlers_that_interrupt_records_lose_none(waffle, inside):
    numbers, handled = interrupted_run(waffle, inside, "handler")
    assert numbers["between"] == list(range(1, 30001))
    assert numbers["handled"] == list(range(handled))


def test_handlers_that_jump_out_of_records_leave_whole_ones(waffle, inside):
    numbers, handled = interrupted_run(waffle, inside, "jump")
    assert numbers["jumped"] == list(range(handled))
    between = numbers["between"]
    assert 30000 - handled <= len(between) <= 30000
    assert between == sorted(set(between))


@pytest.mark.parametrize("mode", ["cancel", "asynchronous"])
def test_cancelled_threads_leave_all_records_that_they_wrote(waffle, hard, mode):
    capture = waffle.run(hard, mode, "50", options=["--transport", "ring"])
    recorded = collections.defaultdict(list)
    for row in capture.rows("event"):
        recorded[row["args"]["thread"]].append(row["args"]["i"])
    lines = [line.split() for line in capture.result.stdout.splitlines()[:-1]]
    assert len(lines) == 50
    for number, count, cancelled in ((int(a), int(b), c) for a, b, c in lines):
        assert cancelled == "1"
        assert recorded[number] == list(range(len(recorded[number])))
        # It may have been cancelled after the last record and before it counted it.
        assert count <= len(recorded[number]) <= count + 1
    capture.check_sums(lost=0)


@pytest.mark.parametrize("options", [[], ["--follow"], ["--follow", "--filter", "dur >= 0"]])
def test_program_that_executes_another_in_a_sandbox_lives(waffle, start, ringed, options):
    """The first one has rings. The sandbox would end the next one if it made any. Some machines' clocks make
    steps that are longer than a span, so the filter takes those of 0 ns, too."""
    program = begin(start, ringed)
    attached = waffle.attach("-p", program.pid, "--no-report", *options).wait_links(3)
    program.ask("steps 0 200 5000", "done")  # the tracer finds the ring meanwhile
    program.ask("confine", "done")
    program.say("exec")
    program.until("ready")
    assert "seccomp" in attached.wait_notice()
    # With the filter, sites of events stay dormant.
    wait_until(lambda: any(semaphores(program.pid, ringed)), "arming")
    program.ask("steps 1000 300 100", "done")
    program.ask("threads 2 100", "done")
    capture = attached.stop()
    steps = [r["args"]["i"] for r in named(capture.rows(), "step")]
    assert sorted(i for i in steps if i < 2000) == [*range(200), *range(1000, 1300)]
    capture.check_sums(lost=0)
    assert process_of(capture, program.pid)["ring_records"] > 0


def test_wait_ends_before_what_it_enabled(waffle, ringed):
    """Records of rings and of the scheduler have one order."""
    capture = waffle.run(ringed, "handoffs 200", options=["--transport", "ring"])
    rows = capture.rows()
    woken = {r["args"]["i"]: r for r in named(rows, "woken")}
    wakes = {r["args"]["i"]: r for r in named(rows, "wakes")}
    runs_of = collections.defaultdict(list)
    for row in rows:
        if row["kind"] == "sched" and row["name"] == "running":
            runs_of[row["tid"]].append(row)
    assert len(woken) == len(wakes) == 200
    for i, event in woken.items():
        tid, at = event["tid"], event["start_ns"]
        assert wakes[i]["start_ns"] < at
        # The thread runs when it says that it was woken, and began to after the waker said so.
        [run] = [r for r in runs_of[tid] if r["start_ns"] <= at <= r["end_ns"]]
        assert run["start_ns"] > wakes[i]["start_ns"]
    assert ring_records(capture) > 500


def run_at(runs, tid, at):
    """When the thread began to run that runs at this time."""
    starts, ends = runs[tid]
    index = bisect.bisect_right(starts, at) - 1
    assert index >= 0 and at <= ends[index]
    return starts[index]


@pytest.mark.parametrize("ringed_begins", [True, False])
def test_wake_ups_between_both_ways_have_one_order(waffle, start, ringed, plain, ringed_begins):
    """A thread wakes one of the other way, and that one wakes it, while the machine is busy."""
    count = 5000
    programs = [begin(start, ringed), begin(start, plain)]
    for number in range(2):
        os.mkfifo(waffle.folder / str(number))
    attached = waffle.attach("-p", programs[0].pid, "-p", programs[1].pid, "-q", "--no-report")
    for program in programs:
        attached.wait_armed(program.pid, program.path)
        program.ask("steps 0 100 500", "done")
    load = [start("sh", "-c", "while :; do :; done") for _ in range(os.cpu_count())]
    for program in programs:
        begins = int((program is programs[0]) == ringed_begins)
        program.say(f"turns {begins} {count} {waffle.folder}")
    for program in programs:
        program.until("done")
    for one in load:
        one.process.kill()
    capture = attached.stop()
    capture.check_sums(lost=0)
    assert process_of(capture, programs[0].pid)["ring_records"] > 2 * count
    rows = capture.rows()
    runs = collections.defaultdict(lambda: ([], []))
    for row in rows:
        if row["kind"] == "sched" and row["name"] == "running":
            runs[row["tid"]][0].append(row["start_ns"])
            runs[row["tid"]][1].append(row["end_ns"])
    wakes, woken = ({r["args"]["i"]: r for r in named(rows, name)} for name in ("wakes", "woken"))
    assert len(wakes) == len(woken) == 2 * count
    blocked = 0
    for i in range(1, 2 * count):
        at, cause = woken[i], wakes[i]
        assert cause["tid"] != at["tid"] and cause["start_ns"] < at["start_ns"]
        began = run_at(runs, at["tid"], at["start_ns"])
        # It may have found the byte without a wait.
        if began > wakes[i - 1]["start_ns"] and wakes[i - 1]["tid"] == at["tid"]:
            assert began > cause["start_ns"]
            blocked += 1
    assert blocked > count


def test_why_finds_the_same_causes_by_both_ways(waffle, ringed):
    causes = {}
    for way in ("ring", "usdt"):
        capture = waffle.run(ringed, "handoffs 100", options=["--transport", way])
        text = waffle.ok("why", capture.path, "--span", "wait").stdout
        causes[way] = "work" in text
    assert causes == {"ring": True, "usdt": True}


# ---- hostile programs ----


def probe_of(libraries):
    """Where libwaffle tells of new rings: the first word of its note."""
    notes = subprocess.run(["readelf", "-nW", libraries / "libwaffle.so"], check=True,
                           capture_output=True, text=True).stdout
    words = re.search(r"0x00000003\)\s+description data: ([0-9a-f ]+)", notes).group(1).split()
    return int.from_bytes(bytes(int(word, 16) for word in words[:8]), "little")


@pytest.fixture
def victims(waffle, start, ringed):
    """A hostile program, and an honest one in the same capture."""
    programs = [begin(start, ringed), begin(start, ringed)]
    attached = waffle.attach("-p", programs[0].pid, "-p", programs[1].pid, "-q", "--no-report")
    for program in programs:
        attached.wait_armed(program.pid, program.path)
        program.ask("steps 0 200 500", "done")
    return programs, attached


def check_honest(victims, hostile_ends=False):
    (hostile, honest), attached = victims
    honest.ask("steps 1000 300 100", "done")
    if not hostile_ends:
        hostile.ask("steps 1000 300", "done")
    capture = attached.stop()
    rows = [r for r in capture.rows() if r.get("pid") == honest.pid]
    check_steps(rows, 200)
    check_steps(rows, 300, first=1000)
    # Nothing of the hostile program has a time outside the capture, or a thread of another process.
    info = capture.info()
    for row in capture.rows():
        if row.get("pid") == hostile.pid and row["kind"] in ("span", "event"):
            assert info["start_ns"] <= row["start_ns"] <= info["end_ns"]
            assert row["tid"] == hostile.pid
    records = info["records"]
    assert records["produced"] == records["delivered"] + records["lost"]
    return capture


@pytest.mark.parametrize("how", ["zero", "ones", "random", "data", "header"])
def test_program_that_overwrites_its_ring_loses_only_its_own_records(victims, how):
    (hostile, _), _ = victims
    for _ in range(3):
        assert int(hostile.ask(f"spoil {how}", "rings")) == 1
        hostile.until("done")
        hostile.ask("steps 500 50", "done")
    check_honest(victims)


def test_ring_can_not_be_truncated(victims):
    (hostile, _), _ = victims
    hostile.say("shrink")
    assert hostile.until("truncate") == "-1"
    hostile.until("done")
    check_honest(victims)


@pytest.mark.parametrize("kind", ["nothing", "anonymous", "unsealed", "sealed"])
def test_announced_rings_that_are_none_are_left_alone(victims, libraries, kind):
    (hostile, _), _ = victims
    for size in (4096, 4096 + (16 << 10), 4096 + (32 << 10), 4096 + (64 << 20), 1 << 40):
        if size < 1 << 30 or kind == "nothing":
            hostile.ask(f"fakes {kind} {probe_of(libraries)} 20 {size}", "done")
    check_honest(victims)


def test_tracer_bears_a_hundred_thousand_announced_rings(victims, libraries):
    (hostile, _), attached = victims
    hostile.ask(f"fakes sealed {probe_of(libraries)} 100000 {4096 + (32 << 10)}", "done")
    with open(f"/proc/{attached.process.pid}/maps", encoding="ascii") as maps:
        assert sum("waffle-ring" in line for line in maps) < 5000
    check_honest(victims)


def test_rings_that_are_none_before_the_capture_make_it_use_the_kernel(waffle, start, ringed):
    program = begin(start, ringed)
    program.ask(f"keep unsealed 100 {4096 + (32 << 10)}", "done")
    attached = waffle.attach("-p", program.pid, "--no-report")
    assert "can't be mapped" in attached.wait_notice()
    attached.wait_links(3)
    program.ask("steps 0 300 100", "done")
    capture = attached.stop()
    check_steps(capture.rows(), 300)
    capture.check_sums(lost=0)
    assert process_of(capture, program.pid)["transport"] == "usdt"
