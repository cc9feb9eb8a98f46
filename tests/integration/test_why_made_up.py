# SPDX-License-Identifier: Apache-2.0
"""`why` on captures that were made up, also of records that contradict each other."""

import re
import subprocess

import pytest

import why_json


@pytest.fixture
def why(waffle):
    return why_json.asker(waffle)


@pytest.mark.parametrize("kind", [("scenario",), ("loss",), ("bench", 20000, 4)], ids=lambda k: k[0])
def test_json_of_a_made_up_capture_is_as_the_schema_says(why, maker, tmp_path, kind):
    path = tmp_path / "made.waffle"
    subprocess.run([maker, kind[0], path, *map(str, kind[1:])], check=True)
    answer = why(path, "--slowest", "0", "--evidence")
    assert answer["instances"]
    if kind[0] == "loss":
        assert any(instance["loss"] for instance in answer["instances"])


@pytest.mark.parametrize("seed", range(12))
def test_records_that_contradict_each_other_still_add_up(waffle, why, maker, tmp_path, seed):
    path = tmp_path / "random.waffle"
    subprocess.run([maker, "random", path, str(seed)], check=True)
    result = waffle.call("why", "--json", "--slowest", "0", path)
    if result.returncode:
        assert re.search("no spans|scheduler was not", result.stderr)
    else:
        why(path, "--slowest", "0", "--evidence")
        waffle.ok("why", "--slowest", "0", "--evidence", path)
