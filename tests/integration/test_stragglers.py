# SPDX-License-Identifier: Apache-2.0
"""The ranks that others waited for: report against the log of a simulated training, as text, as JSON
and on the page."""

import os
import subprocess

import pytest
from chromium import open_page
from sim_log import read_log

RANKS, STEPS = 4, 12
MS = 1_000_000


@pytest.fixture(name="training")
def training_fixture(waffle, waffle_program, tmp_path):
    """A capture of four ranks, of which rank 2 is late, and the ranks' logs."""
    logs = tmp_path / "log"
    logs.mkdir()
    capture = waffle.run(
        waffle_program.parent / "sim" / "training", "--ranks", RANKS, "--steps", STEPS, "--log",
        logs, env={**os.environ, "WAFFLE_SIM_SLOW_LOADER": "2:60:4"})
    return capture, [read_log(logs / f"rank-{rank}.jsonl") for rank in range(RANKS)]


def named(rows, name):
    return [row for row in rows if row["call"] == name]


def logged_waits(logs):
    """For each step: who called its all-reduce last, and how long the others waited for it."""
    waits = []
    for calls in zip(*(named(rows, "ncclAllReduce") for rows in logs)):
        begins = [call["begin"] for call in calls]
        last = max(range(RANKS), key=begins.__getitem__)
        waits.append((last, sum(begins[last] - begin for begin in begins)))
    return waits


def test_rank_that_came_last_is_the_one_of_the_log(training):
    capture, logs = training
    report, expected = capture.report(), logged_waits(logs)
    [group] = report["collectives"]
    assert (group["name"], group["count"], group["known"]) == ("ncclAllReduce", STEPS, STEPS)
    assert group["ranks"] == group["ranks_traced"] == RANKS
    assert group["total_ns"] == group["transfer_ns"] + group["waiting_ns"]
    first = report["stragglers"][0]
    assert first["rank"] == group["worst"]["rank"] == 2
    logged = sum(ns for last, ns in expected if last == 2)
    assert abs(first["made_wait_ns"] - logged) < 5 * MS
    assert first["made_wait_ns"] > 100 * MS
    assert first["unsure_ns"] == 0
    assert sum(row["waited_ns"] for row in report["stragglers"]) == sum(
        row["made_wait_ns"] for row in report["stragglers"])
    worst = report["collective_waits"][0]
    assert expected[worst["seq"]][0] == worst["last"]["rank"] == 2
    assert abs(worst["made_wait_ns"] - max(ns for _, ns in expected)) < 2 * MS


def test_time_of_collectives_is_transfer_and_waiting(training):
    capture, logs = training
    [group] = capture.report()["collectives"]
    total = transfer = 0
    # A rank's result is there when its next synchronisation of the stream returns.
    for step in range(STEPS):
        took = [named(rows, "cudaStreamSynchronize")[step]["end"] -
                named(rows, "ncclAllReduce")[step]["begin"] for rows in logs]
        total += sum(took)
        transfer += RANKS * min(took)
    assert abs(group["total_ns"] - total) < 10 * MS
    assert abs(group["transfer_ns"] - transfer) < 10 * MS


def test_text_and_page_have_the_numbers_of_the_json(training, browser, tmp_path):
    capture, _ = training
    report, text = capture.report(), capture.report_text()
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("STRAGGLERS"))
    assert "rank 2, rank 2 (" in lines[at + 1]
    assert any(line.split()[:2] == ["ncclAllReduce", str(STEPS)] for line in lines)
    page = tmp_path / "page.html"
    capture.waffle.ok("report", "--html", page, capture.path)
    open_page(browser, page)
    rows = browser.evaluate(
        "[...document.querySelectorAll('#rank-table tbody tr')].map((row) => "
        "[row.dataset.rank, Number(row.querySelector('[data-ns]').dataset.ns)])")
    assert browser.evaluate("document.getElementById('ranks').hidden") is False
    assert browser.errors == []
    assert [ns for _, ns in rows] == [row["made_wait_ns"] for row in report["stragglers"]]
    assert "rank 2" in rows[0][0]


def test_capture_without_collectives_has_no_such_tables(waffle, tmp_path):
    capture = waffle.run("true")
    assert "stragglers" not in capture.report()
    assert "STRAGGLERS" not in capture.report_text()
    page = tmp_path / "page.html"
    capture.waffle.ok("report", "--html", page, capture.path)
    assert subprocess.run(["grep", "-c", '"stragglers"', page], check=False,
                          capture_output=True).stdout.strip() == b"0"
