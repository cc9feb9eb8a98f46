# SPDX-License-Identifier: Apache-2.0
"""gpu --html in a real browser: what the page draws is what gpu --json says."""

import json
import os
import subprocess

import pytest

import gpu_schedule
from chromium import open_page
from test_gpu_timeline import Named, text_capture  # noqa: F401 (a fixture)

STATES = ["idle_ns", "queued_ns", "running_ns", "waiting_ns", "complete_ns"]
HOSTILE = 'kernel </script><img src=x onerror="window.hacked=1">'


def draw(waffle, browser, path, *options):
    """Writes the page of a capture, and opens it. Returns the page."""
    page = path.with_suffix(".html")
    assert waffle.ok("gpu", "--html", page, *options, path).stdout == ""
    open_page(browser, page)
    return page


def rows(browser, device, table):
    """Of each row of a device's table its name and the numbers behind its cells."""
    return browser.evaluate(
        f"[...document.querySelectorAll('#device-{device} [data-table={table}] tbody tr')].map((row) => "
        "[row.dataset.name, [...row.querySelectorAll('td[data-ns]')].map((c) => Number(c.dataset.ns))])")


@pytest.fixture(scope="module")
def recorded(waffle_program, tmp_path_factory):
    """What a program of the simulation did: kernels, copies, sets, graphs, and calls of NCCL."""
    path = tmp_path_factory.mktemp("recorded") / "calls.waffle"
    build = waffle_program.parent
    subprocess.run([build / "sim/calls"], check=True, stdout=subprocess.DEVNULL, timeout=120, env={
        **os.environ, "CUDA_INJECTION64_PATH": str(build / "libwaffle-gpu.so"), "WAFFLE_TRACE": str(path)})
    return path


def test_page_has_the_numbers_of_the_json(waffle, browser, recorded):
    draw(waffle, browser, recorded)
    answer = json.loads(waffle.ok("gpu", "--json", recorded).stdout)
    assert answer["devices"]
    for index, device in enumerate(answer["devices"]):
        assert rows(browser, index, "kernels") == [
            [r["name"], [r["total_ns"], r["max_ns"]]] for r in device["kernels"]]
        for key in ("copies", "sets"):
            assert rows(browser, index, key) == [[r["name"], [r["total_ns"]]] for r in device[key]]
        idle = dict(rows(browser, index, "idle"))
        assert all(idle.get(key, [0]) == [ns] for key, ns in device["idle"].items())
        assert rows(browser, index, "concurrency") == [
            [str(r["operations"]), [r["ns"]]] for r in device["concurrency"]]
        assert rows(browser, index, "streams") == [
            [str(r["stream"]), [r["states"][state] for state in STATES]]
            for r in device["streams"] if r["operations"]]
    parts = browser.evaluate("[...document.querySelectorAll('#paths tbody tr')].map((row) => "
                             "[row.dataset.kind, row.dataset.name, Number(row.children[2].dataset.ns)])")
    assert parts == [[p["kind"], p["name"], p["total_ns"]]
                     for path in answer["critical_paths"] for p in path["parts"]]
    text = browser.evaluate("document.body.textContent")
    assert "simulated: CUDA and NCCL are stand-ins here" in text
    assert "the scheduler was not recorded" in text


@pytest.mark.parametrize("seed", range(3))
def test_page_of_a_random_schedule_is_drawn(waffle, browser, text_capture, tmp_path, seed):  # noqa: F811
    path = tmp_path / "made.waffle"
    gpu_schedule.Schedule(seed, lossy=seed % 2 == 0).write(text_capture, path)
    draw(waffle, browser, path)
    answer = json.loads(waffle.ok("gpu", "--json", path).stdout)
    assert browser.evaluate("document.querySelectorAll('[data-device]').length") == len(answer["devices"])


def test_names_that_are_markup_are_shown_as_text(waffle, browser, text_capture, tmp_path):  # noqa: F811
    made = Named()
    made.kernel(200, 300, HOSTILE)
    made.write(text_capture, tmp_path / "made.waffle")
    draw(waffle, browser, tmp_path / "made.waffle")
    assert [name for name, _ in rows(browser, 0, "kernels")] == [HOSTILE]
    assert browser.evaluate("window.hacked === undefined")


def test_page_is_bounded_and_says_how_much_it_leaves_out(waffle, browser, text_capture, tmp_path):  # noqa: F811
    made = Named()
    for i in range(1000):
        made.kernel(1000 + 20 * i, 1010 + 20 * i, f"kernel {i} " + "x" * 200, stream=i)
    made.write(text_capture, tmp_path / "made.waffle")
    page = draw(waffle, browser, tmp_path / "made.waffle")
    assert len(rows(browser, 0, "kernels")) == len(rows(browser, 0, "streams")) == 200
    assert browser.evaluate("document.querySelector('[data-table=streams] tfoot').textContent").startswith("800 more")
    assert page.stat().st_size < 500_000


def test_page_is_of_the_window_and_the_filter(waffle, browser, text_capture, tmp_path):  # noqa: F811
    made = Named()
    made.kernel(1000, 2000, "early")
    made.kernel(500_000, 600_000, "late")
    path = tmp_path / "made.waffle"
    made.write(text_capture, path)
    draw(waffle, browser, path, "--from", "100us")
    assert [name for name, _ in rows(browser, 0, "kernels")] == ["late"]
    draw(waffle, browser, path, "--filter", 'name == "early"')
    assert [name for name, _ in rows(browser, 0, "kernels")] == ["early"]


def test_page_is_the_only_output(waffle, recorded, tmp_path):
    result = waffle.call("gpu", "--html", tmp_path / "a.html", "--json", recorded)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    page = waffle.ok("gpu", "--html", "-", recorded).stdout
    assert page.startswith("<!DOCTYPE html>") and page.endswith("</html>\n") and HOSTILE not in page


@pytest.mark.parametrize("command", ["gpu", "report"])
def test_page_does_not_replace_the_capture(waffle, recorded, tmp_path, command):
    path, other = tmp_path / "own.waffle", tmp_path / "link.html"
    path.write_bytes(recorded.read_bytes())
    other.symlink_to(path)
    for page in (path, other):
        waffle.fails(1, command, "--html", page, path, says="is the capture itself")
    assert path.read_bytes() == recorded.read_bytes()
