#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boots two guests with a network between them, runs one MPI job on both with a waffle-bpf on each, and
checks how waffle aligns their clocks: `make hosts`. MPICH's launcher is started by hand (hosts.sh).

What the clocks really show comes from the program itself (mpi_pair.c): rank 0 asks rank 1 for its time."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

sys.dont_write_bytecode = True

import run

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("BUILD", "build"))
CACHE = BUILD / "kernels"
LIMIT_S = 300
DISK_BYTES = 64 << 20
QEMU = """qemu-system-x86_64 -accel tcg,thread=single -cpu max -smp 1 -m 768 -nodefaults -no-user-config
 -display none -serial stdio -monitor none -no-reboot -drive file={disk},if=virtio,format=raw,cache=unsafe
 -netdev socket,id=net,{side} -device virtio-net-pci,netdev=net,mac=52:54:00:00:00:0{host}"""
PORT = 47113


def build_tree(kernel):
    tree = CACHE / "tree-hosts"
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "bin").mkdir(parents=True)
    (tree / "usr/bin").mkdir(parents=True)
    program = tree / "bin/mpi_pair"
    subprocess.run(["mpicc.mpich", "-O2", "-g", "-Wall", "-Werror", "-o", program,
                    HERE / "mpi_pair.c"], check=True)
    shutil.copy(BUILD / "waffle-bpf", tree / "bin/waffle-bpf")
    programs = [program, tree / "bin/waffle-bpf"]
    for name in ("mpirun.mpich", "hydra_pmi_proxy"):
        programs.append(shutil.copy(os.path.realpath(shutil.which(name)), tree / "usr/bin" / name))
    plugins = sorted(pathlib.Path("/usr/lib").glob("*/ucx/*.so.0"))
    copies = {*plugins, *(path for file in [*programs, *plugins] for path in run.libraries(file))}
    for path in copies:
        target = tree / str(path)[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.copy(shutil.which("busybox"), tree / "bin/busybox")
    (tree / "bin/sh").symlink_to("busybox")
    shutil.copy(HERE / "hosts.sh", tree / "init")
    (tree / "init").chmod(0o755)
    shutil.copytree(kernel / "modules", tree / "modules")
    return run.archive(tree, CACHE / "initramfs-hosts.cpio")


def boot(kernel, initramfs):
    """Runs both guests to their end; returns the folders with what they wrote."""
    guests, folders = [], []
    for host, side in ((1, f"listen=127.0.0.1:{PORT}"), (2, f"connect=127.0.0.1:{PORT}")):
        disk, log = CACHE / f"host-{host}.img", CACHE / f"host-{host}.log"
        disk.unlink(missing_ok=True)
        with open(disk, "wb") as file:
            file.truncate(DISK_BYTES)
        command = QEMU.format(disk=disk, side=side, host=host).split()
        command += ["-kernel", kernel / "vmlinuz", "-initrd", initramfs, "-append",
                    f"console=ttyS0 panic=-1 quiet no_timer_check host={host}"]
        guests.append((subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=open(log, "wb"),
                                        stderr=subprocess.STDOUT), disk, log))
    for guest, disk, log in guests:
        try:
            guest.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            guest.kill()
        said = log.read_text(encoding="utf-8", errors="replace")
        if "done node-" not in said:
            sys.exit(f"hosts: a guest failed:\n{said[-3000:]}")
        folder = disk.with_suffix("")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        with tarfile.open(disk) as archive:
            archive.extractall(folder, filter="data")
        folders.append(folder)
    return folders


def main():
    CACHE.mkdir(parents=True, exist_ok=True)
    suites = run.KERNELS[sys.argv[1] if len(sys.argv) > 1 else "6.1"]
    kernel, package = run.fetch(suites)
    if not kernel:
        sys.exit(f"hosts: {package}")
    one, two = boot(kernel, build_tree(kernel))
    files = [one / "0.waffle", two / "1.waffle"]
    info = json.loads(subprocess.run([BUILD / "waffle-bpf", "info", "--json", *files], check=True,
                                     capture_output=True).stdout)
    clock = info["hosts"][1]["clock"]
    text = (one / "0.log").read_text(encoding="utf-8")
    print(f"hosts: {package}: offset {clock['offset_ns']} ns, drift "
          f"{1e6 * clock['drift']:.2f} ppm, error {min(e['error_ns'] for e in clock['errors'])} to "
          f"{clock['error_ns']} ns from {clock['collectives']} collectives and messages")
    failed = clock["kind"] != "aligned"
    for at, low, high in re.findall(r"clock at=(\d+) low=(-?\d+) high=(-?\d+)", text):
        at, low, high = int(at), int(low), int(high)
        # Rank 1's clock shows at + low to at + high. What waffle makes of both has to include `at`.
        found = [at + side + clock["offset_ns"] +
                 clock["drift"] * (at + side - clock["at_ns"]) - at for side in (low, high)]
        error = clock["error_ns"]
        good = found[0] - error <= 0 <= found[1] + error
        failed |= not good
        print(f"hosts: {'pass' if good else 'FAIL'}: by the program's own messages, the estimate is off by "
              f"{-found[1]:.0f} to {-found[0]:.0f} ns")
    sys.exit(failed)


if __name__ == "__main__":
    main()
