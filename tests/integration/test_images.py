# SPDX-License-Identifier: Apache-2.0
"""What is read of a process is of the program that hit a probe, and of no other."""

import os
import tempfile

import pytest

from tracer import compile_program

ADDRESS = 0x20000000  # where a program that is no PIE may have it
SECRET = "root:$6$SECRETHASHSECRETHASH"
COUNT = 3000


@pytest.fixture
def place():
    """A folder that everybody can use."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield folder


@pytest.fixture
def secret(place):
    """A program that reads a file, and that file, which only root may read."""
    section = f"-Wl,--section-start=.secret={ADDRESS:#x}"
    program = compile_program("secret.c", f"{place}/secret", "-static", "-no-pie", section)
    path = f"{place}/only-root"
    with open(path, "w", encoding="ascii") as file:
        file.write(SECRET)
    os.chmod(path, 0o600)
    return program, path


@pytest.mark.parametrize("rights", ["set-user-ID", "plain"])
def test_program_that_comes_behind_a_hit_is_not_read(waffle, start, place, secret, rights):
    """A user's program asks for what a later program of the same process has in its memory."""
    program, path = secret
    asks = compile_program("asks_for_secret.c", f"{place}/asks", "-rdynamic")
    if rights == "set-user-ID":
        os.chmod(program, 0o4755)
    else:
        os.chmod(path, 0o644)
    process = start(asks, hex(ADDRESS), COUNT, program, path, user=65534, group=65534,
                    extra_groups=[])
    process.until("ready")
    attached = waffle.attach("-p", process.pid, "-q", "--no-report")
    attached.wait_calls(waffle, process.pid, asks)
    process.say("go")
    assert process.until("has it as ") == ("0" if rights == "set-user-ID" else "65534")
    attached.stop()
    calls = attached.capture.rows("span", name="__cudaRegisterFunction")
    assert len(calls) == COUNT
    assert "SECRET" not in attached.capture.export("ndjson").read_text(encoding="utf-8")


@pytest.mark.parametrize("rights", ["set-user-ID", "plain"])
def test_probes_record_nothing_of_a_program_that_was_given_rights(waffle, place, secret, rights):
    """Nor of its children: it is not theirs who started it."""
    program, path = secret
    os.chmod(program, 0o4755 if rights == "set-user-ID" else 0o755)
    os.chmod(path, 0o600 if rights == "set-user-ID" else 0o644)
    capture = waffle.run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, path,
                         options=("--machine-wide", "--probe", f"uprobe:{program}:give(str text)"))
    calls = capture.rows("span", name="give")
    told = [call["args"]["text"] for call in calls]
    assert told == ([] if rights == "set-user-ID" else [SECRET, SECRET])
    # Nor does it have the places of its code, or what ran there. Its waits are recorded.
    mapped = [row for row in capture.rows("mapping") if row["args"]["path"] == str(program)]
    waits = [row for row in capture.rows("wait") if row["comm"] == "secret"]
    stacks = [row["args"].get("user_stack", []) for row in waits]
    inside = [stack for stack in stacks if stack and int(stack[0], 16) < ADDRESS]
    assert waits
    assert bool(mapped) == bool(inside) == (rights == "plain")
