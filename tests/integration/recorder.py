# SPDX-License-Identifier: Apache-2.0
"""Programs that record themselves with libwaffle, for the tests of its files."""

import os
import re
import subprocess

from tracer import Capture, Program, compile_program

LIBWAFFLE = ["-Wl,-u,waffle_trace_start", "-Wl,--push-state,--no-as-needed", "-lwaffle",
             "-Wl,--pop-state"]


def compile_inside(waffle_program, source, out, *flags):
    """A program of tests/integration/programs, linked with libwaffle."""
    libraries = waffle_program.parent
    return compile_program(source, out, *flags, f"-L{libraries}", *LIBWAFFLE,
                           f"-Wl,-rpath,{libraries}")


def archive_libraries(waffle_program):
    """What a program that links libwaffle.a has to link, too."""
    text = (waffle_program.parent / "waffle.pc").read_text(encoding="utf-8")
    return re.search(r"Libs.private: (.*)", text)[1].split()


class Recorder:
    """Runs programs as any user could, with WAFFLE_TRACE."""

    def __init__(self, waffle, program):
        self.waffle = waffle
        self.program = program

    def environment(self, path, **variables):
        return {**os.environ, "WAFFLE_TRACE": str(path), **variables}

    def run(self, *arguments, code=0, path=None, says="", **variables):
        """The capture of a run, and its output."""
        path = path or self.waffle.path()
        done = subprocess.run([self.program, *map(str, arguments)], text=True, check=False,
                              env=self.environment(path, **variables), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, cwd=self.waffle.folder, timeout=120)
        assert done.returncode == code, done
        assert done.stderr == says or (says and re.fullmatch(says, done.stderr)), done.stderr
        return Capture(self.waffle, path), done.stdout

    def start(self, *arguments, **variables):
        path = self.waffle.path()
        program = Program([self.program, *arguments], env=self.environment(path, **variables))
        return Capture(self.waffle, path), program
