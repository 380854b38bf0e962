"""`ref` and every SIMD target of `cpu` against the numpy oracle, operator by operator, in the storage dtypes.

Rows must lie between the roundings of the exact value moved by a few float32 units, coefficients
within the class F limits for logits of standard deviation 1 (also for loud constants and for
peaked logits, where every round of the Sinkhorn shows).
"""
import itertools
import unittest

import numpy as np

import oracle
from backends import (ALL, COEFFICIENT_LIMITS, PROJECTION_LIMIT, SQUARE_LIMIT, UNIT, assert_close, assert_contained,
                      assert_unbiased)
from cases import CONSTS, FAMILIES, LOUD_CONSTS, arguments, expected, make_inputs
from flashmhc_ctypes import Problem
from storage import round_to

STORAGES = ("bf16", "f16", "f32")
SHAPES = ((4, 256, 5), (4, 250, 3), (4, 1100, 2), (2, 33, 4), (3, 64, 3), (1, 7, 2), (8, 40, 2))  # streams, H, T
STATISTICS = 4096  # elements from which on the distribution of the rounding errors is judged


class StorageAgainstNumpy(unittest.TestCase):
    def cases(self):
        """(kernel, storage, inputs, consts); seeds differ by case, so that a case reproduces alone."""
        product = itertools.product(ALL, STORAGES, FAMILIES, SHAPES, (CONSTS, LOUD_CONSTS))
        self.ran = 0
        for seed, (kernel, storage, family, (streams, hidden, tokens), consts) in enumerate(product):
            if storage == "f16" and family != "normal":
                continue  # the outliers of the other families overflow fp16
            yield kernel, storage, make_inputs(seed, family, tokens, streams, hidden, storage), consts
            self.ran += 1
        self.assertEqual(self.ran, len(ALL) * len(SHAPES) * 2 * (2 * len(FAMILIES) + 1))

    def run_case(self, op, kernel, storage, data, consts, norm="none", carried=False, splits=1):
        tokens, streams, hidden = data["residual"].shape
        splits = min(splits, -(-streams * hidden // oracle.SLICE_BLOCK))
        inputs = arguments(op, data, norm, carried, splits)
        problem = Problem(op, streams, hidden, tokens, consts, storage, norm, carried_pre=carried, kernel=kernel,
                          split_k=splits if op == "project" else 0)
        got = problem.run(tokens, **inputs)
        where = (f"{kernel} {op} {storage} streams {streams} H {hidden} T {tokens} norm {norm} carried {carried} "
                 f"splits {splits}")
        return got, inputs, where

    def check_coefficients(self, got, wanted, where):
        for name, limit in COEFFICIENT_LIMITS.items():
            if name in got:
                assert_close(got[name], wanted[name], limit, f"{where}: {name}")

    def check_layer_input(self, got, inputs, wanted, consts, storage, norm, where):
        """Containment around the oracle; the collapse mix itself may be off by its own limit."""
        residual = got.get("residual_out", inputs["residual"])
        mix = inputs.get("pre_in", wanted.get("pre_mix"))
        if mix is None:
            mix = np.full(residual.shape[:2], 1.0 / residual.shape[1])
        mix_slack = 0.0 if "pre_in" in inputs or "pre_mix" not in wanted else COEFFICIENT_LIMITS["pre_mix"]
        terms = np.einsum("tj,tjh->th", 5 * UNIT * np.abs(mix) + mix_slack, np.abs(residual))
        y = np.einsum("tj,tjh->th", mix, residual)
        if norm == "none":
            assert_contained(got["layer_input"], y, terms, storage, f"{where}: layer_input")
            return
        exact, slack = normed(y, terms, norm, consts, inputs["norm_weight"], storage)
        assert_contained(got["layer_input"], exact, slack, storage, f"{where}: layer_input")

    def check_residual(self, got, inputs, storage, where):
        operands = [inputs[name] for name in ("residual", "sublayer_output", "post_in", "comb_in")]
        exact = oracle.post(*operands)
        terms = oracle.post(*(np.abs(operand) for operand in operands))
        assert_contained(got["residual_out"], exact, 6 * UNIT * terms, storage, f"{where}: residual_out")
        if exact.size >= STATISTICS and storage != "f32":
            assert_unbiased(got["residual_out"], exact, storage, f"{where}: residual_out")

    def check_site(self, op, norm, carried, splits=1):
        for kernel, storage, data, consts in self.cases():
            got, inputs, where = self.run_case(op, kernel, storage, data, consts, norm, carried, splits)
            if op == "seam":
                self.check_residual(got, inputs, storage, where)
                # From here on the residual that was stored is the input, so ties cannot tell the two apart.
                wanted = oracle.pre(got["residual_out"], inputs["fn"], inputs["scale"], inputs["base"], consts,
                                    storage=storage, norm=norm, norm_weight=inputs.get("norm_weight"),
                                    pre_in=inputs.get("pre_in"))
            else:
                wanted = expected(op, inputs, data["residual"].shape[1], consts, storage, norm)
            self.check_coefficients(got, wanted, where)
            self.check_layer_input(got, inputs, wanted, consts, storage, norm, where)

    def test_expand(self):
        for kernel, storage, data, consts in self.cases():
            got, inputs, where = self.run_case("expand", kernel, storage, data, consts)
            wanted = oracle.expand(inputs["residual"], data["residual"].shape[1])
            np.testing.assert_array_equal(got["residual_out"], wanted, where)

    def test_project(self):
        for kernel, storage, data, consts in self.cases():
            blocks = -(-data["fn"].shape[1] // oracle.SLICE_BLOCK)
            for splits in sorted({1, min(3, blocks), min(7, blocks)}):
                got, inputs, where = self.run_case("project", kernel, storage, data, consts, splits=splits)
                dots, squares = oracle.project(inputs["residual"], inputs["fn"], splits)
                for name, wanted, limit in (("dot_mix", dots, PROJECTION_LIMIT), ("sqrsum", squares, SQUARE_LIMIT)):
                    norms = np.linalg.norm(wanted, axis=-1, keepdims=True) if name == "dot_mix" else wanted
                    assert_close(got[name], wanted, limit * norms, f"{where}: {name}")

    def test_finish(self):
        for splits in (1, 3):
            self.check_site("finish", "none", False, splits)

    def test_pre(self):
        self.check_site("pre", "none", False)

    def test_pre_norm_engine(self):
        self.check_site("pre", "engine", False)

    def test_pre_norm_unfused(self):
        self.check_site("pre", "unfused", False)

    def test_pre_carried(self):
        self.check_site("pre", "none", True)

    def test_post(self):
        for kernel, storage, data, consts in self.cases():
            got, inputs, where = self.run_case("post", kernel, storage, data, consts)
            self.check_residual(got, inputs, storage, where)

    def test_seam(self):
        self.check_site("seam", "none", False)

    def test_seam_carried_norm(self):
        self.check_site("seam", "unfused", True)

    def test_head_and_contract(self):
        for op, carried in (("head", False), ("contract", False), ("contract", True)):
            self.check_site(op, "none", carried)

    def test_peaked_logits(self):
        """Logits of standard deviation near 8 keep the Sinkhorn from converging, so each round counts."""
        rounds = 0
        for kernel, iters in itertools.product(ALL, (1, 2, 19, 20, 21)):
            data = make_inputs(100 + iters, "normal", 24, 4, 64, "f32", logit_scale=8.0)
            consts = oracle.Consts(1e-6, 1e-6, 1e-6, 2.0, iters)
            got, inputs, where = self.run_case("pre", kernel, "f32", data, consts)
            wanted = expected("pre", inputs, 4, consts)
            for name, limit in COEFFICIENT_LIMITS.items():
                assert_close(got[name], wanted[name], 8 * limit, f"{where} rounds {iters}: {name}")
            rounds += 1
        self.assertEqual(rounds, 5 * len(ALL))


def normed(y, slack, norm, consts, weight, storage):
    """The normalised row before its last rounding, and how far it may move when y moves by `slack`."""
    row = round_to(y, storage)
    step = np.maximum(round_to(y + slack, storage) - row, row - round_to(y - slack, storage))
    base, moved = (y, slack) if norm == "engine" else (row, step)
    square = np.sum(base**2, axis=1, keepdims=True) + y.shape[1] * consts.norm_eps
    spread = 8 * UNIT + np.sum(np.abs(base) * moved, axis=1, keepdims=True) / square
    factor = np.sqrt(y.shape[1] / square) * weight
    return row * factor, np.abs(factor) * (step + spread * np.abs(row))


if __name__ == "__main__":
    unittest.main()
