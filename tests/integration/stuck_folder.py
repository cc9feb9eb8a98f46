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


@pytest.fixture(name="folder")
def folder_fixture(tmp_path, start):
    path, stuck = tmp_path / "folder", tmp_path / "stuck"
    path.mkdir()
    server = start(sys.executable, PROGRAMS.parent / "stuck_fuse.py", path, stuck)
    server.until("ready")
    yield Folder(path, stuck)
    subprocess.run(["umount", "-l", path], check=True)
    server.kill()
