# SPDX-License-Identifier: Apache-2.0
"""The causes of names in `report`, on programs that say themselves what made their spans slow."""

import collections
import json
import pathlib
import re
import sys

import pytest

from tracer import parse_log, tries

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "zoo"))

import scenarios
import zoo


def named(report, name):
    [row] = [row for row in report["spans"] if row["name"] == name]
    return row


def check_row(row):
    """What holds for the causes of every name."""
    causes = row["causes"]
    assert row["explained"] == {"count": row["count"], "total_ns": row["total_ns"]}
    assert sum(cause["total_ns"] for cause in causes) == row["total_ns"]
    totals = [cause["total_ns"] for cause in causes]
    assert totals == sorted(totals, reverse=True)
    assert row["slow"]["from_ns"] == row["p99_ns"]
    for cause in causes:
        assert cause["share"] == pytest.approx(cause["total_ns"] / row["total_ns"])
        assert cause["difference_ns"] == cause["slow_ns_mean"] - cause["median_ns_mean"]
        assert 1 <= cause["spans"] <= row["count"]
    for which in ("slow", "median"):
        mean = sum(cause[f"{which}_ns_mean"] for cause in causes)
        assert abs(mean - row[which]["ns_mean"]) <= len(causes)


def quiet(row):
    """Causes but those that other programs on the machine are."""
    return [cause for cause in row["causes"] if cause["cause"] != "cpu-contention"]


def one_by_one(waffle, path, name):
    """The sums of the causes that `why` reports for each whole span of a name."""
    answer = waffle.ok("why", "--json", "--span", name, "--slowest", "0", path)
    sums = collections.Counter()
    for instance in json.loads(answer.stdout)["instances"]:
        if instance.get("unfinished") or instance.get("begun_before"):
            continue
        for cause in instance["causes"]:
            culprit = cause["culprit"]
            sums[cause["cause"], culprit["comm"], culprit["span"], culprit["object"]] += cause[
                "duration_ns"
            ]
    return sums


@pytest.mark.parametrize("name", ["two_causes", "mutex_computes"])
@tries(3)
@tries(3)
def test_the_first_cause_of_a_name_is_the_injected_one(waffle, tmp_path, name):
    [row] = [row for row in scenarios.SCENARIOS if row.name == name]
    built = zoo.build(row, tmp_path)
    with zoo.running(row, built, 1) as program:
        pids = program.pids()
        attached = waffle.attach(*[f"--pid={pid}" for pid in pids], "-q", "--no-report")
        for pid in pids:
            attached.wait_armed(pid, built)
        program.go()
        log = program.finish()
    capture = attached.wait()
    report = capture.report()
    victim = named(report, "victim")
    check_row(victim)
    first = quiet(victim)[0]
    assert first["cause"] == row.cause
    assert (first["culprit"]["comm"], first["culprit"]["span"]) == (row.culprit, row.span)
    assert not first["culprit"]["own"]
    assert "0x" in first["culprit"]["object"]
    assert report["causes_partial"] is False
    # As long as the program says that it took, over all rounds.
    whole = logged = 0
    for span, ranked in zoo.rounds(log).values():
        whole += span["end"] - span["begin"]
        logged += sum(
            cause["share"] * (span["end"] - span["begin"])
            for cause in ranked
            if cause["cause"] == row.cause
        )
    assert abs(first["share"] - logged / whole) < 0.1
    assert {
        (c["cause"], c["culprit"]["comm"], c["culprit"]["span"], c["culprit"]["object"]): c[
            "total_ns"
        ]
        for c in victim["causes"]
    } == dict(one_by_one(waffle, capture.path, "victim"))


@pytest.fixture(scope="module")
def slow_program(built):
    return built("slow_ones.c")


@tries(3)
def test_what_is_different_about_slow_spans_is_told(waffle, slow_program):
    capture = waffle.run(slow_program)
    slow = parse_log(capture.result.stdout.splitlines())
    assert len(slow) == 2
    request = named(capture.report(), "request")
    check_row(request)
    assert request["count"] == 120
    assert request["slow"]["count"] == 2
    assert request["median"]["count"] >= 24
    # A busy machine adds to it, whatever waffle says.
    most = max(quiet(request), key=lambda cause: cause["difference_ns"])
    assert most["cause"] == "lock"
    assert (most["culprit"]["comm"], most["culprit"]["span"]) == ("loader", "load")
    assert slow[0]["object"] in most["culprit"]["object"]
    assert "cache_lock" in most["culprit"]["object"]
    assert most["spans"] == 2
    assert most["median_ns_mean"] == 0
    ran = sum(row["ns"] for row in slow) / 2
    # Its computing before the request came to the lock is none of it: 1.2 ms, or more if busy.
    assert ran * 0.8 < most["difference_ns"] < ran * 1.02
    sleep = next(cause for cause in request["causes"] if cause["cause"] == "sleep")
    assert sleep["culprit"]["own"] and sleep["spans"] == 120
    assert sleep["median_ns_mean"] >= 1_000_000
    # And for people.
    text = capture.report_text()
    table = text[text.index("CAUSES") : text.index("SLOWEST")]
    assert "slow ones (≥ p99, 2 of 120) take " in table
    assert re.search(r"\+[\d.]+ ms lock of loader in load, .*\(cache_lock\)", table)
    assert max(map(len, table.splitlines())) <= 100


def test_without_the_scheduler_there_are_no_causes(waffle, slow_program):
    capture = waffle.run(slow_program, options=["--no-sched"])
    report = capture.report()
    assert "causes" not in named(report, "request")
    assert "CAUSES" not in capture.report_text()
