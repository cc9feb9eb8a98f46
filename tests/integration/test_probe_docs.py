# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/probes.md are descriptions that are understood, and the ready sets find what
they describe in the libraries and programs of this machine."""

import pathlib
import re

import pytest
from tracer import ROOT

TEXT = (ROOT / "docs" / "probes.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```probes\n(.*?)```", TEXT, re.DOTALL)


def test_every_example_of_the_page_is_understood(waffle, tmp_path):
    assert len(BLOCKS) >= 7
    for number, block in enumerate(BLOCKS):
        path = tmp_path / f"{number}.probes"
        path.write_text(block)
        waffle.ok("list", "--probes", path, "/bin/true")


def test_every_set_of_the_page_ships(waffle):
    table = TEXT.split("| set | what |")[1].split("\n\n")[0]
    sets = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    shipped = {path.stem for path in (ROOT / "probes").glob("*.probes")}
    sources = {"cuda", "hip", "jax", "nccl", "torch"}
    assert set(sets) == shipped - sources - {"mpi_polls"}  # which is a part of mpi
    for name in sets:
        waffle.ok("list", "--probes", name, "/bin/true")


def library(name):
    found = [path for folder in ("/usr/lib", "/lib")
             for path in pathlib.Path(folder).glob(f"*/{name}")]
    assert found, f"{name} is not installed; run make setup"
    return found[0]


@pytest.mark.parametrize("name, file, calls", [
    ("malloc", "libc.so.6", {"malloc", "calloc", "realloc", "free", "posix_memalign"}),
    ("pthread", "libc.so.6", {"pthread_mutex_lock", "pthread_cond_wait", "pthread_barrier_wait",
                              "sem_wait", "pthread_create"}),
    ("mpi", "libmpi.so.40", {"MPI_Init", "MPI_Send", "MPI_Recv", "MPI_Waitall", "MPI_Allreduce",
                             "MPI_Barrier", "MPI_Bcast"}),
    ("openssl", "libssl.so.3", {"SSL_read", "SSL_write", "SSL_do_handshake", "SSL_read_ex"}),
])
def test_ready_set_finds_its_functions(waffle, name, file, calls):
    text = waffle.ok("list", "--probes", name, library(file)).stdout
    names = set(re.findall(r"^  (?:span|event) +(\S+)", text, re.MULTILINE))
    assert calls <= names, text
