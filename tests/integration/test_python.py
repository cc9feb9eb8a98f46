# SPDX-License-Identifier: Apache-2.0
"""The Python package, as a wheel installs it: what a program records of itself or a tracer of it, and that
a program behaves the same in both cases. The programs are in these tests, since each is a few lines."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
import zipfile

import pytest

from tracer import Capture, ROOT, find_tool, named, wait_until

# Other interpreters, separated by blanks: they need pip and setuptools.
PYTHONS = os.environ.get("WAFFLE_PYTHONS", sys.executable).split()


@pytest.fixture(scope="session", params=PYTHONS)
def python(request, waffle_program, tmp_path_factory):
    """The interpreter, and the folder into which pip has installed the wheel."""
    folder = tmp_path_factory.mktemp("python")
    wheels = waffle_program.parent / "python" / "wheel"
    if request.param != sys.executable:
        wheels = folder / "wheel"
        subprocess.run([request.param, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", wheels,
                        ROOT / "python"], check=True, timeout=300,
                       env={**os.environ, "WAFFLE_LIBRARY": str(waffle_program.parent / "python/libwaffle.so.0")})
    [wheel] = wheels.glob("*.whl")
    subprocess.run([request.param, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target",
                    folder / "packages", wheel], check=True, timeout=120)
    return request.param, folder / "packages"


class Script:
    """Runs programs in Python, alone and while libwaffle records them."""

    def __init__(self, python, waffle, folder):
        self.python, self.packages = python
        self.waffle = waffle
        self.folder = folder
        self.count = 0

    def write(self, text):
        self.count += 1
        path = self.folder / f"script{self.count}.py"
        path.write_text("import waffle\n" + textwrap.dedent(text))
        return path

    def environment(self, **variables):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("WAFFLE_", "OTEL_"))}
        return {**kept, "PYTHONPATH": str(self.packages), **variables}

    def alone(self, text, code=0, **variables):
        done = subprocess.run([self.python, self.write(text)], env=self.environment(**variables), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
        assert done.returncode == code, done.stderr
        return done

    def record(self, text, code=0, **variables):
        """The capture of a run, in which nothing was lost, and what it printed."""
        path = self.folder / f"out{self.count}.waffle"
        done = self.alone(text, code, WAFFLE_TRACE=str(path), **variables)
        capture = Capture(self.waffle, path, done)
        capture.check_sums(lost=0)
        return capture


@pytest.fixture
def script(python, waffle, tmp_path):
    return Script(python, waffle, tmp_path)


def parents(rows):
    """(name, name of the parent) of all spans and events, in order of their begins."""
    rows = [row for row in rows if row["kind"] in ("span", "event")]
    names = {row["id"]: row["name"] for row in rows}
    return [(row["name"], names.get(row.get("parent")))
            for row in sorted(rows, key=lambda row: (row["start_ns"], row["kind"] != "span"))]


# ---- spans, events and counters ----


def test_spans_events_and_counters_have_their_values_and_causes(script):
    capture = script.record("""
        import enum, fractions, pathlib

        class Array:
            shape, dtype = (2, 3), "float32"
            def __repr__(self): raise RuntimeError("repr is not called")
        class Odd:
            def __getattr__(self, name): raise RuntimeError("no attribute is looked up")
        class Level(enum.IntEnum):
            HIGH = 7

        cause = waffle.event("cause", n=-1, large=2**64 - 1, larger=2**70, real=0.5, yes=True, none=None)
        with waffle.span("outer", caused_by=cause, text="ä\\ud800", bytes=b"abc", items=[1] * 1000) as outer:
            with waffle.span("inner", array=Array(), odd=Odd(), level=Level.HIGH, half=fractions.Fraction(1, 2)):
                waffle.counter("depth", 2)
                waffle.counter("depth", 2.5)
            waffle.event("of both", caused_by=[cause, outer], path=pathlib.Path("/tmp/x"), function=len)
        waffle.event("later", caused_by=None, long="y" * 300)
        waffle.log(2, "it failed", code=3)
        """)
    rows = capture.rows()
    [cause], [outer], [inner], [both], [later], [failed] = (
        named(rows, name) for name in ("cause", "outer", "inner", "of both", "later", "it failed"))
    assert cause["args"] == {"n": -1, "large": 2**64 - 1, "larger": "int of 71 bits", "real": 0.5, "yes": True,
                             "none": None}
    assert outer["args"] == {"text": "ä\\ud800", "bytes": "bytes of 3", "items": "list of 1000"}
    assert outer["links"] == [{"kind": "event", "id": cause["id"]}]
    assert inner["args"] == {"array": "float32[2,3]", "odd": "__main__.Odd", "level": 7, "half": 0.5}
    assert inner["parent"] == outer["id"] and inner["category"] == "python"
    assert both["links"] == [{"kind": "event", "id": cause["id"]}, {"kind": "span", "id": outer["id"]}]
    assert both["args"] == {"path": "/tmp/x", "function": "len"} and both["parent"] == outer["id"]
    assert later.get("links") is None and later.get("parent") is None and later["args"]["long"] == "y" * 256 + "…"
    assert failed["severity"] == "error" and failed["args"] == {"code": 3}
    assert [(row["args"]["value"], row["parent"]) for row in named(rows, "depth")] == [
        (2, inner["id"]), (2.5, inner["id"])]


def test_a_dormant_program_makes_no_ids_and_records_nothing(script):
    done = script.alone("""
        @waffle.instrument
        def add(a, b=2): return a + b
        with waffle.span("x", n=1) as span:
            event = waffle.event("y", caused_by=span)
        print(bool(span), span.id, bool(event), event.id, bool(waffle.current()), add(1), waffle.is_recorded())
        """)
    assert done.stdout == "False 0 False 0 False 3 False\n" and not done.stderr


def test_a_wrong_use_is_the_same_error_whether_it_is_recorded_or_not(script):
    text = """
        for use in (lambda: waffle.span(), lambda: waffle.event("a", "b"), lambda: waffle.counter("x"),
                    lambda: waffle.instrument(3)):
            try:
                use()
                print("no error")
            except TypeError as error:
                print(error)
        with waffle.span(7), waffle.span(""), waffle.span("a\\0b", **{"": 1, "caused_by": 3}):
            waffle.counter("text", "no number")
            waffle.log("no severity", "message")
        """
    alone, recorded = script.alone(text), script.record(text)
    assert alone.stdout == recorded.result.stdout and "no error" not in alone.stdout and not alone.stderr
    assert [row["name"] for row in recorded.rows("span")] == ["7", "(empty)", "a"]


def test_an_exception_is_an_error_within_its_span_and_goes_on(script):
    capture = script.record("""
        import asyncio
        @waffle.instrument
        def fails(path): raise ValueError("no " + path)
        for _ in range(2):
            try:
                with waffle.span("outer"):
                    fails("file")
            except ValueError as error:
                print(error, error.__traceback__.tb_next is not None)
        try:
            with waffle.span("left"):
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            print(bool(waffle.current()))
        """)
    assert capture.result.stdout == "no file True\n" * 2 + "False\n"
    errors = capture.rows("event", name="exception")
    assert [row["args"] for row in errors] == [{"type": "ValueError", "message": "no file"}] * 4
    assert parents(capture.rows()) == [("outer", None), ("fails", "outer"), ("exception", "fails"),
                                       ("exception", "outer")] * 2 + [("left", None)]


def test_a_signal_that_arrives_while_an_argument_is_described_is_not_lost(script):
    text = """
        import os, signal
        class Array:
            dtype = "x"
            @property
            def shape(self):
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(1000): pass
                return (1,)
        class Broken:
            dtype = "x"
            @property
            def shape(self): raise RuntimeError
        @waffle.instrument
        def function(a): return "called"
        for use in (lambda: waffle.span("x", a=Array()), lambda: waffle.event("x", a=Array()), lambda: function(Array())):
            try: print("end", use() and 0)
            except KeyboardInterrupt: print("interrupted")
        print(function(Broken()))
        """
    assert script.record(text).result.stdout == "interrupted\n" * 3 + "called\n"


def test_names_and_keys_that_are_made_at_run_time_are_recorded(script):
    capture = script.record("""
        for i in range(9000):
            with waffle.span("name %d" % (i % 3), **{"key %d" % (i % 2): i}):
                pass
        """)
    rows = capture.rows("span")
    assert [(row["name"], row["args"]) for row in rows] == [
        (f"name {i % 3}", {f"key {i % 2}": i}) for i in range(9000)]
    assert capture.info()["sites"] == 6


# ---- decorated functions ----


def test_decorated_functions_record_their_arguments_and_stay_functions(script):
    text = """
        import inspect, pickle, functools

        @waffle.instrument
        def plain(path, count=1, *rest, key=None, **more):
            "What it does."
            return path, count, rest, key, more
        @waffle.instrument(name="db query", skip="password")
        def query(sql, password): return len(sql)
        @waffle.instrument(arguments=False)
        def quiet(secret): return secret
        class Loader:
            @waffle.instrument
            def load(self, shard): return shard
            @waffle.instrument
            @classmethod
            def make(cls, n): return cls.__name__
            @staticmethod
            @waffle.instrument
            def helper(n): return n
            @waffle.instrument
            @property
            def size(self): return 3

        print(plain("p"), plain("p", 2, 3, 4, key=5, other=6), plain(**{"path": "q", "count": 7}))
        print(query("select", password="x"), query("s", "y"), quiet("hidden"))
        loader = Loader()
        print(loader.load(1), loader.load(shard=2), Loader.load(loader, 3), Loader.make(4), Loader.helper(5), loader.size)
        print(plain.__name__, plain.__doc__, inspect.signature(plain), pickle.loads(pickle.dumps(plain)) is plain)
        try:
            plain()
        except TypeError as error:
            print(error)
        """
    alone, capture = script.alone(text), script.record(text)
    assert alone.stdout == capture.result.stdout and not alone.stderr
    rows = [(row["name"], row.get("args", {})) for row in capture.rows("span")]
    assert rows == [
        ("plain", {"path": "p"}), ("plain", {"path": "p", "count": 2, "*args": 2, "key": 5, "other": 6}),
        ("plain", {"path": "q", "count": 7}), ("db query", {"sql": "select"}), ("db query", {"sql": "s"}), ("quiet", {}),
        ("Loader.load", {"shard": 1}), ("Loader.load", {"shard": 2}), ("Loader.load", {"shard": 3}),
        ("Loader.make", {"n": 4}), ("Loader.helper", {"n": 5}), ("Loader.size", {}), ("plain", {})]


def test_generators_and_coroutines_have_their_spans_only_while_they_run(script):
    text = """
        import asyncio, inspect

        @waffle.instrument
        def numbers(n):
            for i in range(n):
                waffle.event("in numbers")
                got = yield i
                if got: print("got", got)
            return "end"
        @waffle.instrument
        async def sleeper(n):
            waffle.event("before sleep")
            await asyncio.sleep(0.01)
            waffle.event("after sleep")
            return n
        @waffle.instrument
        async def agen(n):
            try:
                for i in range(n):
                    waffle.event("in agen")
                    await asyncio.sleep(0)
                    yield i
            finally:
                waffle.event("closed")

        def delegating():
            return (yield from numbers(1))

        with waffle.span("main"):
            for i in numbers(2):
                waffle.event("between")
            made = numbers(2); next(made); made.send("x"); made.close()
            made = delegating(); next(made)
            try: made.send(None)
            except StopIteration as stop: print(stop.value)

        async def main():
            with waffle.span("async main"):
                print(await asyncio.gather(*(sleeper(i) for i in range(3))))
                async for i in agen(2):
                    waffle.event("between")
                made = agen(5)
                print(await made.__anext__()); await made.aclose()
        asyncio.run(main())
        print(inspect.isgeneratorfunction(numbers), inspect.iscoroutinefunction(sleeper), inspect.isasyncgenfunction(agen))
        """
    alone, capture = script.alone(text), script.record(text)
    assert alone.stdout == capture.result.stdout and not alone.stderr and not capture.result.stderr
    found = parents(capture.rows())
    assert found.count(("in numbers", "numbers")) == 2 + 2 + 1 and found.count(("between", "main")) == 2
    assert found.count(("before sleep", "sleeper")) == found.count(("after sleep", "sleeper")) == 3
    assert found.count(("sleeper", "async main")) == 3 and found.count(("agen", "async main")) == 2
    assert found.count(("in agen", "agen")) == 3 and found.count(("between", "async main")) == 2
    assert found.count(("closed", "agen")) == 2
    assert all(row.get("end_ns") for row in capture.rows("span"))
    for row in capture.rows("span", name="sleeper"):
        events = [event["name"] for event in capture.rows("event") if event.get("parent") == row["id"]]
        assert events == ["before sleep", "after sleep"]


def test_errors_go_through_generators_and_coroutines_unchanged(script):
    text = """
        import asyncio
        @waffle.instrument
        def gen():
            try:
                yield 1
            except KeyError as error:
                yield "caught", error.args
        @waffle.instrument
        async def failing(): raise ValueError("x")
        @waffle.instrument
        async def agen():
            try:
                yield 1
            except KeyError:
                yield "caught"
        made = gen(); next(made); print(made.throw(KeyError("k"))); print(list(made))
        async def main():
            try: await failing()
            except ValueError as error: print(repr(error))
            made = agen(); print(await made.__anext__(), await made.athrow(KeyError("k")))
            try: await made.__anext__()
            except StopAsyncIteration: print("stopped")
            task = asyncio.ensure_future(cancelled()); await asyncio.sleep(0); task.cancel()
            try: await task
            except asyncio.CancelledError: print("cancelled")
        @waffle.instrument
        async def cancelled(): await asyncio.sleep(60)
        asyncio.run(main())
        print(bool(waffle.current()))
        """
    alone, capture = script.alone(text), script.record(text)
    assert alone.stdout == capture.result.stdout and not alone.stderr and not capture.result.stderr
    assert sorted(row["name"] for row in capture.rows("span")) == ["agen", "cancelled", "failing", "gen"]
    assert all(row.get("end_ns") for row in capture.rows("span"))


# ---- contexts ----


def test_tasks_of_an_event_loop_keep_their_own_spans(script):
    capture = script.record("""
        import asyncio
        async def work(n):
            with waffle.span("work", n=n):
                for i in range(5):
                    await asyncio.sleep(0.001 * (n % 3))
                    with waffle.span("step", n=n):
                        await asyncio.sleep(0.001)
                        waffle.event("in step", n=n)
        async def main():
            with waffle.span("root"):
                await asyncio.gather(*(work(n) for n in range(20)))
                await asyncio.to_thread(waffle.event, "in thread") if hasattr(asyncio, "to_thread") else None
            waffle.event("after")
        asyncio.run(main())
        """)
    spans = {row["id"]: row for row in capture.rows("span")}
    [root] = capture.rows("span", name="root")
    assert all(row["parent"] == root["id"] for row in capture.rows("span", name="work"))
    steps = capture.rows("span", name="step")
    assert len(steps) == 100 and all(spans[row["parent"]]["args"] == row["args"] for row in steps)
    events = capture.rows("event", name="in step")
    assert len(events) == 100 and all(spans[row["parent"]]["name"] == "step" and
                                      spans[row["parent"]]["args"] == row["args"] for row in events)
    assert capture.rows("event", name="in thread")[0]["parent"] == root["id"]
    assert capture.rows("event", name="after")[0].get("parent") is None


def test_threads_and_pools_have_the_context_of_who_gave_them_work(script):
    capture = script.record("""
        import threading
        from concurrent.futures import ThreadPoolExecutor
        class Own(threading.Thread):
            def run(self): waffle.event("own")
        pool = ThreadPoolExecutor(1)
        with waffle.span("first"):
            thread = threading.Thread(target=waffle.event, args=("thread",)); thread.start(); thread.join()
            own = Own(); own.start(); own.join()
            print(pool.submit(lambda n: bool(waffle.event("pool", n=n)), 1).result())
            bound = waffle.bind(lambda: waffle.event("bound"))
        with waffle.span("second"):
            pool.submit(waffle.event, "pool", n=2).result()
        pool.submit(waffle.event, "pool", n=3).result()
        list(pool.map(bound and (lambda _: bound()), [0]))
        """)
    found = parents(capture.rows())
    assert [pair for pair in found if pair[0] not in ("first", "second")] == [
        ("thread", "first"), ("own", "first"), ("pool", "first"), ("pool", "second"), ("pool", None),
        ("bound", "first")]


METHODS = ["fork", "spawn", "forkserver"]


@pytest.mark.parametrize("method", METHODS)
def test_processes_have_the_context_of_who_gave_them_work(script, method):
    path = script.folder / f"{method}-%p.waffle"
    script.alone(f"""
        import multiprocessing, concurrent.futures
        def work(n): waffle.event("work", n=n)
        class Own(multiprocessing.get_context("{method}").Process):
            def run(self): waffle.event("own", n=0)
        if __name__ == "__main__":
            context = multiprocessing.get_context("{method}")
            with waffle.span("parent"):
                for process in (context.Process(target=work, args=(1,)), Own()):
                    process.start(); process.join(); assert process.exitcode == 0
            with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
                with waffle.span("pooled"):
                    pool.submit(work, 2).result()
                pool.submit(work, 3).result()
        """, WAFFLE_TRACE=str(path))
    captures = [Capture(script.waffle, one) for one in script.folder.glob(f"{method}-*.waffle")]
    rows = [row for capture in captures for row in capture.rows()]
    ids = {row["id"]: row["name"] for row in rows if row["kind"] == "span"}
    events = sorted((row["args"]["n"], row["name"], ids.get(row.get("parent"))) for row in rows
                    if row["kind"] == "event")
    assert events == [(0, "own", "parent"), (1, "work", "parent"), (2, "work", "pooled"), (3, "work", None)]


@pytest.mark.parametrize("method", METHODS)
def test_tasks_of_a_pool_of_processes_have_the_context_of_who_gave_them(script, method):
    path = script.folder / f"pool-{method}-%p.waffle"
    done = script.alone(f"""
        import multiprocessing
        def work(n):
            with waffle.span("work", n=n): return n
        def init(): waffle.event("init")
        if __name__ == "__main__":
            with waffle.span("outer"):
                pool = multiprocessing.get_context("{method}").Pool(2, init)
            with waffle.span("map"): print(pool.map(work, [0, 1]), pool.map_async(work, [2]).get())
            with waffle.span("apply"): print(pool.apply(work, (3,)), pool.apply_async(work, (4,)).get())
            with waffle.span("imap"): print(list(pool.imap(work, [5])), list(pool.imap_unordered(work, [6])))
            with waffle.span("starmap"): print(pool.starmap(work, [(7,)]), pool.starmap_async(work, [(8,)]).get())
            print(pool.map(work, [9]))
            with waffle.span("named"): print(pool.apply_async(func=work, args=(10,)).get(), pool.map(func=work, iterable=[11]))
            print(pool.map(func=work, iterable=[12]))
            pool.close(); pool.join()
        """, WAFFLE_TRACE=str(path))
    assert done.stdout == "[0, 1] [2]\n3 4\n[5] [6]\n[7] [8]\n[9]\n10 [11]\n[12]\n"
    captures = [Capture(script.waffle, one) for one in script.folder.glob(f"pool-{method}-*.waffle")]
    rows = [row for capture in captures for row in capture.rows()]
    ids = {row["id"]: row["name"] for row in rows if row["kind"] == "span"}
    assert sorted((row["args"]["n"], ids.get(row.get("parent"))) for row in named(rows, "work")) == list(enumerate(
        ["map"] * 3 + ["apply"] * 2 + ["imap"] * 2 + ["starmap"] * 2 + [None] + ["named"] * 2 + [None]))
    assert len(named(rows, "init")) == 2 and not [row for row in named(rows, "init") if row.get("parent")]
    for capture in captures:  # also those of processes that left by os._exit()
        assert not script.waffle.ok("info", capture.path).stderr


def test_a_context_of_elsewhere_is_entered_as_often_as_needed(script):
    capture = script.record("""
        import pickle
        context = waffle.Context("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        for bad in (None, "", "00-00-00-00", "x" * 100):
            assert not waffle.Context(bad)
        with context:
            print(waffle.current().traceparent)
            with waffle.span("inside") as span:
                print(span.context.span_id == span.id, hex(span.context.trace_id))
        print(pickle.loads(pickle.dumps(context)).traceparent == context.traceparent, bool(waffle.current()))
        with context, waffle.Context():
            waffle.event("again")
        """)
    assert capture.result.stdout == (
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\nTrue 0xaf7651916cd43dd8448eb211c80319c\nTrue False\n")
    [inside], [again] = capture.rows("span", name="inside"), capture.rows("event", name="again")
    assert inside["parent"] == again["parent"] == "b7ad6b7169203331"
    assert inside["trace"] == "0af7651916cd43dd8448eb211c80319c"


def test_threads_share_names_spans_and_contexts(script):
    """Where Python has a GIL, it takes turns; free-threaded builds run all of this at once."""
    threads, turns = 4, 500
    capture = script.record(f"""
        import threading
        barrier = threading.Barrier({threads})
        shared = waffle.span("shared")
        context, received = shared.context, waffle.extract({{}})
        causes = [shared]
        errors = []
        @waffle.instrument
        def call(n, **more):
            with waffle.span("inner", n=n): return n
        def run(i):
            try:
                barrier.wait()
                for n in range({turns}):
                    assert call(n, **{{f"key {{n % 10}}": i}}) == n
                    with waffle.span(f"name {{n % 100}}") as span:
                        causes.append(span); waffle.event("of many", caused_by=causes); causes.pop()
                    with context.copy(): waffle.event("in shared")
                    received.set_baggage("key", str(i) * 50); received.baggage("key")
                    with context: pass
                    shared.__enter__(); shared.suspend()
                shared.end()
            except BaseException as error: errors.append(error)
        all_threads = [threading.Thread(target=run, args=(i,)) for i in range({threads})]
        for thread in all_threads: thread.start()
        for thread in all_threads: thread.join()
        print(errors, bool(waffle.current()))
        """)
    assert capture.result.stdout == "[] False\n"
    rows = capture.rows("span")
    [shared] = named(rows, "shared")
    assert len(named(rows, "call")) == len(named(rows, "inner")) == threads * turns
    calls = {row["id"] for row in named(rows, "call")}
    assert all(row["parent"] in calls for row in named(rows, "inner"))
    inside = capture.rows("event", name="in shared")
    assert len(inside) == threads * turns and all(row["parent"] == shared["id"] for row in inside)


# ---- with others ----

EXTENSION = """
#include <Python.h>
#include <waffle.h>
static PyObject *call(PyObject *self, PyObject *function)
{
	WAFFLE_SPAN("native", KV_I64("n", 1));
	(void)self;
	return PyObject_CallNoArgs(function);
}
static PyMethodDef methods[] = {{"call", call, METH_O, NULL}, {0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "sited", NULL, -1, methods};
PyMODINIT_FUNC PyInit_sited(void) { return PyModule_Create(&definition); }
"""


def test_spans_of_an_extension_in_c_and_of_python_are_each_others_parents(script):
    (script.folder / "sited.c").write_text(EXTENSION)
    include = subprocess.run([script.python, "-c", "import sysconfig; print(sysconfig.get_paths()['include'])"],
                             stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    subprocess.run([find_tool("gcc"), "-O2", "-shared", "-fPIC", f"-I{include}", f"-I{ROOT / 'include'}", "-o",
                    script.folder / "sited.so", script.folder / "sited.c"], check=True)
    capture = script.record("""
        import sited, asyncio
        def inner():
            with waffle.span("inner"): waffle.event("deep")
        with waffle.span("outer"):
            sited.call(inner)
            waffle.event("after")
        @waffle.instrument
        async def task(n):
            await asyncio.sleep(0)
            sited.call(lambda: waffle.event("in task"))
        async def main(): await asyncio.gather(task(0), task(1))
        asyncio.run(main())
        """)
    assert parents(capture.rows())[:5] == [("outer", None), ("native", "outer"), ("inner", "native"), ("deep", "inner"),
                                           ("after", "outer")]
    events = capture.rows("event", name="in task")
    natives = {row["id"]: row["parent"] for row in capture.rows("span", name="native")}
    assert len({natives[event["parent"]] for event in events}) == 2


def test_another_extension_with_libwaffle_gets_the_same_copy(script, waffle_program):
    """The loader knows it by its name. A copy under another path may be refused for want of thread-local
    storage, and harms nobody."""
    library = waffle_program.parent / "python" / "libwaffle.so.0"
    (script.folder / "libwaffle.so.0").write_bytes(library.read_bytes())
    (script.folder / "user.c").write_text("void waffle_trace_flush(void); void use(void) { waffle_trace_flush(); }\n")
    subprocess.run([find_tool("gcc"), "-shared", "-fPIC", "-o", script.folder / "user.so", script.folder / "user.c",
                    script.folder / "libwaffle.so.0", f"-Wl,-rpath,{script.folder}"], check=True)
    capture = script.record(f"""
        import ctypes
        ctypes.CDLL({str(script.folder / "user.so")!r}).use()
        print(len({{line.split()[-1] for line in open("/proc/self/maps") if "libwaffle.so.0" in line}}))
        try: ctypes.CDLL({str(script.folder / "libwaffle.so.0")!r})
        except OSError: pass
        with waffle.span("mine"): waffle.event("inside")
        """)
    assert capture.result.stdout == "1\n"
    assert parents(capture.rows()) == [("mine", None), ("inside", "mine")]


def test_attach_records_a_running_program_and_leaves_it_dormant(waffle, script, start):
    program = start(script.python, "-u", script.write("""
        import sys
        @waffle.instrument
        def step(n):
            with waffle.span("inside", n=n) as span:
                return span.id
        print("ready")
        for line in sys.stdin:
            print("answer", step(int(line)))
        """), env=script.environment())
    program.until("ready")
    assert program.ask("1", "answer") == "0"
    attached = waffle.attach("-p", program.pid, "-q", "--no-report", "--no-sched")
    numbers = iter(range(2, 1000000))
    wait_until(lambda: program.ask(str(next(numbers)), "answer") != "0", "arming")
    time.sleep(0.3)  # names are recorded some ms after the first hit: docs/names-and-tracks.md
    seen = [next(numbers) for _ in range(100)]
    for n in seen:
        program.ask(str(n), "answer")
    capture = attached.stop()
    capture.check_sums(lost=0)
    rows = capture.rows("span")
    steps = {row["id"]: row["args"]["n"] for row in rows if row["name"] == "step"}
    inside = {row["args"]["n"]: steps.get(row["parent"]) for row in rows if row["name"] == "inside"}
    assert all(inside[n] == n for n in seen)
    wait_until(lambda: program.ask("0", "answer") == "0", "disarming")


# ---- begin and end of a recording ----


def test_a_program_records_parts_of_its_run(script):
    done = script.alone("""
        import os
        waffle.event("before")
        waffle.trace_start("part.waffle", filter='name != "left out"')
        waffle.event("in part"); waffle.event("left out"); waffle.trace_flush()
        try: waffle.trace_start("second.waffle")
        except OSError as error: print(error.errno)
        waffle.trace_stop()
        try: waffle.trace_stop()
        except OSError as error: print(error.errno)
        with waffle.trace("block.json"):
            with waffle.span("in block"): pass
        print(waffle.is_recorded())
        """.replace('"part.waffle"', repr(str(script.folder / "part.waffle"))).replace(
            '"block.json"', repr(str(script.folder / "block.json"))))
    assert done.stdout == "16\n3\nFalse\n"
    rows = Capture(script.waffle, script.folder / "part.waffle").rows("event")
    assert [row["name"] for row in rows] == ["in part"]
    events = json.loads((script.folder / "block.json").read_text())
    assert [event["name"] for event in events if event["ph"] == "X"] == ["in block"]


def test_a_fork_and_an_interpreter_that_ends_while_threads_trace_do_no_harm(script):
    path = script.folder / "end-%p.waffle"
    done = script.alone("""
        import os, threading, time
        @waffle.instrument
        def step(n):
            with waffle.span("inside", n=n): pass
        def forever():
            n = 0
            while True:
                step(n); n += 1
                if n % 1000 == 0: time.sleep(0.01)
        for _ in range(3): threading.Thread(target=forever, daemon=True).start()
        time.sleep(0.05)
        for n in range(5):
            with waffle.span("forking", n=n):
                pid = os.fork()
                if not pid:
                    waffle.event("child", n=n)
                    os._exit(0) if n % 2 else exit(0)
            assert os.waitpid(pid, 0)[1] == 0
        print("end")
        """, WAFFLE_TRACE=str(path))
    assert done.stdout.endswith("end\n") and not [line for line in done.stderr.splitlines()
                                                  if "DeprecationWarning" not in line and "os.fork" not in line]
    captures = [Capture(script.waffle, one) for one in script.folder.glob("end-*.waffle")]
    rows = [row for capture in captures for row in capture.rows()]
    forking = {row["args"]["n"]: row["id"] for row in named(rows, "forking") if row.get("args")}
    children = {row["args"]["n"]: row["parent"] for row in named(rows, "child")}
    assert all(children[n] == forking[n] for n in range(5))


def test_program_that_ctrl_c_ends_keeps_all_records(script):
    """Python then ends itself by the signal, without the destructors of libraries."""
    capture = script.record("""
        import signal
        for i in range(100): waffle.event("kept", i=i)
        signal.raise_signal(signal.SIGINT)
        """, code=-signal.SIGINT)
    assert [row["args"]["i"] for row in named(capture.rows(), "kept")] == list(range(100))


# ---- the wheel ----


@pytest.fixture
def wheel(waffle_program):
    [path] = (waffle_program.parent / "python" / "wheel").glob("*.whl")
    return path


def test_the_wheel_needs_nothing_but_the_libc_that_its_name_says(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as files:
        files.extractall(tmp_path)
    versions = set()
    for library in tmp_path.rglob("*.so*"):
        read = subprocess.run(["readelf", "-dVW", library], stdout=subprocess.PIPE, text=True, check=True).stdout
        needed = {name.split(".")[0] for name in re.findall(r"NEEDED.*\[(.*)\]", read)}
        assert needed <= {"libc", "libm", "libgcc_s", "ld-linux-x86-64", "ld-linux-aarch64", "libpthread", "libwaffle"}
        versions |= {tuple(map(int, one)) for one in re.findall(r"GLIBC_(\d+)\.(\d+)", read)}
    major, minor = max(versions)
    assert f"-manylinux_{major}_{minor}_" in wheel.name


def test_the_wheel_is_installed_and_used_without_compiler_rights_and_network(wheel, waffle, tmp_path):
    """By a process without any capability, with a PATH without programs. A user namespace would do as well, but
    can't be made in every container."""
    user = [find_tool("unshare"), "--net", "--", find_tool("setpriv"), "--no-new-privs", "--inh-caps=-all",
            "--bounding-set=-all", "--"]
    (tmp_path / "empty").mkdir()
    environment = {"PATH": str(tmp_path / "empty"), "HOME": str(tmp_path), "WAFFLE_TRACE": str(tmp_path / "out.waffle")}
    program = ("import re, waffle\n"
               "rights = re.search(r'CapEff:\\s*(\\w+)', open('/proc/self/status').read())[1]\n"
               "with waffle.span('used', rights=int(rights, 16)): pass")
    for command in ([sys.executable, "-m", "venv", tmp_path / "venv"],
                    [tmp_path / "venv/bin/python", "-m", "pip", "install", "-q", "--no-index", wheel],
                    [tmp_path / "venv/bin/python", "-c", program]):
        done = subprocess.run(user + command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=300, check=False)
        assert done.returncode == 0, done.stderr
    [row] = Capture(waffle, tmp_path / "out.waffle").rows("span")
    assert row["args"] == {"rights": 0}
