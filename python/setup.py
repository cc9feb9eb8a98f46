# SPDX-License-Identifier: Apache-2.0
"""Builds the extension and puts libwaffle beside it, which contains all that it needs: a wheel works
without a compiler, other packages or root. libwaffle is built from the repository around this folder, or
WAFFLE_LIBRARY names one.

It is a library of its own and not a part of the extension, so that all extensions of a process share one:
the loader knows it by its name, libwaffle.so.0."""

import os
import pathlib
import re
import shutil
import subprocess

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
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


def libc_needed(folder):
    """The version of the GNU C library that the libraries in a folder need, such as (2, 35). None: they need
    another C library."""
    found = []
    for library in pathlib.Path(folder).rglob("*.so*"):
        text = subprocess.run(["readelf", "-W", "--version-info", library], stdout=subprocess.PIPE, text=True, check=True)
        found += [(int(major), int(minor)) for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", text.stdout)]
    return max(found, default=None)


class TaggedWheel(bdist_wheel):
    """A wheel whose name says which C library it needs (PEP 600), so that pip installs it only where it works."""

    def get_tag(self):
        python, abi, platform = super().get_tag()
        needed = libc_needed(self.bdist_dir)
        if platform.startswith("linux_") and needed:
            platform = platform.replace("linux_", "manylinux_{}_{}_".format(*needed), 1)
        return python, abi, platform


setup(
    cmdclass={"build_ext": BuildWithLibrary, "bdist_wheel": TaggedWheel},
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
