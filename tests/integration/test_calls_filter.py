# SPDX-License-Identifier: Apache-2.0
"""Filters on calls keep the same calls in the kernel as in a file that has all calls."""

import json

import pytest

from test_calls import ADD, NEST, ONLY, PAIR, called, linked, probes  # noqa: F401  (fixtures)

# Never returns: it is open when the capture ends.
EXIT = "uprobe:libc.so.6:exit(int status) -> int never nounwind"
POINTS = (
    "tracepoint:task:task_rename(oldcomm, newcomm)",
    "tracepoint:sched:sched_process_exec(filename)",
    "tracepoint:sched:sched_process_exit(prio)",
)
SCRIPT = (
    'for name in alpha beta gamma delta; do printf %s "$name" >/proc/self/comm; done; '
    "/bin/true; /bin/false; /bin/true"
)


def rows_of(waffle, path, *options):
    """Spans and events without the values that differ between runs."""
    lines = waffle.ok("export", path, "--format", "ndjson", "-o", "-", *options).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    return sorted(
        json.dumps([r["kind"], r["name"], r["args"], r.get("unfinished", False)], sort_keys=True)
        for r in rows
        if r["kind"] in ("span", "event")
    )


@pytest.fixture(scope="module")
def whole_captures():
    """The rows without a filter, by program."""
    return {}


@pytest.fixture
def kept(waffle, whole_captures):
    """Rows of a command under a filter, which have to be those of its file under the same."""

    def compare(command, specs, condition, **options):
        key = str((command, specs))
        if key not in whole_captures:
            whole_captures[key] = waffle.run(*command, options=[*ONLY, *probes(*specs)], **options).path
        filtered = waffle.run(
            *command, options=[*ONLY, *probes(*specs), "--filter", condition], **options
        )
        rows = rows_of(waffle, filtered.path)
        assert rows == rows_of(waffle, whole_captures[key], "--filter", condition)
        return [json.loads(row) for row in rows]

    return compare


def test_tracepoint_that_matches_is_one_that_can_match(waffle):
    def said(name):
        options = [*ONLY, *probes("tracepoint:sched:sched_process_exit(prio)")]
        options += ["--filter", f'name == "{name}"', "--no-report", "-o", waffle.path()]
        return waffle.ok("run", *options, "--", "/bin/true").stderr

    assert "no site can match the filter" not in said("sched_process_exit")
    assert "no site can match the filter; there are sites named" in said("sched_process_exec")


@pytest.mark.parametrize(
    "condition, count",
    [
        ("kind == event", 16),
        ("kind == span || dur > 1ns", 0),
        ("!(dur > 1ns)", 16),
        ('name == "task_rename"', 8),
        ('category == "sched" && lib == "kernel" && func == ""', 8),
        ('kv.newcomm == "beta"', 1),
        ('kv.newcomm ~ "*a"', 4),
        ('kv.oldcomm != "alpha" && kv.newcomm != "alpha"', 6),
        ('kv.oldcomm in {"alpha", "beta"} || name ~ "*exit"', 6),
        ('kv.filename ~ "*/true"', 2),
        ("kv.prio > 0", 4),
        ("kv.prio < 0", 0),
        ("kv.none == 1", 0),
        # The name of a thread is the one that it had before.
        ('comm == "alpha"', 1),
        ('comm == "true"', 4),
        ("pid > 1 && tid > 1 && cpu >= 0", 16),
        ("name ~ \"*exec\" && rate(3/min)", 3),
    ],
)
def test_tracepoints(kept, condition, count):
    assert len(kept(["sh", "-c", SCRIPT], POINTS, condition)) == count


@pytest.mark.parametrize(
    "condition, count",
    [
        ("kv.a >= 3 && kv.a < 7", 4),
        ("kv.ret >= 9000000072", 3),
        ("kv.a > 5 && (kv.ret == 0 || dur < 1h)", 6),
        ("kv.a == 2 || kv.depth == 1 || kv.id == 3", 3),
        ("kv.status == 1", 2),
        ("dur < 1h", 12 + 4 + 6),
        ("dur > 1h", 0),
        ('name ~ "*e*" && kv.depth > 0 && kv.ret > 1', 2),
    ],
)
def test_functions_and_pairs(kept, linked, condition, count):  # noqa: F811
    lines = "add 12\nnest 3\njobs 6\n"
    found = kept([linked], (ADD, NEST, PAIR), condition, stdin=None, input=lines)
    assert len(found) == count


@pytest.mark.parametrize(
    "condition, count",
    [
        ("kv.status == 0", 1),
        ("kv.status == 0 || dur > 1h", 1),
        ("kv.status != 0 || dur > 1h", 0),
        ("kv.status == 0 && dur > 1ns", 0),
        ("!(kv.never == 5)", 0),
        ("kv.status == 0 || !(kv.never == 5)", 1),
    ],
)
def test_a_call_that_is_open_at_the_end_is_kept_if_that_does_not_matter(
    kept, linked, condition, count  # noqa: F811
):
    found = kept([linked], (EXIT,), condition, stdin=None, input="")
    assert [row[3] for row in found] == [True] * count
