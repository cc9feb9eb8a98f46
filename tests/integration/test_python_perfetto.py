# SPDX-License-Identifier: Apache-2.0
"""waffle.perfetto.Trace: what it writes is read with the official schema."""

import gzip
import subprocess
import sys

import pytest

from test_python import Script, python, script  # noqa: F401  (fixtures)
from tracer import ROOT, find_tool

sys.path.insert(0, str(ROOT / "tests"))
import validate_perfetto  # noqa: E402


def read(path):
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    if path.suffix == ".zst":
        data = subprocess.run([find_tool("zstd"), "-d", "-c", path], stdout=subprocess.PIPE, check=True).stdout
    trace = validate_perfetto.parse(data)
    # What only a capture has to tell: how many records were lost, and when it began and ended.
    assert [violation for violation in trace.violations if violation[0] not in ("loss", "bounds")] == []
    return trace


PROGRAM = """
import threading
begin = waffle.perfetto.now_ns()
with waffle.perfetto.Trace({path!r}, writer={writer!r}, process_name="example") as trace:
    with trace.slice("outer", category="io", text="ä", none=None, nested={{"list": [1, 2.5, True], "large": 2**70}}):
        with trace.slice("inner"): trace.instant("moment", n=-1)
    @trace.slice()
    def decorated(n): return n + 1
    assert [decorated(n) for n in range(3)] == [1, 2, 3] and decorated.__name__ == "decorated"
    try:
        with trace.slice("left"): raise ValueError
    except ValueError: pass
    thread = threading.Thread(target=lambda: trace.instant("of thread"), name="other")
    thread.start(); thread.join()
    queue = trace.track("queue", group="disk 0")
    flow = trace.flow()
    queue.complete("read", 1000, 2500, sector=7, flow=flow)
    queue.begin("second", ns=3000, flow=[flow]); queue.end(ns=4000)
    memory = trace.counter("memory", unit="bytes", group=trace.process("simulated", pid=77))
    memory.set(5, ns=10); memory.set(0.5, ns=20)
    core = trace.thread("core 1", tid=78, pid=77)
    core.complete("cycle", 100, 200)
    with trace.async_slice("request", group="server", n=1):
        with trace.async_slice("request", group="server", n=2): pass
    with trace.async_slice("request", group="server", n=3): pass
    assert trace.flush(60)
    print(begin, waffle.perfetto.now_ns())
trace.instant("ignored")
trace.close()
"""


@pytest.mark.parametrize(("name", "writer"), [("a.pftrace", "thread"), ("a.pftrace", "process"),
                                              ("a.pftrace.gz", "thread"), ("a.pftrace.zst", "process")])
def test_tracks_slices_counters_and_flows_are_there_with_their_times(script, name, writer):
    path = script.folder / name
    done = script.alone(PROGRAM.format(path=str(path), writer=writer))
    begin, end = map(int, done.stdout.split())
    trace = read(path)
    slices = {}
    for one in trace.slices:
        slices.setdefault(one.name, []).append(one)
    [outer], [inner], [left] = slices["outer"], slices["inner"], slices["left"]
    assert begin <= outer.ts <= inner.ts <= inner.end <= outer.end <= end
    assert outer.args["text"] == "ä" and outer.args["none"] == "null"
    assert outer.args["nested"] == {"list": [1, 2.5, True], "large": str(2**70)} and outer.category == "io"
    assert len(slices["decorated"]) == 3
    [reading], [second], [cycle] = slices["read"], slices["second"], slices["cycle"]
    assert (reading.ts, reading.end, reading.args["sector"]) == (1000, 2500, 7)
    assert (cycle.ts, cycle.end) == (100, 200)
    tracks = {track.name for track in trace.tracks.values()}
    assert {"queue", "disk 0", "memory", "core 1", "request", "server", "other"} <= tracks
    first, nested, third = slices["request"]
    assert [one.args["n"] for one in (first, nested, third)] == [1, 2, 3]
    assert first.track.uuid != nested.track.uuid and first.track.uuid == third.track.uuid
    assert [instant.name for instant in trace.instants if instant.name == "ignored"] == []
    assert {instant.name for instant in trace.instants} == {"moment", "of thread"}


def test_texts_are_written_once_and_errors_of_the_file_are_raised(script):
    path = script.folder / "many.pftrace"
    script.alone(f"""
        with waffle.perfetto.Trace({str(path)!r}) as trace:
            for n in range(10000):
                with trace.slice("a rather long name of a slice", key="a rather long value"): pass
        for wrong in (lambda: waffle.perfetto.Trace("/nowhere/x.pftrace"),
                      lambda: waffle.perfetto.Trace("/nowhere/x.pftrace", writer="process")):
            try: wrong()
            except FileNotFoundError as error: print("not found")
        full = waffle.perfetto.Trace("/dev/full")
        for n in range(10000): full.instant("x" * 100)
        for end in (full.flush, full.close):
            try: end()
            except OSError as error: print(error.errno)
        """)
    data = path.read_bytes()
    assert data.count(b"a rather long name") == data.count(b"a rather long value") == 1
    assert len(read(path).slices) == 10000 and len(data) / 20000 < 60


def test_a_writer_that_is_slow_holds_up_nobody(script):
    """The file is a pipe that nobody reads for a while."""
    done = script.alone(f"""
        import os, threading, time
        path = {str(script.folder / "pipe")!r}
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        trace = waffle.perfetto.Trace(path)
        for n in range(20000): trace.instant("name", n=n)
        assert not trace.flush(0.1)
        got = []
        def read():
            os.set_blocking(reader, True)
            while piece := os.read(reader, 1 << 16): got.append(piece)
        thread = threading.Thread(target=read); thread.start()
        trace.close(); thread.join()
        open({str(script.folder / "read.pftrace")!r}, "wb").write(b"".join(got))
        """)
    assert not done.stderr
    assert len(read(script.folder / "read.pftrace").instants) == 20000


@pytest.mark.parametrize("name", ["f.pftrace", "f.pftrace.gz", "f.pftrace.zst"])
@pytest.mark.parametrize("writer", ["thread", "process"])
def test_a_trace_that_nobody_closes_is_whole_and_children_of_fork_leave_it_alone(script, name, writer):
    done = script.alone(f"""
        import os, sys
        trace = waffle.perfetto.Trace({str(script.folder / name)!r}, writer={writer!r})
        for n in range(100): trace.instant("before", n=n)
        for n in range(2):
            pid = os.fork()
            if not pid:
                with trace.slice("in child"): trace.flush()
                if n: trace.close()
                sys.exit(3)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
        trace.instant("after")
        """)
    assert not [line for line in done.stderr.splitlines() if "fork" not in line and "pid = " not in line], done.stderr
    trace = read(script.folder / name)
    assert [instant.name for instant in trace.instants] == ["before"] * 100 + ["after"] and not trace.slices


def test_calls_coroutines_and_generators_have_slices_that_do_not_mix(script):
    path = script.folder / "steps.pftrace"
    done = script.alone(f"""
        import asyncio, inspect
        with waffle.perfetto.Trace({str(path)!r}) as trace:
            print(trace.call(divmod, 7, 2), trace.call(int, "11", base=2))
            @trace.slice("task", kind="async")
            async def task(n):
                await asyncio.sleep(0)
                with trace.slice("step"): pass
                await asyncio.sleep(0)
                return n
            async def main(): return await asyncio.gather(*(task(n) for n in range(3)))
            @trace.slice()
            def numbers(n):
                for i in range(n):
                    with trace.slice("within"): pass
                    yield i
                return "end"
            print(asyncio.run(main()), inspect.iscoroutinefunction(task))
            print(list(zip(numbers(2), numbers(2))), inspect.isgeneratorfunction(numbers))
        """)
    assert done.stdout == "(3, 1) 3\n[0, 1, 2] True\n[(0, 0), (1, 1)] True\n"
    slices = {}
    for one in read(path).slices:
        slices.setdefault(one.name, []).append(one)
    assert sorted(slices) == ["divmod", "int", "numbers", "step", "task", "within"]
    assert len({one.track.uuid for one in slices["task"]}) == 3 and slices["task"][0].args["kind"] == "async"
    assert len({one.track.uuid for one in slices["numbers"]}) == 2
    assert {one.track.uuid for one in slices["step"]} == {one.track.uuid for one in slices["divmod"]}
