# SPDX-License-Identifier: Apache-2.0
"""--stacks: callers of spans, events and calls, against what the program's own run-time and
Python itself say of the same stacks."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

import tracer

FRAMES = tracer.PROGRAMS / "frames.py"


# ---- code without frame pointers ----


def code_of(pid, path):
    """Where the code of a file lies in a process: [(start, end, offset in the file)]."""
    found = []
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6 and fields[5] == str(path) and "x" in fields[1]:
            start, end = (int(x, 16) for x in fields[0].split("-"))
            found.append((start, end, int(fields[2], 16)))
    return found


def functions(path, addresses):
    """The function, not an inlined one, of each link-time address, as addr2line names it."""
    output = subprocess.run(
        ["addr2line", "-a", "-f", "-i", "-e", path, *[hex(a) for a in addresses]],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = []
    for part in re.split(r"^0x[0-9a-f]+\n", output, flags=re.M)[1:]:
        names.append(part.splitlines()[-2])
    return dict(zip(addresses, names))


def expected_stacks(log, program, code):
    """Of each line of the log its span and its callers: functions of the program, else None."""
    lines = [line.split() for line in log.read_text(encoding="utf-8").splitlines()]
    place = {}
    for line in lines:
        for word in line[1:]:
            address = int(word, 16)
            for start, end, offset in code:
                if start <= address < end:
                    # Linked so that offsets in the file are link-time addresses.
                    place[word] = address - 1 - start + offset
    names = functions(program, sorted(set(place.values())))
    return [
        (line[0], [names[place[word]] if word in place else None for word in line[1:]])
        for line in lines
    ]


def plain(name):
    """Without what the compiler adds to copies of a function."""
    return name.split(".")[0] if name else name


def seen_stacks(rows, program):
    stacks = []
    for row in rows:
        frames = [f for f in row.get("user_stack", []) if not f.get("inlined")]
        stacks.append(
            (
                row["name"],
                [
                    plain(f.get("function")) if f.get("module") == str(program) else None
                    for f in frames
                ],
            )
        )
    return stacks


@pytest.fixture(name="subject")
def fixture_subject(built, start, tmp_path):
    """A program that waits to begin; its path; its log; where its code is."""

    def begin(rounds, *flags):
        path = built("stacks.c", "-fomit-frame-pointer", *flags)
        log = tmp_path / "log"
        program = start(path, log, rounds)
        program.until("ready")
        return program, path, log, code_of(program.pid, path)

    return begin


def check_callers(capture, path, log, code, name=None):
    rows = [r for r in capture.rows("span") if name is None or r["name"] == name]
    rows.sort(key=lambda row: row["start_ns"])
    expected = [e for e in expected_stacks(log, path, code) if name is None or e[0] == name]
    seen = seen_stacks(rows, path)
    assert len(seen) == len(expected)
    for (name_seen, frames), (name_expected, callers) in zip(seen, expected):
        assert name_seen == name_expected
        assert frames[0] == name_seen, "innermost is the function that the site is in"
        assert frames[1:] == [plain(c) for c in callers]
    return len(seen)


def test_callers_without_frame_pointers_are_those_that_the_program_finds(waffle, subject):
    program, path, log, code = subject(200)
    attached = waffle.attach_to(program, path, options=["--stacks", "spans"])
    program.say("go")
    program.finish()
    capture = attached.wait()
    assert check_callers(capture, path, log, code) == 800
    capture.check_sums(lost=0)


def test_callers_are_found_in_an_optimised_static_program(waffle, subject):
    program, path, log, code = subject(20, "-O3", "-static", "-no-pie")
    attached = waffle.attach_to(program, path, options=["--stacks", "spans"])
    program.say("go")
    program.finish()
    capture = attached.wait()
    rows = sorted(capture.rows("span"), key=lambda row: row["start_ns"])
    assert len(rows) == 80
    deep = [f.get("function") for f in rows[-4]["user_stack"] if not f.get("inlined")]
    assert deep.count("recurse") == 20
    assert deep[-1] == "_start"


def test_only_what_was_asked_for_has_stacks(waffle, subject):
    program, path, *_ = subject(5)
    attached = waffle.attach_to(program, path, options=["--stacks", "span:han*"])
    program.say("go")
    program.finish()
    rows = attached.wait().rows("span")
    assert {row["name"] for row in rows if "user_stack" in row} == {"handler"}
    assert sum(row["name"] == "handler" for row in rows) == 5
    assert all("user_stack" in row for row in rows if row["name"] == "handler")


@pytest.mark.parametrize(
    "expression", ['name == "order"', 'name == "order" && dur > 0', 'name == "order" && tid > 0']
)
def test_what_passes_a_filter_has_its_stack(waffle, subject, expression):
    program, path, log, code = subject(10)
    attached = waffle.attach(
        "-p", program.pid, "-q", "--no-report", "--stacks", "spans", "--filter", expression
    ).wait_links()
    program.say("go")
    program.finish()
    capture = attached.wait()
    assert {row["name"] for row in capture.rows("span")} == {"order"}
    assert check_callers(capture, path, log, code, "order") == 10


def test_a_command_that_is_run_has_stacks_of_its_libraries_too(waffle, built, tmp_path):
    path = built("stacks.c", "-fomit-frame-pointer")
    go = tmp_path / "go"
    go.write_text("go\n", encoding="utf-8")
    with open(go, encoding="utf-8") as stdin:
        capture = waffle.run(
            path, tmp_path / "log", 4000, options=["--stacks", "spans"], stdin=stdin
        )
    rows = capture.rows("span")
    assert len(rows) == 16000
    for row in rows:  # the first ones, too, a moment after the libraries were mapped
        names = [f.get("function") for f in row["user_stack"] if not f.get("inlined")]
        assert plain(names[0]) == row["name"]
        assert names[-1] in ("_start", "clone3", "clone")


def test_a_stack_goes_through_functions_with_return_probes(waffle, subject):
    program, path, *_ = subject(12)
    attached = waffle.attach_to(
        program,
        path,
        options=["--stacks", "spans,probes", "--probe", f"uprobe:{path}:recurse(i32 depth)"],
    )
    program.say("go")
    program.finish()
    capture = attached.wait()
    # The program's own run-time ends where a return address was replaced.
    leaves = sorted(capture.rows("span", name="leaf"), key=lambda row: row["start_ns"])
    for depth, row in zip((d for i in range(12) for d in (i, 3)), leaves, strict=True):
        names = [f.get("function") for f in row["user_stack"] if not f.get("inlined")]
        names = [plain(name) for name in names]
        assert names[: depth + 2] == ["leaf"] + ["recurse"] * (depth + 1)
        assert names[depth + 2] in ("main", "thread")
        assert names[-1] in ("_start", "clone3", "clone")
    for row in capture.rows("span", name="recurse"):
        names = [f.get("function") for f in row["user_stack"] if not f.get("inlined")]
        assert names[0] == "recurse" and names[-1] in ("_start", "clone3", "clone")


@tracer.tries(3)  # kernels have names if the tracer comes to it before the program is gone
def test_calls_of_cuda_and_nccl_have_their_callers(waffle, tmp_path):
    sim = waffle.program.parent / "sim"
    assert (sim / "training").exists(), f"{sim} is not built; run make sim"
    logs = tmp_path / "logs"
    logs.mkdir(exist_ok=True)
    capture = waffle.run(
        *(sim / "training", "--ranks", "2", "--steps", "5", "--log", logs),
        options=["--stacks", "cuda,nccl"],
        env={**os.environ, "LD_LIBRARY_PATH": str(sim)},
    )
    rows = [row for row in capture.rows() if row["kind"] in ("span", "event")]
    for row in rows:
        called = row.get("category") in ("cuda", "nccl")
        assert ("user_stack" in row) == called, row["name"]
        # Constructors may run before it is known where the libraries lie.
        if called and not row["name"].startswith("__cudaRegister"):
            names = [f.get("function") for f in row["user_stack"] if not f.get("inlined")]
            assert names[-1] == "_start", row["name"]
    launches = [row for row in rows if row["name"] == "cudaLaunchKernel"]
    # "adam(unsigned long, float*, int)" calls the launch: its host stub, as the compiler makes it.
    assert launches
    for row in launches:
        assert row["user_stack"][1]["function"] == row["args"]["kernel"]


def test_waits_have_callers_in_code_without_frame_pointers(waffle, built, start):
    path = built("sleeps.c", "-fomit-frame-pointer")
    program = start(path)
    program.until("ready")
    attached = waffle.attach_to(program, path, options=["--stacks", "sched"])
    program.say("go")
    program.finish()
    capture = attached.wait()
    text = waffle.ok("why", "--evidence", "--json", capture.path).stdout
    stacks = re.findall(r"user stack ← (.*)", waffle.ok("why", "--evidence", capture.path).stdout)
    callers = [re.sub(r" \([^)]*\)", "", stack).split(" ← ") for stack in stacks]
    polls = [names for names in callers if "inner" in names]
    assert polls, text
    for names in polls:
        at = names.index("inner")
        assert names[at : at + 3] == ["inner", "outer", "main"]
        assert names[-1] == "_start"


def run_sleeps(waffle, built, tmp_path, flags, *options):
    path, stdin = built("sleeps.c", *flags), tmp_path / "go"
    stdin.write_text("go\n", encoding="utf-8")
    with open(stdin, encoding="utf-8") as go:
        # It forks: such a child is seen from its first instruction only so.
        return path, waffle.run(path, options=("--machine-wide", *options), stdin=go)


def names_of(stack):
    return [plain(frame.get("function")) for frame in stack if not frame.get("inlined")]


def test_frame_pointers_serve_where_there_is_no_table(waffle, built, tmp_path):
    flags = ("-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables", "-g0")
    path, capture = run_sleeps(waffle, built, tmp_path, flags, "--stacks", "spans")
    tables = subprocess.run(
        ["readelf", "--debug-dump=frames", path], capture_output=True, text=True, check=True
    ).stdout
    listed = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    main = re.search("([0-9a-f]{16}) T main", listed).group(1)
    assert not re.search(f"pc={main}", tables), "it has one all the same"
    rows = capture.rows("span", name="outer")
    assert len(rows) == 25
    for row in rows:
        names = names_of(row["user_stack"])
        assert names[:2] == ["outer", "main"] and names[-1] == "_start"


@pytest.mark.parametrize("word, options", [("", ("--stacks", "probes")), (" stack", ())])
def test_calls_of_the_c_library_have_their_callers(waffle, built, tmp_path, word, options):
    probe = ("--probe", f"uprobe:libc.so.6:poll(ptr, u64 count, int timeout){word}")
    path, capture = run_sleeps(
        waffle, built, tmp_path, ("-fomit-frame-pointer",), *probe, *options
    )
    rows = [row for row in capture.rows("span", name="poll") if row["args"]["timeout"] == 3]
    assert len(rows) == 25
    for row in rows:
        names = names_of(row["user_stack"])
        assert names[1:4] == ["inner", "outer", "main"] and names[-1] == "_start"
        assert "libc" in row["user_stack"][0]["module"]
    assert not [row for row in capture.rows("span", name="outer") if "user_stack" in row]


class Bpftrace:
    """Functions of the kernel on whose behalf bpftrace sees a process's signals sent."""

    SCRIPT = 'tracepoint:signal:signal_generate /pid == $1/ {{ printf("%s;\\n", kstack({})); }} '

    def __init__(self, pid, start):
        script = self.SCRIPT.format(48) + 'BEGIN { printf("ready\\n"); }'
        self.program = start(*tracer.with_tracefs("bpftrace", "-q", "-e", script, pid))
        self.program.until("ready")

    def stacks(self, count):
        """The functions of each stack, innermost first."""
        found = []
        while len(found) < count:
            frames = []
            while (line := self.program.line()) != ";":
                if line.strip() and "__traceiter" not in line:  # waffle leaves the tracer out
                    frames.append(line.strip().split("+")[0])
            found.append(frames)
        return found


def test_a_tracepoint_has_the_kernels_stack_and_the_programs(waffle, built, start, subject):
    program, path, *_ = subject(4)
    bpftrace = Bpftrace(program.pid, start)
    attached = waffle.attach_to(
        program, path,
        options=["--stacks", "probes", "--probe", "tracepoint:signal:signal_generate(sig)"],
    )  # fmt: skip
    program.say("go")
    program.finish()
    rows = [r for r in attached.wait().rows("event") if r["name"] == "signal_generate"]
    rows = [row for row in rows if row["pid"] == program.pid]
    others = bpftrace.stacks(len(rows))
    assert len(rows) >= 4 and {row["args"]["sig"] for row in rows} >= {signal.SIGUSR1}
    for row, other in zip(rows, others, strict=True):
        mine = [frame["function"] for frame in row["kernel_stack"]]
        assert mine == other and any("do_send" in name for name in mine)
        names = names_of(row["user_stack"])
        assert "main" in names and names[-1] == "_start"


def test_a_child_has_complete_stacks_from_its_first_span_on(waffle, built, start):
    path = built("sleeps.c", "-fomit-frame-pointer")
    program = start(path)
    program.until("ready")
    options = ["--stacks", "spans", "--follow", "--machine-wide"]
    attached = waffle.attach_to(program, path, options=options)
    program.say("go")
    program.finish()
    rows = attached.wait().rows("span", name="outer")
    assert sum(row["pid"] != program.pid for row in rows) == 5
    for row in rows:
        names = [f.get("function") for f in row["user_stack"] if not f.get("inlined")]
        assert names[:2] == ["outer", "main"] and names[-1] == "_start"


SHELL = '"$1" & wait; "$1"; exec "$1"'


@pytest.mark.parametrize("before, processes", [((), 1), (("sh", "-c", SHELL, "sh"), 3)])
@tracer.tries(3)
def test_files_of_a_process_that_is_gone_at_once_are_known(waffle, built, before, processes):
    path = built("brief.c", "-ldl")
    for _ in range(6):
        capture = waffle.run(
            *before, path, options=["--stacks", "probes", "--probe", f"uprobe:{path}:probed(int n)"]
        )
        seen = {}
        for row in capture.rows("span", name="probed"):
            assert "user_stack_cut" not in row
            seen[row["pid"], row["args"]["n"]] = row["user_stack"]
        lines = [line.split() for line in capture.result.stdout.splitlines()]
        assert len(lines) == len(seen) == 2 * processes
        for pid, number, *files in lines:
            frames = [f for f in seen[int(pid), int(number)] if not f.get("inlined")]
            modules = [f.get("module") for f in frames]
            assert modules == [os.path.realpath(file) for file in [path, *files]]
            names = names_of(frames)
            assert names[0] == "probed" and names[-1] == "_start"
            assert "main" in names and re.search("qsort|raise|gsignal|pthread_kill", str(names))


@tracer.tries(3)
def test_a_file_that_only_a_gone_mount_namespace_had_is_not_taken_for_another(waffle, tmp_path):
    sources = {
        "libsame": "int seen(int n) { return n; } int call(int (*f)(int)) { return f(3) + 1; }",
        "inner": "int call(int (*f)(int)) { return f(3) + 1; }",
    }
    for name, source in sources.items():
        (tmp_path / f"{name}.c").write_text(source, encoding="utf-8")
        tracer.compile_program(
            tmp_path / f"{name}.c", tmp_path / f"{name}.so", "-shared", "-fPIC",
            "-Wl,-soname,libsame.so",
        )  # fmt: skip
    (tmp_path / "main.c").write_text(
        "#include <unistd.h>\nint call(int (*f)(int));"
        "__attribute__((noinline)) int probed(int n) { return n; }"
        "int main(void) { call(probed); _exit(0); }",
        encoding="utf-8",
    )
    path = tracer.compile_program(
        tmp_path / "main.c", tmp_path / "main", tmp_path / "libsame.so", f"-Wl,-rpath,{tmp_path}"
    )
    script = 'mount --bind "$1/inner.so" "$1/libsame.so" && exec "$1/main"'
    probe = ("--stacks", "probes", "--probe", f"uprobe:{path}:probed(int n)")
    capture = waffle.run("unshare", "-m", "sh", "-c", script, "sh", tmp_path, options=probe)
    (row,) = capture.rows("span", name="probed")
    names = names_of(row["user_stack"])
    # Its name, where it was read in time, is that of the file that was there.
    assert names[0] == "probed" and names[1] in (None, "call") and names[2] == "main"
    assert names[-1] == "_start" and row["user_stack"][-2].get("module")


# ---- stacks that end before the outermost frame ----


def run_deep(waffle, built, start):
    """A capture of spans and waits below 40 to 79 calls of a function."""
    path = built("deep.c")
    program = start(path)
    program.until("ready")
    attached = waffle.attach_to(program, path, options=["--stacks", "spans,sched"])
    program.say("go")
    program.finish()
    return attached.wait()


def test_a_stack_is_marked_from_the_frame_on_that_it_lacks(waffle, built, start):
    deep = run_deep(waffle, built, start)
    rows = {row["args"]["depth"]: row for row in deep.rows("span", name="leaf")}
    assert set(rows) == set(range(40, 80))
    others = len(names_of(rows[40]["user_stack"])) - 40
    # 64 with waffle's own, which are left out.
    limit = max(len(names_of(row["user_stack"])) for row in rows.values())
    assert 60 <= limit <= 64 and {limit - others, limit - others + 1} <= set(rows)
    for depth, row in rows.items():
        names = names_of(row["user_stack"])
        assert len(names) == min(depth + others, limit)
        assert (names[-1] == "_start") == (depth + others <= limit)
        assert row.get("user_stack_cut", False) == (depth + others > limit)
    cut = sum(depth + others > limit for depth in rows)
    events = json.loads(deep.export("chrome").read_text(encoding="utf-8"))["traceEvents"]
    assert sum(e.get("args", {}).get("waffle.user_stack_cut", False) for e in events) >= cut
    assert b"\ndown (deep.c:" in deep.export("perfetto").read_bytes()
    assert b")\n[cut]" in deep.export("perfetto").read_bytes()


@tracer.tries(3)  # of which waits stacks are taken is up to the machine, too
def test_waits_in_cut_stacks_say_so(waffle, built, start, tmp_path):
    deep = run_deep(waffle, built, start)
    args = [row["args"] for row in deep.rows("wait") if "user_stack" in row["args"]]
    deepest = [wait for wait in args if len(wait["user_stack"]) == 64]
    assert sum("user_stack_cut" in wait for wait in deepest) >= len(deepest) - 1 > 0
    said = waffle.ok("why", "--evidence", deep.path).stdout
    stacks = [line for line in re.findall(r"user stack ← (.*)", said) if "down (" in line]
    assert any(line.endswith(" ← [cut]") for line in stacks)
    for line in stacks:
        # Not "_start" in line: frames of __libc_start_main are there where only _start is cut off.
        assert line.endswith(" ← [cut]") == ("← _start" not in line)
    page = tmp_path / "page.html"
    waffle.ok("report", "--html", page, deep.path)
    assert '"[cut]"' in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("flag, whole", [("-fno-omit", True), ("-fomit", False)])
def test_a_stack_that_no_table_leads_out_of_is_marked(waffle, built, tmp_path, flag, whole):
    flags = (f"{flag}-frame-pointer", "-fno-asynchronous-unwind-tables", "-g0")
    _, capture = run_sleeps(waffle, built, tmp_path, flags, "--stacks", "spans")
    rows = capture.rows("span", name="outer")
    assert len(rows) == 25
    for row in rows:
        assert ("_start" in names_of(row["user_stack"])) == whole
        assert row.get("user_stack_cut", False) == (not whole)


@pytest.mark.parametrize("what", [" as event", " as span", "(i32 n) -> i32 ret"])
@pytest.mark.parametrize("how", [(), ("--filter", "dur >= 0 || kind == event")])
def test_by_frame_pointers_a_probed_function_has_its_caller(waffle, built, what, how):
    flags = ("-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables", "-g0")
    path = built("nested.c", "-O1", *flags)
    probe = f"uprobe:{path}:innermost{what}"
    capture = waffle.run(path, options=("--probe", probe, "--stacks", "probes", *how))
    [row] = [r for r in capture.rows() if r.get("name") == "innermost"]
    assert names_of(row["user_stack"])[:4] == ["innermost", "middle", "outermost", "main"]


def test_wrong_words_are_said_with_what_there_is(waffle):
    waffle.fails(2, "attach", "-p", "1", "--stacks", "span", says="did you mean spans?")
    waffle.fails(2, "attach", "-p", "1", "--stacks", "gpu", says="there are cuda, nccl, probes")
    waffle.fails(2, "attach", "-p", "1", "--stacks", "span:[a", says="'.a': the pattern is wrong")


def test_a_name_that_nothing_has_is_said_once_with_near_ones(waffle, subject, tmp_path):
    said = "waffle-bpf: attach: --stacks: there is no 'span:leef'; did you mean 'leaf'?\n"
    program, path, *_ = subject(3)
    attached = waffle.attach("-p", program.pid, "--no-report", "--stacks", "span:leef,spans")
    assert attached.wait_notice() == said
    program.say("go")
    program.finish()
    assert said not in attached.wait().result.stderr
    # Of a command it is known when it has ended.
    stdin = tmp_path / "go"
    stdin.write_text("go\n", encoding="utf-8")
    options = ("--no-report", "-o", waffle.path(), "--stacks", "cuda,span:leaf,span:zebra*")
    with open(stdin, encoding="utf-8") as go:
        result = waffle.ok("run", *options, "--", path, tmp_path / "log", 3, stdin=go)
    lines = [line for line in result.stderr.splitlines() if "--stacks" in line]
    assert [re.search("'(.*?)'; there are .*'leaf'", line).group(1) for line in lines] == [
        "cuda", "span:zebra*",
    ]  # fmt: skip


def test_a_word_without_a_match_is_said_with_names_that_have_stacks(waffle, built):
    options = ("--no-report", "-o", waffle.path(), "--stacks", "cuda")
    result = waffle.ok("run", *options, "--", built("secrets.c"))
    line, = (line for line in result.stderr.splitlines() if "--stacks" in line)
    names = line.removeprefix("waffle-bpf: run: --stacks: no span or event matches 'cuda'; there are ")
    assert sorted(names.split(", ")) == ["'denied'", "'login'"]  # not the counter


def test_words_are_said_too_where_there_is_nothing_at_all(waffle, built):
    options = ("--no-report", "-o", waffle.path(), "--stacks", "cuda,probes,nccl,span:zzz")
    result = waffle.ok("run", *options, "--", "true")
    lines = [line for line in result.stderr.splitlines() if "--stacks" in line]
    assert lines == [
        f"waffle-bpf: run: --stacks: no span or event matches '{word}'; there are none at all"
        for word in ("cuda", "probes", "nccl", "span:zzz")
    ]


# ---- Python ----


@pytest.mark.parametrize("python", tracer.interpreters())
@pytest.mark.parametrize("who", [(), ("fork",)], ids=["itself", "child"])
@tracer.tries(3)  # that nothing is lost is up to the machine, too
def test_python_frames_are_those_that_python_says(waffle, built, start, tmp_path, python, who):
    library = built("marked.c", "-shared", "-fPIC", name="libmarked.so")
    log = tmp_path / "log"
    program = start(python, FRAMES, library, log, *who)
    program.until("ready")
    attached = waffle.attach_to(program, library, options=["--stacks", "spans", "--follow"])
    links = attached.links()
    program.say("go")
    if who:
        program.until("forked")
        attached.wait_links(2 * links)  # what a child does before it is armed is not recorded
        program.say("go")
    program.finish()
    capture = attached.wait()
    rows = {row["args"]["number"]: row for row in capture.rows("span", name="mark")}
    expected = json.loads(log.read_text(encoding="utf-8"))
    assert len(rows) == len(expected) == 1000
    assert {47, 48, 49} <= {len(frames) for _, frames in expected}
    for number, frames in expected:
        seen = [[f["function"], f["file"], f["line"]] for f in rows[number]["python_stack"]]
        assert seen == frames[:48]
        assert rows[number].get("python_stack_cut", False) == (len(frames) > 48)
    capture.check_sums(lost=0)


# Debian has none: WAFFLE_OLD_PYTHON names one before 3.8, where there is one.
OLD_PYTHONS = [os.environ["WAFFLE_OLD_PYTHON"]] if "WAFFLE_OLD_PYTHON" in os.environ else []


if OLD_PYTHONS:

    @pytest.mark.parametrize("old", OLD_PYTHONS)
    def test_a_python_that_is_not_known_is_said(old, waffle, built, start, tmp_path):
        library = built("marked.c", "-shared", "-fPIC", name="libmarked.so")
        loop = f"import ctypes, sys; m = ctypes.CDLL('{library}'); print('ready', flush=True); input(); m.mark(1)"
        program = start(old, "-c", loop)
        program.until("ready")
        attached = waffle.attach("-p", program.pid, "--no-report", "--stacks", "spans")
        attached.wait_armed(program.pid, library)
        program.say("go")
        program.finish()
        capture = attached.wait()
        assert "whose version is unknown: 3.8 to 3.14" in capture.result.stderr
        assert "python_stack" not in capture.rows("span", name="mark")[0]


def test_python_and_native_stacks_are_there_together(waffle, built, start, tmp_path):
    library = built("marked.c", "-shared", "-fPIC", name="libmarked.so")
    program = start("/usr/bin/python3", FRAMES, library, tmp_path / "log")
    program.until("ready")
    attached = waffle.attach_to(program, library, options=["--stacks", "spans"])
    program.say("go")
    program.finish()
    capture = attached.wait()
    row = capture.rows("span", name="mark")[0]
    assert row["user_stack"][0]["function"].startswith("mark")
    assert row["user_stack"][0]["module"] == str(library)
    modules = [os.path.basename(f.get("module", "")) for f in row["user_stack"]]
    assert any(m.startswith("libffi") for m in modules), "libffi has no frame pointers"
    assert any("python" in m for m in modules)
    assert b"mark (frames.py:" in capture.export("perfetto").read_bytes()


# ---- tables on disk ----


@pytest.fixture(name="cache")
def fixture_cache():
    """A folder for unwinding tables, which root alone can write: /tmp would be refused."""
    with tempfile.TemporaryDirectory(prefix="waffle-test-", dir="/var/cache") as folder:
        yield pathlib.Path(folder)


def test_tables_of_large_files_are_kept_for_the_next_capture(waffle, built, start, tmp_path, cache):
    path, log = tmp_path / "stacks", tmp_path / "log"
    shutil.copy(built("stacks.c", "-fomit-frame-pointer"), path)
    os.truncate(path, 20 << 20)  # its table is not waited for, unless it is in the cache
    tracer.wait_until(lambda: time.time() - path.stat().st_ctime > 4, "a file that is not new")

    def entries():
        return sorted(name for name in cache.iterdir() if name.name.endswith(f"-{path.stat().st_ino:x}"))

    def attach(folder):
        program = start(path, log, 20)
        program.until("ready")
        environment = {**os.environ, "WAFFLE_CACHE": str(folder)}
        attached = waffle.attach_to(program, path, options=["--stacks", "spans"], env=environment)
        return program, attached, code_of(program.pid, path)

    def go_on(program, attached):
        program.say("go")
        program.finish()
        return attached.wait()

    program, attached, _ = attach(cache)
    tracer.wait_until(entries, "the table of the program")
    go_on(program, attached)
    entry = entries()[0]
    table = entry.read_bytes()
    assert entry.stat().st_mode & 0o777 == 0o600

    program, attached, code = attach(cache)
    assert check_callers(go_on(program, attached), path, log, code) > 0
    assert entry.read_bytes() == table

    entry.write_bytes(table[: len(table) // 2] + bytes(len(table) - len(table) // 2))
    program, attached, _ = attach(cache)
    tracer.wait_until(lambda: entry.read_bytes() == table, "a new table instead of the damaged one")
    go_on(program, attached)

    before = sorted(cache.iterdir())
    program, attached, _ = attach("off")
    go_on(program, attached)
    assert sorted(cache.iterdir()) == before


def test_processes_of_a_large_file_share_what_is_kept_of_it(waffle, built, start, tmp_path, cache):
    path, log = tmp_path / "stacks", tmp_path / "log"
    path.write_bytes(built("stacks.c").read_bytes())
    path.chmod(0o755)
    os.truncate(path, 2 << 20)
    tracer.wait_until(lambda: time.time() - path.stat().st_ctime > 4, "a file that is not new")

    def entries_after_a_capture():
        program = start(path, log, 3)
        program.until("ready")
        environment = {**os.environ, "WAFFLE_CACHE": str(cache)}
        attached = waffle.attach("-p", program.pid, "-q", "--no-report", env=environment)
        tracer.wait_until(lambda: attached.capture.path.exists(), "attach")
        program.say("go")
        program.finish()
        attached.wait()
        return {name: name.stat().st_mtime_ns for name in cache.glob(f"parsed-*-{path.stat().st_ino:x}-*")}

    first = entries_after_a_capture()
    assert first
    assert entries_after_a_capture() == first


def test_what_was_found_in_a_large_file_is_kept_for_the_next_capture(waffle, built, start, tmp_path, cache):
    path, log = tmp_path / "stacks", tmp_path / "log"
    debug = tmp_path / ".debug" / "stacks.debug"
    whole = built("stacks.c", "-fomit-frame-pointer")
    debug.parent.mkdir()
    subprocess.run(["objcopy", "--only-keep-debug", whole, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", whole, path], check=True)
    debug.rename(tmp_path / "elsewhere")
    os.truncate(path, 2 << 20)
    tracer.wait_until(lambda: time.time() - path.stat().st_ctime > 4, "a file that is not new")

    def entries():
        return sorted(name for name in cache.iterdir() if f"-{path.stat().st_ino:x}-" in name.name)

    def names(probe, folder=cache):
        """The spans of a capture; None: waffle knows no function of that name."""
        program = start(path, log, 3)
        program.until("ready")
        environment = {**os.environ, "WAFFLE_CACHE": str(folder)}
        options = ("-p", program.pid, "--probe", f"uprobe:{path}:{probe}", "-q", "--no-report")
        attached = waffle.attach(*options, env=environment)
        tracer.wait_until(lambda: attached.capture.path.exists() or attached.process.poll() is not None, "attach")
        if attached.process.poll() is not None:
            assert f"no function '{probe}' in {path}, which is stripped" in attached.process.communicate()[1]
            program.kill()
            return None
        program.say("go")
        program.finish()
        return {row["name"] for row in attached.wait().rows("span")}

    assert names("recurse") is None, "only the debug file has its symbol"
    first = entries()
    assert first and all(entry.stat().st_mode & 0o777 == 0o600 for entry in first)
    kept = {entry: entry.read_bytes() for entry in first}
    assert names("recurse") is None
    assert all(entry.read_bytes() == kept[entry] for entry in first)

    # What is kept does not hide a debug file that was installed since.
    (tmp_path / "elsewhere").rename(debug)
    spans = names("recurse")
    assert "recurse" in spans and "note" not in spans
    assert names("note") == spans - {"recurse"} | {"note"}, "another description has an entry of its own, or none"
    debug.rename(tmp_path / "elsewhere")
    assert names("recurse") is None

    for entry in entries():
        entry.write_bytes(entry.read_bytes()[:-9] + b"\xff" * 9)
    assert names("recurse") is None
    before = {entry: entry.stat().st_mtime_ns for entry in cache.iterdir()}
    assert names("recurse", "off") is None
    assert {entry: entry.stat().st_mtime_ns for entry in cache.iterdir()} == before
