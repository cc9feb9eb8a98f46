# SPDX-License-Identifier: Apache-2.0
"""What the tests that trace real processes share. They need root and fail, not skip, without."""

import os
import pathlib
import shutil
import signal
import tempfile

import pytest

import tracer
from chromium import Chromium

# `run` would start programs as the user who called sudo for the tests, from folders of root.
for name in ("SUDO_USER", "SUDO_UID", "SUDO_GID", "SUDO_COMMAND"):
    os.environ.pop(name, None)

# Far more than any test takes, on a busy machine too.
LONGEST_S = 300

# A shell that starts this in the background has it and all that it starts ignore Ctrl-C, and nohup the end of the
# terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def reruns(record_property):
    """The report names the tests that ran again."""
    tracer.RUN_AGAIN.clear()
    yield
    for line in tracer.RUN_AGAIN:
        record_property("run again", line)


@pytest.fixture(autouse=True)
def bounded():
    """A test that waits for a line or a process that never comes fails."""

    def end(*_):
        pytest.fail(f"not done after {LONGEST_S} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(LONGEST_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def waffle_program():
    """waffle-bpf under test: $WAFFLE_BPF, or what make built."""
    program = pathlib.Path(tracer.default_program()).resolve()
    assert program.exists(), f"{program} is not there; run make"
    return program


@pytest.fixture(scope="session")
def libwaffle_flags(waffle_program):
    """Options that link a program with libwaffle, as waffle.pc has them."""
    folder = waffle_program.parent
    return [f"-L{folder}", "-Wl,-u,waffle_trace_start", "-Wl,--push-state,--no-as-needed",
            "-lwaffle", "-Wl,--pop-state", f"-Wl,-rpath,{folder}"]


@pytest.fixture
def waffle(waffle_program, tmp_path):
    """waffle-bpf with a folder of its own; ends what a failed test left running."""
    assert os.geteuid() == 0, "tracing needs root: run the tests as root"
    made = tracer.Waffle(waffle_program, tmp_path)
    yield made
    for attached in made.running:
        attached.kill()


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """built("ops.c", "-O0"): the compiled program, once for the same flags."""
    folder = tmp_path_factory.mktemp("programs")
    done = {}

    def build(source, *flags, name=None, compiler=None):
        key = (source, flags, name, compiler)
        if key not in done:
            place = folder / str(len(done))
            place.mkdir(exist_ok=True)
            out = place / (name or pathlib.Path(source).stem)
            done[key] = tracer.compile_program(source, out, *flags, compiler=compiler)
        return done[key]

    return build


@pytest.fixture
def public():
    """public(program): a copy of it that any user may execute. pytest's own folders are for one user
    only, and each session sees to that."""
    with tempfile.TemporaryDirectory(prefix="waffle-public-") as folder:
        os.chmod(folder, 0o755)
        yield lambda program: pathlib.Path(shutil.copy(program, folder))


@pytest.fixture
def start():
    """Starts Programs, and ends them with the test."""
    programs = []

    def begin(*command, **options):
        program = tracer.Program(command, **options)
        programs.append(program)
        return program

    yield begin
    for program in programs:
        program.kill()


@pytest.fixture
def steps(built, start):
    """A running programs/steps.c."""
    program = start(built("steps.c"))
    program.until("ready")
    program.path = built("steps.c")
    return program


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    made = Chromium(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def maker(waffle_program, tmp_path_factory):
    """make_capture, which writes captures whose values are all known."""
    return tracer.compile_with_waffle(
        waffle_program, "make_capture.c", tmp_path_factory.mktemp("maker") / "make_capture"
    )
