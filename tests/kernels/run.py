#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boots distributions' kernels in QEMU and runs waffle-bpf on each: `make kernels`.

Every kernel gets the same initramfs: busybox, waffle-bpf, the program of guest.c, the programs of
the table below and the libraries that ldd lists. guest.sh is its /init: it prints a verdict for each
check on the serial console, which is read here. Arguments name the kernels to try; default: all.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import time

sys.dont_write_bytecode = True

import calls
import waits

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("BUILD", "build"))
CACHE = BUILD / "kernels"
BOOT_LIMIT_S = 1200
# Only these are tried; none: all of them.
CHECKS = os.environ.get("CHECKS", "").split()
# More of the kernel's command line, such as preempt=full.
PARAMETERS = os.environ.get("PARAMETERS", "")

# What is tried: a name, and the suites to take the newest kernel from, the first that has one
# (fetch.sh).
KERNELS = {
    "6.1": ["bookworm"],
    # Its links for a process see the main thread only.
    "6.8": ["ubuntu-6.8.0-31"],
    # Its return probes make a system call that seccomp filters refuse.
    "6.11": ["ubuntu-6.11.0-17"],
    "6.12": ["bookworm-backports", "trixie"],
    "newest": ["sid", "trixie-backports"],
}

# Programs to run as root in the guest, one row each: name of the check, program under BUILD, its
# arguments, and what it must print. A program that does not end with 0 has failed.
PROGRAMS = [
    ("kernel-tasks", "unit/test_kernel_tasks", [], "[  PASSED  ]"),
    ("kernel-sweep", "unit/test_kernel_sweep", [], "[  PASSED  ]"),
    ("contexts", "unit/test_context", [], "[  PASSED  ]"),
    ("frequencies", "unit/test_cpus", [], "[  PASSED  ]"),
    # Functions of the test itself: their values, nesting, filters.
    ("calls", "unit/test_calls_kernel", [], "[  PASSED  ]"),
    ("calls-filter", "unit/test_calls_filter", [], "[  PASSED  ]"),
    ("calls-words", "unit/test_calls_words", [], "[  PASSED  ]"),
    # Random filters: what the kernel decides against the definition, fewer pairs than natively.
    ("programs", "unit/test_filter_kernel", ["5000"], "[  PASSED  ]"),
    ("longest-programs", "unit/test_filter_longest", [], "[  PASSED  ]"),
]

# The first disk is slow, so that its stalls are longer than everything else that is emulated.
QEMU = """qemu-system-x86_64 -accel tcg,thread=single -cpu max -smp 1 -m 512 -nodefaults
 -no-user-config -display none -serial stdio -monitor none -no-reboot
 -drive file={disk},if=virtio,format=raw,cache=unsafe,throttling.iops-total=200
 -drive file={out},if=virtio,format=raw,cache=unsafe"""
DISK_BYTES = 128 << 20


def fetch(suites):
    """The folder with the kernel of the first suite that has one, and the package it is from."""
    for suite in suites:
        folder = CACHE / suite
        if subprocess.run([HERE / "fetch.sh", suite, folder], check=False).returncode == 0:
            return folder, (folder / "package").read_text(encoding="utf-8").split()[0]
    return None, f"no kernel from {' or '.join(suites)}"


def libraries(program):
    """Paths of the libraries of a program, the loader included; none if it is static."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    if "not found" in listed:
        sys.exit(f"kernels: {program} lacks a library:\n{listed}")
    return re.findall(r"(/\S+) \(0x", listed)


def compile_program(source, out, *flags):
    subprocess.run(["gcc", "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror",
                    "-fno-omit-frame-pointer", f"-I{ROOT}/include", "-o", out, source, "-pthread",
                    *flags],
                   check=True)


def compile_programs(folder):
    """Those that are traced; returns them."""
    programs = ROOT / "tests/integration/programs"
    sources = {"guest": HERE / "guest.c", "explain": programs / "explain.c",
               "nops": programs / "nops.c"}
    for row in waits.rows_of_zoo():
        sources[f"zoo_{pathlib.Path(row.source).stem}"] = ROOT / "tests/zoo" / row.source
    for name, source in sources.items():
        compile_program(source, folder / name)
    library = folder / "libcalled.so"
    compile_program(programs / "called.c", library, "-shared", "-fPIC")
    compile_program(programs / "caller.c", folder / "caller", "-Wl,--no-as-needed",
                    f"-L{folder}", "-lcalled", "-Wl,-rpath,$ORIGIN")
    return [folder / name for name in sources]


def copy_simulation(folder):
    """The stand-ins of CUDA and NCCL, and a program: they find each other where they lie."""
    for path in [*sorted((BUILD / "sim").glob("lib*.so.*")), BUILD / "sim" / "calls"]:
        shutil.copy(path, folder)


def archive(tree, out):
    """A folder as an initramfs."""
    files = "".join(f"{path.relative_to(tree)}\n" for path in sorted(tree.rglob("*")))
    with open(out, "wb") as file:
        subprocess.run(["busybox", "cpio", "-o", "-H", "newc", "-R", "0:0"], cwd=tree, check=True,
                       input=files.encode(), stdout=file, stderr=subprocess.DEVNULL)
    return out


def build_initramfs():
    """The initramfs, as a file; each kernel's modules come in one of its own behind it."""
    tree = CACHE / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "bin").mkdir(parents=True)
    traced = compile_programs(tree / "bin")
    copy_simulation(tree / "bin")
    programs = {BUILD / "waffle-bpf": "waffle-bpf"}
    programs.update({BUILD / path: pathlib.Path(path).name for _, path, _, _ in PROGRAMS})
    for path, name in programs.items():
        if not path.exists():
            sys.exit(f"kernels: {path} is not built")
        shutil.copy(path, tree / "bin" / name)
    for path in {path for program in [*traced, *programs] for path in libraries(program)}:
        target = tree / path[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.copy(shutil.which("busybox"), tree / "bin" / "busybox")
    (tree / "bin" / "sh").symlink_to("busybox")
    shutil.copy(HERE / "guest.sh", tree / "init")
    (tree / "init").chmod(0o755)
    (tree / "programs").write_text("".join(
        "\t".join([name, text, " ".join([pathlib.Path(path).name, *arguments])]) + "\n"
        for name, path, arguments, text in PROGRAMS), encoding="utf-8")
    (tree / "waits").write_text("".join(
        f"{name} {command}\n" for name, command in waits.commands().items()), encoding="utf-8")
    (tree / "checks").write_text("".join(f"{check}\n" for check in CHECKS), encoding="utf-8")
    (tree / "calls").mkdir()
    for name, script in calls.scripts().items():
        (tree / "calls" / name).write_text(script, encoding="utf-8")
    return archive(tree, CACHE / "initramfs.cpio")


def with_modules(initramfs, kernel):
    """The initramfs of one kernel, whose folder this is."""
    tree, out = CACHE / "tree-modules", CACHE / "initramfs-modules.cpio"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(kernel / "modules", tree / "modules")
    archive(tree, out)
    whole = CACHE / "initramfs-kernel.cpio"
    whole.write_bytes(initramfs.read_bytes() + out.read_bytes())
    return whole


def make_disks():
    """An empty file system, and where the guest puts its captures."""
    disk, out = CACHE / "disk.img", CACHE / "out.img"
    for path in (disk, out):
        path.unlink(missing_ok=True)
        with open(path, "wb") as file:
            file.truncate(DISK_BYTES)
    subprocess.run(["/sbin/mke2fs", "-q", "-F", "-t", "ext4", disk], check=True)
    return disk, out


def boot(vmlinuz, initramfs, log):
    """Runs the guest to its end, or to the limit; returns what its console said and the disk with
    its captures."""
    disk, captures = make_disks()
    command = [*QEMU.format(disk=disk, out=captures).split(), "-kernel", vmlinuz, "-initrd", initramfs,
               "-append", "console=ttyS0 panic=-1 oops=panic quiet no_timer_check " + PARAMETERS]
    with open(log, "wb") as out:
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                           timeout=BOOT_LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            out.write(f"\nkernels: ended after {BOOT_LIMIT_S} s\n".encode())
    return log.read_text(encoding="utf-8", errors="replace").replace("\r", ""), captures


def judge(captures, folder):
    """Verdicts on what the guest put on its second disk, which is unpacked into a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with tarfile.open(captures) as tar:
            tar.extractall(folder, filter="data")
    except (tarfile.TarError, OSError) as error:
        return {"captures": ("fail", 0.0, f"no captures: {error}")}
    reasons = {**calls.verdicts(folder / "out"), **waits.verdicts(folder / "out")}
    return {name: (word_of(reason), 0.0, reason) for name, reason in reasons.items()
            if not CHECKS or name in CHECKS}


def word_of(reason):
    """A program of the zoo that the host kept from doing what it should shows nothing of the kernel."""
    return "pass" if not reason else "cannot" if "on this busy machine" in reason else "fail"


def verdicts(console):
    """{check: (word, seconds, reason)} of a console, and the notes it gave."""
    found = {}
    for name, word, ms, reason in re.findall(
            r"^verdict (\S+) (pass|fail|cannot) (\d+) ?(.*)$", console, re.M):
        found[name] = (word, int(ms) / 1000, reason)
    if not re.search("^guest done$", console, re.M):
        lines = [line for line in console.splitlines() if line.strip()]
        last = [line for line in lines if re.search("BUG: |RIP: |Kernel panic", line)][:2] or lines[-3:]
        found["ended"] = ("fail", 0.0, "the guest did not come to its end: " + " | ".join(last))
    return found, re.findall("^note (.*)$", console, re.M)


def try_kernel(name, initramfs):
    """Boots one kernel; returns its column of the table: a title, the verdicts, and the notes."""
    kernel, package = fetch(KERNELS[name])
    if not kernel:
        return name, {"booted": ("fail", 0.0, package)}, []
    begin = time.monotonic()
    console, captures = boot(kernel / "vmlinuz", with_modules(initramfs, kernel),
                             CACHE / f"{name}.log")
    found, notes = verdicts(console)
    found.update(judge(captures, CACHE / f"{name}-captures"))
    release = re.search(r"^guest (\d\S*) (\d+)$", console, re.M)
    booted = int(release[2]) / 1000 if release else 0.0
    found = {"booted": ("pass" if release else "fail", booted, package), **found}
    title = release[1].removesuffix("-amd64") if release else name
    print(f"kernels: {title}: {time.monotonic() - begin:.0f} s", flush=True)
    return title, found, notes


def print_table(columns):
    """One line a check, one column a kernel, then every reason and note."""
    checks = list(dict.fromkeys(check for _, found, _ in columns for check in found))
    rows = [["check"] + [title for title, _, _ in columns]]
    for check in checks:
        cells = [found.get(check) for _, found, _ in columns]
        rows.append([check] + [f"{cell[0]} {cell[1]:.1f} s" if cell else "not run" for cell in cells])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    print()
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    print()
    for title, found, notes in columns:
        for check, (word, _, reason) in found.items():
            if word != "pass":
                print(f"{title}: {check}: {word}: {reason}")
        for note in notes:
            print(f"{title}: limited: {note}")


def main():
    names = sys.argv[1:] or list(KERNELS)
    unknown = [name for name in names if name not in KERNELS]
    if unknown:
        sys.exit(f"kernels: {unknown[0]}: not one of {' '.join(KERNELS)}")
    initramfs = build_initramfs()
    columns = [try_kernel(name, initramfs) for name in names]
    print_table(columns)
    words = [word for _, found, _ in columns for word, _, _ in found.values()]
    # A check that a kernel did not get to has failed on it.
    checks = {check for _, found, _ in columns for check in found} - {"ended"}
    missing = sum(check not in found for check in checks for _, found, _ in columns)
    failed = words.count("fail") + missing
    print(f"{words.count('pass')} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
