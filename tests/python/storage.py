"""Storage formats of the tests: rounding from float64, bit conversion, and a small safetensors reader.

Rounding is to nearest, ties to even, straight from float64 (never through float32, which would
round twice). It is written from the format definitions, so it can check the library's own.
"""
import json
import struct

import numpy as np

# name -> (significant bits, exponent of the smallest normal, largest finite value)
FORMATS = {
    "bf16": (8, -126, float((2 - 2.0**-7) * 2.0**127)),
    "f16": (11, -14, 65504.0),
    "f32": (24, -126, float((2 - 2.0**-23) * 2.0**127)),
}


def round_to(values, storage):
    """float64 array rounded to `storage` ("f64": unchanged); the result is float64 again."""
    x = np.asarray(values, dtype=np.float64)
    if storage == "f64":
        return x
    bits, smallest, largest = FORMATS[storage]
    _, exponent = np.frexp(x)  # |x| = f * 2^exponent, 1/2 <= f < 1
    unit = np.ldexp(1.0, np.maximum(exponent - bits, smallest - bits + 1))
    with np.errstate(invalid="ignore", over="ignore"):
        # rint keeps ties even; x / unit is exact because unit is a power of two.
        rounded = np.rint(x / unit) * unit
        rounded = np.where(np.abs(rounded) > largest, np.copysign(np.inf, x), rounded)
    return np.where(np.isfinite(x), rounded, x)


def to_bits(values, storage):
    """The stored bytes of `values`, which must already lie on the grid of `storage`."""
    x = np.asarray(values, dtype=np.float64)
    if storage == "bf16":
        with np.errstate(over="ignore"):
            return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return x.astype({"f16": np.float16, "f32": np.float32, "f64": np.float64}[storage])


def from_bits(stored, storage):
    """float64 values of stored elements (uint16 for bf16, numpy floats otherwise)."""
    if storage == "bf16":
        stored = (stored.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return stored.astype(np.float64)


READABLE = {"F64": ("f64", "<f8"), "F32": ("f32", "<f4"), "F16": ("f16", "<f2"), "BF16": ("bf16", "<u2")}


def read_safetensors(path):
    """Returns (metadata, {name: float64 array}, {name: storage})."""
    with open(path, "rb") as f:
        data = f.read()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length].decode("utf-8"))
    metadata = header.pop("__metadata__", {})
    tensors, storages = {}, {}
    for name, entry in header.items():
        storage, numpy_type = READABLE[entry["dtype"]]
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        stored = np.frombuffer(data[begin:end], dtype=numpy_type).reshape(entry["shape"])
        tensors[name], storages[name] = from_bits(stored, storage), storage
    return metadata, tensors, storages
