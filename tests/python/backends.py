"""Which kernels the tests force by name, and the statements about their accuracy.

FMHC_TEST_KERNELS (comma-separated prefixes) narrows the list.
"""
import os

import numpy as np

from cases import CONSTS
from flashmhc_ctypes import UNSUPPORTED, Problem, Refused, kernel_names
from storage import round_to

UNIT = 2.0**-24

# Largest absolute error of a coefficient of class F for logits of standard deviation 1, and of the
# projection relative to its norm.
COEFFICIENT_LIMITS = {"pre_mix": 1e-6, "post_mix": 2e-6, "comb_mix": 3e-6}
PROJECTION_LIMIT = 5e-6
SQUARE_LIMIT = 5e-6


def cpu_targets():
    """Each SIMD target of cpu that this machine runs; where there are any, one must remain."""
    targets = sorted({".".join(name.split(".")[:2]) for name in kernel_names() if name.startswith("cpu.")})
    runnable = []
    for target in targets:
        try:
            Problem("post", 4, 64, 1, CONSTS, "bf16", kernel=target)
            runnable.append(target)
        except Refused as refused:
            if refused.code != UNSUPPORTED:
                raise
    assert runnable or not targets, f"no SIMD target of {targets} runs here"
    return runnable


ALL = os.environ["FMHC_TEST_KERNELS"].split(",") if "FMHC_TEST_KERNELS" in os.environ else ["ref", *cpu_targets()]


def assert_contained(got, exact, slack, storage, where):
    """Each element is the rounding of some value within `slack` of the exact one."""
    low, high = round_to(exact - slack, storage), round_to(exact + slack, storage)
    outside = ~((low <= got) & (got <= high))
    if outside.any():
        index = np.unravel_index(np.argmax(np.where(outside, np.abs(got - exact) / (slack + 1e-300), 0)), got.shape)
        ratio = got[index] / exact[index] if exact[index] else np.nan
        raise AssertionError(
            f"{where}: {outside.sum()} of {got.size} elements outside the rounding bound, worst at "
            f"{tuple(map(int, index))}: got {got[index]:.9g}, exact {exact[index]:.9g}, ratio {ratio:.6g}")


def assert_unbiased(got, exact, storage, where):
    """Rounding errors are no larger than those of rounding to nearest, and of either sign."""
    nearest = round_to(exact, storage) - exact
    error = got - exact
    rms, wanted = (float(np.sqrt(np.mean(e**2))) for e in (error, nearest))
    assert rms <= 1.01 * wanted + 1e-12, f"{where}: rms rounding error {rms:.6g}, of nearest rounding {wanted:.6g}"
    inexact = error[error != 0] * np.sign(exact[error != 0])
    score = abs(np.sum(np.sign(inexact))) / np.sqrt(max(inexact.size, 1))
    assert score <= 6, f"{where}: rounding errors lean to one side, z-score {score:.1f} of {inexact.size}"


def assert_close(got, wanted, limit, where):
    error = np.abs(got - wanted)
    if not (error <= limit).all():
        index = np.unravel_index(np.nanargmax(np.where(np.isnan(error), np.inf, error)), error.shape)
        raise AssertionError(f"{where}: worst at {tuple(map(int, index))}: got {got[index]:.9g}, wanted "
                             f"{wanted[index]:.9g}, limit {np.broadcast_to(limit, error.shape)[index]:.3g}")
