# SPDX-License-Identifier: Apache-2.0
"""A folder on a file system that stops to answer (stuck_fuse.py)."""

import subprocess
import sys

import pytest

from tracer import PROGRAMS


class Folder:
    def __init__(self, path, stuck):
        self.path, self.stuck = path, stuck

    def stop(self):
        self.stuck.touch()

    def go_on(self):
        self.stuck.unlink()


def mounted(tmp_path, start, *options):
    path, stuck = tmp_path / "folder", tmp_path / "stuck"
    path.mkdir()
    server = start(sys.executable, PROGRAMS.parent / "stuck_fuse.py", path, stuck, *options)
    server.until("ready")
    yield Folder(path, stuck)
    subprocess.run(["umount", "-l", path], check=True)
    server.kill()


@pytest.fixture(name="folder")
def folder_fixture(tmp_path, start):
    yield from mounted(tmp_path, start)


@pytest.fixture(name="mapped_folder")
def mapped_folder_fixture(tmp_path, start):
    """Its files can be mapped for writing."""
    yield from mounted(tmp_path, start, "mapped")
