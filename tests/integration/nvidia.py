# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's libraries and headers, as scripts/setup.sh installs them; and the rows that ship."""

import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLES = {name: ROOT / "probes" / f"{name}.probes" for name in ("cuda", "nccl")}


def folder():
    """Where they are; None: they are not made for this machine."""
    places = [pathlib.Path(place) / "nvidia" for place in sys.path]
    return next((place for place in places if (place / "nccl/lib").is_dir()), None)


def library(name):
    """libcudart.so.12 → its path; of several that match libcudart.so.*, the newest."""
    return sorted(folder().glob(f"*/lib/{name}"), key=lambda path: path.name)[-1]


def lines(path):
    """The descriptions of a file, continuation lines put together."""
    text = re.sub(r"^#.*\n", "", path.read_text(encoding="utf-8"), flags=re.M)
    return [" ".join(line.split()) for line in re.sub(r"\n[ \t]+", " ", text).splitlines() if line]


class Row:
    """A function's description: its libraries, names, parameters and other values."""

    def __init__(self, text):
        self.text = text
        head, _, rest = text.removeprefix("uprobe:").partition("(")
        libs, self.names = (part.split("|") for part in head.split(":"))
        self.libs = [lib for lib in libs if lib != "exe"]
        params, _, self.rest = rest.partition(")")
        self.params = [p.strip() for p in params.split(",")] if params else []
        self.role = (re.findall(r" role (\w+)", text) or [None])[0]


def is_of(pattern, library):
    """Whether a row's library has this file name."""
    if "*" in pattern:
        return fnmatch.fnmatchcase(library, pattern)
    return library == pattern or library.startswith((pattern + ".", pattern + "-"))


def rows(table):
    """Without those of RCCL alone, which is AMD's."""
    found = [Row(line) for line in lines(TABLES[table]) if not line.startswith("enum")]
    return [row for row in found if row.libs != ["librccl"]]


def enums(table):
    found = [line.split() for line in lines(TABLES[table]) if line.startswith("enum")]
    return {words[1]: words[2:] for words in found}


def nvtx_headers():
    """The folder with the headers of NVTX."""
    places = [pathlib.Path(place) / "nvidia/cu13/include" for place in sys.path]
    return next(place for place in places if (place / "nvtx3/nvToolsExt.h").exists())
