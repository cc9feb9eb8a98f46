# SPDX-License-Identifier: Apache-2.0
"""docs/safety.md names the tests that check its promises: they exist."""

import re

from tracer import ROOT

PAGE = (ROOT / "docs/safety.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:unit|integration)/[\w./]+)::(\w+)`", PAGE)))


def test_every_test_that_the_page_names_exists():
    missing = [
        f"{path}::{name}"
        for path, name in NAMED
        if not (ROOT / "tests" / path).exists()
        or not re.search(rf"\b{name}\(", (ROOT / "tests" / path).read_text(encoding="utf-8"))
    ]
    assert not missing
    assert len(NAMED) >= 40


def test_every_promise_names_what_checks_it():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "checked by" not in line]
    assert len(rows) >= 25
    assert not [row for row in rows if "::" not in row and "bench" not in row]
