"""Bits of `ref` and of every SIMD target of `cpu`: a token's result depends on that token alone.

Not on the token count, its place, its neighbours (a NaN token included) or the executor, and a fused
operator gives the bits of its parts.
"""
import ctypes
import itertools
import threading
import unittest

import numpy as np

from backends import ALL
from cases import CONSTS, arguments, make_inputs
from flashmhc_ctypes import OPS, STRUCTS, Problem

STREAMS, HIDDEN, POOL = 4, 250, 1000
COUNTS = (*range(1, 10), 31, 32, 33, 63, 64, 65, 127, 128, 129)
PER_TOKEN = {"residual": 0, "sublayer_output": 0, "post_in": 0, "comb_in": 0, "pre_in": 0, "dot_mix_in": 1,
             "sqrsum_in": 1, "dot_mix": 1, "sqrsum": 1}  # name -> axis of the tokens; 0 for all other outputs


def pick(tensors, tokens, always=()):
    """The given tokens of every per-token tensor; weights pass as they are."""
    chosen = {}
    for name, array in tensors.items():
        axis = PER_TOKEN.get(name, None if name in always else 0)
        chosen[name] = array if axis is None else np.take(array, tokens, axis=axis)
    return chosen


WEIGHTS = ("fn", "scale", "base", "norm_weight")


class Bits(unittest.TestCase):
    def setUp(self):
        self.data = make_inputs(21, "log_normal", POOL, STREAMS, HIDDEN, "bf16")
        self.compared = 0

    def combinations(self):
        return itertools.product(ALL, OPS)

    def inputs(self, op):
        norm = "engine" if op in ("finish", "pre", "seam", "head", "contract") else "none"
        return arguments(op, self.data, norm, splits=2), norm

    def run_tokens(self, op, kernel, inputs, norm, executor=None, max_tokens=POOL):
        tokens = inputs["residual"].shape[0]
        problem = Problem(op, STREAMS, HIDDEN, max_tokens, CONSTS, "bf16", norm, kernel=kernel, batch_invariant=True)
        return problem.run(tokens, executor, **inputs)

    def assert_same(self, got, wanted, where):
        for name in wanted:
            np.testing.assert_array_equal(got[name], wanted[name], f"{where}: {name}")
        self.compared += 1

    def test_token_count(self):
        for kernel, op in self.combinations():
            inputs, norm = self.inputs(op)
            whole = self.run_tokens(op, kernel, inputs, norm)
            for count in COUNTS:
                first = range(count)
                part = self.run_tokens(op, kernel, pick(inputs, first, WEIGHTS), norm)
                self.assert_same(part, pick(whole, first), f"{kernel} {op} T {count}")
        self.assertEqual(self.compared, len(ALL) * len(OPS) * len(COUNTS))

    def test_place_and_concatenation(self):
        """One token alone equals itself first, in the middle and last; two halves equal the whole."""
        for kernel, op in self.combinations():
            inputs, norm = self.inputs(op)
            whole = self.run_tokens(op, kernel, inputs, norm)
            for place in (0, POOL // 2, POOL - 1):
                alone = self.run_tokens(op, kernel, pick(inputs, [place], WEIGHTS), norm, max_tokens=1)
                self.assert_same(alone, pick(whole, [place]), f"{kernel} {op} token {place} alone")
            for half in (range(70), range(70, POOL)):
                self.assert_same(self.run_tokens(op, kernel, pick(inputs, half, WEIGHTS), norm), pick(whole, half),
                                 f"{kernel} {op} tokens {half.start}..")
        self.assertEqual(self.compared, len(ALL) * len(OPS) * 5)

    def test_permutation(self):
        order = np.random.default_rng(4).permutation(POOL)
        for kernel, op in self.combinations():
            inputs, norm = self.inputs(op)
            whole = self.run_tokens(op, kernel, inputs, norm)
            shuffled = self.run_tokens(op, kernel, pick(inputs, order, WEIGHTS), norm)
            self.assert_same(shuffled, pick(whole, order), f"{kernel} {op} permuted")
        self.assertEqual(self.compared, len(ALL) * len(OPS))

    def test_nan_neighbour(self):
        others = np.delete(np.arange(POOL), 65)
        for kernel, op in self.combinations():
            inputs, norm = self.inputs(op)
            whole = self.run_tokens(op, kernel, inputs, norm)
            poisoned = {**inputs, "residual": inputs["residual"].copy()}
            poisoned["residual"][65] = np.nan
            out = self.run_tokens(op, kernel, poisoned, norm)
            self.assert_same(pick(out, others), pick(whole, others), f"{kernel} {op} beside NaN")
        self.assertEqual(self.compared, len(ALL) * len(OPS))

    def test_executor(self):
        for kernel, op in self.combinations():
            inputs, norm = self.inputs(op)
            serial = self.run_tokens(op, kernel, inputs, norm)
            for threads in (1, 2, 3):
                pool = Threads(threads)
                out = self.run_tokens(op, kernel, inputs, norm, pool.executor)
                self.assert_same(out, serial, f"{kernel} {op} {threads} threads")
        self.assertEqual(self.compared, len(ALL) * len(OPS) * 3)

    def test_executor_over_slices(self):
        """One token and more slices of K than threads: the slices are what the workers share."""
        for kernel, splits in itertools.product(ALL, (2, 7, 15)):
            inputs = pick(arguments("project", self.data), [0], WEIGHTS)
            problem = Problem("project", STREAMS, HIDDEN, 1, CONSTS, "bf16", kernel=kernel, split_k=splits, units=4)
            serial = problem.run(1, **inputs)
            pool = Threads(4)
            self.assert_same(problem.run(1, pool.executor, **inputs), serial, f"{kernel} project in {splits} slices")
        self.assertEqual(self.compared, len(ALL) * 3)

    def test_fused_equals_composed(self):
        for kernel, norm in itertools.product(ALL, ("none", "engine", "unfused")):
            inputs = arguments("seam", self.data, norm)
            fused = self.run_tokens("seam", kernel, inputs, norm)
            new = self.run_tokens("post", kernel, arguments("post", self.data), "none")
            weights = {name: inputs[name] for name in WEIGHTS if name in inputs}
            composed = self.run_tokens("pre", kernel, {"residual": new["residual_out"], **weights}, norm)
            self.assert_same(fused, {**new, **composed}, f"{kernel} seam {norm}")
        self.assertEqual(self.compared, len(ALL) * 3)


CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
PARALLEL_FOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, CALLBACK, ctypes.c_void_p)


class Threads:
    """An executor that deals the indices to threads from the last to the first."""

    def __init__(self, threads):
        self.threads = threads
        self.function = PARALLEL_FOR(self.parallel_for)  # must outlive the executor
        address = ctypes.cast(self.function, ctypes.c_void_p)
        self.executor = STRUCTS["fmhc_executor"](threads=threads, parallel_for=address)

    def parallel_for(self, _, count, function, argument):
        def work(first):
            for i in range(count - 1 - first, -1, -self.threads):
                function(argument, i)

        workers = [threading.Thread(target=work, args=(first,)) for first in range(self.threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


if __name__ == "__main__":
    unittest.main()
