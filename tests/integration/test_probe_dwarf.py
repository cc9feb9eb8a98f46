# SPDX-License-Identifier: Apache-2.0
"""Fields of structs wherever compilers and packagers put the DWARF that tells of them. The programs
have structs that differ under one name, and return what is asked for."""

import os
import re
import shutil
import subprocess

import pytest
from tracer import PROGRAMS, compile_program, find_tool

OTHER = PROGRAMS / "structs_other.c"
PARTS = {
    "magic": 43, "in.level": -3, "in.number": 99, "in.name": "twelve bytes",
    "other->text": "union", "other->name": "other", "path": "/a/path", "color": -1,
    "next->in.name": "last", "rows": "rowstwo", "words": "words", "bytes": "bytes", "ready": True,
}
SPECS = [
    *(f"uprobe:exe:{f}(struct state *s) {{s->x}} -> int r" for f in ("here", "there")),
    *(f"uprobe:exe:{f}(pair_t *p) {{p->v as x}} -> int r" for f in ("here_pair", "there_pair")),
    "uprobe:exe:away(struct far *f) {f->x} -> int r",
]
VALUES = {"here": 11, "there": 22, "here_pair": 77, "there_pair": 6, "away": 55}
SPLIT, TYPES = "-gsplit-dwarf", "-fdebug-types-section"


def build(folder, *flags, compiler="gcc"):
    return compile_program("structs.c", folder / "structs", "-fno-inline", OTHER, *flags,
                           compiler=compiler)


def tool(name, *arguments):
    subprocess.run([find_tool(name), *arguments], check=True, timeout=60)


def check_values(waffle, program, **process_options):
    """What is read is what the functions return; each struct is that of its own source file."""
    capture = waffle.run(program, options=[w for s in SPECS for w in ("--probe", s)],
                         **process_options)
    assert capture.result.stderr == ""
    rows = capture.rows("span")
    assert {row["name"]: row["args"] for row in rows} == {
        name: {"x": value, "r": value} for name, value in VALUES.items()}


def check_classes(waffle, program):
    capture = waffle.run(program, options=(
        "--probe", "uprobe:exe:depot::look(depot::Parcel *p) {p->box.width, p->count, "
        "p->box.label} -> int r",
        "--probe", "uprobe:exe:depot::peek(depot::Parcel::Box *b) {b->width, b->label} -> long r"))
    assert capture.result.stderr == "" and capture.result.stdout == "66\n"
    assert [row["args"] for row in capture.rows("span")] == [
        {"width": 31, "count": 4, "label": "label", "r": 35},
        {"width": 31, "label": "label", "r": 31}]
    said = refused(waffle, program, "uprobe:exe:depot::look(depot::Parcel *p) {p->limit}")
    assert "no field 'limit' in struct Parcel" in said


def refused(waffle, program, *specs, **process_options):
    words = [word for spec in specs or SPECS for word in ("--probe", spec)]
    result = waffle.call("list", *words, program, **process_options)
    assert result.returncode != 0
    return result.stderr


@pytest.mark.parametrize("version", ["-gdwarf-4", "-gdwarf-5"])
@pytest.mark.parametrize("compiler, flags", [
    ("gcc", ()),
    ("gcc", (SPLIT,)),
    ("gcc", (TYPES,)),
    ("clang", ()),
    ("clang", (SPLIT,)),
    ("clang", (TYPES,)),
    ("clang", (SPLIT, TYPES)),
])
def test_fields_are_read_from_the_units_that_a_compiler_makes(
        waffle, tmp_path, compiler, flags, version):
    check_values(waffle, build(tmp_path, version, *flags, compiler=compiler))


@pytest.mark.parametrize("version", ["-gdwarf-4", "-gdwarf-5"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("flags", [(), (SPLIT,), (TYPES,)])
def test_fields_of_classes_are_read_from_the_units_that_a_compiler_makes(
        waffle, tmp_path, compiler, version, flags):
    program = compile_program("classes.cpp", tmp_path / "classes",
                              PROGRAMS / "classes_other.cpp", version, *flags, compiler=compiler)
    check_classes(waffle, program)


@pytest.mark.parametrize("flags", [(SPLIT,), (SPLIT, TYPES)])
def test_fields_are_read_from_a_package_of_split_units(waffle, tmp_path, flags):
    program = build(tmp_path, "-gdwarf-4", *flags)
    tool("dwp", "-e", program, "-o", f"{program}.dwp")
    for dwo in tmp_path.glob("*.dwo"):
        dwo.unlink()
    check_values(waffle, program)


@pytest.mark.parametrize("how", ["zlib", "zlib-gnu", "zstd"])
def test_fields_are_read_from_compressed_sections(waffle, tmp_path, how):
    program = build(tmp_path)
    tool("objcopy", f"--compress-debug-sections={how}", program)
    sections = subprocess.run([find_tool("readelf"), "-SW", program], capture_output=True,
                              text=True, check=True).stdout
    assert (".zdebug_info" if how == "zlib-gnu" else ".debug_info") in sections
    check_values(waffle, program)


def twice(tmp_path, *flags):
    """Two programs that dwz can take what they share out of."""
    program = build(tmp_path, *flags)
    second = shutil.copy(program, tmp_path / "second")
    return program, second


@pytest.mark.parametrize("version", ["-gdwarf-4", "-gdwarf-5"])
@pytest.mark.parametrize("relative", [False, True])
def test_fields_are_read_from_what_dwz_made_for_several(waffle, tmp_path, version, relative):
    program, second = twice(tmp_path, version)
    tool("dwz", "-m", tmp_path / "common", *(("-r",) if relative else ()), program, second)
    check_values(waffle, program)
    check_values(waffle, second)


def test_fields_are_read_from_what_dwz_made_for_one(waffle, tmp_path):
    program = build(tmp_path)
    tool("dwz", program)
    check_values(waffle, program)


def pack(how, program):
    """By dwz, as debug information is packed for distributions."""
    if how == "one":
        tool("dwz", program)
    elif how == "several":
        second = shutil.copy(program, program.parent / "second")
        tool("dwz", "-m", program.parent / "common", program, second)
    packed = program if how == "one" else program.parent / "common"
    if how:
        units = subprocess.run([find_tool("readelf"), "--debug-dump=info", packed], check=True,
                               capture_output=True, text=True).stdout
        assert "DW_TAG_partial_unit" in units
    return program


@pytest.mark.parametrize("how", [None, "one", "several"])
@pytest.mark.parametrize("compiler, version", [
    ("gcc", "-gdwarf-4"), ("gcc", "-gdwarf-5"), ("clang", "-gdwarf-4")])
def test_fields_of_all_types_are_read_from_units_without_a_language(
        waffle, tmp_path, compiler, version, how):
    program = pack(how, compile_program("parts.c", tmp_path / "parts", version,
                                        PROGRAMS / "parts_other.c", compiler=compiler))
    values = ", ".join(f"p->{field} as v{i}" for i, field in enumerate(PARTS))
    specs = [f"uprobe:exe:{function}({struct} *p) {{{values}}} as event"
             for function, struct in (("look", "struct part"), ("look_other", "part_t"))]
    capture = waffle.run(program, options=[w for s in specs for w in ("--probe", s)])
    assert capture.result.stderr == ""
    expected = {f"v{i}": value for i, value in enumerate(PARTS.values())}
    assert [row["args"] for row in capture.rows("event")] == [expected] * 2
    for field, says in {"in": "a struct: name one of its fields",
                        "bits": "a bit-field can't be read",
                        "numbers": "a value of its type can't be shown",
                        "open": "a value of its type can't be shown"}.items():
        assert says in refused(waffle, program, f"uprobe:exe:look(part_t *p) {{p->{field}}}")


@pytest.mark.parametrize("how", [None, "one", "several"])
def test_arrays_begin_where_the_language_of_the_source_file_lets_them(waffle, tmp_path, how):
    """In Ada the first index is 1: an array that ends at 11 is shorter by one."""
    sources = []
    for name in "parts", "parts_other":
        source = compile_program(f"{name}.c", tmp_path / f"{name}.s", "-S", "-dA")
        text, count = re.subn(r"(\.byte\s+)0x\w+(\s+\S+ DW_AT_language)", r"\g<1>0xd\2",
                              source.read_text())
        assert count == 1
        source.write_text(text)
        sources.append(source)
    program = tmp_path / "parts"
    tool("gcc", "-o", program, *sources)
    capture = waffle.run(pack(how, program), options=(
        "--probe", "uprobe:exe:look(struct part *p) {p->in.name} as event"))
    assert capture.result.stderr == ""
    assert [row["args"] for row in capture.rows("event")] == [{"name": "twelve byte"}]


@pytest.mark.parametrize("how", ["one", "several"])
def test_fields_of_classes_are_read_from_what_dwz_made(waffle, tmp_path, how):
    check_classes(waffle, pack(how, compile_program("classes.cpp", tmp_path / "classes",
                                                    PROGRAMS / "classes_other.cpp")))


def debug_dir_with(tmp_path, program, where):
    """Takes the debug information out of a program, for a folder like /usr/lib/debug."""
    folder = tmp_path / "debug"
    notes = subprocess.run([find_tool("readelf"), "-n", program], capture_output=True, text=True,
                           check=True).stdout
    number = notes.split("Build ID:")[1].split()[0]
    debug = (folder / ".build-id" / number[:2] / f"{number[2:]}.debug" if where == "build-id"
             else program.parent / ".debug" / "structs.debug")
    debug.parent.mkdir(parents=True)
    tool("objcopy", "--only-keep-debug", program, debug)
    tool("objcopy", "--strip-debug", program)
    if where == "debuglink":
        tool("objcopy", "--remove-section=.note.gnu.build-id",
             f"--add-gnu-debuglink={debug}", program)
    return folder, debug


@pytest.mark.parametrize("where", ["build-id", "debuglink"])
@pytest.mark.parametrize("flags", [(), (SPLIT,), (TYPES,)])
def test_fields_are_read_from_debug_files(waffle, tmp_path, where, flags):
    program = build(tmp_path, "-Wl,--build-id", *flags)
    folder, _ = debug_dir_with(tmp_path, program, where)
    check_values(waffle, program, env={**os.environ, "WAFFLE_DEBUG_DIR": str(folder)})


def test_fields_are_read_from_debug_files_as_debian_packs_them(waffle, tmp_path):
    """By build-id, with a file that dwz made named as it will be installed."""
    program = build(tmp_path, "-Wl,--build-id")
    folder, debug = debug_dir_with(tmp_path, program, "build-id")
    second = shutil.copy(debug, tmp_path / "second.debug")
    common = folder / ".dwz" / "common.debug"
    common.parent.mkdir()
    tool("dwz", "-m", common, "-M", "/usr/lib/debug/.dwz/common.debug", debug, second)
    environment = {**os.environ, "WAFFLE_DEBUG_DIR": str(folder)}
    check_values(waffle, program, env=environment)
    common.unlink()
    said = refused(waffle, program, env=environment)
    assert said.count("a part of its DWARF is missing: /usr/lib/debug/.dwz/common.debug") == 5


def test_common_file_of_others_is_not_taken(waffle, tmp_path):
    program, second = twice(tmp_path)
    tool("dwz", "-m", tmp_path / "common", program, second)
    (tmp_path / "other").mkdir()
    other = build(tmp_path / "other", "-O1")
    tool("dwz", "-m", tmp_path / "common", other, shutil.copy(other, tmp_path / "third"))
    assert refused(waffle, program).count("a part of its DWARF is missing") == 5


@pytest.mark.parametrize("flags, file", [((), "common"), ((SPLIT,), "structs-structs.dwo")])
def test_fifo_in_the_place_of_a_file_is_not_opened(waffle, tmp_path, flags, file):
    program, second = twice(tmp_path, *flags)
    if not flags:
        tool("dwz", "-m", tmp_path / file, program, second)
    (tmp_path / file).unlink()
    os.mkfifo(tmp_path / file)
    said = refused(waffle, program, SPECS[0], timeout=60)
    assert "struct 'state' of" in said and said.splitlines()[0].endswith(file)


def test_struct_of_a_split_unit_that_is_gone_is_not_taken_from_another(waffle, tmp_path):
    program = build(tmp_path, SPLIT)
    (tmp_path / "structs-structs.dwo").unlink()
    said = refused(waffle, program)
    assert "struct 'state' of" in said
    assert f"a part of its DWARF is missing: {tmp_path}/structs-structs.dwo\n" in said


@pytest.mark.parametrize("name, says", [
    ("job", "no field 'x' in struct job"),
    ("work", "no struct 'work'"),
    ("ns::work", "no struct 'ns::work'"),
])
def test_debug_information_without_an_end_is_left(waffle, built, name, says):
    program = built("endless_dwarf.c", "-g0")
    assert says in refused(waffle, program, f"uprobe:exe:begin(struct {name} *j) {{j->x}}",
                           timeout=60)


def test_field_of_a_struct_that_is_only_declared_is_refused(waffle, built):
    said = refused(waffle, built("declared.c"), "uprobe:exe:look(struct near *n) {n->far->x}")
    assert "only declares the struct" in said
