# SPDX-License-Identifier: Apache-2.0
"""Descriptions of all kinds on a program of one's own: fields of structs, pairs, names, sets."""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from test_calls import probed_bytes
from tracer import Capture, find_tool, parse_log, wait_until, with_tracefs, without_tracefs


def arm(waffle, pid, file, *options, more=()):
    """Attaches, and waits until all probes of a file are in the process's memory."""
    words = [word for word in options if word not in ("-q", "--no-report", "--no-sched")]
    sites = json.loads(waffle.ok("list", "--json", file, *words).stdout)["sites"]
    offsets = sorted({probe["offset"] for site in sites for probe in site["probes"]})
    assert offsets
    data = pathlib.Path(file).read_bytes()
    plain = [data[offset:offset + 1] for offset in offsets]
    inode = os.stat(file).st_ino
    attached = waffle.attach("-p", pid, *options, *more, "-q", "--no-report", "--no-sched")

    def armed():
        assert attached.process.poll() is None, attached.process.communicate()
        now = probed_bytes(pid, inode, offsets)
        return now and all(a != b for a, b in zip(now, plain))

    wait_until(armed, f"probes in {file}")
    return attached


def traced(waffle, start, program, *probes, more=()):
    """What the program logged in one round, and the rows of the capture."""
    running = start(program)
    running.until("ready")
    attached = arm(waffle, running.pid, program,
                   *(word for probe in probes for word in ("--probe", probe)), more=more)
    running.say("go")
    log = []
    while (line := running.line()) != "done":
        log.append(line)
    capture = attached.stop()
    capture.check_sums(lost=0)
    return parse_log(log), capture.rows()


def test_fields_of_structs_are_read_by_dwarf(waffle, start, built):
    log, rows = traced(
        waffle, start, built("probed.c"),
        "uprobe:exe:handle_request(struct request *r, int turn) {r->path, r->connection->fd as fd, "
        "r->connection->port, r->method, r->bytes, r->weight} -> int result "
        'as span "{method} {path}"')
    spans = [row for row in rows if row["kind"] == "span"]
    assert len(spans) == len(log) == 5
    for row, said in zip(spans, log):
        said = {key: value for key, value in said.items() if key != "kind"}
        assert row["args"] == {**said, "weight": 1.5}
        assert row["name"] == f"POST {said['path']}"
        assert row["category"] == "probed"


def test_pair_begins_on_one_thread_and_ends_on_another(waffle, start, built):
    _, rows = traced(waffle, start, built("probed.c"),
                     "uprobe:exe:job_begin(long id, char *name)..job_end(struct job *j) {j->status} "
                     "key=id..*(long)(j) as span job category work")
    jobs = [row for row in rows if row["kind"] == "span"]
    assert [(row["args"]["id"], row["args"]["name"], row["args"]["status"]) for row in
            sorted(jobs, key=lambda row: row["start_ns"])] == [
        (900, "job 0", 0), (901, "job 1", -1), (902, "job 2", 7)]
    assert all(row["name"] == "job" and row["category"] == "work" for row in jobs)
    # The last to begin is the first to end.
    assert sorted(jobs, key=lambda row: row["end_ns"]) == sorted(
        jobs, key=lambda row: -row["start_ns"])


@pytest.mark.parametrize("expression, ids", [
    ("kv.id <= 900", [900]),
    ('name == "job" && kv.name == "job 2"', [902]),
    ('name == "job" && dur > 1ns', [900, 901, 902]),
    ("kv.id > 900 && kv.status < 0", [901]),
    ('name == "other" || kv.status == 7', [902]),
])
def test_filter_keeps_pairs_by_what_is_known_at_either_end(waffle, start, built, expression, ids):
    _, rows = traced(waffle, start, built("probed.c"),
                     "uprobe:exe:job_begin(long id, char *name)..job_end(struct job *j) {j->status} "
                     "key=id..*(long)(j) as span job category work", more=("--filter", expression))
    assert sorted(row["args"]["id"] for row in rows if row["kind"] == "span") == ids


def test_pairs_of_a_thread_nest(waffle, start, built):
    _, rows = traced(waffle, start, built("probed.c"),
                     "uprobe:exe:climb_enter(int depth)..climb_leave key=tid as span climb",
                     "uprobe:exe:climb(int depth) -> int result as span real")
    spans = sorted((row for row in rows if row["kind"] == "span"),
                   key=lambda row: row["start_ns"])
    pairs = [row for row in spans if row["name"] == "climb"]
    real = [row for row in spans if row["name"] == "real"]
    assert [row["args"]["depth"] for row in pairs] == [4, 3, 2, 1, 0]
    assert [(row["args"]["depth"], row["args"]["result"]) for row in real] == [
        (4, 5), (3, 4), (2, 3), (1, 2), (0, 1)]
    for outer, pair in zip(real, pairs):
        assert outer["start_ns"] < pair["start_ns"] <= pair["end_ns"] < outer["end_ns"]
    for outer, inner in zip(pairs, pairs[1:]):
        assert outer["start_ns"] < inner["start_ns"] <= inner["end_ns"] < outer["end_ns"]


def test_pair_without_an_end_or_with_a_new_one_of_its_key_is_no_parent(waffle, built):
    capture = waffle.run(
        built("probed.c"), stdin=None, input="go\n",
        options=("--no-sched", "--probe", "uprobe:exe:handle_request(ptr r)..fill(, ptr text) "
                 "key=r..text as span handled", "--probe", "uprobe:exe:climb(int depth)"))
    capture.check_sums(lost=0)
    handled = sorted(capture.rows("span", name="handled"), key=lambda row: row["start_ns"])
    # All are of one request: each but the last one is over when the next one begins.
    assert [row.get("left", False) for row in handled] == [True] * 4 + [False]
    assert [row.get("unfinished", False) for row in handled] == [False] * 4 + [True]
    for row, following in zip(handled, handled[1:]):
        assert row["end_ns"] == following["start_ns"]
    climbs = sorted(capture.rows("span", name="climb"), key=lambda row: row["start_ns"])
    assert len(climbs) == 5
    assert [row.get("parent") for row in climbs] == [None, *(row["id"] for row in climbs[:-1])]


@pytest.mark.parametrize("options, said, live, kept", [
    (("--keep-children", "--filter", 'name == "climb" && kv.depth == 2'), "--keep-children: what "
     "span a call is in is not known while it is recorded", 1, 3),
    (("--filter", "kind == span && sample(1/1)"), "sample(): the trace of a call is not known "
     "while it is recorded", 5, 5),
])
def test_spans_around_calls_that_only_the_file_knows_are_said(
        waffle, built, options, said, live, kept):
    def recorded(*more):
        path = waffle.path()
        done = waffle.call("run", "--no-report", "-o", path, "--no-sched", "--probe",
                           "uprobe:exe:climb(int depth)", *more, "--", built("probed.c"),
                           stdin=None, input="go\n")
        assert done.returncode == 0, done.stderr
        return path, done.stderr

    def climbs(path, *more):
        rows = waffle.ok("export", "-f", "ndjson", "-o", "-", path, *more).stdout.splitlines()
        return [row for row in map(json.loads, rows) if row["kind"] == "span"]

    path, stderr = recorded(*options)
    assert stderr.count(said) == 1
    assert len(climbs(path)) == live
    path, stderr = recorded()
    assert said not in stderr
    assert len(climbs(path, *options)) == kept


@pytest.mark.parametrize("expression, kept", [
    (None, 13),
    ("rate(2/min)", 2),  # what is not kept counts as one that the thread is in
    ("kv.depth != 1", 9),
    ("dur >= 0ns && kv.depth < 100", 6),  # what was left has no end at which it could be asked
])
def test_pairs_of_a_function_that_was_left_are_over(waffle, built, expression, kept):
    capture = waffle.run(
        built("left.c"),
        options=("--no-sched", "--probe", "usdt:exe:left:step__start(int depth)..step__done(int "
                 "end) key=tid frame as span step",
                 *(("--filter", expression) if expression else ())))
    capture.check_sums(lost=0)
    spans = capture.rows("span", name="step")
    assert len(spans) == kept
    left = [row["args"]["depth"] for row in spans if row.get("left")]
    for row in spans:
        assert not row.get("unfinished") and "end_ns" in row
        assert row.get("left") or row["args"]["end"] == row["args"]["depth"]
    if not expression:
        assert left == [3, 2, 1, 3, 2, 1]
        by_id = {row["id"]: row["args"]["depth"] for row in spans}
        assert [by_id.get(row.get("parent")) for row in spans] == [
            None, 2, 1, None, 3, 2, None, 2, 1, None, 100, 3, 2]


def test_values_that_a_function_writes_are_read_at_its_return(waffle, start, built):
    _, rows = traced(waffle, start, built("probed.c"),
                     "uprobe:exe:fill(out long sum, ptr text, double, int by) "
                     "{*(char[8])(text) as before, out *(char[8])(text) as after, duration}")
    spans = [row for row in rows if row["kind"] == "span"]
    for row in spans:
        assert row["args"].pop("duration") == row["end_ns"] - row["start_ns"]
    assert [row["args"] for row in spans] == [
        {"by": 1, "before": "abc", "sum": 41, "after": "bbc"},
        {"by": 2, "before": "bbc", "sum": 43, "after": "dbc"},
        {"by": 3, "before": "dbc", "sum": 46, "after": "gbc"}]


def test_text_on_an_untouched_page_is_not_there_at_the_entry_and_is_at_the_return(
        waffle, built, tmp_path):
    file = tmp_path / "file"
    file.write_text("some text")
    capture = waffle.run(
        built("untouched.c"), file,
        options=("--no-sched", "--probe", 'uprobe:exe:look(str text) as span "entry {text}"',
                 "--probe", "uprobe:exe:look(ptr text) {out *(char[255])(text) as text} -> int "
                            "sum as span return"))
    rows = capture.rows("span")
    assert [row["args"] for row in rows if row["name"] == "return"] == 2 * [
        {"text": "some text", "sum": sum(b"some text")}]
    assert [(row["name"], row["args"]) for row in rows if row["name"] != "return"] == [
        ("entry ?", {}), ("entry some text", {"text": "some text"})]
    assert "text=?" in capture.report_text()


def test_patterns_take_all_functions_that_match(waffle, start, built):
    _, rows = traced(waffle, start, built("probed.c"),
                     'uprobe:exe:job_*(...) as event "<{func}>"')
    names = collections.Counter(row["name"] for row in rows if row["kind"] == "event")
    assert names == {"<job_begin>": 3, "<job_end>": 3}
    assert {row["args"]["arg1"] for row in rows if row.get("name") == "<job_begin>"} == {
        "0x384", "0x385", "0x386"}


def test_methods_by_the_names_that_people_write(waffle, start, built):
    _, rows = traced(waffle, start, built("probed_classes.cpp"),
                     "uprobe:exe:shop::Cart::add(shop::Cart *cart, int count) "
                     "{cart->items, cart->stock, count} -> int result")
    spans = [row for row in rows if row["kind"] == "span"]
    assert [row["args"] for row in spans] == [
        {"items": 3, "stock": 12, "count": 1, "result": 4},
        {"items": 4, "stock": 12, "count": 2, "result": 16},
        {"items": 16, "stock": 12, "count": 3, "result": 19}]
    assert all(row["name"].startswith("shop::Cart::add") for row in spans)


@pytest.mark.parametrize("description, count", [
    ("uprobe:exe:shop::work", 60),
    ('uprobe:exe:"shop::work(long)"(long first) -> long sum', 30),
    ("uprobe:exe:shop::twice<int>(int x) -> int result", 30),
    ("uprobe:exe:shop::twice", 60),
    ("uprobe:exe:shop::*(...)", 170),
])
def test_parts_of_functions_are_left_alone_and_overloads_told_apart(
        waffle, built, description, count):
    program = built("split.cpp")
    symbols = subprocess.run([find_tool("nm"), "-C", program], capture_output=True, text=True,
                             check=True).stdout
    assert "shop::work(long) [clone .cold]" in symbols
    capture = waffle.run(program, options=("--no-sched", "--probe", description))
    assert capture.result.stdout == "12330\n"
    spans = [row for row in capture.rows() if row["kind"] == "span"]
    assert len(spans) == count
    assert all(row["end_ns"] for row in spans)
    for row in spans:
        if "sum" in row["args"]:
            assert row["args"]["sum"] == 16 * row["args"]["first"] + 120
        if "result" in row["args"]:
            assert row["args"]["result"] == 2 * row["args"]["x"]


def test_both_descriptions_of_one_function_in_a_file_are_recorded(waffle, built, tmp_path):
    probes = tmp_path / "two.probes"
    probes.write_text('uprobe:exe:shop::twice<int>(int x) as event "one {x}"\n'
                      "uprobe:exe:shop::twice<int>(int x) as event two\n")
    capture = waffle.run(built("split.cpp"), options=("--no-sched", "--probes", probes))
    names = collections.Counter(row["name"] for row in capture.rows("event"))
    assert names == {"two": 30, **{f"one {x}": 1 for x in range(30)}}


def test_list_finds_a_file_by_its_plain_name_and_fails_without_one(waffle, built):
    program = built("split.cpp")
    found = waffle.ok("list", "--probe", "uprobe:split:shop::fill", program.name,
                      cwd=program.parent)
    assert "span      shop::fill [split]" in found.stdout
    waffle.fails(1, "list", "--probe", "uprobe:splitted:shop::fill", program,
                 says="--probe: no file 'splitted' among those given")


def test_file_in_a_folder_with_blanks_colons_and_commas(waffle, built, tmp_path):
    folder = tmp_path / "my app, 1:2 (new) #3"
    folder.mkdir()
    program = shutil.copy(built("split.cpp"), folder)
    spec = f'uprobe:"{program}":shop::twice<int>(int x) as event twice'
    probes = tmp_path / "quoted.probes"
    probes.write_text(spec + " # all of them\n")
    for options in (("--probe", spec), ("--probes", probes)):
        assert "event     twice" in waffle.ok("list", *options, program).stdout
        rows = waffle.run(program, options=("--no-sched", *options)).rows("event")
        assert [row["name"] for row in rows] == 30 * ["twice"]


@pytest.mark.parametrize("spec, names", [
    ("usdt:exe:doubles:measured", ("arg1", "arg2", "arg3")),
    ("usdt:exe:doubles:measured(double first, int turn, double second)",
     ("first", "turn", "second")),
])
def test_doubles_of_usdt_probes_and_no_word_of_a_float(waffle, built, spec, names):
    capture = waffle.run(built("doubles.c"), options=("--no-sched", "--probe", spec))
    capture.check_sums(lost=0)
    log = [tuple(said[key] for key in ("first", "turn", "second"))
           for said in parse_log(capture.result.stdout.splitlines())]
    assert [tuple(row["args"].get(name) for name in names) for row in capture.rows("event")] == [
        (float(first), int(turn), float(second)) for first, turn, second in log]
    assert len(log) == 5 and len({second for _, _, second in log}) == 5
    told = waffle.call("list", "--probe", spec, built("doubles.c")).stderr
    left_out = "argument 4 of measured of .*doubles.* is left out: it is a float, "
    assert len(re.findall(left_out, told)) == (names[0] == "arg1")
    kept = waffle.run(built("doubles.c"), options=(
        "--no-sched", "--probe", spec, "--filter", f"kv.{names[0]} > 0.25")).rows("event")
    assert [row["args"][names[1]] for row in kept] == [2, 3, 4]


def test_static_program_has_its_symbols(waffle, start, built):
    _, rows = traced(waffle, start, built("probed.c", "-static", name="probed_static"),
                     "uprobe:exe:job_begin(long id)")
    assert [row["args"]["id"] for row in rows if row["kind"] == "span"] == [900, 901, 902]


def test_stripped_program_is_said_to_be(waffle, built, tmp_path):
    stripped = tmp_path / "stripped"
    shutil.copy(built("probed.c"), stripped)
    subprocess.run([find_tool("strip"), stripped], check=True)
    result = waffle.call("list", "--probe", "uprobe:exe:job_begin", stripped)
    assert "no function 'job_begin' in " in result.stderr
    assert "which is stripped" in result.stderr


# A program, what is described, what is missing of it and what is near, and whether it is
# of no use without.
LACKING = [
    ("probed.c", "uprobe:exe:job_begin..job_ent key=arg1", {"job_ent": "job_end"}, True),
    ("probed.c", "uprobe:exe:job_begn..job_end key=arg1", {"job_begn": "job_begin"}, True),
    ("probed.c", "uprobe:exe:job_begn..job_ent key=arg1",
     {"job_begn": "job_begin", "job_ent": "job_end"}, True),
    ("probed.c", "uprobe:exe:job_begin|climb_entr(long) as event", {"climb_entr": "climb_enter"},
     False),
    ("probed.c", "uprobe:exe:climb_enter|climb_entr..climb_leave key=tid",
     {"climb_entr": "climb_enter"}, False),
    ("doubles.c", "usdt:exe:doubles:measured..measurd key=tid", {"measurd": "measured"}, True),
    ("doubles.c", "usdt:exe:doubles:measurd..measured key=tid", {"measurd": "measured"}, True),
    ("doubles.c", "usdt:exe:doubles:measured|measurd(,int turn)", {"measurd": "measured"}, False),
]


def lacking(stderr):
    return {name: near.partition(",")[0] for name, near in
            re.findall(r"no (?:function|USDT probe) '(\w+)' in [^;\n]*; did you mean (.*)", stderr)}


@pytest.mark.parametrize("source, spec, missing, fatal", LACKING)
def test_what_is_missing_of_a_description_is_said_with_near_names(
        waffle, built, source, spec, missing, fatal):
    listed = waffle.call("list", "--probe", spec, built(source))
    assert (lacking(listed.stderr), listed.returncode) == (missing, int(fatal))
    ran = waffle.ok("run", "--no-report", "--no-sched", "-o", waffle.path(), "--probe", spec, "--",
                    built(source))
    assert lacking(ran.stderr) == missing


@pytest.mark.parametrize("spec, missing, fatal", [row[1:] for row in LACKING if "probed" in row[0]])
def test_attach_says_what_is_missing_of_a_description(waffle, start, built, spec, missing, fatal):
    running = start(built("probed.c"))
    running.until("ready")
    said = waffle.call("attach", "-p", running.pid, "--no-report", "--no-sched", "-d", "1ms",
                       "-o", waffle.path(), "--probe", spec)
    assert (lacking(said.stderr), said.returncode) == (missing, int(fatal))


def test_a_cxx_function_that_is_only_there_as_a_clone_is_a_near_name(waffle, tmp_path):
    source, program = tmp_path / "clone.s", tmp_path / "clone"
    clone = "_ZN2ns6Server6handleEi.isra.0"
    source.write_text(f".globl main\n.type main, %function\nmain: ret\n.size main, . - main\n"
                      f'.type "{clone}", %function\n"{clone}": ret\n.size "{clone}", 1\n')
    subprocess.check_call(["gcc", "-o", program, source])
    told = waffle.call("list", "--probe", "uprobe:exe:ns::Server::handle as event", program)
    assert lacking(told.stderr.replace("ns::Server::", "")) == {"handle": clone}
    assert clone in waffle.ok("list", "--probe", f"uprobe:exe:{clone} as event", program).stdout


def test_python_collections_and_imports_are_spans_by_the_interpreters_own_probes(waffle, tmp_path):
    script = tmp_path / "collect.py"
    (tmp_path / "upper.py").write_text("import lower\n")
    (tmp_path / "lower.py").write_text("")
    script.write_text("import gc, sys\ngc.disable()\nimport upper\n"
                      "for turn in range(3):\n"
                      "    a = [[] for _ in range(turn)]\n"
                      "    for x in a:\n        x.append(x)\n"
                      "    a = x = None\n"
                      "    print('collected', gc.collect(turn))\nsys.stdout.flush()\n")
    capture = waffle.run("/usr/bin/python3", "-S", script,
                         options=("--probes", "python", "--no-sched"))
    capture.check_sums(lost=0)
    rows = capture.rows("span", category="python")
    said = [int(line.split()[1]) for line in capture.result.stdout.splitlines()]
    modules = {row["args"]["module"]: row for row in rows if row["name"].startswith("import ")}
    assert modules["upper"]["name"] == "import upper" and modules["upper"]["args"]["found"] == 1
    assert modules["lower"]["parent"] == modules["upper"]["id"]
    seen = [(row["args"]["generation"], row["args"]["collected"]) for row in rows
            if row["name"] == "gc" and row["start_ns"] > modules["upper"]["end_ns"]]
    assert seen[:3] == list(zip((0, 1, 2), said))


def test_execs_by_a_tracepoint(waffle):
    capture = waffle.run("/bin/sh", "-c", "/bin/true; /bin/true",
                         options=("--no-sched", "--probe",
                                  "tracepoint:sched:sched_process_exec(filename) as event exec"))
    files = [row["args"]["filename"] for row in capture.rows("event", name="exec")]
    assert files.count("/bin/true") == 2


@pytest.mark.parametrize("mounted", [with_tracefs, without_tracefs])
def test_tracepoints_need_no_mount_of_tracefs(waffle, mounted):
    capture = Capture(waffle, waffle.path())
    capture.result = subprocess.run(
        mounted(waffle.program, "run", "-q", "--no-report", "--no-sched", "-o", capture.path,
                "--probe", "tracepoint:sched:sched_process_exec(filename) as event exec", "--",
                "grep", "-c", " tracefs ", "/proc/self/mounts"),
        stdout=subprocess.PIPE, text=True, check=False)
    assert bool(int(capture.result.stdout)) == (mounted is with_tracefs)
    assert len(capture.rows("event", name="exec")) == 1


def test_openssl_set_sees_a_handshake_and_its_bytes(waffle, start, tmp_path):
    script = tmp_path / "tls.py"
    script.write_text(
        "import ssl, sys\n"
        "print('ready', flush=True)\n"
        "for line in sys.stdin:\n"
        "    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)\n"
        "    context.check_hostname = False\n"
        "    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()\n"
        "    tls = context.wrap_bio(incoming, outgoing)\n"
        "    for call in (tls.do_handshake, lambda: tls.read(100)):\n"
        "        try:\n            call()\n        except ssl.SSLWantReadError:\n"
        "            pass\n"
        "    print('done', flush=True)\n")
    running = start("/usr/bin/python3", script)
    running.until("ready")
    with open(f"/proc/{running.pid}/maps", encoding="utf-8") as maps:
        [library] = {line.split()[-1] for line in maps if "libssl.so" in line}
    attached = arm(waffle, running.pid, library, "--probes", "openssl")
    running.ask("go", "done")
    rows = attached.stop().rows("span", category="openssl")
    assert [(row["name"], row["args"]["result"]) for row in rows if "parent" not in row] == [
        ("SSL_do_handshake", -1), ("SSL_read_ex", 0)]
    assert rows[-1]["args"]["bytes"] == 100 and rows[-1]["args"]["read"] == 0
