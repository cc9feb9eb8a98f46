# SPDX-License-Identifier: Apache-2.0
"""A program with thousands of sites, and a look at their semaphores from outside."""

import array
import os
import struct
import subprocess

from lib import BUILD, ROOT

PER_FUNCTION = 100
NOTE_SITE = 1


def _source(count):
    yield "#include <unistd.h>\n#include <waffle.h>\n"
    functions = range(0, count, PER_FUNCTION)
    for first in functions:
        yield f"__attribute__((noinline)) static void f{first}(long i)\n{{"
        for n in range(first, min(count, first + PER_FUNCTION)):
            yield f'\tWAFFLE_EVENT("site {n}", KV_I64("i", i));'
        yield "}"
    yield "int main(int argc, char **argv)\n{\n\t(void)argv;\n\tif (argc < 2)\n\t\tpause();"
    for first in functions:
        yield f"\tf{first}(argc);"
    yield "\treturn 0;\n}"


def build(count):
    """Compiles the program unless that was done for this header; returns its path."""
    path = BUILD / "bench" / f"sites_{count}"
    include = ROOT / "include"
    newest = max(os.path.getmtime(p) for p in [*include.rglob("*.h"), __file__])
    if not path.exists() or path.stat().st_mtime < newest:
        source = path.with_suffix(".c")
        source.write_text("\n".join(_source(count)) + "\n", encoding="utf-8")
        subprocess.run(
            ["gcc", "-O1", "-no-pie", f"-I{include}", "-o", path, source], check=True
        )
    return str(path)


def _section(image, name):
    """Bytes of a section of a 64-bit little-endian ELF file."""
    offset, = struct.unpack_from("<Q", image, 0x28)
    size, count, names = struct.unpack_from("<HHH", image, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", image, offset + i * size) for i in range(count)]
    strings = headers[names][4]
    for header in headers:
        start = strings + header[0]
        if image[start : image.index(b"\0", start)] == name:
            return image[header[4] : header[4] + header[5]]
    return b""


def _note_descriptors(notes):
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from("<III", notes, at)
        at += 12 + (name_size + 3 & ~3)
        if kind == NOTE_SITE:
            yield notes[at : at + size]
        at += size + 3 & ~3


class Semaphores:
    """The semaphores of a process whose program was linked to fixed addresses."""

    def __init__(self, pid, path):
        with open(path, "rb") as f:
            notes = _section(f.read(), b".note.waffle")
        addresses = {struct.unpack_from("<Q", d, 16)[0] for d in _note_descriptors(notes)} - {0}
        self.first = min(addresses)
        self.indexes = [(a - self.first) // 2 for a in sorted(addresses)]
        self.bytes = (self.indexes[-1] + 1) * 2
        self.fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY)

    def __len__(self):
        return len(self.indexes)

    def __del__(self):
        os.close(self.fd)

    def raised(self):
        """How many are above 0."""
        values = array.array("H", os.pread(self.fd, self.bytes, self.first))
        return sum(values[i] > 0 for i in self.indexes)
