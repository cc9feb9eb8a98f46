# SPDX-License-Identifier: Apache-2.0
"""docs/file-format.md is enough to read a capture: a reader that follows it (waffle_file.py) gets
the records that waffle-bpf reads."""

import json
import re

import pytest
import waffle_file
from tracer import ROOT

CAPTURES = sorted((ROOT / "tests/golden/captures").glob("*.waffle"))
KINDS = ("hit span_end switch task state fork exec exit loss wait wake fault io signal quota stolen "
         "frequency return stack track on_track sample open_wait thread_name memory io_limit "
         "lock_refusal request_failure late_sleep").split()  # fmt: skip
HEX = {"span_id", "id", "address", "ip", "lock"}


def same(row, key, found):
    value = row[key]
    if key in HEX and isinstance(value, str):
        return int(value, 16) == found
    return value == found


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_a_reader_that_follows_the_page_gets_the_same_records(waffle, path):
    text = waffle.ok("export", path, "-f", "records", "-o", "-").stdout
    rows = [row for row in map(json.loads, text.splitlines()) if "record" in row]
    found = waffle_file.read(path)
    assert len(rows) == len(found)
    for row, record in zip(rows, found):
        assert KINDS.index(row.pop("kind")) + 1 == record["kind"], (row, record)
        del row["record"]
        assert not [key for key in row if key in record and not same(row, key, record[key])], (
            row, record)  # fmt: skip


def test_the_reader_has_the_words_that_docs_name():
    page = re.split(r"^## (\d+) (\w+)$", (ROOT / "docs/records.md").read_text(), flags=re.M)
    kinds = {int(number): (name, text) for number, name, text in zip(page[1::3], page[2::3], page[3::3])}
    assert [kinds[number][0] for number in waffle_file.KINDS] == KINDS
    for number, words in waffle_file.WORDS.items():
        names = [name for word in words for name in (word if isinstance(word, tuple) else (word,))]
        fields = re.findall(r"^\| [`*](\w+)[`*] \| \d", kinds[number][1], flags=re.M)
        assert sorted({name.partition(".")[0] for name in names}) == sorted(set(fields)), number


def test_the_captures_have_all_kinds_of_records():
    assert {row["kind"] for path in CAPTURES for row in waffle_file.read(path)} == set(range(1, 24))
