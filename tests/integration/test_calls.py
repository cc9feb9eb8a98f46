# SPDX-License-Identifier: Apache-2.0
"""Functions that know nothing of waffle, as spans and events: values against the program's log."""

import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from tracer import Capture, parse_log, probed_bytes, wait_until

ADD = "uprobe:libcalled:called_add(int a, long b) -> long ret category mine"
TEXT = "uprobe:libcalled:called_text(str text, u16 n) -> u64 ret"
MAKE = "uprobe:libcalled:called_make(out ptr address, size_t bytes) -> int ret"
NEST = "uprobe:libcalled:called_nest(int depth) -> int ret as span nest"
LAUNCH = (
    "uprobe:libcalled:called_launch(code kernel, dim3 grid, dim3 block, ptr, "
    "size_t shared_bytes, ptr stream) as event launch category cuda role launch"
)
HANDLE = "uprobe:libcalled:called_handle(out code function, code host) -> int role handle"
NAME = "uprobe:libcalled:called_name(out code function, ptr, str kernel) -> int role name"
MALLOC = "uprobe:libc.so.6:malloc(size_t bytes) -> ptr ret"

# Nothing but what the tests are about.
ONLY = ("--sources", "spans")


def probes(*specs):
    return [word for spec in specs for word in ("--probe", spec)]


def named(capture, name):
    return [r for r in capture.rows() if r.get("name") == name and r["kind"] in ("span", "event")]


def logged(lines, kind):
    return [row for row in parse_log(lines) if row["kind"] == kind]


def args_of(rows, *keys):
    return [tuple(row["args"][key] for key in keys) for row in rows]


@pytest.fixture
def called(built):
    return built("called.c", "-shared", "-fPIC", name="libcalled.so")


@pytest.fixture
def caller(built):
    return built("caller.c")


def link(built, library):
    """The program with the library linked: it is mapped before main()."""
    return built(
        "caller.c", "-Wl,--no-as-needed", f"-L{library.parent}", "-lcalled",
        f"-Wl,-rpath,{library.parent}", name="linked",
    )


@pytest.fixture
def linked(built, called):
    return link(built, called)


@pytest.fixture
def attach(waffle):
    """Attaches with probes and waits until those in `library` are in the process's memory."""

    def begin(program, library, specs, *options):
        sites = json.loads(waffle.ok("list", "--json", library, *probes(*specs)).stdout)["sites"]
        offsets = sorted({p["offset"] for s in sites for p in s.get("probes", [])})
        assert offsets
        data = pathlib.Path(library).read_bytes()
        plain = [data[offset : offset + 1] for offset in offsets]
        inode = os.stat(library).st_ino
        attached = waffle.attach(
            "-p", program.pid, "-q", "--no-report", *ONLY, *options, *probes(*specs)
        )

        def armed():
            if attached.process.poll() is not None:
                raise AssertionError(f"attach ended: {attached.process.communicate()}")
            now = probed_bytes(program.pid, inode, offsets)
            return now and all(a != b for a, b in zip(now, plain))

        wait_until(armed, f"probes in {library}")
        return attached

    return begin


def begin_caller(start, caller, called):
    program = start(caller, called)
    program.until("ready")
    return program


# ---- values ----


def test_arguments_and_results_are_those_of_the_programs_log(start, attach, caller, called):
    program = begin_caller(start, caller, called)
    attached = attach(program, called, [ADD, TEXT, MAKE])
    for line in ("add 100", "text hello", "text " + "x" * 300, "make 4096", "make 2000000000"):
        program.say(line)
    log = program.finish()
    capture = attached.wait()
    adds, rows = logged(log, "called_add"), named(capture, "called_add")
    assert args_of(rows, "a", "b", "ret") == [(r["a"], r["b"], r["ret"]) for r in adds]
    assert len(rows) == 100
    for row, told in zip(rows, adds):
        assert row["category"] == "mine"
        assert (row["pid"], row["tid"]) == (program.pid, told["tid"])
        assert told["begin"] <= row["start_ns"] <= row["end_ns"] <= told["end"]
    texts = logged(log, "called_text")
    rows = named(capture, "called_text")
    assert args_of(rows, "n", "ret") == [(r["n"], r["ret"]) for r in texts]
    assert rows[0]["args"]["text"] == "hello"
    assert rows[1]["args"]["text"].startswith("x" * 255)
    rows = named(capture, "called_make")
    assert [
        (r["args"]["bytes"], int(r["args"]["address"], 16), r["args"]["ret"]) for r in rows
    ] == [(r["bytes"], r["out"], r["ret"]) for r in logged(log, "called_make")]
    capture.check_sums(lost=0)


def test_malloc_of_libc(start, attach, caller, called):
    program = begin_caller(start, caller, called)
    libc = next(
        fields[5].strip()
        for fields in (
            line.split(None, 5)
            for line in open(f"/proc/{program.pid}/maps", encoding="utf-8")
        )
        if len(fields) == 6 and fields[5].strip().endswith("/libc.so.6")
    )
    attached = attach(program, libc, [MALLOC])
    program.say("plain")
    [told] = logged(program.finish(), "malloc")
    [row] = [r for r in named(attached.wait(), "malloc") if r["args"]["bytes"] == 4242]
    assert int(row["args"]["ret"], 16) == told["ret"]


def test_nested_calls_are_nested_spans(start, attach, caller, called):
    program = begin_caller(start, caller, called)
    attached = attach(program, called, [NEST])
    program.ask("nest 4", "did")
    program.finish()
    rows = sorted(named(attached.wait(), "nest"), key=lambda r: r["start_ns"])
    assert args_of(rows, "depth", "ret") == [(n, n) for n in (4, 3, 2, 1, 0)]
    for outer, inner in zip(rows, rows[1:]):
        assert outer["start_ns"] < inner["start_ns"] and inner["end_ns"] < outer["end_ns"]
        assert inner["parent"] == outer["id"]


def test_threads_are_told_apart(start, attach, caller, called):
    program = begin_caller(start, caller, called)
    attached = attach(program, called, [ADD])
    program.say("threads 8")
    log = logged(program.finish(), "called_add")
    rows = named(attached.wait(), "called_add")

    def by_thread(list_of, thread, values):
        return {
            t: [values(r) for r in list_of if thread(r) == t] for t in {thread(r) for r in list_of}
        }

    assert by_thread(
        rows, lambda r: r["tid"], lambda r: (r["args"]["a"], r["args"]["b"], r["args"]["ret"])
    ) == by_thread(log, lambda r: r["tid"], lambda r: (r["a"], r["b"], r["ret"]))
    assert len(rows) == 400


def test_calls_take_few_bytes_of_the_file(waffle, linked):
    capture = waffle.run(
        linked, options=[*ONLY, *probes(ADD)], stdin=None, input="add 20000\n"
    )
    assert len(named(capture, "called_add")) == 20000
    assert capture.path.stat().st_size < 20000 * 8


def test_launches_have_dimensions_and_names_of_functions(start, attach, caller, called):
    program = begin_caller(start, caller, called)
    attached = attach(program, called, [LAUNCH, HANDLE, NAME])
    program.ask("launch 3", "did")
    program.finish()
    rows = named(attached.wait(), "launch")
    assert {r["kind"] for r in rows} == {"event"}
    assert args_of(rows[:3], "kernel", "grid", "block", "shared_bytes") == [
        ("kernel_of_caller", [i + 1, 2, 3], [4, i + 5, 4000000000], i * 16) for i in range(3)
    ]
    assert [int(r["args"]["stream"], 16) for r in rows[:3]] == [0x1000, 0x1001, 0x1002]
    # By a handle that a function of this program has, and by one that was got by a name.
    assert rows[3]["args"]["kernel"] == "kernel_of_caller"
    assert rows[4]["args"]["kernel"] == "saxpy(int, float, float*, float*)"


def test_arguments_that_point_nowhere_are_counted_and_the_calls_are_there(waffle, linked):
    path = waffle.path()
    said = waffle.ok(
        "run", "--no-report", "-o", path, *ONLY, *probes(TEXT, ADD), "--", linked,
        input="nowhere\n", stdin=None,
    ).stderr
    assert "2 arguments of calls could not be read: they point nowhere" in said
    capture = Capture(waffle, path)
    rows = named(capture, "called_text")
    assert [r["args"]["n"] for r in rows] == [1, 2, 3]
    # A null pointer is one, and what could not be read is not there.
    assert [r["args"].get("text", "unread") for r in rows] == [None, "unread", "unread"]
    [row] = named(capture, "called_add")
    assert row["args"] == {"a": 1, "b": 1, "ret": 2}


def test_filter_decides_over_arguments_and_results(start, attach, caller, called):
    program = begin_caller(start, caller, called)
    attached = attach(
        program, called, [ADD], *probes(TEXT), "--filter",
        'name ~ "called_*" && kv.a > 3 && kv.a < 8',
    )
    program.say("add 20")
    program.say("text hello")
    program.finish()
    rows = [r for r in attached.wait().rows() if r["kind"] == "span"]
    assert args_of(rows, "a") == [(4,), (5,), (6,), (7,)]


@pytest.mark.parametrize(
    "condition, kept",
    [
        ("kv.ret >= 9000000072 && kv.a < 12", [9, 10, 11]),  # known at the return only
        ("kv.ret == 0 || kv.a == 2", [0, 2]),
        ("dur < 1h && kv.b == 3000000021", [3]),
        ("dur > 1h", []),
    ],
)
def test_filter_asks_what_is_known_at_the_return(waffle, linked, condition, kept):
    capture = waffle.run(
        linked, options=[*ONLY, *probes(ADD), "--filter", condition], stdin=None, input="add 15\n"
    )
    assert [row["args"]["a"] for row in named(capture, "called_add")] == kept
    capture.check_sums(lost=0)


# ---- processes ----


def test_children_are_followed(waffle, linked):
    capture = waffle.run(
        linked, options=["--machine-wide", *ONLY, *probes(ADD)], stdin=None,
        input="add 3\nfork 5\nfork 2\n",
    )
    log = logged(capture.result.stdout.splitlines(), "called_add")
    rows = named(capture, "called_add")
    assert sorted((r["tid"], r["args"]["a"], r["args"]["ret"]) for r in rows) == sorted(
        (r["tid"], r["a"], r["ret"]) for r in log
    )
    assert len({r["pid"] for r in rows}) == 3 and len(rows) == 10


def test_new_program_in_the_process_is_probed(waffle, linked):
    script = f"echo 'add 2' | {linked}; echo 'add 3' | exec {linked}"
    rows = named(waffle.run("sh", "-c", script, options=[*ONLY, *probes(ADD)]), "called_add")
    assert [r["args"]["a"] for r in rows] == [0, 1, 0, 1, 2]
    assert len({r["pid"] for r in rows}) == 2


def test_process_that_is_killed_in_a_call(start, attach, caller, called):
    program = begin_caller(start, caller, called)
    attached = attach(program, called, [NEST])
    program.ask("nest 1", "did")
    program.say("nest 10000")

    def switches():
        with open(f"/proc/{program.pid}/status", encoding="utf-8") as lines:
            return int(next(x for x in lines if x.startswith("voluntary")).split()[1])

    before = switches()
    wait_until(lambda: switches() > before + 20, "calls inside calls")
    program.process.send_signal(signal.SIGKILL)
    capture = attached.wait()
    rows = sorted(named(capture, "nest"), key=lambda r: r["start_ns"])
    assert args_of(rows[:2], "depth", "ret") == [(1, 1), (0, 0)]
    # The tracer has slots for 16 nested calls. Deeper calls are counted as lost.
    assert len(rows) > 10 and all(r["unfinished"] for r in rows[2:])
    capture.check_sums()


# ---- files ----


@pytest.fixture
def wait_late(waffle, called):
    """wait_late(pid, meanwhile): until the library that was opened late is probed."""

    def wait(pid, meanwhile=lambda: None):
        sites = json.loads(waffle.ok("list", "--json", called, *probes(ADD)).stdout)["sites"]
        offsets = [probe["offset"] for site in sites for probe in site["probes"]]
        plain = [called.read_bytes()[offset : offset + 1] for offset in offsets]

        def is_probed():
            meanwhile()
            return probed_bytes(pid, os.stat(called).st_ino, offsets) not in ([], plain)

        wait_until(is_probed, "probes in the late library")

    return wait


def test_library_opened_late_is_probed(start, waffle, caller, called, wait_late):
    program = start(caller)
    program.until("ready")
    attached = waffle.attach("-p", program.pid, "--no-report", *ONLY, *probes(ADD))
    assert "libcalled" in attached.wait_notice()
    program.say(f"open {called}")
    wait_late(program.pid)
    program.say("add 20")
    log = logged(program.finish(), "called_add")
    rows = named(attached.wait(), "called_add")
    assert args_of(rows, "a", "ret") == [(r["a"], r["ret"]) for r in log] and len(rows) == 20


def test_library_opened_late_under_run(start, waffle, caller, called, wait_late, tmp_path):
    """The program goes on while the library is armed: calls are seen from some one on, all."""
    path = tmp_path / "late.waffle"
    options = ("-q", "--no-report", "-o", path, *ONLY, *probes(ADD))
    program = start(waffle.program, "run", *options, "--", caller)
    pid = int(program.until("ready pid=").split()[0])
    program.ask(f"open {called}", "did")
    wait_late(pid, lambda: program.ask("add 10", "did"))
    program.ask("add 10", "did")
    program.finish()
    seen = [row["args"]["a"] for row in named(Capture(waffle, path), "called_add")]
    assert len(seen) >= 10
    assert seen == (list(range(10)) * (len(seen) // 10 + 1))[-len(seen) :]


def test_deleted_library(start, attach, caller, called, tmp_path):
    late = tmp_path / "libcalled.so"
    shutil.copy(called, late)
    program = start(caller, late)
    program.until("ready")
    keep = tmp_path / "keep"
    os.link(late, keep)  # the test reads its bytes
    late.unlink()
    late.write_text("another file of that name")
    attached = attach(program, keep, [ADD.replace("libcalled", "libcalled|keep")])
    program.say("add 7")
    program.finish()
    assert args_of(named(attached.wait(), "called_add"), "a") == [(i,) for i in range(7)]


def test_library_replaced_during_the_run(waffle, called, built, tmp_path):
    """A new process maps another file under the old path."""
    library = tmp_path / "libcalled.so"
    other = built("called.c", "-shared", "-fPIC", "-O0", name="libcalled.so")
    shutil.copy(called, library)
    linked = link(built, library)
    driver = tmp_path / "driver.sh"
    driver.write_text(
        f"echo 'add 3' | {linked}\n"
        f"cp {other} {library}.new && mv {library}.new {library}\n"
        # The tracer learns of that after a short delay.
        f"(sleep 0.3; echo 'add 4') | {linked}\n"
    )
    capture = waffle.run("sh", driver, options=[*ONLY, *probes(ADD)])
    rows = named(capture, "called_add")
    by_process = [
        [r["args"]["ret"] for r in rows if r["pid"] == pid]
        for pid in sorted({r["pid"] for r in rows}, key=lambda p: [r["pid"] for r in rows].index(p))
    ]
    told = logged(capture.result.stdout.splitlines(), "called_add")
    assert sum(by_process, []) == [r["ret"] for r in told]
    assert [len(x) for x in by_process] == [3, 4]


def test_process_in_another_mount_namespace(waffle, start, caller, called):
    script = (
        f"mount -t tmpfs none /mnt && cp {caller} /mnt/hidden && cp {called} /mnt/libcalled.so && "
        "exec /mnt/hidden /mnt/libcalled.so"
    )
    program = start("unshare", "-m", "sh", "-c", script)
    program.until("ready")
    assert not os.path.exists("/mnt/hidden")
    sites = json.loads(
        waffle.ok("list", "--json", "-p", program.pid, *probes(ADD, LAUNCH)).stdout
    )["sites"]
    assert {s["name"] for s in sites if s["call"]} == {"called_add", "launch"}
    attached = waffle.attach(
        "-p", program.pid, "-q", "--no-report", *ONLY, *probes(ADD, LAUNCH)
    )
    with open(f"/proc/{program.pid}/maps", encoding="utf-8") as maps:
        inode = next(int(x.split()[4]) for x in maps if x.rstrip().endswith("libcalled.so"))
    offsets = [p["offset"] for s in sites for p in s["probes"]]
    data = called.read_bytes()
    wait_until(
        lambda: all(
            a != data[o : o + 1]
            for a, o in zip(probed_bytes(program.pid, inode, offsets) or [b"", b""], offsets)
        ) and probed_bytes(program.pid, inode, offsets),
        "arming in a container",
    )
    program.say("add 5")
    program.say("launch 1")
    program.finish()
    capture = attached.wait()
    assert args_of(named(capture, "called_add"), "a") == [(i,) for i in range(5)]
    assert named(capture, "launch")[0]["args"]["kernel"] == "kernel_of_caller"


# ---- messages ----


def test_wrong_descriptions_are_usage_errors_with_a_caret(waffle):
    for command in (["attach", "-p", os.getpid()], ["list", "/bin/true"]):
        result = waffle.call(*command, "--probe", "uprobe:libcalled:called_add(int a, lon b)")
        assert result.returncode == 2
        lines = result.stderr.splitlines()
        assert len(lines) == 3 and lines[2].strip() == "^~~"
        column = lines[2].index("^")
        assert lines[1][column : column + 3] == "lon"


def test_missing_function_of_a_mapped_library_is_an_error_with_near_names(
    waffle, start, caller, called
):
    program = begin_caller(start, caller, called)
    out = waffle.path()
    waffle.fails(
        1, "attach", "-p", program.pid, "-o", out, *probes(ADD.replace("called_add", "called_ad")),
        says="no function 'called_ad' in .*libcalled.so; did you mean called_add",
    )
    assert not out.exists()
    program.finish()


def test_missing_library_is_waited_for_and_said_once(waffle, caller):
    result = waffle.ok("run", "--no-report", *ONLY, *probes(ADD), "--", caller)
    said = [line for line in result.stderr.splitlines() if "libcalled" in line]
    assert len(said) == 1


@pytest.mark.parametrize("options", [(), ("-q",)])
def test_missing_function_is_said_once_with_follow(waffle, start, options):
    program = start("sh", "-c", "echo ready; read end")
    program.until("ready")
    attached = waffle.attach("--follow", *options, "--no-report", "-d", "500ms", "-p", program.pid,
                             "--probe", "uprobe:exe:no_such_function()")
    said = attached.wait().result.stderr
    assert said.count("no function 'no_such_function'") == 1, said
    assert ("it is looked for in programs that begin later" in said) == (not options)


def test_quiet_run_says_what_is_missing_and_nothing_else(waffle, linked):
    wrong = ADD.replace("called_add", "called_ad")

    def said(*more):
        result = waffle.ok("run", "--user", "root", "--no-report", *ONLY, *more,
                           *probes(wrong, TEXT), "--", linked)  # fmt: skip
        return result.stderr.splitlines()

    [line] = said("-q")
    assert "run: --probe: no function 'called_ad' in " in line and "did you mean called_add" in line
    assert len(said()) == 2


def test_summary_names_what_was_armed(waffle, linked):
    result = waffle.call(
        "run", "--no-report", *ONLY, *probes(ADD, TEXT, LAUNCH), "--", linked,
        stdin=None, input="add 1\n",
    )
    assert "1 CUDA call, 2 probes armed" in result.stderr


def test_list_tells_where_each_call_is_probed(waffle, called):
    [site] = json.loads(waffle.ok("list", "--json", called, *probes(ADD)).stdout)["sites"]
    assert site["call"] and site["name"] == "called_add" and site["category"] == "mine"
    assert [(k["name"], k["type"]) for k in site["keys"]] == [
        ("a", "i64"), ("b", "i64"), ("ret", "i64"),
    ]
    symbols = subprocess.run(["nm", called], capture_output=True, text=True, check=True).stdout
    [address] = [int(x.split()[0], 16) for x in symbols.splitlines() if x.endswith(" called_add")]
    assert {p["at"] for p in site["probes"][1:]} == {"ret"}
    for probe in site["probes"]:
        # The code of so small a library lies in the file as in memory.
        assert probe["offset"] - probe["shift"] == address
        assert probe["cost"] in ("optimised", "emulated", "single-stepped")
    text = waffle.ok("list", called, *probes(ADD)).stdout
    assert "called_add [mine]  (i64 a, i64 b, i64 ret)" in text
    missing = waffle.call("list", called, *probes(ADD.replace("called_add", "called_ad")))
    assert missing.returncode == 1 and "did you mean called_add" in missing.stderr


# ---- the language of descriptions ----


def run_linked(waffle, linked, lines, *specs):
    capture = waffle.run(linked, options=[*ONLY, *probes(*specs)], stdin=None, input=lines)
    return capture, capture.result.stdout.splitlines()


PAIR = (
    "uprobe:libcalled:called_submit(long id, str name)..called_complete(int status, long id) "
    "key=id as span job"
)


@pytest.mark.parametrize(
    "asked, kept",
    [
        ("kv.id < 5", lambda i: i < 5),
        ("kv.status == 1", lambda i: i % 3 == 1),
        ("kv.id >= 10 && kv.status == 0 && dur > 1ns", lambda i: i >= 10 and i % 3 == 0),
        ('name == "job"', lambda i: True),
    ],
)
def test_filter_asks_both_ends_of_a_pair(waffle, linked, asked, kept):
    capture = waffle.run(
        linked, options=[*ONLY, *probes(PAIR), "--filter", asked], stdin=None, input="jobs 40\n"
    )
    ids = sorted(row["args"]["id"] for row in named(capture, "job"))
    assert ids == [i for i in range(40) if kept(i)]


def test_pair_is_a_span_from_one_thread_to_another(waffle, linked):
    capture, lines = run_linked(
        waffle, linked, "jobs 40\n", PAIR
    )
    begins = {row["id"]: row for row in logged(lines, "called_submit")}
    ends = {row["id"]: row for row in logged(lines, "called_complete")}
    rows = named(capture, "job")
    assert sorted(args_of(rows, "id", "name", "status")) == sorted(
        (i, f"job-{i}", i % 3) for i in range(40)
    )
    for row in rows:
        begin, end = begins[row["args"]["id"]], ends[row["args"]["id"]]
        assert begin["begin"] <= row["start_ns"] <= begin["end"]
        assert end["begin"] <= row["end_ns"] <= end["end"]
        assert (row["tid"], row["end_tid"]) == (begin["tid"], end["tid"])


def test_fields_of_structs_and_texts_in_them(waffle, linked):
    capture, _ = run_linked(
        waffle, linked, "serve 3\n",
        "uprobe:libcalled:called_serve(struct called_request *r) {r->id, r->path, "
        "r->peer->port as port, r->peer->tag, out r->inner.port as served, duration} -> int ret "
        'as span "serve {path}"',
    )
    rows = [row for row in capture.rows("span") if row["name"].startswith("serve")]
    assert [row["name"] for row in rows] == ["serve /index"] * 3
    assert args_of(rows, "id", "path", "port", "tag", "served", "ret") == [
        (i, "/index", 8000 + i, "peertag", 2, 2 * i) for i in range(3)
    ]
    for row in rows:
        assert row["args"]["duration"] == row["end_ns"] - row["start_ns"]


def test_sequence_counts_calls_with_a_value(waffle, linked):
    capture, lines = run_linked(
        waffle, linked, "threads 4\n", "uprobe:libcalled:called_add(int, long b) {b, seq(b) as nth}"
    )
    rows = named(capture, "called_add")
    for thread in range(4):
        counted = sorted(row["args"]["nth"] for row in rows if row["args"]["b"] == thread)
        assert counted == list(range(counted[0], counted[0] + 50))
    assert len(rows) == len(logged(lines, "called_add")) == 200


def test_patterns_find_many_functions(waffle, linked):
    capture, _ = run_linked(
        waffle, linked, "add 2\njobs 1\n", "uprobe:libcalled:called_*(...) as event"
    )
    rows = [row for row in capture.rows("event") if row["name"].startswith("called_")]
    assert sorted(row["name"] for row in rows) == [
        "called_add", "called_add", "called_complete", "called_submit",
    ]
    assert [row["args"]["arg2"] for row in rows if row["name"] == "called_add"] == [
        "0x0", "0x3b9aca07",
    ]


def test_tracepoints_of_the_traced_threads_only(waffle, linked):
    capture, lines = run_linked(
        waffle, linked, "fork 1\nfork 1\n",
        "tracepoint:sched:sched_process_fork(parent_pid, child_pid) as event forked",
    )
    children = [int(line.split("child=")[1]) for line in lines if line.startswith("forked")]
    rows = named(capture, "forked")
    assert [row["args"]["child_pid"] for row in rows] == children
    assert {row["args"]["parent_pid"] for row in rows} == {row["pid"] for row in rows}


def test_descriptions_from_a_file_and_from_a_set_that_ships(waffle, linked, tmp_path):
    own = tmp_path / "own.probes"
    own.write_text(f"# two of them\n{ADD}\n\nuprobe:libcalled:called_nest(int depth)\n  as event\n")
    capture = waffle.run(
        linked, options=[*ONLY, "--probes", own, "--probes", "malloc"], stdin=None,
        input="add 1\nnest 0\nplain\n",
    )
    assert len(named(capture, "called_add")) == 1
    assert args_of(named(capture, "called_nest"), "depth") == [(0,)]
    assert 4242 in [row["args"].get("bytes") for row in named(capture, "malloc")]
    own.write_text("# nothing\nuprobe:libcalled:called_add(int a, lon b)\n")
    wrong = waffle.call("run", "--probes", own, "--", linked)
    assert wrong.returncode == 2 and "own.probes:2" in wrong.stderr
