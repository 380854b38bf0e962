"""Scratch memory: the size that a plan states is enough, is checked, and grows with what shares it.

Every call of these tests lies between guard zones (flashmhc_ctypes.py). The executor hands out its
indices from the last to the first, so the piece of scratch that lies highest is used first.
"""
import itertools
import unittest

from backends import ALL
from cases import CONSTS, arguments, make_inputs
from flashmhc_ctypes import INVALID, OPS, Problem, Refused
from test_bits import Threads

STREAMS, HIDDEN, UNITS = 4, 250, 4
TOKENS = (1, 2, 33)


class Scratch(unittest.TestCase):
    def problem(self, op, kernel, tokens, splits=0, units=UNITS):
        norm = "engine" if op in ("finish", "pre", "seam", "head", "contract") else "none"
        problem = Problem(op, STREAMS, HIDDEN, tokens, CONSTS, "bf16", norm, "bf16", kernel=kernel, split_k=splits,
                          units=units)
        return problem, norm

    def inputs(self, op, tokens, norm):
        data = make_inputs(9, "normal", tokens, STREAMS, HIDDEN, "bf16", "bf16")
        return arguments(op, data, norm, splits=2)

    def test_stated_size_is_enough(self):
        """Four threads, and more slices than tokens: nothing is written beyond the stated bytes."""
        ran = 0
        for kernel, op, tokens in itertools.product(ALL, OPS, TOKENS):
            for splits in (1, 2, 7, 15) if op == "project" else (0,):
                problem, norm = self.problem(op, kernel, tokens, splits)
                pool = Threads(UNITS)
                problem.run(tokens, pool.executor, **self.inputs(op, tokens, norm))
                ran += 1
        self.assertEqual(ran, len(ALL) * len(TOKENS) * (len(OPS) - 1 + 4))

    def test_one_byte_less_is_refused(self):
        refused = 0
        for kernel, op in itertools.product(ALL, OPS):
            problem, norm = self.problem(op, kernel, 33)
            needed = problem.scratch_bytes()
            if needed == 0:
                continue
            with self.assertRaisesRegex(Refused, "scratch") as caught:
                problem.run(33, scratch_bytes=needed - 1, **self.inputs(op, 33, norm))
            self.assertEqual(caught.exception.code, INVALID)
            refused += 1
        if any(kernel != "ref" for kernel in ALL):
            self.assertGreater(refused, 0)

    def test_size_grows(self):
        """With the tokens, the slices and the threads, and for one token with slices as with tokens."""
        for kernel in ALL:
            sizes = [self.problem("project", kernel, 1, splits)[0].scratch_bytes() for splits in (1, 2, 4, 15)]
            self.assertEqual(sizes, sorted(sizes), kernel)
            by_tokens = [self.problem("project", kernel, tokens, 1)[0].scratch_bytes() for tokens in (1, 2, 4, 15)]
            self.assertEqual(by_tokens, sorted(by_tokens), kernel)
            self.assertGreaterEqual(sizes[2], by_tokens[2], kernel)
            by_units = [self.problem("project", kernel, 64, 1, units)[0].scratch_bytes() for units in (1, 2, 8)]
            self.assertEqual(by_units, sorted(by_units), kernel)


if __name__ == "__main__":
    unittest.main()
