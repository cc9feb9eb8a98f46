#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes libraries in the place of NVIDIA's, so that PyTorch's wheel for GPUs can be imported without three
gigabytes of them, and runs on the CPU: every function of theirs that it refers to says that there is no GPU.

    tests/cuda_stubs.py build/frameworks/torch/lib build/frameworks/cuda-stubs
    LD_LIBRARY_PATH=build/frameworks/cuda-stubs python -c 'import torch'
"""

import collections
import pathlib
import re
import subprocess
import sys

NO_DEVICE = 100  # cudaErrorNoDevice and CUDA_ERROR_NO_DEVICE
# Most libraries give their symbols a version that is their own name. These have another one, or none.
VERSIONS = {"libnvshmem_host.so": "NVSHMEM"}
WITHOUT_VERSION = ("cu", "nccl", "nv")


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout


def undefined(library):
    """(version or "", name) of each symbol that a library does not define itself."""
    for line in output("nm", "-D", library).splitlines():
        *_, kind, symbol = line.split()
        if kind in "Uw":
            name, _, version = symbol.partition("@")
            yield version.lstrip("@"), name


def function(name):
    if "String" in name or "ErrorName" in name:
        return f'const char *{name}(void) {{ return "no GPU"; }}'
    return f"int {name}(void) {{ return {NO_DEVICE}; }}"


def make(folder, name, names, version):
    script = folder / "version.map"
    script.write_text(f"{version} {{ global: *; }};\n")
    options = [f"-Wl,--version-script={script}"] if version else []
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", f"-Wl,-soname,{name}", *options, "-o", folder / name, "-x", "c", "-"],
                   input="\n".join(map(function, sorted(names))) + "\n", text=True, check=True)
    script.unlink()


def main():
    libraries = list(pathlib.Path(sys.argv[1]).glob("*.so*"))
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    needed, wanted = set(), collections.defaultdict(set)
    for library in libraries:
        needed.update(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", library)))
        for version, name in undefined(library):
            wanted[version].add(name)
    known = output("/sbin/ldconfig", "-p")
    for name in needed - {library.name for library in libraries}:
        if f"\t{name} " in known and not name.startswith("libcuda."):
            continue
        version = VERSIONS.get(name.partition(".so")[0] + ".so", name)
        names = wanted.get(version)
        if names is None:
            version, names = None, {one for one in wanted[""] if one.startswith(WITHOUT_VERSION)}
        make(folder, name, names, version)


if __name__ == "__main__":
    main()
