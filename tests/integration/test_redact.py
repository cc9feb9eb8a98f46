# SPDX-License-Identifier: Apache-2.0
"""--no-args and --redact: the file is searched for what must not be in it, not only the outputs."""

import struct
import subprocess

PROBE = ("--probe", "uprobe:exe:find_secret(char *user, long number) -> char *answer")
SECRET = {b"USER-KRAKATAU": "user", b"TOKEN-VESUVIUS": "token", b"ANSWER-KRAKATAU": "answer"}
HEADER, CHUNK = 16, 48


def unpacked(path):
    """All bytes of a capture, and those of each zstd frame in it, unpacked by zstd(1)."""
    data = path.read_bytes()
    found, at = [data], data.find(b"\x28\xb5\x2f\xfd")
    while at >= 0:
        done = subprocess.run(["zstd", "-dcq"], input=data[at:], capture_output=True, check=False)
        found.append(done.stdout)
        at = data.find(b"\x28\xb5\x2f\xfd", at + 1)
    return b"".join(found)


def recorded(waffle, built, *options):
    capture = waffle.run(built("secrets.c"), "--password=hunter2-PARICUTIN", options=options)
    return capture, unpacked(capture.path)


def spans(capture, name):
    return [row for row in capture.rows("span") if row["name"] == name]


def test_a_capture_has_the_values_without_the_options(waffle, built):
    """Checks that the search of the next test can find the values at all."""
    capture, data = recorded(waffle, built, *PROBE)
    for secret in (*SECRET, b"hunter2-PARICUTIN"):
        assert secret in data, secret
    assert {row["args"]["attempt"] for row in spans(capture, "login")} == set(
        range(1234500, 1234520)
    )


def test_redacted_keys_are_in_no_byte_of_the_file(waffle, built):
    capture, data = recorded(waffle, built, *PROBE, "--redact", "token,answer", "--redact=user")
    for secret in SECRET:
        assert secret not in data, secret
    logins = spans(capture, "login")
    assert [row["args"] for row in logins] == [{"attempt": 1234500 + i} for i in range(20)]
    calls = spans(capture, "find_secret")
    assert [row["args"] for row in calls] == [{"number": 777000 + i} for i in range(20)]
    assert len([row for row in capture.rows("event") if row["name"] == "denied"]) == 20
    capture.check_sums(lost=0)


def test_without_arguments_neither_values_nor_command_lines(waffle, built):
    capture, data = recorded(waffle, built, *PROBE, "--no-args")
    for secret in (*SECRET, b"hunter2-PARICUTIN", b"--password"):
        assert secret not in data, secret
    for number in (1234500, 777000):
        assert struct.pack("<Q", number) not in data
    assert len(spans(capture, "login")) == len(spans(capture, "find_secret")) == 20
    assert not any(row.get("args") for kind in ("span", "event") for row in capture.rows(kind))
    # Counters are what they are for.
    counters = [row["args"]["value"] for row in capture.rows("counter")]
    assert sorted(counters) == [100 + i for i in range(20)]
    assert "secrets" in capture.info()["command"]


def test_a_filter_sees_what_is_not_recorded(waffle, built):
    capture, data = recorded(waffle, built, "--redact", "attempt", "--filter",
                             "kv.attempt >= 1234515")  # fmt: skip
    assert len(spans(capture, "login")) == 5
    assert all("attempt" not in row["args"] for row in spans(capture, "login"))
    assert struct.pack("<Q", 1234519) not in data


def test_attach_leaves_out_as_well(waffle, steps):
    whole = waffle.attach_to(steps, steps.path)
    steps.ask("span 3", "did")
    keys = {key for row in whole.stop().rows("span") for key in row.get("args", {})}
    assert keys
    attached = waffle.attach_to(steps, steps.path, options=("--redact", sorted(keys)[0]))
    steps.ask("span 3", "did")
    rows = attached.stop().rows("span")
    assert rows
    assert {key for row in rows for key in row.get("args", {})} == keys - {sorted(keys)[0]}


def test_a_slip_in_a_name_is_told(waffle, built):
    result = waffle.ok("run", "-q", "--no-report", "-o", waffle.path(), "--redact", "tokne,token",
                       "--", built("secrets.c"))  # fmt: skip
    assert "no site that was armed has a key 'tokne': nothing was left out" in result.stderr
    assert "'token'" not in result.stderr
    waffle.fails(2, "run", "--redact", "", "--", "true", says="--redact")
