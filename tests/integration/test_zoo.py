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
            attached = waffle.attach(*pids, "-q", "--no-report")
            for pid in program.pids():
                attached.wait_armed(pid, built)
                for library in zoo.libraries(row):
                    attached.wait_calls(waffle, pid, library)
            program.go()
            log = program.finish()
        capture = attached.wait()
        if os.environ.get("WAFFLE_ZOO_KEEP"):
            name = f"{row.name}-{seed}.waffle"
            shutil.copy(capture.path, pathlib.Path(os.environ["WAFFLE_ZOO_KEEP"]) / name)
        answer = waffle.ok("why", "--json", "--span", "victim", "--slowest", "0", capture.path)
        return log, json.loads(answer.stdout)["instances"]

    return run


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("row", scenarios.SCENARIOS, ids=lambda row: row.name)
def test_the_first_cause_is_the_injected_one(explain, row, seed):
    judge.check(row, *explain(row, seed))
