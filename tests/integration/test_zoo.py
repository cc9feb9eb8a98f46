# SPDX-License-Identifier: Apache-2.0
"""`why` on the programs of tests/zoo, each slow for one known reason: the first cause of each of
their spans, who is to blame, the share, which the programs have measured themselves, and the grade.

WAFFLE_ZOO_SEEDS seeds each (1; `make zoo` takes 5). WAFFLE_ZOO_KEEP names a folder for the captures.
Other work on the machine disturbs single rounds: the judge asks for most of a program's rounds."""

import json
import os
import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "zoo"))
pytest.register_assert_rewrite("judge")

import judge
import scenarios
import zoo

SEEDS = range(1, 1 + int(os.environ.get("WAFFLE_ZOO_SEEDS", "1")))


@pytest.fixture(scope="session")
def zoo_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("zoo")


@pytest.fixture
def explain(waffle, zoo_folder):
    """explain(row, seed): the program's log and its spans as `why` explains them."""

    def run(row, seed):
        why = zoo.missing(row)
        if why:
            pytest.fail(f"cannot run here: {why}")
        built = zoo.build(row, zoo_folder)
        with zoo.running(row, built, seed) as program:
            pids = [f"--pid={pid}" for pid in program.pids()]
            attached = waffle.attach(*pids, "-q", "--no-report", *(("--stacks", "sched") if row.unmarked else ()))
            wait_ready(waffle, attached, row, built, program.pids())
            program.go()
            log = program.finish()
        capture = attached.wait()
        if os.environ.get("WAFFLE_ZOO_KEEP"):
            name = f"{row.name}-{seed}.waffle"
            shutil.copy(capture.path, pathlib.Path(os.environ["WAFFLE_ZOO_KEEP"]) / name)
        return log, (windows if row.unmarked else spans)(waffle, capture.path, log, row)

    return run


def wait_ready(waffle, attached, row, built, pids):
    if row.unmarked:
        attached.wait_ready()
        return
    for pid in pids:
        attached.wait_armed(pid, built)
        for library in zoo.libraries(row):
            attached.wait_calls(waffle, pid, library)


def explained(waffle, *arguments):
    return json.loads(waffle.ok("why", "--json", *arguments).stdout)["instances"]


def spans(waffle, path, *_):
    return explained(waffle, "--span", "victim", "--slowest", "0", path)


def windows(waffle, path, log, row):
    """The victim's thread, from the begin to the end of each round, as `why --from --to` explains it."""
    if row.whole:
        return explained(waffle, path)
    start = json.loads(waffle.ok("info", "--json", path).stdout)["start_ns"]
    found = []
    for victim, _ in zoo.rounds(log).values():
        window = [f"--{name}={victim[key] - start}ns" for name, key in (("from", "begin"), ("to", "end"))]
        found += explained(waffle, "--thread", victim["tid"], *window, path)
    return found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("row", scenarios.SCENARIOS, ids=lambda row: row.name)
def test_the_first_cause_is_the_injected_one(explain, row, seed):
    judge.check(row, *explain(row, seed))
