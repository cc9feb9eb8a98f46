# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/filter.md, each on a real program: decided in the kernel while it runs, and
again from a file in which everything is. What is to be kept is told by the program's own log and a
line of Python, not by anything of waffle's."""

import re

import pytest

from tracer import PROGRAMS, ROOT, Capture, Program, Waffle, parse_log

US, MS = 1_000, 1_000_000
EITHER = None  # too near to the bound to tell from outside


def examples():
    """Expressions of the table, as a user would type them."""
    text = (ROOT / "docs" / "filter.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(.+?)` \|", text.partition("## Examples")[2], re.M)
    return [row.replace("\\|", "|") for row in rows]


def took(row, bound):
    """-1, 1: less or more than a bound; 0: the log can't tell."""
    if row["what"] != "span" or row["most"] < bound:
        return -1
    return 1 if row["least"] > bound else 0


def slower(row, bound):
    return {-1: False, 1: True, 0: EITHER}[took(row, bound)]


def between(row, low, high):
    if row["name"] != "query":
        return False
    sides = took(row, low), took(row, high)
    if 0 in sides:
        return EITHER
    return sides == (1, -1)


def quicker(row, bound):
    if row["what"] != "span":
        return False
    return {-1: True, 1: False, 0: EITHER}[took(row, bound)]


def event(row):
    return row["what"] == "event"


def span(row):
    return row["what"] == "span"


# What each example keeps of the records of the log.
KEEPS = {
    "kind == span": span,
    'name == "request"': lambda r: r["name"] == "request",
    'name ~ "re*" && kind != counter': lambda r: r["name"]
    in ("request", "render", "retry", "served"),
    'category == "db"': lambda r: r["name"] in ("query", "flush"),
    '!(category == "web" || comm == "io")': lambda r: r["name"] in ("query", "flush")
    and r["comm"] != "io",
    'file == "shop.c" && line >= 1 && line < 60': lambda r: event(r),
    'func == "serve" || func ~ "*_cache"': lambda r: r["func"] in ("serve", "fill_cache"),
    'lib !~ "*.so*"': lambda r: True,
    "pid == 4711 && kind in {event, log}": lambda r: r["what"] in ("event", "log"),
    "tid == 4711": lambda r: r["tid"] == r["pid"],
    'comm ~ "worker-[01]" && kind == span': lambda r: span(r)
    and r["comm"] in ("worker-0", "worker-1"),
    'comm != "io" && kind == event': lambda r: event(r) and r["comm"] != "io",
    "cpu in {0, 1, 2, 3}": lambda r: True,
    "dur > 10ms": lambda r: slower(r, 10 * MS),
    'name == "query" && 100us <= dur && dur < 1.5s': lambda r: between(r, 100 * US, 1500 * MS),
    "kind == span && dur <= 2ms": lambda r: quicker(r, 2 * MS),
    "depth == 0": lambda r: r["depth"] == 0,
    "depth in {1, 2} && kind == event": lambda r: event(r) and r["depth"] in (1, 2),
    'parent.name == "request" && name != "render"': lambda r: r["parent"] == "request"
    and r["name"] != "render",
    'kind == event && parent.name !~ "re*"': lambda r: event(r)
    and r["parent"] in ("query", "flush"),
    'kind == event && !(parent.name ~ "re*")': lambda r: event(r) and r["parent"] != "request",
    "kv.bytes > 1MiB": lambda r: r.get("bytes", 0) > 1 << 20,
    "kv.cached == false && kv.rows >= 1k": lambda r: r.get("cached") == 0 and r["rows"] >= 1000,
    "kv.cost > 0.5 && kv.cost <= 2.5": lambda r: 0.5 < float(r.get("cost", 0)) <= 2.5,
    'kv.table in {"orders", "users"}': lambda r: r.get("table") in ("orders", "users"),
    'kv.user ~ "*@example.com"': lambda r: r.get("user", "").endswith("@example.com"),
    'name == "cache_miss" && kv."key" !~ "session:*"': lambda r: r["name"] == "cache_miss"
    and not r["key"].startswith("session:"),
    "kind == event && kv.attempt >= 3": lambda r: r.get("attempt", 0) >= 3,
    "7 == kv.id && true": lambda r: r.get("id") == 7,
    "kv.rows != 0 || false": lambda r: r.get("rows", 0) != 0,
    "kind == counter && kv.value > 100": lambda r: r["what"] == "counter" and r["n"] > 100,
    'kind == log && name ~ "*[Tt]imeout*"': lambda r: r["name"] == "Timeout",
}
# Those that are decided by chance or by what came before, in tests of their own.
SAMPLES = {
    "kind in {span, sched} && sample(1/10)",
    "sample(50%) || dur > 10ms",
    'name == "cache_miss" && rate(100/s)',
}


def expressions(pid):
    return {text: text.replace("4711", str(pid)) for text in examples()}


def test_every_example_is_tested():
    assert len(examples()) >= 20
    assert set(examples()) == set(KEEPS) | SAMPLES


@pytest.fixture(scope="module")
def shop(built):
    program = built("shop.c")
    lines = (PROGRAMS / "shop.c").read_text(encoding="utf-8").splitlines()
    sites = [i for i, line in enumerate(lines, 1) if re.search(r"\t(EVENT|SPAN|LOG_\w+)\(", line)]
    assert len([i for i in sites if i < 60]) == 2, "the first 60 lines have the events alone"
    return program


def logged(lines, pid):
    rows = [row for row in parse_log(lines) if row["kind"] == "record"]
    for row in rows:
        row["pid"] = pid
    return rows


def identity(row):
    """What a record is known by in both the log and a capture."""
    return row["what"], row["n"]


def delivered(capture):
    rows = [row for row in capture.rows() if row["kind"] in ("span", "event", "counter")]
    for row in rows:
        if "severity" in row:
            row["kind"] = "log"
        if row["kind"] == "span":
            assert not row.get("unfinished") and not row.get("begun_before"), row
    return rows, sorted(
        (r["kind"], r["args"]["value" if r["kind"] == "counter" else "n"]) for r in rows
    )


def check(got, log, keeps):
    must = {identity(row) for row in log if keeps(row)}
    may = {identity(row) for row in log if keeps(row) is EITHER}
    assert len(got) == len(set(got)), "a record came twice"
    got = set(got)
    assert must <= got, f"missing: {sorted(must - got)[:9]}"
    assert got <= must | may, f"too much: {sorted(got - must - may)[:9]}"
    assert must or may, "the example keeps nothing: it shows nothing"
    assert len(got) < len(log) or keeps({**log[0]}) is True, "the example leaves nothing out"


def serve_under(waffle, shop, filter_of, rounds=40):
    """The shop's whole day under a filter that may name its pid: the capture and the log."""
    program = Program([shop, rounds])
    program.until("ready")
    expression = filter_of(program.pid)
    attached = waffle.attach("-p", program.pid, "-q", "--no-report", "--filter", expression)
    attached.wait_links(2)
    program.say("go")
    lines = program.finish()
    capture = attached.wait()
    capture.check_sums(lost=0)
    return capture, logged(lines, program.pid)


@pytest.mark.parametrize("text", KEEPS)
def test_example_in_the_kernel(waffle, shop, text):
    capture, log = serve_under(waffle, shop, lambda pid: expressions(pid)[text])
    check(delivered(capture)[1], log, KEEPS[text])


@pytest.fixture(scope="module")
def whole_day(waffle_program, tmp_path_factory, shop):
    """A capture without a filter, the log, and the pid."""
    waffle = Waffle(waffle_program, tmp_path_factory.mktemp("shop"))
    program = Program([shop, 40])
    program.until("ready")
    attached = waffle.attach_to(program, shop)
    program.say("go")
    lines = program.finish()
    return attached.wait(), logged(lines, program.pid), program.pid


class Filtered(Capture):
    """A capture read through a filter."""

    expression = None

    def export(self, form, out=None):
        out = self.waffle.folder / f"filtered.{form}"
        self.waffle.ok(
            "export", "--format", form, "--filter", self.expression, "-o", out, self.path
        )
        return out


@pytest.mark.parametrize("text", KEEPS)
def test_example_of_a_recorded_file(waffle, whole_day, text):
    capture, log, pid = whole_day
    kept = Filtered(waffle, capture.path)
    kept.expression = expressions(pid)[text]
    check(delivered(kept)[1], log, KEEPS[text])


def roots(rows, log):
    """Of each trace, the records that are in a capture."""
    root = {identity(row): row["root"] for row in log if row["what"] != "counter"}
    groups = {}
    for row in rows:
        key = row["kind"], row["args"].get("n")
        if root.get(key):
            groups.setdefault(root[key], set()).add(key)
    return groups


def test_sample_keeps_whole_traces(waffle, shop):
    capture, log = serve_under(waffle, shop, lambda pid: "sample(1/10)", rounds=200)
    groups = roots(delivered(capture)[0], log)
    whole = {}
    for row in log:
        if row["root"] and row["what"] != "counter":
            whole.setdefault(row["root"], set()).add(identity(row))
    for root, kept in groups.items():
        assert kept == whole[root], f"trace {root} is not whole"
    # 850 traces: 85 of them, within five standard deviations (8.7)
    assert 42 <= len(groups) <= 128, len(groups)


def test_sample_or_slow(waffle, shop):
    capture, log = serve_under(waffle, shop, lambda pid: "sample(50%) || dur > 10ms", rounds=200)
    got = set(delivered(capture)[1])
    slow = {identity(row) for row in log if slower(row, 10 * MS)}
    assert slow and slow <= got
    spans = [row for row in log if span(row)]
    kept = sum(identity(row) in got for row in spans)
    assert 0.35 * len(spans) < kept < 0.65 * len(spans)


def test_sample_of_spans_records_thread_switches(waffle, shop):
    capture, log = serve_under(
        waffle, shop, lambda pid: "kind in {span, sched} && sample(1/10)", rounds=100
    )
    rows, got = delivered(capture)
    assert rows and all(row["kind"] == "span" for row in rows)
    assert len(got) < len([row for row in log if span(row)]) / 3
    assert any(row["kind"] == "sched" for row in capture.rows())


def test_rate_keeps_the_first_of_each_second(waffle, shop):
    capture, log = serve_under(
        waffle, shop, lambda pid: 'name == "cache_miss" && rate(100/s)', rounds=200
    )
    rows, got = delivered(capture)
    windows = {}
    for row in rows:
        assert row["name"] == "cache_miss"
        # The kernel asks the clock a moment before the record's time is taken.
        windows.setdefault(row["start_ns"] // 1_000_000_000, []).append(row)
    assert all(len(rows) <= 101 for rows in windows.values())
    assert max(len(rows) for rows in windows.values()) >= 99
    assert len(got) < len([row for row in log if row["name"] == "cache_miss"])
