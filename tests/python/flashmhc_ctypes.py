"""The C interface for tests: ctypes structs from one table, and one call per operator.

The library's path comes from FMHC_TEST_LIBRARY, which ctest sets. test_ctypes_layout.py compares
the table with the header through the C compiler. Before each call outputs are poisoned with NaN, and
outputs, scratch and state lie between guard bytes that must be unchanged after it.
"""
import ctypes
import functools
import os

import numpy as np

from storage import from_bits, to_bits

DTYPES = {"bf16": 1, "f16": 2, "f32": 3, "f64": 4}
NUMPY = {"bf16": np.uint16, "f16": np.float16, "f32": np.float32, "f64": np.float64}
OPS = {name: i + 1 for i, name in enumerate("expand project finish pre post seam head contract".split())}
NORMS = {"none": 0, "engine": 1, "unfused": 2}
OK, INVALID, UNSUPPORTED = 0, 1, 2
CPU, CLASS_F = 1, 1

# struct -> "field type" list in the order of the header; a number after the type makes an array.
LAYOUT = {
    "fmhc_diag": "code i32, text char 252",
    "fmhc_in": "data ptr, shape i64 4, stride i64 4, rank i32, dtype i32",
    "fmhc_out": "data ptr, shape i64 4, stride i64 4, rank i32, dtype i32",
    "fmhc_consts": "rms_eps f32, pre_eps f32, sinkhorn_eps f32, post_mult f32, norm_eps f32, sinkhorn_iters i32",
    "fmhc_problem": "struct_size u32, op i32, streams i32, residual_dtype i32, projection i32, norm i32,"
    "norm_weight_dtype i32, quant i32, carried_pre i32, batch_invariant i32, coresident_units i32, pdl i32,"
    "align_bytes i32, strided i32, hidden i64, max_tokens i64, consts fmhc_consts",
    "fmhc_target": "struct_size u32, device_kind i32, device_index i32, arch i32, num_units i32, reserved i32,"
    "smem_bytes i64, cache_bytes i64",
    "fmhc_hints": "struct_size u32, split_k i32, split_policy i32, reserved i32, kernel str",
    "fmhc_plan": "struct_size u32, abi u32, opaque u64 63",
    "fmhc_executor": "ctx ptr, threads i32, reserved i32, parallel_for ptr",
    "fmhc_args": "struct_size u32, flags u32, residual fmhc_in, sublayer_output fmhc_in, post_in fmhc_in,"
    "comb_in fmhc_in, pre_in fmhc_in, fn fmhc_in, fn_packed fmhc_in, scale fmhc_in, base fmhc_in,"
    "norm_weight fmhc_in, dot_mix_in fmhc_in, sqrsum_in fmhc_in, residual_out fmhc_out, layer_input fmhc_out,"
    "post_mix fmhc_out, comb_mix fmhc_out, pre_mix fmhc_out, dot_mix fmhc_out, sqrsum fmhc_out, quant fmhc_out,"
    "quant_scale fmhc_out, scratch ptr, state ptr, scratch_bytes size, state_bytes size, stream ptr, executor ptr",
}


def build_structs():
    types = {"i32": ctypes.c_int32, "u32": ctypes.c_uint32, "i64": ctypes.c_int64, "u64": ctypes.c_uint64,
             "f32": ctypes.c_float, "char": ctypes.c_char, "ptr": ctypes.c_void_p, "str": ctypes.c_char_p,
             "size": ctypes.c_size_t}
    for struct, text in LAYOUT.items():
        fields = []
        for field in text.split(","):
            name, kind, *count = field.split()
            fields.append((name, types[kind] * int(count[0]) if count else types[kind]))
        types[struct] = type(struct, (ctypes.Structure,), {"_fields_": fields})
    return {struct: types[struct] for struct in LAYOUT}


STRUCTS = build_structs()
INPUTS = [name for name, kind in STRUCTS["fmhc_args"]._fields_ if kind is STRUCTS["fmhc_in"]]


def sized(struct, **fields):
    return STRUCTS[struct](struct_size=ctypes.sizeof(STRUCTS[struct]), **fields)


@functools.cache
def library():
    """The library under test; FMHC_TEST_MUTANT chooses a seeded fault of a mutant build."""
    loaded = ctypes.CDLL(os.environ["FMHC_TEST_LIBRARY"])
    if "FMHC_TEST_MUTANT" in os.environ:
        loaded.fmhc_test_set_mutant(int(os.environ["FMHC_TEST_MUTANT"]))
    return loaded


class Refused(Exception):
    """A status other than FMHC_OK, with the library's text."""

    def __init__(self, diag):
        super().__init__(f"code {diag.code}: {diag.text.decode()}")
        self.code = diag.code


def checked(name, *arguments):
    diag = STRUCTS["fmhc_diag"]()
    passed = [ctypes.byref(a) if isinstance(a, ctypes.Structure) else a for a in arguments]
    if getattr(library(), name)(*passed, ctypes.byref(diag)) != OK:
        raise Refused(diag)


def query(name, *arguments, result=ctypes.c_size_t):
    function = getattr(library(), name)
    function.restype = result
    return function(*(ctypes.byref(a) if isinstance(a, ctypes.Structure) else a for a in arguments))


def kernel_names():
    names = iter(lambda i=iter(range(1 << 20)): query("fmhc_kernel_name", next(i), result=ctypes.c_char_p), None)
    return [name.decode() for name in names]


def host_target():
    target = sized("fmhc_target")
    checked("fmhc_target_query", CPU, 0, target)
    return target


def view(struct, array, storage):
    """A tensor struct over a numpy array of stored elements; the caller keeps the array alive."""
    out = STRUCTS[struct](data=array.ctypes.data, rank=array.ndim, dtype=DTYPES[storage])
    packed = 1  # numpy gives an empty array strides of 0; packed means as if it had one element there
    for axis in reversed(range(array.ndim)):
        out.shape[axis] = array.shape[axis]
        out.stride[axis] = array.strides[axis] // array.itemsize if array.size else packed
        packed *= max(array.shape[axis], 1)
    return out


class Guarded:
    """`count` bytes, 256-byte aligned, between guard zones of `zone` bytes."""

    FILL = 0xA5

    def __init__(self, count, zone=512):
        self.raw = np.full(count + 2 * zone + 256, self.FILL, np.uint8)
        self.begin = zone + (-(self.raw.ctypes.data + zone)) % 256
        self.bytes = self.raw[self.begin : self.begin + count]

    def check(self, name):
        before, after = self.raw[: self.begin], self.raw[self.begin + self.bytes.size :]
        for where, zone in (("before", before), ("behind", after)):
            assert (zone == self.FILL).all(), f"bytes {where} {name} were written"


def poisoned(shape, storage):
    """A guarded array of NaN, and its guard."""
    guard = Guarded(int(np.prod(shape)) * np.dtype(NUMPY[storage]).itemsize)
    out = guard.bytes.view(NUMPY[storage]).reshape(shape)
    out.fill(0x7FC1 if storage == "bf16" else np.nan)
    return out, guard


class Problem:
    """One operator problem and its plan; `run` takes and returns float64 arrays."""

    def __init__(self, op, streams, hidden, tokens, consts, storage="f64", norm="none", norm_weight_storage="f32",
                 carried_pre=False, batch_invariant=False, kernel=None, split_k=0, units=0):
        self.op, self.streams, self.hidden, self.storage = op, streams, hidden, storage
        self.carried_pre = carried_pre
        self.coefficient = "f64" if storage == "f64" else "f32"
        self.norm_weight_storage = norm_weight_storage
        names = [name for name, _ in STRUCTS["fmhc_consts"]._fields_]
        constants = STRUCTS["fmhc_consts"](*(getattr(consts, name) for name in names))
        self.problem = sized(
            "fmhc_problem", op=OPS[op], streams=streams, residual_dtype=DTYPES[storage], projection=CLASS_F,
            norm=NORMS[norm], norm_weight_dtype=DTYPES[norm_weight_storage] if norm != "none" else 0,
            carried_pre=carried_pre, batch_invariant=batch_invariant, hidden=hidden, max_tokens=tokens, consts=constants)
        self.plan = sized("fmhc_plan")
        hints = sized("fmhc_hints", split_k=split_k, kernel=kernel.encode() if kernel else None)
        target = host_target()
        target.num_units = units or target.num_units
        checked("fmhc_plan_make", self.problem, target, hints, self.plan)

    def scratch_bytes(self):
        return query("fmhc_plan_scratch", self.plan)

    def stored_as(self, name):
        if name in ("fn", "scale", "base"):
            return "f32"
        if name == "norm_weight":
            return self.norm_weight_storage
        row = name in ("residual", "sublayer_output", "residual_out", "layer_input")
        return self.storage if row else self.coefficient

    def output_shapes(self, tokens):
        n, t = self.streams, tokens
        logits = n * (n + 2)
        slices = query("fmhc_plan_split_k", self.plan, ctypes.c_int64(t), result=ctypes.c_int32)
        coefficients = {"post_mix": (t, n), "comb_mix": (t, n, n), "pre_mix": (t, n), "layer_input": (t, self.hidden)}
        new = {"residual_out": (t, n, self.hidden)}
        return {"expand": new, "post": new, "finish": coefficients, "pre": coefficients,
                "seam": {**new, **coefficients}, "project": {"dot_mix": (slices, t, logits), "sqrsum": (slices, t)},
                "head": {k: coefficients[k] for k in ("layer_input", "pre_mix")},
                "contract": {"layer_input": (t, self.hidden)}}[self.op]

    def run(self, tokens, executor=None, scratch_bytes=None, **inputs):
        args = sized("fmhc_args")
        kept = {}
        for name, values in inputs.items():
            kept[name] = np.ascontiguousarray(to_bits(values, self.stored_as(name)))
            setattr(args, name, view("fmhc_in", kept[name], self.stored_as(name)))
        outputs, guards = {}, {}
        for name, shape in self.output_shapes(tokens).items():
            outputs[name], guards[name] = poisoned(shape, self.stored_as(name))
            setattr(args, name, view("fmhc_out", outputs[name], self.stored_as(name)))
        for kind in ("scratch", "state"):
            given = scratch_bytes if kind == "scratch" else None
            count = query(f"fmhc_plan_{kind}", self.plan) if given is None else given
            guards[kind] = Guarded(count, 1 << 18)  # a worker's piece of scratch is large
            area = guards[kind].bytes
            setattr(args, kind, area.ctypes.data if area.size else None)
            setattr(args, f"{kind}_bytes", area.size)
        if executor is not None:
            args.executor = ctypes.addressof(executor)
        checked("fmhc_run", self.plan, args)
        for name, guard in guards.items():
            guard.check(f"{self.op}.{name}")
        return {name: from_bits(stored, self.stored_as(name)) for name, stored in outputs.items()}
