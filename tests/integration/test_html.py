# SPDX-License-Identifier: Apache-2.0
"""report --html in a real browser: what the page draws is what report --json says, names that are
markup are text, and nothing leaves the page."""

import collections
import json
import os
import re
import subprocess

import pytest

from chromium import open_page
from test_export import PROGRAM

ANSWER = 'answer </script><img src=x onerror="window.hacked=1">'
ASK = "ask <!--<script>"


@pytest.fixture(scope="module")
def capture(built, waffle_program, tmp_path_factory):
    """A capture of programs/page.c, and what report --json says of it."""
    folder = tmp_path_factory.mktemp("page")
    path = folder / "page.waffle"
    program = built("page.c", "-fno-omit-frame-pointer")
    # Stacks have a budget (docs/sources.md): of a single function there may be none.
    for _ in range(3):
        subprocess.run([waffle_program, "run", "-q", "--no-report", "-o", path, "--", program],
                       check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=60)
        page = write_page(path, folder / "tried.html")
        if "ask_for_long" in page.read_text(encoding="utf-8"):
            break
    said = subprocess.run([waffle_program, "report", "--json", path], check=True,
                          capture_output=True, text=True)
    return path, json.loads(said.stdout)


def write_page(capture, page, *options):
    done = subprocess.run([PROGRAM, "report", "--html", page, *options, capture],
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return page


@pytest.fixture(scope="module")
def page(capture):
    return write_page(capture[0], capture[0].with_suffix(".html"))


@pytest.fixture
def shown(page, browser):
    """The page, open and drawn; whatever a test does there, there are no errors and no requests."""
    open_page(browser, page)
    yield browser
    assert browser.errors == []
    assert browser.requests == [f"file://{page}"]
    assert browser.evaluate("window.hacked === undefined")
    assert browser.evaluate("document.querySelectorAll('img, svg, iframe, link').length") == 0


def rows(browser, table):
    """Of each row of a table its data-* and those of its cells, and the cells' texts."""
    return browser.evaluate(
        f"[...document.querySelectorAll('#{table} tbody tr')].map((row) => ({{...row.dataset, "
        "ns: [...row.querySelectorAll('td[data-ns]')].map((c) => Number(c.dataset.ns)), "
        "text: [...row.children].map((c) => c.textContent)}))")


def test_table_of_spans_is_that_of_the_report(shown, capture):
    said = capture[1]["spans"]
    assert [row["name"] for row in said] and {row["name"] for row in said} == {ANSWER, ASK, "round"}
    assert [(row["name"], int(row["count"]), row["ns"]) for row in rows(shown, "span-table")] == [
        (row["name"], row["count"], [row[k] for k in ("total_ns", "p50_ns", "p99_ns", "max_ns")])
        for row in said]


def test_click_on_a_heading_sorts_and_another_one_turns_it_around(shown, capture):
    counts = sorted(row["count"] for row in capture[1]["spans"])
    heading = "document.querySelectorAll('#span-table th button')[1]"
    shown.click(heading)
    assert [int(row["count"]) for row in rows(shown, "span-table")] == counts[::-1]
    shown.click(heading)
    assert [int(row["count"]) for row in rows(shown, "span-table")] == counts
    assert shown.evaluate("document.querySelector('#span-table th[aria-sort]').ariaSort"
                          ) == "ascending"


def test_names_that_are_markup_are_shown_as_text(shown):
    names = {row["text"][0] for row in rows(shown, "span-table")}
    assert names == {ANSWER, ASK, "round"}
    threads = {row["text"][3].split(" (")[0] for row in rows(shown, "slow-table")}
    assert "<img src=x>\x01\"'" in threads


def test_distribution_counts_every_whole_span_in_its_bin(shown, capture):
    charts = shown.evaluate(
        "[...document.querySelectorAll('.chart')].map((c) => ({name: c.dataset.name, bins: "
        "[...c.querySelectorAll('[data-bin]')].map((b) => [Number(b.dataset.bin), "
        "Number(b.dataset.count)])}))")
    rows_said = subprocess.run([PROGRAM, "export", capture[0], "--format", "ndjson", "-o", "-"],
                               check=True, capture_output=True, text=True).stdout
    wanted = collections.defaultdict(collections.Counter)
    for row in map(json.loads, rows_said.splitlines()):
        if row["kind"] == "span" and not row.get("unfinished") and not row.get("begun_before"):
            ns = row["end_ns"] - row["start_ns"]
            top = ns.bit_length() - 1
            wanted[row["name"]][4 * (top - 1) + (ns >> (top - 2)) % 4] += 1
    assert {c["name"]: dict(map(tuple, c["bins"])) for c in charts} == {
        name: dict(bins) for name, bins in wanted.items()}


def test_slowest_spans_are_those_of_the_report(shown, capture):
    said = capture[1]["slowest"]
    assert [(row["id"], row["ns"]) for row in rows(shown, "slow-table")] == [
        (row["id"], [row["duration_ns"]]) for row in said]
    # The slowest one is drawn at once.
    assert shown.evaluate("document.querySelector('#view .item.subject').dataset.id"
                          ) == said[0]["id"]


def detail(browser):
    pairs = browser.evaluate("[...document.querySelectorAll('#detail dt')].map((t) => "
                             "[t.textContent, t.nextSibling.textContent])")
    return browser.evaluate("document.querySelector('#detail h3').textContent"), dict(pairs)


def test_click_on_a_slow_span_draws_its_time_line_and_clicks_there_say_what_it_is(shown, capture):
    said = capture[1]["slowest"]
    index = next(i for i, row in enumerate(said) if row["name"] == "round")
    other = next(i for i, row in enumerate(said) if row["name"] == ASK)
    for at in (other, index):
        shown.click(f"document.querySelectorAll('#slow-table tbody button')[{at}]")
        name, about = detail(shown)
        assert (name, about["id"]) == (said[at]["name"], said[at]["id"])
        assert shown.evaluate("document.querySelector('tr.chosen').dataset.id") == said[at]["id"]
    # A round has asks in it, on the row below. A click on one shows it.
    asks = ("[...document.querySelectorAll('#view .lane')][0].querySelectorAll('.strip')[1]"
            f".querySelectorAll('.item.span')")
    assert shown.evaluate(f"[...{asks}].map((e) => e.textContent)").count(ASK) >= 2
    shown.click(f"{asks}[0]")
    name, about = detail(shown)
    assert name == ASK and re.fullmatch("[0-9a-f]{16}", about["id"])
    # Its states fill it: as long as the blocked, running and runnable time that is known.
    states = ("[...document.querySelectorAll('#view .lane')][0]"
              ".querySelectorAll('.states .item')")
    shown.click(f"[...{states}].find((e) => e.dataset.state === '3')")
    name, about = detail(shown)
    assert name == "blocked" and about["what"].startswith("in read")
    # Keys and their values, too.
    shown.click(f"document.querySelectorAll('#slow-table tbody button')[{other}]")
    assert detail(shown)[1]["note"].startswith("</script><svg onload=hacked=1>")


def why(capture, *options):
    """Causes by the id of a span, of why --json: (cause, ns), the longest first."""
    said = subprocess.run([PROGRAM, "why", "--json", *options, capture[0]], check=True,
                          capture_output=True, text=True)
    return {row["id"]: row for row in json.loads(said.stdout)["instances"]}


def test_causes_of_a_slow_span_and_their_chains_are_those_of_why(shown, capture):
    for i, row in enumerate(capture[1]["slowest"]):
        [said] = why(capture, "--span", row["id"]).values()
        shown.click(f"document.querySelectorAll('#slow-table tbody button')[{i}]")
        drawn = shown.evaluate("[...document.querySelectorAll('#detail [data-cause]')].map((e) => "
                               "[e.dataset.cause, Number(e.dataset.ns)])")
        assert drawn and drawn == [
            [cause["cause"], cause["duration_ns"]] for cause in said["causes"]][:12]
        assert shown.evaluate("document.querySelector('#detail .chain') !== null")
        # The threads on the way to the cause have a lane.
        lanes = shown.evaluate("[...document.querySelectorAll('#view .lane')].map((e) => "
                               "e.dataset.thread)")
        assert f"{row['comm']} ({row['tid']})" in lanes


def test_causes_of_a_name_are_the_sums_of_those_of_its_spans(shown, capture):
    sums = collections.defaultdict(collections.Counter)
    for row in why(capture, "--slowest", "1000").values():
        for cause in row["causes"]:
            culprit = cause["culprit"]
            key = (cause["cause"], culprit["comm"], culprit["span"], culprit["object"])
            sums[row["span"]][key] += cause["duration_ns"]
    drawn = shown.evaluate(
        "[...document.querySelectorAll('#span-table tbody tr')].map((row) => [row.dataset.name, "
        "[...row.querySelectorAll('[data-cause]')].map((e) => [e.dataset.cause, "
        "Number(e.dataset.ns)])])")
    assert len(drawn) == 3
    for name, causes in drawn:
        wanted = sorted(((ns, key[0]) for key, ns in sums[name].items()), reverse=True)[:5]
        assert [ns for _, ns in causes] == [ns for ns, _ in wanted]
        assert sorted(cause for cause, _ in causes) == sorted(cause for _, cause in wanted)


def flame(browser, graph="flame"):
    """(kind, name, ns) of each item in the drawing."""
    return [(kind, name, int(ns)) for kind, name, ns in browser.evaluate(
        f"[...document.querySelectorAll('#{graph} .item')].map((e) => [e.dataset.kind, "
        "e.textContent, e.dataset.ns])")]


def test_flame_graph_holds_all_blocked_time_and_names_stacks_and_wakers(shown, capture):
    blocked = sum(t.get("blocked_ns", 0) for t in capture[1]["threads"])
    drawn = flame(shown)
    assert drawn[0] == ("root", "all waits", blocked)
    users = {name for kind, name, _ in drawn if kind == "user"}
    assert {"main", "ask_for_long"} <= users
    # The asker waits only for the answerer: 12 times 2 ms, 3 times 12 ms.
    by_answerer = sum(ns for kind, name, ns in drawn if kind == "waker" and "<img" in name)
    assert by_answerer >= 12 * 2e6 + 3 * 12e6
    for mode in (1, 2, 0):
        shown.click(f"document.querySelectorAll('#flame-modes button')[{mode}]")
        drawn = flame(shown)
        assert drawn[0][2] == blocked
        kinds = {0: None, 1: "waker", 2: "thread"}
        first = [ns for kind, _, ns in drawn[1:] if kind == kinds[mode]]
        assert mode == 0 or blocked * 0.99 <= sum(first) <= blocked
    # After a zoom the drawing has only the items inside. A click on the first row shows all again.
    item = "[...document.querySelectorAll('#flame .item')].find((e) => e.textContent === "
    all_drawn = flame(shown)
    shown.click(item + "'ask_for_long')")
    zoomed = flame(shown)
    assert len(zoomed) <= len(all_drawn)
    place = shown.evaluate(f"(() => {{ const e = {item}'ask_for_long'); "
                           "return e.style.width; })()")
    assert place == "100%"
    shown.click("document.querySelector('#flame .item')")
    assert flame(shown) == all_drawn


def sampled_page(built, waffle_program, folder, rate, *arguments):
    """The page of a capture of samples.c."""
    path = folder / "samples.waffle"
    program = built("samples.c", "-O2", "-pthread", "-fno-omit-frame-pointer")
    run = [waffle_program, "run", "-q", "--no-report", f"--sample-rate={rate}", "-o", path, "--"]
    subprocess.run([*run, program, *arguments], check=True, timeout=60)
    return write_page(path, folder / "page.html")


def test_flame_graph_by_span_holds_all_samples(browser, built, waffle_program, tmp_path):
    open_page(browser, sampled_page(built, waffle_program, tmp_path, 500, "both", "300"))
    drawn = flame(browser, "oncpu-flame")
    samples = drawn[0][2]
    assert drawn[0][:2] == ("root", "all samples") and samples > 50
    found = {(kind, name): number for kind, name, number in drawn}
    assert found["span", "work"] > samples / 2
    assert found["user", "gemm_kernel"] > samples / 4
    assert any(kind == "kernel" and "read" in name for kind, name in found)
    for mode, first in ((1, "user"), (2, "thread"), (0, "span")):
        browser.click(f"document.querySelectorAll('#oncpu-flame-modes button')[{mode}]")
        drawn = flame(browser, "oncpu-flame")
        assert drawn[0][2] == samples
        assert samples * 0.9 <= sum(n for kind, _, n in drawn if kind == first) or first == "user"
    assert browser.evaluate("document.getElementById('oncpu').hidden") is False


def test_page_without_samples_has_no_graph_of_them(browser, built, waffle_program, tmp_path):
    open_page(browser, sampled_page(built, waffle_program, tmp_path, 0, "user", "30"))
    assert browser.evaluate("document.getElementById('oncpu').hidden") is True
    assert flame(browser, "oncpu-flame") == []


def test_page_follows_the_light_and_the_dark_of_the_system(shown, tmp_path):
    grounds = []
    for scheme in ("light", "dark"):
        shown.screenshot(tmp_path / f"{scheme}.png", scheme=scheme)
        assert (tmp_path / f"{scheme}.png").stat().st_size > 20000
        grounds.append(shown.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(253, 253, 251)", "rgb(23, 22, 20)"]


def test_policy_of_the_page_forbids_scripts_images_and_requests(page, browser):
    open_page(browser, page)
    browser.evaluate(
        "(document.body.insertAdjacentHTML('beforeend', '<img src=\"http://example.org/x.png\" "
        "onerror=\"window.hacked = 1\"><b onclick=\"window.hacked = 1\" id=b>b</b>'), "
        "document.getElementById('b').click(), document.body.append(Object.assign("
        "document.createElement('script'), {textContent: 'window.hacked = 1'})), "
        "fetch('http://example.org/').catch(() => {window.refused = 1}), 1)")
    assert browser.evaluate("window.hacked === undefined")
    browser.call("Runtime.evaluate", expression="new Promise((r) => setTimeout(r, 20))",
                 awaitPromise=True)
    assert browser.evaluate("window.refused") == 1
    assert len(browser.errors) >= 3
    assert all("Content Security Policy" in error.get("text", "") for error in browser.errors)


def test_page_is_one_file_without_an_address(page):
    text = page.read_text(encoding="utf-8")
    markup = re.sub("<script.*?</script>", "", text, flags=re.S)
    assert not re.search(r"\bsrc=|href=(?!\"#)", markup)
    assert not re.search(r"https?:|url\(|//(?! )", text)
    assert text.count("</script>") == 3
    assert ANSWER not in text


@pytest.mark.parametrize("kind", [["scenario"], ["loss"], *[["random", s] for s in range(1, 7)]])
def test_made_up_captures_are_drawn_without_an_error(maker, browser, tmp_path, kind):
    path = tmp_path / "made.waffle"
    subprocess.run([maker, kind[0], path, *map(str, kind[1:])], check=True)
    open_page(browser, write_page(path, tmp_path / "made.html"))
    count = browser.evaluate("document.querySelectorAll('#slow-table tbody button').length")
    for i in range(count):
        browser.evaluate(f"document.querySelectorAll('#slow-table tbody button')[{i}].click()")
    assert browser.errors == []
    if kind[0] == "loss":
        assert "Lost records (77 of sched)" in browser.evaluate(
            "document.getElementById('warnings').textContent")
        assert browser.evaluate("document.querySelectorAll('#view .lost').length") >= 0


def test_page_of_a_large_capture_is_small_and_drawn_at_once(maker, browser, tmp_path):
    path = tmp_path / "large.waffle"
    subprocess.run([maker, "bench", path, "600000", "200"], check=True)
    page = write_page(path, tmp_path / "large.html")
    assert page.stat().st_size < 1_500_000
    open_page(browser, page)
    browser.evaluate("document.querySelectorAll('#slow-table tbody button')[2].click()")
    assert browser.evaluate("document.querySelectorAll('*').length") < 5000
    assert browser.evaluate("Number(document.querySelector('#span-table tr[data-count]')"
                            ".dataset.count)") == 250_000


def test_page_is_written_whole_or_not_at_all(capture, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("old")
    broken = tmp_path / "broken.waffle"
    broken.write_bytes(b"no capture")
    done = subprocess.run([PROGRAM, "report", "--html", page, broken], capture_output=True,
                          text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert page.read_text() == "old"
    done = subprocess.run([PROGRAM, "report", "--html", tmp_path / "none" / "page.html",
                           capture[0]], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == ["broken.waffle", "page.html"]
    done = subprocess.run([PROGRAM, "report", "--html", "-", capture[0]], capture_output=True,
                          check=True)
    assert done.stdout.startswith(b"<!DOCTYPE html>") and done.stdout.endswith(b"</html>\n")
    done = subprocess.run([PROGRAM, "report", "--html", "-", "--json", capture[0]],
                          capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1


def test_filter_is_said_on_the_page(capture, browser, tmp_path):
    page = write_page(capture[0], tmp_path / "filtered.html", "--filter", 'name == "round"')
    open_page(browser, page)
    assert [row["name"] for row in rows(browser, "span-table")] == ["round"]
    assert 'name == "round"' in browser.evaluate("document.querySelector('header').textContent")


def test_view_draws_the_slowest_span_of_a_name(capture):
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "100"}
    done = subprocess.run([PROGRAM, "view", capture[0], "--span", "round"], capture_output=True,
                          text=True, env=environment, check=True)
    lines = done.stdout.splitlines()
    assert all(len(line) <= 100 for line in lines)
    assert "\033" not in done.stdout
    lane = next(i for i, line in enumerate(lines) if line.startswith("page ("))
    assert "├round──" in lines[lane + 1] and "├ask <!--<script>──" in lines[lane + 2]
    assert "░" in lines[lane + 3]
    assert any(line.startswith("<img src=x>?\"' (") for line in lines)
    for arguments, words in ((["--span", "nosuch"], "nosuch"), (["--thread", "12"], "12"),
                             (["--from", "1h"], "the capture ends before that time"),
                             (["--width", "3"], "width")):
        done = subprocess.run([PROGRAM, "view", capture[0], *arguments], capture_output=True,
                              text=True)
        assert done.returncode in (1, 2) and done.stdout == ""
        assert done.stderr.count("\n") == 1 and words in done.stderr
