# SPDX-License-Identifier: Apache-2.0
"""Nothing that a program or a file can name reaches a terminal as a control: every command, both
streams."""

import pathlib
import re
import shutil
import unicodedata

import pytest

from tracer import PROGRAMS, ROOT, compile_program

HOSTILE = "x\x1b]0;owned\a\x1b[31m\x9b2J‮⁦\nforged"


def check(text, what):
    """Of a pipe, where there are no colours: only line breaks are there, and no mark of direction."""
    for character in text:
        bad = unicodedata.category(character) in ("Cc", "Zl", "Zp") and character != "\n"
        bad = bad or unicodedata.bidirectional(character) in (
            "LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI",
        )  # fmt: skip
        assert not bad, f"{what}: {character!r} in {text!r}"
    assert not any(line.startswith("forged") for line in text.splitlines()), f"{what}: {text!r}"


@pytest.fixture(name="hostile", scope="module")
def hostile_program(tmp_path_factory):
    """A program whose path is hostile too."""
    folder = tmp_path_factory.mktemp("hostile")
    plain = compile_program(PROGRAMS / "hostile.c", folder / "plain", "-Wno-bidi-chars")
    return shutil.copy(plain, folder / HOSTILE)


def test_all_output_is_free_of_controls(waffle, hostile):
    path = waffle.folder / f"{HOSTILE}.waffle"
    name = f"span{HOSTILE[1:]}"
    result = waffle.ok("run", "-o", path, "--", hostile, HOSTILE)
    check(result.stdout, "run stdout")
    check(result.stderr, "run stderr")
    assert "span" in result.stdout
    for arguments in (
        ["report", path],
        ["report", "--json", path],
        ["why", path],
        ["why", "--json", path],
        ["why", "--span", name, "--evidence", path],
        ["view", path],
        ["info", path],
        ["info", "--json", path],
        ["export", path, "-f", "ndjson", "-o", "-"],
        ["export", path, "-f", "chrome", "-o", "-"],
        ["export", path, "-f", "records", "-o", "-"],
        ["export", path, "-f", "ndjson", "-o", waffle.folder / f"{HOSTILE}.ndjson"],
        ["list", hostile],
        ["list", "--json", hostile],
        ["list", "--probe", "uprobe:exe:main()", hostile],
        ["run", "--explain", "--filter", "dur > 1ms", "--", hostile],
        ["run", "--explain", "--json", "--filter", "dur > 1ms", "--", hostile],
    ):
        result = waffle.call(*arguments)
        check(result.stdout, f"{arguments} stdout")
        check(result.stderr, f"{arguments} stderr")
        assert result.returncode == 0, f"{arguments}: {result.stderr}"


def test_errors_are_free_of_controls(waffle, hostile, tmp_path):
    bent = tmp_path / f"{HOSTILE}.bent"
    bent.write_bytes(b"no capture")
    short_elf = tmp_path / f"{HOSTILE}.elf"
    short_elf.write_bytes(pathlib.Path(hostile).read_bytes()[:4096])
    foreign = tmp_path / f"{HOSTILE}.foreign"
    foreign.write_bytes(b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x02\x00\x03\x00" + bytes(200))
    foreign.chmod(0o755)
    for arguments in (
        [HOSTILE],
        ["report", HOSTILE],
        ["report", f"--{HOSTILE}"],
        ["report", "--filter", f"nmae == '{HOSTILE}'", bent],
        *[[command, bent] for command in ("report", "why", "view", "info", "export")],
        ["list", short_elf],
        ["list", foreign],
        ["list", "--pid", HOSTILE],
        ["run", "--", f"/no/such/{HOSTILE}"],
        ["run", "--", bent],
        ["run", "-o", f"/no/such/{HOSTILE}", "--", "true"],
        ["run", "--probes", f"/no/such/{HOSTILE}", "--", "true"],
        ["run", "--probe", f"uprobe:exe:{HOSTILE}()", "--", "true"],
        ["run", "--stacks", HOSTILE, "--", "true"],
        ["run", "--sources", HOSTILE, "--", "true"],
        ["attach", "--comm", HOSTILE],
        ["run", "--filter", f"name == '{HOSTILE}'", "--", hostile],
        ["run", "--filter", 'name == "nothing"', "--", hostile],
        ["run", "--stacks", "span:nothing", "--", hostile],
    ):
        result = waffle.call(*arguments)
        check(result.stdout, f"{arguments} stdout")
        check(result.stderr, f"{arguments} stderr")
        assert result.stdout + result.stderr, arguments


def test_no_name_begins_a_line_of_a_message(waffle, built, tmp_path):
    """Not even one that looks like the place of a fault, which two blanks begin."""
    forged = "x\n  forged\n  ^~"
    folder = tmp_path / forged
    folder.mkdir()
    program = shutil.copy(built("values.c"), folder / forged)
    bent = folder / "bent"
    bent.write_bytes(b"no capture")
    for arguments in (
        [forged],
        ["report", forged],
        ["report", bent],
        ["report", "--filter", f"nmae == '{forged}'", bent],
        ["list", bent],
        ["list", "--probe", "uprobe:exe:nosuch()", program],
        ["list", "--probe", f"uprobe:{forged}:nosuch()", program],
        ["run", "--", bent],
        ["run", "--", folder / "nosuch"],
        ["run", "-o", folder / "none" / "file", "--", "true"],
        ["run", "--probe", "uprobe:exe:nosuch()", "--", program],
        ["run", "--redact", forged, "-o", folder / "file", "--", "true"],
        ["attach", "--comm", forged],
    ):
        result = waffle.call(*arguments)
        assert result.stderr, arguments
        for line in result.stderr.splitlines():
            assert not line.startswith(("  forged", "forged")), result.stderr


def test_one_function_writes_to_standard_error():
    """The progress line, which is of waffle's own words, and the help are the others."""
    raw = re.compile(r"\bf?v?printf\(stderr|\bf?put[sc]\([^;]*\bstderr\)|\bperror\(|\bdprintf\(2")
    for path in (ROOT / "userspace").rglob("*.c"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            assert not raw.search(line), f"{path}:{number}: {line.strip()}: use terminal_message()"
