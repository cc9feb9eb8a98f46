# SPDX-License-Identifier: Apache-2.0
"""waffle-bpf run on real programs: each value is compared with the program's own log."""

import collections
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tracer import (Capture, Waffle, compile_program, monotonic_ns, named, parse_log, semaphores,
                    wait_until)


def letters(count):
    return "".join(chr(ord("a") + i % 26) for i in range(count))


@pytest.fixture(scope="module")
def values(request, built, waffle_program, tmp_path_factory):
    """One run of programs/values.c: its capture, its rows, its own log."""
    waffle = Waffle(waffle_program, tmp_path_factory.mktemp("values"))
    before = monotonic_ns()
    capture = waffle.run(built("values.c"))
    after = monotonic_ns()
    log = collections.defaultdict(list)
    for row in parse_log(capture.result.stdout.splitlines()):
        log[row["kind"]].append(row)
    return capture, capture.rows(), log, (before, after)


def one(rows, name):
    [row] = named(rows, name)
    return row


def test_integers_of_all_widths_and_signs_arrive_unchanged(values):
    args = one(values[1], "integers")["args"]
    assert args == {
        "negative": -5,
        "least": -(2**63),
        "most": 2**64 - 1,
        "half": 2**31,
        "char": ord("x"),
    }


def test_reals_arrive_bit_for_bit(values):
    args = one(values[1], "reals")["args"]
    assert args == {
        "tenth": 0.1,
        "float": 1.5,
        "huge": -1e300,
        "int": 7.0,
        "nan": "NaN",
        "infinity": "-Infinity",
    }


def test_truth_values_are_true_and_false(values):
    args = one(values[1], "truths")["args"]
    assert args == {"yes": True, "no": False, "many": True, "null": False}
    assert all(isinstance(value, bool) for value in args.values())


def test_pointers_are_shown_in_hexadecimal(values):
    assert one(values[1], "pointers")["args"] == {"main": "0x7fff12345678", "null": "0x0"}


def test_strings_arrive_byte_for_byte(values):
    args = one(values[1], "strings")["args"]
    assert args == {
        "empty": "",
        "null": None,
        "plain": "hello",
        "eight": "12345678",
        "quotes": 'a"b\\c\n\t\x01',
        "utf8": "Grüße 漢字",
        "not utf8": "a\ufffd\ufffdb",
    }


def test_strings_beyond_256_bytes_are_cut_and_marked(values):
    args = one(values[1], "long strings")["args"]
    assert args == {
        "256": letters(256),
        "257": letters(256) + "…",
        "10000": letters(256) + "…",
    }


def test_sixteen_keys_in_any_order(values):
    full = letters(256)
    span = one(values[1], "sixteen")
    cause = one(values[1], "a cause")
    assert span["args"] == {
        "k1": full, "k2": -2, "k3": full, "k5": 5.5, "k6": full, "k7": True, "k8": "0x8",
        "k9": full, "k10": 10, "k11": "", "k12": full, "k13": 13, "k14": None,
        "k15": full + "…", "k16": 16,
    }  # fmt: skip
    assert span["links"] == [{"kind": "event", "id": cause["id"]}]


def test_sixteen_full_strings_fit(values):
    args = one(values[1], "all strings")["args"]
    expected = {f"s{i}": letters(256) for i in range(1, 16)}
    expected["s16"] = letters(256) + "…"
    assert args == expected


def test_parents_follow_the_blocks_and_a_trace_has_one_id(values):
    rows = values[1]
    outer = one(rows, "outer")
    middles, inners, leaves = (named(rows, name) for name in ("middle", "inner", "leaf"))
    assert "parent" not in outer
    assert [m["args"] for m in middles] == [{"i": i} for i in range(3)]
    assert all(m["parent"] == outer["id"] for m in middles)
    by_i = {m["args"]["i"]: m["id"] for m in middles}
    assert [x["args"] for x in inners] == [{"i": i, "j": j} for i in range(3) for j in range(2)]
    assert all(x["parent"] == by_i[x["args"]["i"]] for x in inners)
    by_ij = {tuple(x["args"].values()): x["id"] for x in inners}
    assert len(leaves) == 6
    assert all(leaf["parent"] == by_ij[tuple(leaf["args"].values())] for leaf in leaves)
    after = one(rows, "after")
    assert after["parent"] == outer["id"] == f"{after['args']['span']:016x}"
    family = [outer, after, *middles, *inners, *leaves]
    assert {row["trace"] for row in family} == {outer["trace"]}
    assert len(outer["trace"]) == 32 and int(outer["trace"], 16)
    for inner in inners:
        [parent] = [m for m in middles if m["id"] == inner["parent"]]
        assert parent["start_ns"] <= inner["start_ns"] < inner["end_ns"] <= parent["end_ns"]


def test_ids_are_unique_and_different_traces_have_different_ids(values):
    rows = [row for row in values[1] if "id" in row]
    assert len({row["id"] for row in rows}) == len(rows)
    roots = [row for row in rows if row["kind"] == "span" and "parent" not in row]
    assert len({row["trace"] for row in roots}) == len(roots)


def test_links_name_the_spans_and_events_that_the_program_meant(values):
    rows, [said] = values[1], values[2]["links"]
    event, span = f"{said['event']:016x}", f"{said['span']:016x}"
    assert one(rows, "cause event")["id"] == event
    assert one(rows, "cause span")["id"] == span
    assert one(rows, "cause event")["links"] == [{"kind": "span", "id": span}]
    assert one(rows, "effect")["links"] == [
        {"kind": "event", "id": event},
        {"kind": "span", "id": span},
    ]
    assert one(rows, "effect event")["links"] == [{"kind": "event", "id": event}]


def test_nan_example_of_the_issue(values):
    rows = values[1]
    cause = one(rows, "Creating NaN on purpose")
    calm, broken = named(rows, "MPI_Allreduce_op")
    result = one(rows, "MPI_Allreduce result is NaN")
    assert cause["args"] == {"rank": 1}
    assert calm["args"] == {"rank": 0} and "links" not in calm
    assert broken["args"] == {"rank": 1}
    assert broken["links"] == [{"kind": "event", "id": cause["id"]}]
    assert result["parent"] == broken["id"]


def test_counters_keep_sign_width_and_kind(values):
    series = collections.defaultdict(list)
    for row in values[1]:
        if row["kind"] == "counter":
            series[row["name"]].append(row["args"]["value"])
            assert "id" not in row
    assert series == {
        "signed": [-8, -3],
        "unsigned": [2**64 - 1],
        "byte": [200],
        "double": [2.25],
        "float": [0.5],
        "series": [i * i for i in range(10)],
    }
    assert isinstance(series["double"][0], float)
    counters = {row["name"]: row for row in values[0].report()["counters"]}
    assert counters["series"]["count"] == 10
    assert (counters["series"]["min"], counters["series"]["max"]) == (0, 81)
    assert counters["series"]["last"] == 81 and counters["series"]["mean"] == 28.5
    assert counters["signed"]["min"] == -8


def test_span_ends_on_another_thread(values):
    rows, log = values[1], values[2]
    span = one(rows, "moved")
    [begin], [tid, ts] = log["moved_begin"], log["moved"] + log["moved_end"]
    assert span["tid"] == begin["tid"] and span["end_tid"] == tid["end_tid"]
    assert span["moved"] is True
    assert begin["ts"] <= span["start_ns"] and span["end_ns"] <= ts["ts"]
    assert span["end_ns"] - span["start_ns"] >= 2_000_000


def test_inject_carries_the_context_to_another_thread(values):
    rows, log = values[1], values[2]
    giver, taker, other = (one(rows, name) for name in ("giver", "injected", "not injected"))
    assert giver["id"] == f"{log['giver'][0]['span']:016x}"
    assert taker["parent"] == giver["id"] and taker["trace"] == giver["trace"]
    assert taker["tid"] == other["tid"] == log["injected"][0]["tid"]
    assert "parent" not in other and other["trace"] != giver["trace"]


def test_logs_have_their_severity(values):
    logs = [row for row in values[1] if "severity" in row]
    assert [(row["severity"], row["name"], row["args"]["n"]) for row in logs] == [
        ("info", "it goes on", 1),
        ("warn", "it slows", 2),
        ("error", "it stopped", 3),
    ]


def test_times_of_spans_lie_between_the_program_s_own_clock_readings(values):
    spans, said = named(values[1], "timed"), values[2]["timed"]
    assert len(spans) == len(said) == 5
    for span, log in zip(spans, said):
        assert log["before"] <= span["start_ns"] <= log["inside"]
        assert log["inside_end"] <= span["end_ns"] <= log["after"]
        assert span["tid"] == log["tid"]
        total = span["end_ns"] - span["start_ns"]
        assert span["running_ns"] + span["runnable_ns"] + span["blocked_ns"] == total
        if span["args"]["i"] % 2:
            # It slept for 3 ms, from when its timer was set: it may have lost the CPU just then.
            assert total >= 3_000_000 and span["blocked_ns"] >= 1_500_000
        else:
            assert span["blocked_ns"] == 0  # it span


def test_counts_are_exact_and_nothing_is_lost(values):
    capture, rows, _, (before, after) = values
    thousand = named(rows, "thousand")
    assert [row["args"]["i"] for row in thousand] == list(range(1000))
    capture.check_sums(lost=0)
    info = capture.info()
    kinds = collections.Counter(row["kind"] for row in rows)
    assert info["spans"] == kinds["span"] == 24
    assert info["counters"] == kinds["counter"] == 16
    assert info["events"] + info["logs"] >= kinds["event"]
    assert info["links"] == 6
    assert info["threads"] == 3
    assert before <= info["start_ns"] < info["end_ns"] <= after
    assert info["duration_ns"] == info["end_ns"] - info["start_ns"]


def test_report_adds_up_what_the_spans_say(values):
    capture, rows = values[0], values[1]
    spans = [row for row in rows if row["kind"] == "span"]
    for row in capture.report()["spans"]:
        mine = sorted(s["end_ns"] - s["start_ns"] for s in spans if s["name"] == row["name"])
        assert row["count"] == len(mine)
        assert row["total_ns"] == sum(mine)
        assert row["max_ns"] == mine[-1]
        for key, quantile in (("p50_ns", 50), ("p99_ns", 99)):
            rank = max(1, -(-quantile * len(mine) // 100))
            assert row[key] == mine[rank - 1]
        for state in ("running_ns", "runnable_ns", "blocked_ns"):
            assert row[state] == sum(
                s.get(state, 0) for s in spans if s["name"] == row["name"]
            )
    assert {row["name"] for row in capture.report()["spans"]} == {s["name"] for s in spans}


def test_cplusplus_templates_lambdas_and_exceptions(waffle, built):
    rows = waffle.run(built("cplusplus.cpp")).rows()
    spans = {row["id"]: row for row in rows if row["kind"] == "span"}
    assert sorted(s["args"]["size"] for s in named(rows, "twice")) == [4, 8, 32]
    assert [s["args"]["n"] for s in named(rows, "lambda")] == list(range(5))
    assert [s["args"]["n"] for s in named(rows, "inlined")] == list(range(5))
    assert [s["args"]["size"] for s in named(rows, "generic")] == [4, 1, 8]
    thrown = named(rows, "throws")
    assert [s["args"]["depth"] for s in thrown] == [2, 1, 0] * 3
    assert all("unfinished" not in span for span in spans.values())
    for span in thrown:
        if span["args"]["depth"] < 2:
            assert spans[span["parent"]]["args"]["depth"] == span["args"]["depth"] + 1
        else:
            assert "parent" not in span
    destroyed = named(rows, "destroyed")
    assert len(destroyed) == len(named(rows, "made")) == 9
    assert all(row["parent"] == f"{row['args']['span']:016x}" for row in destroyed)
    caught = named(rows, "caught")
    assert [row["args"] for row in caught] == [{"what": "at the bottom", "span": 0}] * 3
    assert one(rows, "string")["args"] == {"name": "std::string"}
    assert one(rows, "sum")["args"]["value"] == 2 + 4 + 2 + sum(range(5)) + sum(range(1, 6)) + 99


@pytest.mark.parametrize("way", ["fork", "fork_exec", "vfork", "spawn", "exec", "thread"])
def test_run_follows_what_the_program_starts(waffle, built, way):
    program = built("family.c")
    # A forked child is not held: tests/integration/test_hold.py.
    capture = waffle.run(program, way, 20, options=["--machine-wide"] if way == "fork" else [])
    said = {row["who"]: row for row in parse_log(capture.result.stdout.splitlines())
            if row["kind"] == "worked"}  # fmt: skip
    rows = capture.rows()
    whos = {"thread": ["parent", "thread", "after"], "exec": ["parent", "child"]}
    expected = whos.get(way, ["parent", "child", "after"])
    assert sorted(said) == sorted(expected)
    for who in expected:
        ticks = [row for row in named(rows, "tick") if row["args"]["who"] == who]
        assert [row["args"]["i"] for row in ticks] == list(range(20)), who
        assert {(row["pid"], row["tid"]) for row in ticks} == {
            (said[who]["pid"], said[who]["tid"])
        }
        works = [row for row in named(rows, "work") if row["args"]["who"] == who]
        assert len(works) == 20 and not any("unfinished" in row for row in works)
    if "child" in expected:
        # The traceparent made the child's span a child of the parent's.
        family, child = one(rows, "family"), one(rows, "child")
        assert child["args"] == {"valid": True}
        assert child["parent"] == family["id"] and child["trace"] == family["trace"]
        assert child["pid"] == said["child"]["pid"]
        assert (family.get("unfinished") is True) == (way == "exec")
    capture.check_sums(lost=0)


def test_no_follow_traces_the_command_s_own_process_only(waffle, built):
    capture = waffle.run(built("family.c"), "fork_exec", 10, options=["--no-follow"])
    ticks = named(capture.rows(), "tick")
    assert collections.Counter(row["args"]["who"] for row in ticks) == {"parent": 10, "after": 10}
    assert capture.info()["threads"] == 1


def test_shell_starts_several_instrumented_programs(waffle, built):
    family, values_program = built("family.c"), built("values.c")
    script = f"{family} none 7; {values_program} >/dev/null; {family} none 8"
    rows = waffle.run("sh", "-c", script).rows()
    ticks = collections.Counter(row["pid"] for row in named(rows, "tick"))
    assert sorted(ticks.values()) == [14, 16]
    assert len(named(rows, "thousand")) == 1000


@pytest.fixture
def user_of_library(built):
    """A program, and the library that it needs."""
    library = built("library.c", "-shared", "-fPIC", name="liblate.so")
    return library, built(
        "needs_library.c", f"-L{library.parent}", "-llate", f"-Wl,-rpath,{library.parent}"
    )


def check_user_of_library(rows):
    events = named(rows, "library event")
    # From its first call, made by the library's constructor before main.
    assert [row["args"]["i"] for row in events] == list(range(-1, 100))
    assert len(named(rows, "main event")) == 100
    assert len(named(rows, "library span")) == 101


def test_exec_of_another_program_with_a_needed_library(waffle, built, user_of_library):
    _, user = user_of_library
    check_user_of_library(waffle.run(built("family.c"), "fork_exec", 5, user).rows())


@pytest.mark.parametrize("path", ["LD_LIBRARY_PATH=.", "LD_PRELOAD=./liblate.so", "rpath"])
def test_needed_library_by_a_relative_path(waffle, built, path):
    """Of the program's working directory, which is not waffle's."""
    named_so = "-Wl,-soname,liblate.so"
    folder = built("library.c", "-shared", "-fPIC", named_so, name="liblate.so").parent
    rpath = ["-Wl,-rpath,."] if path == "rpath" else []
    user = built("needs_library.c", f"-L{folder}", "-llate", *rpath, name="user-" + path[:6])
    setting = "" if rpath else path
    script = f"cd {folder} && {setting} exec {user}"
    check_user_of_library(waffle.run("sh", "-c", script).rows())


def test_program_in_a_chroot_with_a_needed_library(waffle, user_of_library, tmp_path):
    library, user = user_of_library
    needed = subprocess.run(["ldd", user], capture_output=True, text=True, check=True).stdout
    for path in re.findall(r"(/\S+) \(0x", needed):
        place = tmp_path / ("lib" if path == str(library) else path[1:])
        place = place / library.name if path == str(library) else place
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    (tmp_path / "bin").mkdir()
    shutil.copy(user, tmp_path / "bin")
    check_user_of_library(waffle.run("chroot", tmp_path, f"/bin/{user.name}").rows())


def test_program_in_a_mount_namespace_with_a_needed_library(waffle, user_of_library, tmp_path):
    library, user = user_of_library
    script = (f"mount -t tmpfs none {tmp_path} && cp {user} {library} {tmp_path} && "
              f"LD_LIBRARY_PATH={tmp_path} exec {tmp_path}/{user.name}")
    # The capture is not to be in what only the program sees.
    capture = Capture(waffle, library.parent / "namespace.waffle")
    waffle.ok("run", "-q", "--no-report", "-o", capture.path, "--", "unshare", "-m", "sh", "-c",
              script)
    check_user_of_library(capture.rows())


@pytest.fixture
def own_loader(tmp_path):
    """A program with a loader of its own, which writes down what runs it, and that log."""
    loader = compile_program("own_loader.c", tmp_path / "loader", "-static")
    program = compile_program("steps.c", tmp_path / "it", f"-Wl,--dynamic-linker={loader}")
    return program, tmp_path / "log"


OWN_LOADER_USES = {
    "run": ("run", "--no-report", "-o", "CAPTURE", "--"),
    "stacks": ("run", "--no-report", "-o", "CAPTURE", "--stacks", "probes", "--"),
    "explain": ("run", "--explain", "--filter", "dur > 1ms", "--"),
    "list": ("list",),
}


@pytest.mark.parametrize("use", OWN_LOADER_USES)
def test_loader_that_a_program_brings_is_not_run(waffle, own_loader, use):
    """It could do anything. The kernel runs it for the program, where it fails before its main."""
    program, log = own_loader
    options = [waffle.path() if word == "CAPTURE" else word for word in OWN_LOADER_USES[use]]
    result = waffle.call(*options, program, env={**os.environ, "LOADER_LOG": str(log)})
    assert result.returncode == (128 + signal.SIGSEGV if "-o" in options else 0)
    assert not log.exists()


@pytest.mark.parametrize(
    "command, code",
    [
        (["sh", "-c", "exit 3"], 3),
        (["true"], 0),
        (["sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM),
        (["sh", "-c", "kill -KILL $$"], 128 + signal.SIGKILL),
    ],
)
def test_run_exits_as_the_command_did(waffle, command, code):
    capture = waffle.run(*command, code=code)
    assert capture.result.stderr == ""
    capture.check_sums()


def test_command_not_found_is_127_and_one_line(waffle, tmp_path):
    line = waffle.fails(127, "run", "-o", tmp_path / "x.waffle", "--", "/no/such/program")
    assert "/no/such/program" in line and "No such file" in line
    assert not list(tmp_path.iterdir())


def test_command_that_may_not_be_executed_is_126(waffle, tmp_path):
    (tmp_path / "plain").write_text("not a program")
    line = waffle.fails(126, "run", "-o", tmp_path / "x.waffle", "--", tmp_path / "plain")
    assert "Permission denied" in line
    assert [path.name for path in tmp_path.iterdir()] == ["plain"]


def test_run_with_a_duration_leaves_the_command_running(waffle, built, tmp_path):
    pid_file = tmp_path / "pid"
    begin = monotonic_ns()
    capture = waffle.run(
        "sh", "-c", f"echo $$ > {pid_file}; exec >&- 2>&-; exec sleep 30",
        options=["--duration", "300ms"],
    )  # fmt: skip
    took = monotonic_ns() - begin
    pid = int(pid_file.read_text())
    try:
        assert os.kill(pid, 0) is None
        assert 0.25e9 <= capture.info()["duration_ns"] <= took >= 0.3e9
    finally:
        os.kill(pid, signal.SIGTERM)


def test_a_program_of_lld_is_armed_when_its_loader_is_done(waffle, built, start):
    """lld lets two segments share a page of semaphores. While both are writable the kernel raises
    them in the first one, where no site looks, and never takes the breakpoints off again."""
    path = built("steps.c", "-fuse-ld=lld")
    capture = Capture(waffle, waffle.path())
    with open(waffle.folder / "said", "w+", encoding="utf-8") as said:
        ran = start(waffle.program, "run", "--no-report", "-o", capture.path, "--", path, stderr=said)
        for turn in range(2):  # it executes itself: the same file and process, mapped anew
            pid = int(ran.until("ready pid="))
            wait_until(lambda: all(semaphores(pid, path)), "arming", 20)
            ran.ask("event 5", "did event=5")
            ran.say(f"exec {path}" if not turn else "event 1")
        ran.finish()
        said.seek(0)
        text = said.read()
    assert len(named(capture.rows("event"), "step event")) == 11
    assert text.count("is armed when its loader is done") == 1 and "separate-loadable" in text
    assert "2 programs began before being armed: calls at the begin are missing" in text


def test_a_program_of_lld_that_goes_on_has_no_probes_left(waffle, built, start):
    path = built("steps.c", "-fuse-ld=lld")
    ran = start(waffle.program, "run", "-q", "--no-report", "-o", waffle.path(), "-d", "2s", "--", path)
    pid = int(ran.until("ready pid="))
    wait_until(lambda: all(semaphores(pid, path)), "arming", 20)
    ran.process.wait(60)
    assert not any(semaphores(pid, path))
    attached = waffle.attach("-p", pid, "-q", "--no-report")
    wait_until(lambda: all(semaphores(pid, path)), "arming", 20)
    ran.ask("event 5", "did event=5")
    assert len(named(attached.stop().rows("event"), "step event")) == 5
    ran.say("")
    os.kill(pid, signal.SIGKILL)


def test_the_command_inherits_no_descriptor_of_the_tracer(waffle):
    count = "import os; print(len(os.listdir('/proc/self/fd')))"
    plain = subprocess.run(
        [sys.executable, "-c", count], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert waffle.run(sys.executable, "-c", count).result.stdout == plain.stdout


def test_ctrl_c_goes_to_the_command_and_the_file_is_complete(waffle, built):
    path = waffle.path()
    process = subprocess.Popen(
        [waffle.program, "run", "-q", "--no-report", "-o", path, "--", built("steps.c")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        ready = parse_log([process.stdout.readline()])[0]
        assert all(semaphores(ready["pid"], built("steps.c")))
        process.stdin.write("event 5\n")
        process.stdin.flush()
        wait_until(lambda: process.stdout.readline().startswith("did"), "the events")
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 128 + signal.SIGINT
    assert err == ""
    capture = Capture(waffle, path)
    assert len(named(capture.rows(), "step event")) == 5
    assert capture.info()["truncated"] is False
    capture.check_sums(lost=0)


def states(pids):
    found = {}
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
                found[pid] = stat.read().rsplit(")", 1)[1].split()[0]
        except OSError:
            pass
    return found


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as name:
            return name.read()
    except OSError:
        return ""


def session_members(session):
    members = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.getsid(int(name)) == session:
                    members.append(int(name))
            except OSError:
                pass
    return members


def end_session(session):
    while living := [p for p, state in states(session_members(session)).items() if state != "Z"]:
        for pid in living:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.005)


def test_tracer_killed_while_programs_start_leaves_none_of_them_stopped(waffle, built):
    """A new program is held at its exec until it is armed: somebody must let it go."""
    family = built("family.c")
    script = f"while :; do {family} fork_exec 1 >/dev/null; done"
    for delay in (0.02, 0.1, 0.15, 0.2, 0.25, 0.3):
        process = subprocess.Popen(
            [waffle.program, "run", "-q", "--no-report", "-o", waffle.path(), "--",
             "sh", "-c", script],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            time.sleep(delay)
            process.kill()
            process.wait()
            # Nobody stays stopped, and the script goes on to start new processes.
            wait_until(
                lambda: "T" not in states(session_members(process.pid)).values(), "no stopped one"
            )
            before = set(session_members(process.pid))

            def goes_on():
                """One that the tracer had not yet let begin ends instead."""
                members = set(session_members(process.pid))
                return not members or members - before

            try:
                wait_until(goes_on, "the script to go on")
            except AssertionError as error:
                members = session_members(process.pid)
                who = {pid: (comm(pid), state) for pid, state in states(members).items()}
                raise AssertionError(f"{error}: {who}") from error
            wait_until(
                lambda: not any(
                    state != "Z" and comm(pid).startswith("waffle")
                    for pid, state in states(session_members(process.pid)).items()
                ),
                "waffle-bpf's own processes to go",
            )
        finally:
            end_session(process.pid)


def test_programs_that_stop_themselves_stay_stopped(waffle, built):
    """SIGSTOP of the program's own is not undone by the tracer's letting go of an exec."""
    script = "kill -STOP $$; echo continued"
    path = waffle.path()
    process = subprocess.Popen(
        [waffle.program, "run", "-q", "--no-report", "-o", path, "--", "sh", "-c", script],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        [pid] = wait_until(
            lambda: [p for p, s in states(session_members(process.pid)).items() if s == "T"],
            "the program to stop",
        )
        time.sleep(0.1)
        assert states([pid]) == {pid: "T"}
        os.kill(pid, signal.SIGCONT)
        assert process.communicate(timeout=60)[0] == "continued\n"
        assert process.returncode == 0
    finally:
        end_session(process.pid)
