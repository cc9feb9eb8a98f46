# SPDX-License-Identifier: Apache-2.0
"""docs/ndjson.md names every key of `export --format ndjson`, and none that does not occur."""

import json
import os
import re
import subprocess
from collections import defaultdict

import pytest
import tracer
from tracer import ROOT

CAPTURES = sorted((ROOT / "tests/golden/captures").glob("*.waffle"))
# Objects whose keys the application names.
FREE = {("span", "args"), ("event", "args"), ("counter", "args")}


def documented():
    """{kind: keys}; those of all kinds are of "All kinds"."""
    keys, kind = defaultdict(set), None
    for line in (ROOT / "docs/ndjson.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            kind = line[3:]
        elif line.startswith("| `"):
            keys[kind].update(re.findall(r"`([\w.]+)`", line.split("|")[1]))
    return keys


def keys_of(row):
    """Its keys, and those of its objects as "key.key"."""
    for key, value in row.items():
        if isinstance(value, dict) and (row["kind"], key) not in FREE:
            yield from (f"{key}.{inner}" for inner in value)
        yield key


@pytest.fixture(name="job")
def job_fixture(waffle, waffle_program, tmp_path):
    """The files of two ranks, on two hosts."""
    skew = tracer.compile_with_waffle(waffle_program, "skew_capture.c", tmp_path / "skew_capture")
    paths = []
    for rank in range(2):
        one, other = tmp_path / f"one.{rank}.waffle", tmp_path / f"job.{rank}.waffle"
        waffle.ok("run", "-q", "--no-report", "-o", one, "--", "/bin/true",
                  env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"})
        subprocess.run([skew, one, other, f"node-{rank}", "0", "0", "0"], check=True)
        paths.append(other)
    return paths


@pytest.fixture(name="triggered")
def triggered_fixture(waffle, built, tmp_path):
    """A file of the flight recorder."""
    waffle.ok("run", "-q", "--flight-recorder", "5s", "--trigger", "name == 'mark'", "-o",
              tmp_path / "flight.waffle", "--", built("flight.c"), stdin=None, input="mark 1\nend\n")
    return tmp_path / "flight-1.waffle"


def found(waffle, job, triggered):
    keys = defaultdict(set)
    exports = [((path,), ()) for path in CAPTURES]
    exports.append((CAPTURES[:1], ("--filter", "dur > 0ms")))
    exports.append((job, ()))
    exports.append(((triggered,), ()))
    for paths, options in exports:
        for line in waffle.ok("export", *paths, "-f", "ndjson", "-o", "-", *options).stdout.splitlines():
            row = json.loads(line)
            keys[row["kind"]].update(re.sub(r"_stack_cut$", "_stack", key) for key in keys_of(row))
    return keys


def test_the_page_has_the_keys_of_every_kind_and_no_other(waffle, job, triggered):
    page, exported = documented(), found(waffle, job, triggered)
    common = page.pop("All kinds")
    assert common <= set.union(*exported.values())
    assert set(page) == set(exported)
    for kind, keys in page.items():
        # An object is documented with its members.
        inner = {key.partition(".")[0] for key in keys}
        assert exported[kind] <= keys | common | inner, kind
        assert keys <= exported[kind], kind
