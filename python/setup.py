# SPDX-License-Identifier: Apache-2.0
"""Builds the extension and puts libwaffle beside it, which contains all that it needs: a wheel works
without a compiler, other packages or root. libwaffle is built from the repository around this folder, or
WAFFLE_LIBRARY names one.

It is a library of its own and not a part of the extension, so that all extensions of a process share one:
the loader knows it by its name, libwaffle.so.0."""

import os
import pathlib
import shutil
import subprocess

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent


def make_library():
    library = os.environ.get("WAFFLE_LIBRARY")
    if not library:
        build = os.environ.get("BUILD", "build")
        library = ROOT / build / "python" / "libwaffle.so.0"
        subprocess.run(["make", "-s", "-C", ROOT, f"BUILD={build}", f"{build}/python/libwaffle.so.0"], check=True)
    return pathlib.Path(library).resolve()


class BuildWithLibrary(build_ext):
    def build_extension(self, ext):
        library = make_library()
        ext.extra_link_args = [str(library), "-Wl,-rpath,$ORIGIN"]
        super().build_extension(ext)
        shutil.copy(library, pathlib.Path(self.get_ext_fullpath(ext.name)).parent / "libwaffle.so.0")


setup(
    cmdclass={"build_ext": BuildWithLibrary},
    ext_modules=[
        Extension(
            "waffle._native",
            sources=sorted(f"native/{path.name}" for path in (HERE / "native").glob("*.c")
                           if path.name != "elf_error.c"),
            depends=["native/native.h"],
            include_dirs=[str(ROOT / "include")],
            extra_compile_args=["-std=gnu17", "-O3", "-Wall", "-Wextra", "-Wno-missing-field-initializers",
                                "-fvisibility=hidden", *os.environ.get("WAFFLE_CFLAGS", "").split()],
        )
    ],
)
