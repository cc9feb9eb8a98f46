# SPDX-License-Identifier: Apache-2.0
"""What every command prints of the captures in tests/golden/captures is what it printed when
tests/golden/expected was written (README.md)."""

import os

import pytest

import cases
import golden

CASES = golden.all_cases()


@pytest.fixture(scope="session")
def results():
    assert os.geteuid() == 0, "the commands run in a chroot: run the tests as root"
    program = golden.default_program()
    assert program.exists(), f"{program} is not there; run make"
    return golden.run_all(program, [line for table in CASES.values() for line in table])


@pytest.mark.parametrize("name", CASES)
def test_what_commands_print_is_as_committed(results, name):
    sections = golden.expectation_sections(name)
    problems = []
    for line in CASES[name]:
        found = golden.problem(name, line, results[line], sections)
        if found:
            problems.append(f"waffle-bpf {line}\n{found}")
    assert not problems, "\n\n".join(problems[:5]) + f"\n\n{len(problems)} commands differ"
    assert list(sections) == list(CASES[name]), "expected has other commands: update.py"


def test_each_capture_has_commands_and_each_expectation_is_of_some():
    captures = {path.stem for path in golden.CAPTURES.glob("*.waffle")} | set(cases.DERIVED) | {"commands"}
    tables = set(CASES)
    assert captures == tables
    for suffix in ("txt", "xz"):
        assert {path.stem for path in golden.EXPECTED.glob(f"*.{suffix}")} == tables
