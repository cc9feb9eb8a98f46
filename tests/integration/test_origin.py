# SPDX-License-Identifier: Apache-2.0
"""`why --event` and `why --origin` on the examples: from the symptom on every rank and in every process to
the event that the program declared as the cause. Text, JSON against its schema, HTML and Perfetto."""

import json
import subprocess
import sys

import jsonschema
import pytest

from chromium import open_page
from tracer import PROGRAMS, ROOT, compile_with_waffle, find_tool, tries

sys.path.insert(0, str(ROOT / "tests"))
import validate_perfetto  # noqa: E402

RANKS = 4
MPI = {
    "openmpi": ("--allow-run-as-root", "--oversubscribe"),
    "mpich": (),
}
SYMPTOM = "MPI_Allreduce result is NaN"


@pytest.fixture(scope="module")
def schema():
    text = (ROOT / "docs" / "origin.schema.json").read_text()
    jsonschema.Draft202012Validator.check_schema(json.loads(text))
    return jsonschema.Draft202012Validator(json.loads(text))


def check_way(answer, origin):
    """The steps follow each other from the symptom to the origin, and the grade is that of the weakest."""
    at = answer["event"]
    for step in origin["way"]:
        assert step["from"]["id"] == at["id"]
        at = step["to"]
    assert at["id"] == origin["id"]
    if origin["basis"] == "declared":
        grades = ["certain", "likely", "unknown"]
        assert origin["grade"] == max((s["grade"] for s in origin["way"]), key=grades.index)


@pytest.fixture
def origins(waffle, schema):
    """origins(path, options): what it says as JSON, which is as the schema has it."""

    def ask(path, *options):
        answer = json.loads(waffle.ok("why", "--json", *options, path).stdout)
        schema.validate(answer)
        for origin in answer["origins"]:
            check_way(answer, origin)
        return answer

    return ask


def vias(origin):
    return [step["via"] for step in origin["way"]]


# ---- MPI ----


@pytest.fixture(scope="module", params=MPI)
def library(request):
    return request.param


@pytest.fixture(scope="module")
def mpi_nan(library, tmp_path_factory):
    program = tmp_path_factory.mktemp("mpi") / "mpi_nan"
    subprocess.run([find_tool(f"mpicc.{library}"), "-std=c11", "-O2", "-g", "-Wall", "-Werror",
                    f"-I{ROOT / 'include'}", "-o", program, ROOT / "examples" / "mpi_nan.c"],
                   check=True)
    return program


def mpi_capture(waffle, library, program, ranks, *options):
    command = (find_tool(f"mpirun.{library}"), *MPI[library], "-n", ranks, program)
    capture = waffle.run(*command, options=("--no-sched", *options))
    capture.check_sums(lost=0)
    return capture


def check_mpi(capture, origins, ranks, grades_elsewhere, between):
    """On every rank the only origin is rank 1's event."""
    [cause] = capture.rows("event", name="Creating NaN on purpose")
    symptoms = capture.rows("event", name=SYMPTOM)
    assert len(symptoms) == len({row["pid"] for row in symptoms}) == ranks
    for symptom in symptoms:
        answer = origins(capture.path, "--event", symptom["id"])
        assert answer["event"]["id"] == symptom["id"]
        [origin] = answer["origins"]
        assert (origin["id"], origin["name"], origin["kind"]) == (cause["id"], cause["name"], "event")
        assert (origin["pid"], origin["rank"], origin["world_size"]) == (cause["pid"], 1, ranks)
        assert origin["args"] == {"rank": 1}
        assert origin["file"].endswith("mpi_nan.c") and origin["basis"] == "declared"
        if symptom["pid"] == cause["pid"]:
            assert (origin["grade"], vias(origin)) == ("certain", ["inside", "link"])
            continue
        assert vias(origin) == ["inside", "collective", "link"]
        assert origin["grade"] in grades_elsewhere
        collective = origin["way"][1]
        assert collective["from"]["name"] == collective["to"]["name"] == "MPI_Allreduce_op"
        assert collective["from"]["rank"] == answer["event"]["rank"] and collective["to"]["rank"] == 1
        between(collective)


# A busy machine may arm a program after its begin, and then the begin is missing.
@pytest.mark.parametrize("ranks", (2, RANKS))
@tries(3)
def test_nan_after_an_allreduce_comes_from_the_rank_that_made_it(
        waffle, library, mpi_nan, origins, ranks):
    capture = mpi_capture(waffle, library, mpi_nan, ranks, "--probes", "mpi")

    def between(step):
        assert step["operation"] == "MPI_Allreduce" and step["ranks"] == ranks
        assert step["to_rank"] == 1 and step["from_rank"] == step["from"]["rank"]

    # On a busy machine the probes may come after MPI_Init. Then the order of the calls is not sure.
    whole = len(capture.rows("span", name="MPI_Init")) == ranks
    check_mpi(capture, origins, ranks, ("certain",) if whole else ("certain", "likely"), between)


@tries(3)
def test_spans_of_one_name_stand_for_a_collective_without_probes(waffle, library, mpi_nan, origins):
    capture = mpi_capture(waffle, library, mpi_nan, RANKS)

    def between(step):
        assert "operation" not in step

    check_mpi(capture, origins, RANKS, ("likely",), between)


RANK_VARIABLE = {"openmpi": "OMPI_COMM_WORLD_RANK", "mpich": "PMI_RANK"}


@pytest.fixture
def rank_files(waffle_program, library, mpi_nan, tmp_path):
    """Each rank with a waffle-bpf and a file of its own."""
    script = (f'exec {waffle_program} run -q --no-report --no-sched --probes mpi '
              f'-o {tmp_path}/one.${RANK_VARIABLE[library]}.waffle -- "$@"')
    subprocess.run([find_tool(f"mpirun.{library}"), *MPI[library], "-n", "3", "sh", "-c", script, "sh",
                    mpi_nan], check=True, timeout=120)
    return [tmp_path / f"one.{rank}.waffle" for rank in range(3)]


def check_files(origins, files, hosts):
    """From the symptom in each file to the event in that of rank 1. `hosts`: the name of each rank's."""
    for rank, path in enumerate(files):
        symptom = origins(path, "--event", SYMPTOM)["event"]
        answer = origins(*files[1:], "--event", symptom["id"], files[0])
        assert (answer["event"]["rank"], answer["event"]["host"]) == (rank, hosts[rank])
        [origin] = answer["origins"]
        assert (origin["name"], origin["rank"], origin["host"]) == (
            "Creating NaN on purpose", 1, hosts[1])
        assert origin["grade"] in ("certain", "likely")  # after a missed MPI_Init: likely
        assert answer["incomplete"] is None


def test_way_leads_from_file_to_file_and_from_host_to_host(
        waffle_program, rank_files, origins, tmp_path):
    [host] = {origins(path, "--event", SYMPTOM)["event"]["host"] for path in rank_files}
    check_files(origins, rank_files, 3 * [host])
    # The same from three hosts, whose clocks differ by hours.
    skew = compile_with_waffle(waffle_program, "skew_capture.c", tmp_path / "skew_capture")
    skewed = [tmp_path / f"many.{rank}.waffle" for rank in range(3)]
    for rank, path in enumerate(rank_files):
        subprocess.run([skew, path, skewed[rank], f"node-{rank}", str(rank * 7200 * 10**9), "1e-5", "0"],
                       check=True)
    check_files(origins, skewed, [f"node-{rank}" for rank in range(3)])


def test_missing_file_of_a_rank_is_said(waffle, rank_files, origins):
    answer = origins(rank_files[0], "--event", SYMPTOM, rank_files[2])
    assert {origin["basis"] for origin in answer["origins"]} == {"any rank"}
    assert {key: answer["incomplete"][key] for key in ("operation", "ranks", "recorded")} == {
        "operation": "MPI_Allreduce", "ranks": 3, "recorded": 2}
    text = waffle.ok("why", "--event", SYMPTOM, rank_files[0], rank_files[2]).stdout
    assert "origins may be missing: of MPI_Allreduce number 0, the calls of only 2 of 3 ranks" in text


# The ranks that see the value of rank 1, and what the ways from the others to it have.
WAYS = {
    "ring": ({0, 2, 3}, "message"),
    "broadcast": ({0, 1, 2, 3}, "collective"),
    "later": ({0, 1, 2, 3}, "collective"),
    "reduce": ({0}, "collective"),
    "scan": ({1, 2, 3}, "collective"),
}


@pytest.fixture(scope="module")
def mpi_origin(library, tmp_path_factory):
    program = tmp_path_factory.mktemp("mpi") / "mpi_origin"
    subprocess.run([find_tool(f"mpicc.{library}"), "-std=c11", "-O2", "-g", "-Wall", "-Werror",
                    f"-I{ROOT / 'include'}", "-o", program, PROGRAMS / "mpi_origin.c"], check=True)
    return program


@pytest.mark.parametrize("way", WAYS)
@tries(3)
def test_value_of_one_rank_is_followed_the_way_that_it_went(waffle, library, mpi_origin, origins, way):
    command = (find_tool(f"mpirun.{library}"), *MPI[library], "-n", RANKS, mpi_origin, way)
    capture = waffle.run(*command, options=("--no-sched", "--probes", "mpi"))
    capture.check_sums(lost=0)
    ranks, via = WAYS[way]
    [cause] = capture.rows("event", name="made")
    symptoms = {row["args"]["rank"]: row for row in capture.rows("event", name="seen")}
    if way == "ring":
        symptoms.pop(1)  # it has only sent the value
    assert set(symptoms) == ranks
    for rank, symptom in symptoms.items():
        [origin] = origins(capture.path, "--event", symptom["id"])["origins"]
        assert (origin["id"], origin["rank"]) == (cause["id"], 1)
        assert (origin["basis"], origin["grade"]) == ("declared", "likely")
        steps = vias(origin)
        assert steps[-1] == "link" and set(steps[:-1]) == {via}
        # From rank 1 to 2, 3 and 0, by one message each.
        assert len(steps) == 1 + ((rank - 1) % RANKS if way == "ring" else 1)


# ---- NCCL ----


def test_broken_batch_of_one_rank_is_found_from_the_loss_of_each(waffle, waffle_program, origins):
    training = waffle_program.parent / "sim" / "training"
    capture = waffle.run(training, "--ranks", RANKS, "--steps", 6, options=("--no-sched",),
                         env={"WAFFLE_SIM_NAN": "2:3"})
    capture.check_sums(lost=0)
    [cause] = capture.rows("event", name="broken batch")
    assert cause["args"] == {"step": 3, "rank": 2}
    symptoms = capture.rows("event", name="loss is NaN")
    assert len(symptoms) == RANKS * 3
    for symptom in symptoms:
        answer = origins(capture.path, "--event", symptom["id"])
        [origin] = answer["origins"]
        assert (origin["id"], origin["basis"]) == (cause["id"], "declared")
        # The span of the all-reduce has closed by then.
        assert origin["grade"] == "likely"
        last = [step for step in origin["way"] if step["via"] == "collective"][-1]
        assert last["operation"] == "ncclAllReduce" and last["ranks"] == RANKS
        assert (last["to"]["name"], last["to_rank"]) == ("backward", 2)
        assert last["to"]["pid"] == cause["pid"]


# ---- contexts ----


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    program = tmp_path_factory.mktemp("pipeline") / "pipeline"
    subprocess.run(["gcc", "-std=c11", "-O2", "-g", "-Wall", "-Werror", f"-I{ROOT / 'include'}", "-o",
                    program, ROOT / "examples" / "pipeline.c"], check=True)
    return program


def test_context_leads_through_three_processes(waffle, pipeline, origins):
    capture = waffle.run(pipeline, options=("--no-sched",))
    [cause] = capture.rows("event", name="broken record")
    [symptom] = capture.rows("event", name="result is NaN")
    answer = origins(capture.path, "--event", "result is NaN", "--evidence")
    assert answer["event"]["id"] == symptom["id"]
    [origin] = answer["origins"]
    assert (origin["id"], origin["grade"]) == (cause["id"], "certain")
    assert vias(origin) == ["inside", "context", "context", "link"]
    assert [step["to"]["name"] for step in origin["way"]] == ["write", "scale", "send", "broken record"]
    assert len({step["to"]["pid"] for step in origin["way"]}) == 3
    # Each node by the record that it is, as the export of records has it.
    records = {row["record"]: row for row in capture.records()}
    for node in [answer["event"], origin, *(step["to"] for step in origin["way"])]:
        record = records[node["record"]]
        assert (record["kind"], record["ts"], record["tid"]) == ("hit", node["start_ns"], node["tid"])
    text = waffle.ok("why", "--event", "result is NaN", capture.path).stdout
    assert "  1.  certain   event broken record " in text
    assert text.count("with the context of span ") == 2
    # From a span, by its name and by its id.
    answer = origins(capture.path, "--span", origin["way"][0]["to"]["id"], "--origin")
    assert answer["event"]["kind"] == "span"
    assert [origin["id"] for origin in answer["origins"]] == [cause["id"]]
    # The last span of the name has another context, and no declared cause.
    [origin] = origins(capture.path, "--span", "write", "--origin")["origins"]
    assert (origin["name"], origin["basis"], origin["grade"]) == ("send", "flow", "likely")


def test_page_tells_the_way_from_the_symptom_to_its_origin(waffle, pipeline, origins, browser, tmp_path):
    capture = waffle.run(pipeline, options=("--no-sched",))
    page = tmp_path / "page.html"
    waffle.ok("report", "--html", page, capture.path)
    open_page(browser, page)
    assert browser.evaluate("document.getElementById('origins').hidden") is False
    [shown] = browser.evaluate(
        "[...document.querySelectorAll('#symptoms > div')].map((e) => ({...e.dataset, "
        "story: e.querySelector('pre').textContent}))")
    answer = origins(capture.path, "--event", "result is NaN")
    assert shown["id"] == answer["event"]["id"]
    assert shown["origins"].split() == [origin["id"] for origin in answer["origins"]]
    text = waffle.ok("why", "--event", "result is NaN", capture.path).stdout
    assert text.startswith(shown["story"])


def test_arrows_in_perfetto_go_along_the_way(waffle, pipeline, tmp_path):
    capture = waffle.run(pipeline, options=("--no-sched",))
    out = tmp_path / "pipeline.pftrace"
    waffle.ok("export", "-f", "perfetto", "-o", out, capture.path)
    trace = validate_perfetto.load(out)
    assert trace.violations == []
    assert sorted((cause.name, effect.name) for cause, effect in trace.flows) == [
        ("broken record", "send"),
        ("scale", "write"),
        ("send", "scale"),
        ("write", "result is NaN"),
    ]
    assert {cause.args["record"] for cause, _ in trace.flows} == {7}


def test_filter_that_may_have_removed_the_cause_is_named(waffle, pipeline):
    capture = waffle.run(pipeline, options=("--no-sched",))
    expression = 'name != "send"'
    words = ("why", "--event", "result is NaN")
    text = waffle.ok(*words, "--filter", expression, capture.path).stdout
    assert f"  the filter may have removed the cause: {expression}\n" in text
    assert "to declare a cause" not in text
    assert "filter" not in waffle.ok(*words, capture.path).stdout
    # A cause that was found needs no such line.
    text = waffle.ok(*words, "--filter", 'name != "nothing"', capture.path).stdout
    assert "broken record" in text
    assert "may have removed" not in text


def test_what_cannot_be_followed_is_said_in_one_line(waffle, pipeline):
    capture = waffle.run(pipeline, options=("--no-sched",))
    waffle.fails(1, "why", "--event", "nothing", capture.path, says="no event 'nothing'")
    waffle.fails(1, "why", "--span", "wite", "--origin", capture.path, says="did you mean 'write'")
    waffle.fails(2, "why", "--origin", capture.path, says="give --span, too")
    for what in (("--event", "broken record"), ("--span", "write", "--origin")):
        waffle.fails(2, "why", *what, "--slowest", "3", capture.path, says="--slowest chooses slow spans")
    text = waffle.ok("why", "--event", "broken record", capture.path).stdout
    assert "nothing says what caused it" in text and "KV_CAUSE_EVENT" in text
