# SPDX-License-Identifier: Apache-2.0
"""--explain says what a capture would do, does nothing of it, and is right."""

import collections
import json
import os

import pytest

from tracer import semaphores

# name → use, of the sites of shop.c for this filter
FILTER = 'category == "web" && (kind == span || kv.attempt >= 3)'
USES = {
    "request": "always",
    "render": "always",
    "retry": "asked",
    "cache_miss": "dormant",
    "query": "dormant",
    "flush": "dormant",
    "queue_depth": "dormant",
    "Timeout of the database": "dormant",
    "request served": "dormant",
}
COMMANDS = ["attach", "run", "report", "export"]


@pytest.fixture
def shop(built):
    return built("shop.c")


@pytest.fixture
def recorded(waffle, shop):
    """All that the shop does, recorded without a filter."""
    return waffle.run(shop, "8", options=("--no-sched",), stdin=None, input="go\n")


def explain_run(waffle, expression, *command, **options):
    result = waffle.ok("run", "--explain", "--filter", expression, "--", *command, **options)
    return result.stdout


def explain_json(waffle, expression, *arguments, behind=(), **options):
    options_given = ("--explain", "--json", "--filter", expression)
    result = waffle.ok(*arguments, *options_given, *behind, **options)
    return json.loads(result.stdout)


def uses(explained, program):
    return {s["name"]: s["use"] for s in explained["sites"] if s["lib"] == str(program)}


def check_counts(explained):
    count = collections.Counter(s["use"] for s in explained["sites"])
    assert explained["armed"] == count["always"] + count["asked"]
    assert explained["dormant"] == count["dormant"]
    assert explained["context"] == count["context"]
    numbers = {p["program"] for p in explained["programs"]}
    for site in explained["sites"]:
        if site["use"] == "asked":
            assert site["program"] in numbers


# ---- attach and run ----


def test_sites_are_those_that_a_run_records(waffle, shop, recorded):
    explained = explain_json(waffle, FILTER, "run", behind=("--", shop))
    assert uses(explained, shop) == USES
    check_counts(explained)
    assert explained["at_arming"] == ["kind", "category"]
    assert explained["in_kernel"] == ["kv"]
    assert explained["afterwards"] == []
    assert explained["thread_switches"] is True  # "category" says nothing of them

    kept = waffle.run(
        shop, "8", options=("--no-sched", "--filter", FILTER), stdin=None, input="go\n"
    )

    def names(capture):
        return collections.Counter(
            row["name"]
            for row in capture.rows()
            if row["kind"] in ("span", "event", "log", "counter")
        )

    everything, few = names(recorded), names(kept)
    assert set(everything) == set(USES)
    for name, use in USES.items():
        if use == "always":
            assert few[name] == everything[name] > 0
        elif use == "asked":
            assert 0 < few[name] < everything[name]
        else:
            assert few[name] == 0


def test_attach_says_the_same_and_arms_nothing(waffle, shop, start):
    program = start(shop, "8")
    program.until("ready")
    explained = explain_json(waffle, FILTER, "attach", "-p", program.pid)
    assert uses(explained, shop) == USES
    check_counts(explained)
    values = semaphores(program.pid, shop)
    assert values and not any(values)
    assert list(waffle.folder.iterdir()) == []


def test_run_starts_no_command_and_writes_no_file(waffle, tmp_path):
    explain_run(waffle, FILTER, "touch", tmp_path / "touched")
    assert list(tmp_path.iterdir()) == []


def test_sampling_names_why_spans_are_context(waffle, shop):
    text = explain_run(waffle, "kind == event && sample(1/3)", shop)
    assert "armed as context (traces that are sampled begin in spans)" in text
    text = explain_run(waffle, "kind == event && depth > 0", shop)
    assert "armed as context (parents are checked)" in text


def test_library_is_compared_by_the_absolute_path(waffle, shop):
    """As it is in the mappings of a process, whatever was typed."""
    expression = f'lib == "{shop}" && name == "render"'
    explained = explain_json(
        waffle, expression, "run", behind=("--", f"./{shop.name}"), cwd=shop.parent
    )
    assert explained["armed"] == 1
    assert uses(explained, shop)["render"] == "always"
    assert {s["lib"] for s in explained["sites"]} == {str(shop)}


def test_of_a_script_its_interpreter_is_shown(waffle, shop, tmp_path):
    for first_line in (f"#!{shop}", f"#! \t{shop} 8", f"#!{shop}\t8\n"):
        script = tmp_path / "script.sh"
        script.write_text(first_line, encoding="utf-8")
        script.chmod(0o755)
        result = waffle.ok("run", "--explain", "--json", "--filter", FILTER, "--", "./script.sh")
        assert uses(json.loads(result.stdout), shop) == USES
        [line] = result.stderr.splitlines()
        assert line.startswith("waffle-bpf: run: the command is a script")
        assert line.endswith("sites of programs that it starts are found when they start")


def test_script_without_an_interpreter_fails_with_one_line(waffle, tmp_path):
    script = tmp_path / "script.sh"
    for first_line in ("#!", "#!\n", "#!/no/such/program\n", "echo"):
        script.write_text(first_line, encoding="utf-8")
        script.chmod(0o755)
        waffle.fails(1, "run", "--explain", "--filter", FILTER, "--", script, says="script.sh: ")


def test_rest_of_an_expression_has_no_needless_parentheses(waffle, shop):
    def asks(expression):
        text = explain_run(waffle, f'name == "retry" && {expression}', shop)
        [line] = {x.strip() for x in text.splitlines() if x.startswith("  asks: ")}
        return line.removeprefix("asks: ")

    assert asks("depth > 0 && kv.n == 3 && sample(1/3)") == "depth > 0 && kv.n == 3 && sample(1/3)"
    assert asks("((kv.n == 1 || kv.n == 2) || kv.n == 3)") == "kv.n == 1 || kv.n == 2 || kv.n == 3"
    assert asks("depth > 0 && (kv.n == 1 || cpu == 2)") == "depth > 0 && (kv.n == 1 || cpu == 2)"
    assert asks("((depth > 0 && cpu == 1) || kv.n == 3)") == "depth > 0 && cpu == 1 || kv.n == 3"
    assert asks("!(kv.n == 1 || kv.n == 2) && cpu == 9") == "!(kv.n == 1 || kv.n == 2) && cpu == 9"


def test_rate_has_a_unit(waffle, shop):
    def rate(expression):
        text = explain_run(waffle, f"kind == event && {expression}", shop)
        [line] = [x for x in text.splitlines() if x.startswith("rate: ")]
        return line

    assert rate("rate(3/s)") == "rate: at most 3 in each 1.00 s, evaluated last"
    assert rate("rate(5000/ms)") == "rate: at most 5,000 in each 1.00 ms, evaluated last"
    assert rate("rate(3/min)") == "rate: at most 3 in each 60.0 s, evaluated last"


# ---- report and export ----


def test_of_a_file_all_is_decided_afterwards(waffle, recorded):
    expression = 'name == "retry" && kv.attempt >= 3 && sample(1/2) && rate(3/s)'
    for command in ("report", "export"):
        assert explain_json(waffle, expression, command, recorded.path) == {
            "filter": expression,
            "at_arming": [],
            "in_kernel": [],
            "afterwards": ["name", "kv", "sample()", "rate()"],
            "thread_switches": True,
        }
        explained = explain_json(waffle, "kind == span", command, recorded.path)
        assert explained["afterwards"] == ["kind"]
        assert explained["thread_switches"] is False
        text = waffle.ok(command, "--explain", "--filter", expression, recorded.path).stdout
        assert "no sites are armed, nothing is in the kernel" in text
        assert "span and event: name, kv, sample(), rate()\n" in text
    assert [p.name for p in waffle.folder.iterdir()] == [recorded.path.name]


def test_of_a_file_that_is_not_there_explain_fails_too(waffle):
    for command in ("report", "export"):
        plain = waffle.fails(1, command, "--filter", FILTER, "nofile", says="nofile: ")
        assert waffle.fails(1, command, "--explain", "--filter", FILTER, "nofile") == plain


def test_key_that_no_site_of_the_file_declares_is_said(waffle, recorded):
    expected = "no site declares the key 'byte'; did you mean bytes (of cache_miss)\n"
    for command, *more in (
        ("report",),
        ("export", "-o", waffle.folder / "out"),
        ("report", "--explain"),
        ("export", "--explain", "--json"),
    ):
        said = waffle.ok(command, *more, "--filter", "kv.byte > 1", recorded.path).stderr
        assert said == f"waffle-bpf: {command}: {expected}"
        said = waffle.ok(command, *more, "--filter", "kv.bytes > 1", recorded.path).stderr
        assert said == ""


def test_report_at_the_end_of_a_capture_does_not_warn_again(waffle, shop):
    result = waffle.call(
        "run", "--no-sched", "-o", waffle.path(), "--filter", "kv.byte > 1 || kind == span",
        "--", shop, "8", stdin=None, input="go\n",
    )  # fmt: skip
    assert result.stderr.count("no site declares the key 'byte'") == 1


# ---- all four ----


@pytest.mark.parametrize("command", COMMANDS)
def test_explain_needs_a_filter(waffle, recorded, command):
    behind = {"attach": ["-p", os.getpid()], "run": ["--", "true"]}.get(command, [recorded.path])
    line = waffle.fails(2, command, "--explain", *behind)
    assert line == f"waffle-bpf: {command}: --explain needs a --filter"
    environment = {**os.environ, "WAFFLE_FILTER": "kind == span"}
    waffle.ok(command, "--explain", *behind, env=environment)
    waffle.fails(2, command, "--explain", "--filter=", *behind, env=environment)
