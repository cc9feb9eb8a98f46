# SPDX-License-Identifier: Apache-2.0
"""What is recorded of values that are neither numbers nor strings: something short that calls no code of
theirs. repr() may be slow, large, or have side effects."""

import numbers

# A container's length, and no more: elements may be anything.
_SIZED = (bytes, bytearray, memoryview, list, tuple, dict, set, frozenset, range)


def _array(value, kind):
    """float32[8,128], as JAX writes it, for arrays and tensors of any library."""
    dtype = str(value.dtype)
    if dtype.startswith("torch."):
        dtype = dtype[6:]
    shape = ",".join(str(int(size)) if isinstance(size, numbers.Integral) else str(size) for size in value.shape)
    return f"{dtype}[{shape}]" if dtype else kind.__name__


def describe(value):
    """An int, a float, None or a str."""
    kind = type(value)
    if isinstance(value, _SIZED):
        return f"{kind.__name__} of {len(value)}"
    if isinstance(value, int):
        return f"{kind.__name__} of {value.bit_length()} bits"  # only those that need more than 64
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    # Looked up in the type: an object's own __getattr__() is not called.
    if hasattr(kind, "shape") and hasattr(kind, "dtype"):
        return _array(value, kind)
    if kind.__name__ in ("function", "method", "builtin_function_or_method", "type"):
        return getattr(value, "__qualname__", kind.__name__)
    path = getattr(value, "__fspath__", None) if hasattr(kind, "__fspath__") else None
    if path:
        return str(path())
    return f"{kind.__module__}.{kind.__qualname__}"
