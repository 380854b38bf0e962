"""Backend `ref` with an f64 residual against the numpy oracle: two programs, one set of formulas.

Every operator over streams 1..8, several H and T, three data families, both norms, the carried form
and forced splits. Everything is float64 on both sides, so the limit is 1e-12: of the row's norm for
rows, times what the collapse cancels; of the sum of magnitudes for projections; absolute for coefficients.
"""
import itertools
import unittest

import numpy as np

import oracle
from cases import CONSTS, FAMILIES, LOUD_CONSTS, arguments, expected, make_inputs
from flashmhc_ctypes import Problem

LIMIT = 1e-12
STREAMS = range(1, 9)
HIDDEN = (1, 3, 250, 256)
TOKENS = (0, 1, 2, 7)
SPLITS = (1, 2, 3, 7)
NORMS = ("none", "engine", "unfused")


def limits(name, wanted, got, inputs, splits):
    """How far each element of an output may be from the oracle."""
    if name == "dot_mix":
        return LIMIT * oracle.project(np.abs(inputs["residual"]), np.abs(inputs["fn"]), splits)[0]
    if name == "sqrsum":
        return LIMIT * wanted
    if name not in ("residual_out", "layer_input"):
        return np.full(wanted.shape, LIMIT)
    limit = LIMIT * np.linalg.norm(wanted, axis=-1, keepdims=True)
    return limit * cancellation(got, inputs) if name == "layer_input" else limit


def cancellation(got, inputs):
    """Sum of magnitudes of the collapse over its result: a norm behind it passes on what was lost."""
    residual = got.get("residual_out", inputs["residual"])
    mix = inputs.get("pre_in", got.get("pre_mix"))
    if mix is None:
        mix = np.ones(residual.shape[:2])
    rows = [oracle.contract_mix(*operands) for operands in ((np.abs(residual), np.abs(mix)), (residual, mix))]
    magnitudes, result = (np.linalg.norm(row, axis=-1, keepdims=True) for row in rows)
    return magnitudes / result


class RefAgainstNumpy(unittest.TestCase):
    def setUp(self):
        self.cases, self.worst = 0, {}

    def compare(self, op, data, consts, norm="none", carried=False, splits=1):
        tokens, streams, hidden = data["residual"].shape
        inputs = arguments(op, data, norm, carried, splits)
        problem = Problem(op, streams, hidden, tokens, consts, norm=norm, norm_weight_storage="f64",
                          carried_pre=carried, kernel="ref", split_k=splits if op == "project" else 0)
        got = problem.run(tokens, **inputs)
        wanted = expected(op, inputs, streams, consts, norm=norm, splits=splits)
        self.assertEqual(set(got), set(wanted))
        for name, array in wanted.items():
            self.assertEqual(got[name].shape, array.shape)
            limit = limits(name, array, got, inputs, splits)
            error = np.abs(got[name] - array)
            where = (f"{op}.{name} streams {streams} H {hidden} T {tokens} norm {norm} carried {carried} "
                     f"splits {splits}")
            self.assertFalse(np.isnan(got[name]).any(), f"{where}: an element was not written or is NaN")
            ratio = float(np.max(error / (limit + 1e-300), initial=0.0))
            self.assertLessEqual(ratio, 1.0, where)
            self.worst[name] = max(self.worst.get(name, 0.0), ratio)
        self.cases += 1

    def sweep(self):
        shapes = itertools.product(FAMILIES, STREAMS, HIDDEN, TOKENS)
        for seed, (family, streams, hidden, tokens) in enumerate(shapes):
            consts = (CONSTS, LOUD_CONSTS)[seed % 2]
            yield make_inputs(seed, family, tokens, streams, hidden, norm_weight_storage="f64"), consts

    def finish_test(self, cases):
        print(f"\n{self.id()}: {self.cases} cases, worst error / limit: "
              + ", ".join(f"{k} {v:.2g}" for k, v in self.worst.items()))
        self.assertEqual(self.cases, cases)

    SHAPES = len(FAMILIES) * len(STREAMS) * len(HIDDEN) * len(TOKENS)

    def test_expand_and_post(self):
        for data, consts in self.sweep():
            for op in ("expand", "post"):
                self.compare(op, data, consts)
        self.finish_test(2 * self.SHAPES)

    def test_project(self):
        legal = 0
        for data, consts in self.sweep():
            blocks = -(-data["fn"].shape[1] // oracle.SLICE_BLOCK)
            for splits in (s for s in SPLITS if s <= blocks):
                self.compare("project", data, consts, splits=splits)
                legal += 1
        self.assertGreater(legal, 2 * self.SHAPES)
        self.finish_test(legal)

    def test_finish(self):
        choices = zip(self.sweep(), itertools.cycle(SPLITS), itertools.cycle((False, True, True)))
        for (data, consts), splits, carried in choices:
            most = -(-data["fn"].shape[1] // oracle.SLICE_BLOCK)
            for norm in NORMS:
                self.compare("finish", data, consts, norm, carried, min(splits, most))
        self.finish_test(3 * self.SHAPES)

    def test_pre_and_seam(self):
        for data, consts in self.sweep():
            for op, norm, carried in itertools.product(("pre", "seam"), NORMS, (False, True)):
                self.compare(op, data, consts, norm, carried)
        self.finish_test(12 * self.SHAPES)

    def test_head_and_contract(self):
        for data, consts in self.sweep():
            for norm in NORMS:
                self.compare("head", data, consts, norm)
                self.compare("contract", data, consts, norm)
                self.compare("contract", data, consts, norm, carried=True)
        self.finish_test(9 * self.SHAPES)


if __name__ == "__main__":
    unittest.main()
