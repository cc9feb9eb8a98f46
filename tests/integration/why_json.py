# SPDX-License-Identifier: Apache-2.0
"""What `why --json` says of a capture, with the checks that hold for every capture."""

import json

import jsonschema

from tracer import ROOT


def is_known(instance):
    """The records of its begin and its end were not lost."""
    cut = instance["begun_before"] or instance["unfinished"]
    lost = instance["left"] or (cut and instance["loss"])
    unknown = instance.get("length_unknown", False)
    assert unknown or not instance["left"]
    return not lost and not unknown


def in_order(instance):
    """The causes, the longest first. If some are idle, known ones of at least a twentieth of the time come before, except
    waits for a CPU. What the capture itself took comes after all of at least a twentieth of the time without it."""
    idle = any("idle" in cause for cause in instance["causes"])
    program_ns = instance["duration_ns"] - sum(c["duration_ns"] for c in instance["causes"] if "capture" in c)

    def key(cause):
        long = cause["duration_ns"] >= program_ns // 20 and "capture" not in cause
        delays = (idle and "idle" not in cause and cause["cause"] not in ("unknown", "cpu-contention")
                  and long)
        return not delays, not long, -cause["duration_ns"]

    return sorted(instance["causes"], key=key)


def asker(waffle):
    """A function (capture, options): what `why` says as JSON, which is as the schema has it and adds up."""
    schema = json.loads((ROOT / "docs" / "why.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)

    def ask(path, *options):
        answer = json.loads(waffle.ok("why", "--json", *options, path).stdout)
        validator.validate(answer)
        known = [i["duration_ns"] for i in answer["instances"] if is_known(i)]
        assert known == sorted(known, reverse=True)
        for instance in answer["instances"]:
            assert sum(instance["parts"].values()) == instance["duration_ns"]
            assert sum(cause["duration_ns"] for cause in instance["causes"]) == instance["duration_ns"]
            assert instance["causes"] == in_order(instance)
        return answer

    return ask
