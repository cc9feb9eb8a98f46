# SPDX-License-Identifier: Apache-2.0
"""The rows of cuda.probes and nccl.probes against NVIDIA's own headers: the compiler compares the
parameters of every function with those that its row says, and offsets with the structs'."""

import re
import subprocess

import pytest

import nvidia

pytestmark = pytest.mark.skipif(nvidia.folder() is None, reason="no NVIDIA libraries here")

# What a compiler for CUDA defines for its headers; not in the packages.
HOST_DEFINES = """
#define __host__
#define __device__
#define __global__
#define __cudart_builtin__
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __align__(n) __attribute__((aligned(n)))
#define CUDARTAPI
#define CUDARTAPI_CDECL
#define __inline_hint__
#define __no_return__
#define __noinline__
#define __forceinline__ inline
#define __specialization_static static
"""

PRELUDE = """
#include <cstddef>
#include <tuple>
#include <type_traits>
#include "%s"
template <class T> struct of;
template <class R, class... A> struct of<R (*)(A...)> {
	using result = R;
	static constexpr int count = sizeof...(A);
	template <int i> using arg = std::tuple_element_t<i, std::tuple<A...>>;
};
template <class T> constexpr bool number(unsigned bytes, bool is_signed) {
	return sizeof(T) == bytes && (std::is_enum_v<T> || (std::is_integral_v<T> &&
		std::is_signed_v<T> == is_signed));
}
template <class T> constexpr bool word = std::is_pointer_v<T> || number<T>(8, false);
template <class T> using behind = std::remove_cv_t<std::remove_pointer_t<T>>;
"""

# Headers and how they are read: CUDA's name a function differently for streams of a thread's own,
# and have older forms that only the driver still needs.
HEADERS = {
    "libcudart.so.12": ("cuda_runtime", "cuda_runtime_api.h"),
    "libcudart.so.13": ("cu13", "cuda_runtime_api.h"),
    "libcuda of 12": ("cuda_runtime", "cuda.h"),
    "libcuda of 13": ("cu13", "cuda.h"),
    "libnccl": ("nccl", "nccl.h"),
}
MODES = [[], ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"], ["-D__CUDA_API_VERSION_INTERNAL"]]

# Exported, but in no header of these packages: crt/host_runtime.h has them.
UNDECLARED = {"__cudaRegisterFunction", "__cudaGetKernel"}

# Of what is read from a struct by an offset: the struct's member, by the key.
MEMBERS = {
    "grid": ("gridDim", "gridDimX"),
    "block": ("blockDim", "blockDimX"),
    "shared_bytes": ("dynamicSmemBytes", "sharedMemBytes"),
    "stream": ("stream", "hStream"),
    "width": ("extent.width", "WidthInBytes"),
    "height": ("extent.height", "Height"),
    "depth": ("extent.depth", "Depth"),
    "kind": ("kind", "kind"),
}

TYPES = {
    "ptr": "word<{0}>",
    "code": "word<{0}>",
    "str": "std::is_same_v<behind<{0}>, char>",
    "size_t": "number<{0}>(8, false)",
    "unsigned long long": "number<{0}>(8, false)",
    "unsigned": "number<{0}>(4, false)",
    "unsigned char": "number<{0}>(1, false)",
    "unsigned short": "number<{0}>(2, false)",
    "int": "number<{0}>(4, true)",
    "dim3": "std::is_same_v<{0}, dim3>",
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """compiled(header, mode, body or None): what the compiler says, or the preprocessed text."""
    folder = tmp_path_factory.mktemp("headers")
    (folder / "crt").mkdir()
    (folder / "crt/host_defines.h").write_text(HOST_DEFINES)
    # nccl.h wants the header for CUDA's own compiler; the plain one has all that it needs.
    (folder / "nccl").mkdir()
    (folder / "nccl/cuda_runtime.h").write_text("#include <cuda_runtime_api.h>\n")
    (folder / "nccl/cuda_fp16.h").write_text("")
    (folder / "nccl/cuda_bf16.h").write_text("")
    (folder / "nccl/cuda_fp8.h").write_text("")

    def run(header, mode, body=None):
        place, name = HEADERS[header]
        source = folder / "check.cpp"
        source.write_text(PRELUDE % name + (body or ""))
        argv = ["g++", "-std=c++17", "-w", *mode, f"-I{nvidia.folder() / place / 'include'}"]
        if place == "nccl":
            argv += [f"-I{folder / 'nccl'}", f"-I{nvidia.folder() / 'cu13/include'}"]
        argv += [f"-I{folder}", "-E" if body is None else "-fsyntax-only", str(source)]
        return subprocess.run(argv, capture_output=True, text=True, check=body is None)

    return run


@pytest.fixture(scope="module")
def declared(compiled):
    """Of every header and mode the names that it declares as functions."""
    return {
        (header, *mode): set(re.findall(r"\b(\w+)\s*\(", compiled(header, mode).stdout))
        for header in HEADERS
        for mode in MODES
    }


def positions(row):
    """Each parameter with the C arguments that it stands for: xyz are three."""
    at = 0
    for param in row.params:
        count = 3 if param.startswith("xyz") else 1
        yield param, list(range(at, at + count))
        at += count


def split(param, types):
    """"size_t bytes" → ("size_t", "bytes")."""
    if param in types or " " not in param:
        return param, None
    kind, _, name = param.rpartition(" ")
    return kind, name


def asserts(row, name):
    """static_asserts that a function has the parameters of its row."""
    made, f = [], f"of<decltype(&{name})>"
    total = sum(len(at) for _, at in positions(row))
    made.append(f"static_assert({f}::count == {total});")
    for param, at in positions(row):
        args = [f"{f}::template arg<{i}>" for i in at]
        kind, key = split(param.removeprefix("out "), TYPES)
        if param.startswith("out "):
            made.append(f"static_assert(std::is_pointer_v<{args[0]}>);")
            size = 4 if kind == "int" else 8
            made.append(f"static_assert(sizeof(behind<{args[0]}>) >= {size});")
        elif kind == "xyz":
            made += [f"static_assert(number<{a}>(4, false));" for a in args]
        elif kind.startswith("enum:"):
            made.append(f"static_assert(std::is_enum_v<{args[0]}> && sizeof({args[0]}) == 4);")
        elif kind.startswith("blob:"):
            size = kind.removeprefix("blob:")
            made.append(f"static_assert(std::is_class_v<{args[0]}>);")
            made.append(f"static_assert(sizeof({args[0]}) == {size});")
        else:
            made.append(f"static_assert({TYPES[kind].format(args[0])});")
        for type_, offset, member in re.findall(
            rf"\*\(([\w:]+)\)\({key}(?:\+(\d+))?\) as (\w+)", row.rest
        ):
            if member in ("comm_address", "comm_id"):
                continue  # what is read is no field of a struct
            driver = name.startswith("cu") and not name.startswith("cuda")
            field = MEMBERS[member][driver]
            size = {"dim3": 12, "unsigned": 4, "enum:copy": 4}.get(type_, 8)
            struct = f"behind<{args[0]}>"
            made.append(f"static_assert(offsetof({struct}, {field}) == {offset or 0});")
            whole = 4 if type_ == "dim3" and driver else size
            made.append(f"static_assert(sizeof({struct}::{field.partition('.')[0]}) >= {whole});")
    return made


def headers_of(row):
    """The headers of the libraries that a row is of."""
    for header in HEADERS:
        lib = header.split(" ")[0]
        for pattern in row.libs:
            if nvidia.is_of(pattern, lib):
                yield header
                break


def every_row():
    return [row for table in nvidia.TABLES for row in nvidia.rows(table)]


@pytest.mark.parametrize("header", HEADERS)
def test_every_function_has_the_parameters_of_its_row(header, compiled, declared):
    checked = set()
    for mode in MODES:
        body = []
        for row in every_row():
            if header not in headers_of(row):
                continue
            for name in row.names:
                if name in declared[(header, *mode)] and name not in checked:
                    body += [f"namespace check_{name} {{", *asserts(row, name), "}"]
                    checked.add(name)
        done = compiled(header, mode, "\n".join(body))
        assert done.returncode == 0, done.stderr
    assert len(checked) > 25


def test_every_name_is_declared_by_some_header(declared):
    known = set.union(*declared.values())
    undeclared = set()
    for row in every_row():
        for name in row.names:
            if name not in known and name.removeprefix("p") not in known:
                undeclared.add(name)
    assert undeclared == UNDECLARED


def test_every_function_that_orders_streams_or_makes_one_has_a_row(declared):
    """Nodes of graphs are put on no stream."""
    names = r"(?!cu(da)?Graph)cu\w*(EventRecord|RecordEvent|WaitEvent|StreamCreate)\w*"
    there = {n for header in declared.values() for n in header if re.fullmatch(names, n)}
    assert len(there) > 20
    assert there <= {name for row in every_row() for name in row.names}


def test_a_wrong_row_is_seen(compiled):
    row = nvidia.Row("uprobe:libcudart:cudaMemset(ptr, size_t, size_t bytes) -> int")
    done = compiled("libcudart.so.13", [], "\n".join(asserts(row, "cudaMemset")))
    assert done.returncode and "static assertion failed" in done.stderr


# Names of the header's constants, by the names that the tables have.
ENUMS = {
    "copy": ("libcudart.so.13", {
        "HtoH": "cudaMemcpyHostToHost", "HtoD": "cudaMemcpyHostToDevice",
        "DtoH": "cudaMemcpyDeviceToHost", "DtoD": "cudaMemcpyDeviceToDevice",
        "default": "cudaMemcpyDefault"}),
    "nccl_op": ("libnccl", {
        "sum": "ncclSum", "prod": "ncclProd", "max": "ncclMax", "min": "ncclMin",
        "avg": "ncclAvg"}),
    "nccl_type": ("libnccl", {
        "int8": "ncclInt8", "uint8": "ncclUint8", "int32": "ncclInt32", "uint32": "ncclUint32",
        "int64": "ncclInt64", "uint64": "ncclUint64", "float16": "ncclFloat16",
        "float32": "ncclFloat32", "float64": "ncclFloat64", "bfloat16": "ncclBfloat16",
        "f8e4m3": "ncclFloat8e4m3", "f8e5m2": "ncclFloat8e5m2"}),
}


@pytest.mark.parametrize("name", ENUMS)
def test_names_of_numbers_are_those_of_the_header(name, compiled):
    table = {**nvidia.enums("cuda"), **nvidia.enums("nccl")}[name]
    header, constants = ENUMS[name]
    body = [f"static_assert({constants[word]} == {i});" for i, word in enumerate(table)]
    done = compiled(header, [], "\n".join(body))
    assert done.returncode == 0, done.stderr
    assert len(table) == len(constants)
