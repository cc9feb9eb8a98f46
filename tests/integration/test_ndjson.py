# SPDX-License-Identifier: Apache-2.0
"""docs/ndjson.md names every key of `export --format ndjson`, and none that does not occur."""

import json
import re
from collections import defaultdict

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


def found(waffle):
    keys = defaultdict(set)
    exports = [(path, ()) for path in CAPTURES]
    exports.append((CAPTURES[0], ("--filter", "dur > 0ms")))
    for path, options in exports:
        for line in waffle.ok("export", path, "-f", "ndjson", "-o", "-", *options).stdout.splitlines():
            row = json.loads(line)
            keys[row["kind"]].update(re.sub(r"_stack_cut$", "_stack", key) for key in keys_of(row))
    return keys


def test_the_page_has_the_keys_of_every_kind_and_no_other(waffle):
    page, exported = documented(), found(waffle)
    common = page.pop("All kinds")
    assert set(page) == set(exported)
    for kind, keys in page.items():
        # An object is documented with its members.
        inner = {key.partition(".")[0] for key in keys}
        assert exported[kind] <= keys | common | inner, kind
        assert keys <= exported[kind], kind
