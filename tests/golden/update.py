#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/expected anew, from what the built waffle-bpf prints: update.py [NAME…].

With --show nothing is written; what differs is printed. With --all FOLDER all outputs are written
there as they are, to compare those of two builds with diff. README.md says when updating is allowed.
"""

import pathlib
import re
import sys

import golden


def write_all(folder, results):
    folder.mkdir(parents=True, exist_ok=True)
    for line, result in results.items():
        name = re.sub(r"[^\w.-]+", "_", line)[:100]
        for label, data in result.items():
            data = data if isinstance(data, bytes) else f"{data}\n".encode()
            (folder / f"{name}:{label}").write_bytes(data)


def main(arguments):
    folder = None
    if "--all" in arguments:
        at = arguments.index("--all")
        folder = pathlib.Path(arguments[at + 1])
        arguments = arguments[:at] + arguments[at + 2:]
    cases = golden.all_cases()
    show = "--show" in arguments
    names = [word for word in arguments if word != "--show"] or list(cases)
    lines = [line for name in names for line in cases[name]]
    results = golden.run_all(golden.default_program(), lines)
    if folder:
        write_all(folder, results)
        return 0
    changed = 0
    for name in names:
        sections = golden.expectation_sections(name)
        for line in cases[name]:
            found = golden.problem(name, line, results[line], sections)
            changed += bool(found)
            if found and show:
                print(f"waffle-bpf {line}\n{found}\n")
        if not show:
            golden.expectation_write(name, {line: results[line] for line in cases[name]})
    if not show and len(names) == len(cases):
        for path in golden.EXPECTED.iterdir():
            if path.stem not in cases:
                path.unlink()
    print(f"{changed} of {len(lines)} commands differ from what was expected before")
    return 1 if show and changed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
