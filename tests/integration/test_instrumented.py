# SPDX-License-Identifier: Apache-2.0
"""What waffle's macros may do to the program that has them: nothing that it would notice.

Programs that are compiled, linked, sandboxed or written in unusual ways are traced for real, and what
was recorded of them is compared with what they do.
"""

import re
import subprocess

import pytest

from tracer import PROGRAMS, ROOT, find_tool, named

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
LEVELS = ["-O0", "-O2"]
C = ["gcc", "clang"]
CPLUSPLUS = ["g++", "clang++"]


def call(*command, check=True, **options):
    """Runs a command to its end; its output with its errors."""
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, timeout=120, **options)
    assert not check or done.returncode == 0, f"{' '.join(map(str, command))}:\n{done.stdout}"
    return done.stdout if check else done


def spans(capture, name):
    return named(capture.rows("span"), name)


# ---- jumps in C ----

JUMPS = {
    "goto": """
int work(int n)
{
	if (n < 0)
		goto out;
	%s;
	n++;
out:
	return n;
}
""",
    "case": """
int work(int n)
{
	switch (n) {
	case 0:
		break;
		%s;
		n++;
	case 1:
		n++;
	}
	return n;
}
""",
}
DECLARATIONS = {"span": 'WAFFLE_SPAN("span", KV_I64("n", n))',
                "inject": "WAFFLE_INJECT(waffle_context_extract())"}


@pytest.mark.parametrize("declared", DECLARATIONS)
@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("compiler", [*C, *CPLUSPLUS])
def test_a_jump_over_a_span_into_its_block_does_not_compile(tmp_path, compiler, jump, declared):
    plus = "++" in compiler
    source = tmp_path / ("jump.cpp" if plus else "jump.c")
    for level in LEVELS:
        command = [compiler, level, "-std=c++17" if plus else "-std=c11", f"-I{ROOT}/include", "-c",
                   "-o", tmp_path / "jump.o", source]
        source.write_text("#include <waffle.h>\n" + JUMPS[jump] % DECLARATIONS[declared])
        refused = call(*command, check=False)
        assert refused.returncode != 0
        assert re.search("jump", refused.stdout), refused.stdout
        # The same without a span is fine, so that this is why.
        source.write_text("#include <waffle.h>\n" + JUMPS[jump] % "(void)0")
        call(*command)


@pytest.mark.parametrize("compiler", C)
def test_declarations_around_a_span_need_no_extension_that_warns(tmp_path, compiler):
    """The type that keeps jumps out is no array of variable size to -Wvla, nor a statement."""
    source = tmp_path / "declared.c"
    source.write_text('#include <waffle.h>\nint work(int n);\nint work(int n)\n{\n'
                      '\tWAFFLE_SPAN("a", KV_STR("s", "x"));\n\tint m = n;\n'
                      '\tWAFFLE_INJECT(waffle_context_extract());\n\tint l = m;\n\treturn l;\n}\n')
    call(compiler, "-std=c11", *WARNINGS, "-Wvla", "-Walloca", "-Wdeclaration-after-statement",
         f"-I{ROOT}/include", "-c", "-o", tmp_path / "declared.o", source)


# ---- values ----


@pytest.mark.parametrize("flags", [["-O0"], ["-O2"], ["-O1", "-fsanitize=address"]], ids=" ".join)
@pytest.mark.parametrize("compiler", CPLUSPLUS)
def test_temporaries_of_cplusplus_live_until_they_are_recorded(waffle, built, compiler, flags):
    capture = waffle.run(built("temporaries.cpp", *flags, compiler=compiler))
    rows = capture.rows()
    for name in ("span", "event", "log", "begun"):
        found = named(rows, name)
        assert [row["args"]["held"] for row in found] == ["held 0", "held 1", "held 2"]
    assert [row["args"]["held"] for row in named(rows, "cause")] == [
        "held 10", "held 11", "held 12"]
    assert [row["args"]["number"] for row in named(rows, "span")] == ["0", "1", "2"]
    assert all(row["args"]["long"].startswith("x" * 256) for row in named(rows, "event"))


# ---- sandboxes and small stacks ----


@pytest.mark.parametrize("flags", [["-O0"], ["-O2"], ["-O2", "-static"]], ids=" ".join)
@pytest.mark.parametrize("compiler", C)
def test_an_armed_site_makes_no_system_call(waffle, built, start, compiler, flags):
    program = start(built("sandboxed.c", *flags, compiler=compiler))
    program.until("ready")
    attached = waffle.attach_to(program, built("sandboxed.c", *flags, compiler=compiler))
    for _ in range(3):
        program.ask("", "did")
    assert program.finish() == []  # and it was not killed
    capture = attached.wait()
    assert [row["args"]["n"] for row in spans(capture, "sandboxed")] == [0, 1, 2]
    assert [row["args"]["text"] for row in named(capture.rows(), "event")] == ["in a box"] * 3
    assert len(named(capture.rows(), "log")) == 3 and len(spans(capture, "begun")) == 3


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("compiler", C)
def test_a_site_without_strings_needs_less_than_512_bytes_of_stack(waffle, built, start, compiler,
                                                                   level):
    path = built("small_stack.c", level, compiler=compiler)
    program = start(path)
    program.until("ready")
    assert program.ask("", "used")  # dormant
    attached = waffle.attach_to(program, path)
    # The first pass of a thread also makes its ids.
    for said in (program.ask("", "used"), program.ask("", "used")):
        used = {name: int(number) for name, number in (word.split("=") for word in said.split())}
        assert set(used) == {"event", "span", "begin", "counter", "sixteen", "text"}
        most = {"text": 1024, "sixteen": 640 if level == "-O0" else 512}
        assert all(number < most.get(name, 512) for name, number in used.items()), used
    program.finish()
    capture = attached.wait()
    assert len(named(capture.rows(), "sixteen")) == 2 and len(spans(capture, "span")) == 2


CALLS = """
#include <waffle.h>
waffle_event_id_t work(int n, const char *text, double d);
waffle_event_id_t work(int n, const char *text, double d)
{
	WAFFLE_SPAN("span", KV_I64("n", n), KV_STR("text", text), KV_STR("more", text));
	waffle_span_t begun = WAFFLE_BEGIN("begun", KV_I64("a", 0), KV_I64("b", 0));
	WAFFLE_COUNTER("counter", d);
	WAFFLE_END(begun);
	WAFFLE_INJECT(waffle_context_extract());
	return WAFFLE_EVENT("event");
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3", "-Os"])
@pytest.mark.parametrize("compiler", [*C, *CPLUSPLUS])
def test_sites_call_no_function_of_another_file(tmp_path, compiler, level):
    """The first call of one may take 3 KiB of stack; only what runs at the start needs the libc."""
    source = tmp_path / ("calls.cpp" if "++" in compiler else "calls.c")
    source.write_text(CALLS)
    call(compiler, level, f"-I{ROOT}/include", "-c", "-o", tmp_path / "calls.o", source)
    named_by = {line.split()[-1] for line in call("nm", "-u", tmp_path / "calls.o").splitlines()}
    of_exceptions = {name for name in named_by if re.search("_Unwind|gxx|__cxa|terminate", name)}
    assert named_by - of_exceptions - {"_GLOBAL_OFFSET_TABLE_"} == {
        "__dso_handle", "__register_atfork", "dl_iterate_phdr", "getauxval"}


# ---- macros of the program, dialects of assembler, sanitizers ----


@pytest.mark.parametrize("place", ["before", "behind"])
@pytest.mark.parametrize("compiler", [*C, *CPLUSPLUS])
def test_macros_of_common_words_do_no_harm(waffle, tmp_path, compiler, place):
    plus = "++" in compiler
    flags = ["-DWORDS_BEHIND"] if place == "behind" else []
    words = re.findall(r"#define (\w+)", (PROGRAMS / "words.h").read_text())
    assert len(words) >= 40
    for disabled in ([], ["-DWAFFLE_DISABLE"]):
        for level in ("-O2", "-O0"):
            call(compiler, *(["-x", "c++", "-std=c++17"] if plus else ["-std=c11"]), level,
                 *WARNINGS, *flags, *disabled, f"-I{ROOT}/include", "-o",
                 tmp_path / f"words{len(disabled)}", PROGRAMS / "words.c")
    capture = waffle.run(tmp_path / "words0")
    [span] = spans(capture, "span")
    assert span["args"] == {"i64": 13, "u64": 14, "f64": 0.5, "bool": True, "str": "str",
                            "ptr": span["args"]["ptr"]}
    [event] = named(capture.rows(), "event")
    assert event["args"] == {"min": 9}
    [log] = named(capture.rows(), "log")
    assert log["args"] == {"count": 26}
    assert len(spans(capture, "begun")) == 1


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("compiler", [*C, *CPLUSPLUS])
def test_code_for_the_intel_dialect_is_the_same(waffle, tmp_path, compiler, level):
    if waffle_machine() != "x86_64":
        pytest.skip("a dialect of x86 assembler")
    plus = ["-x", "c++"] if "++" in compiler else []
    listings, captures = [], []
    for dialect in ("att", "intel"):
        out = tmp_path / dialect
        call(compiler, *plus, level, f"-masm={dialect}", *WARNINGS, f"-I{ROOT}/include", "-o", out,
             PROGRAMS / "words.c")
        listings.append(waffle.ok("list", "--json", out).stdout.replace(str(out), "")
                        .replace(dialect, ""))
        captures.append([(row["kind"], row["name"], row.get("args"))
                         for row in waffle.run(out).rows() if row["kind"] in ("span", "event")])
        code = call("objdump", "-d", "--no-show-raw-insn", out)
        assert re.search(r"endbr64\s+\S+\s+nop\s+\S+\s+ret", code)
    assert listings[0] == listings[1]
    assert captures[0] == captures[1] and len(captures[0]) >= 4


def waffle_machine():
    return call("uname", "-m").strip()


@pytest.mark.parametrize("compiler", C)
def test_thread_sanitizer_finds_no_race(waffle, built, compiler):
    program = built("raced.c", "-fsanitize=thread", compiler=compiler)
    capture = waffle.run(program, env={"TSAN_OPTIONS": "halt_on_error=1 exitcode=66", "PATH": "/"},
                         options=["--machine-wide"])  # fmt: skip
    assert "ThreadSanitizer" not in capture.result.stderr
    assert len(spans(capture, "span")) == 5 * 200
    assert len({row["id"] for row in spans(capture, "span")}) == 5 * 200


# ---- one context in all files of a process ----

LINKERS = {"gcc": ["-fuse-ld=bfd"], "clang": ["-fuse-ld=lld"]}
LOCAL = "{ global: library_work; local: *; };\n"
SHARED = {"plain": [], "hidden": ["-fvisibility=hidden"], "symbolic": ["-Wl,-Bsymbolic"],
          "script": ["-Wl,--version-script=local.map"]}


def build_library(folder, compiler, *flags, name="libshared.so"):
    (folder / "local.map").write_text(LOCAL)
    call(compiler, "-O2", "-fPIC", "-shared", *LINKERS[compiler], *flags,
         f"-I{ROOT}/include", "-o", folder / name, PROGRAMS / "shared_library.c", cwd=folder)
    return folder / name


def build_main(folder, compiler, *flags):
    call(compiler, "-O2", *LINKERS[compiler], f"-I{ROOT}/include", "-o",
         folder / "main", PROGRAMS / "shared_main.c", *flags, "-ldl", cwd=folder)
    return folder / "main"


def trace_shared(waffle, start, folder, *arguments, program="main"):
    """A capture of three calls of the library."""
    running = start(folder / "main", *arguments)
    running.until("ready")
    attached = waffle.attach_to(running, folder / program, folder / "libshared.so")
    for _ in range(3):
        running.ask("", "did")
    running.finish()
    return attached.wait()


def check_shared(capture):
    """Each span of the library is a child of the program's, and so is its event."""
    parents = {row["id"]: row for row in spans(capture, "program")}
    children = {row["id"]: row for row in spans(capture, "library")}
    assert len(parents) == len(children) == 3
    for child in children.values():
        assert child["parent"] in parents
        assert child["trace"] == parents[child["parent"]]["trace"]
        assert child["args"] == parents[child["parent"]]["args"]
    events = named(capture.rows("event"), "in the library")
    assert len(events) == 3 and all(event["parent"] in children for event in events)


FORMS = {"-fPIE": ["-fPIE", "-pie"], "-fno-pie": ["-fno-pie", "-no-pie"], "-fPIC": ["-fPIC"]}


@pytest.mark.parametrize(("form", "shared"), [
    # Code for libraries, in a program, is not known to be the program's.
    (form, shared) for form in FORMS for shared in SHARED
    if form != "-fPIC" or shared in ("plain", "hidden")])
@pytest.mark.parametrize("compiler", C)
def test_a_library_that_is_linked_shares_the_programs_context(waffle, start, tmp_path, compiler,
                                                              shared, form):
    build_library(tmp_path, compiler, *SHARED[shared])
    build_main(tmp_path, compiler, *FORMS[form], "-DLINKED", "-L.", "-lshared",
               f"-Wl,-rpath,{tmp_path}")
    check_shared(trace_shared(waffle, start, tmp_path))


@pytest.mark.parametrize("shared", SHARED)
@pytest.mark.parametrize("compiler", C)
def test_a_library_that_is_opened_shares_it_if_the_program_exports(waffle, start, tmp_path,
                                                                   compiler, shared):
    library = build_library(tmp_path, compiler, *SHARED[shared])
    build_main(tmp_path, compiler, "-rdynamic")
    check_shared(trace_shared(waffle, start, tmp_path, library))
    build_main(tmp_path, compiler)
    found = spans(trace_shared(waffle, start, tmp_path, library), "library")
    assert len(found) == 3 and all("parent" not in row for row in found)  # a context of its own


@pytest.mark.parametrize("script", [
    [], ["{ global: library_work; outer_main; waffle_process_6_; local: *; };\n"]],
    ids=["default", "named"])
@pytest.mark.parametrize("compiler", C)
def test_libraries_of_a_program_without_sites_share_one_context(waffle, start, tmp_path, compiler,
                                                                script):
    flags = ["-Wl,--version-script=both.map"] if script else ["-fvisibility=hidden"]
    (tmp_path / "both.map").write_text("".join(script))
    build_library(tmp_path, compiler, *flags)
    # The program of the other tests, as a library.
    call(compiler, "-O2", "-fPIC", "-shared", *LINKERS[compiler], *flags[:1 if script else 0],
         "-Dmain=outer_main", "-DLINKED", f"-I{ROOT}/include", "-o", tmp_path / "libouter.so",
         PROGRAMS / "shared_main.c", "-L.", "-lshared", f"-Wl,-rpath,{tmp_path}", "-ldl",
         cwd=tmp_path)
    (tmp_path / "main.c").write_text(
        "int outer_main(int argc, char **argv);\n"
        "int main(int argc, char **argv)\n{\n\treturn outer_main(argc, argv);\n}\n")
    call(compiler, *LINKERS[compiler], "-o", tmp_path / "main", tmp_path / "main.c", "-L.",
         "-louter", "-lshared", f"-Wl,-rpath,{tmp_path}", cwd=tmp_path)
    check_shared(trace_shared(waffle, start, tmp_path, program="libouter.so"))


# ---- fork() ----


@pytest.mark.parametrize("compiler", ["gcc", "musl-gcc"])
def test_workers_of_one_parent_have_ids_of_their_own(waffle, tmp_path, compiler):
    find_tool(compiler)
    out = tmp_path / "workers"
    flags = ["-static"] if compiler == "musl-gcc" else []
    call(compiler, "-O2", *WARNINGS, "-std=gnu11", *flags, f"-I{ROOT}/include", "-o", out,
         PROGRAMS / "workers.c")
    capture = waffle.run(out, options=["--machine-wide"])
    found = spans(capture, "work")
    assert len(found) == 5 * 50
    assert len({row["id"] for row in found}) == len(found)
    assert sorted(row["args"]["worker"] for row in found) == sorted([-1, 0, 1, 2, 3] * 50)
    events = named(capture.rows("event"), "step")
    worker_of = {row["id"]: row["args"]["worker"] for row in found}
    assert len(events) == 5 * 50
    assert all(worker_of[row["parent"]] == row["args"]["worker"] for row in events)


# ---- aarch64 with guarded branches ----


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("compiler", C)
def test_aarch64_probes_are_called_at_a_landing_pad(tmp_path, compiler, level):
    cross = {"gcc": ["aarch64-linux-gnu-gcc"], "clang": ["clang", "--target=aarch64-linux-gnu"]}
    driver = cross[compiler]
    find_tool(driver[0])
    objcopy, objdump = (find_tool(f"aarch64-linux-gnu-{x}") for x in ("objcopy", "objdump"))
    made, out = tmp_path / "landing.o", tmp_path / "landing"
    call(*driver, "-std=gnu11", level, "-Wall", "-Wextra", "-Werror",
         "-mbranch-protection=standard", f"-I{ROOT}/include", "-c", "-o", made,
         PROGRAMS / "landing.c")
    call(objcopy, "--rename-section", ".probes=raised", made)
    call(*driver, "-Wl,-z,now", "-o", out, made)
    # Each probe of the notes is a nop behind a landing pad.
    notes = call("readelf", "-nW", out)
    probes = [int(x, 16) for x in re.findall(r"Location: (0x[0-9a-f]+)", notes)]
    assert len(probes) >= 5  # span, begin, counter, event, and copies of the end of spans
    code = dict(re.findall(r"^\s+([0-9a-f]+):\s+([0-9a-f]{8})\s",
                           call(objdump, "-d", out), re.M))
    for probe in probes:
        words = [code[f"{address:x}"] for address in (probe - 4, probe, probe + 4)]
        assert words == ["d503245f", "d503201f", "d65f03c0"]  # bti c; nop; ret
    emulator = [find_tool("qemu-aarch64"), "-cpu", "max", "-L", "/usr/aarch64-linux-gnu"]
    assert call(*emulator, out) == "dormant 0 armed 1\n"
    assert call(*emulator, out, "unguarded", check=False).returncode in (132, -4)  # SIGILL
