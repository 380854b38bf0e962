"""Answers known without an oracle, on `ref` and on every SIMD target of `cpu` that this machine runs.

Single-entry mixes show the orientation of comb; peaked, tied and permuted logits show the Sinkhorn;
zero, tiny, huge and infinite residuals show the edges of the range.
"""
import itertools
import unittest

import numpy as np

import oracle
from backends import ALL
from cases import CONSTS, make_inputs
from flashmhc_ctypes import Problem
from storage import FORMATS, round_to

HIDDEN = 40  # neither a power of two nor a multiple of a wide vector


def finish_logits(kernel, logits, consts):
    """comb_mix for given logits [T,4,4]: a row of mean square 1 and no rms_eps leaves the dots as they are."""
    tokens = len(logits)
    dots = np.zeros((1, tokens, 24))
    dots[0, :, 8:] = logits.reshape(tokens, 16)
    unit = oracle.Consts(0.0, consts.pre_eps, consts.sinkhorn_eps, consts.post_mult, consts.sinkhorn_iters)
    problem = Problem("finish", 4, 64, tokens, unit, "f32", kernel=kernel)
    out = problem.run(tokens, dot_mix_in=dots, sqrsum_in=np.full((1, tokens), 256.0), residual=np.ones((tokens, 4, 64)),
                      scale=np.ones(3), base=np.zeros(24))
    return out["comb_mix"]


class Orientation(unittest.TestCase):
    """One entry of comb moves one old stream to one new stream, and nothing else."""

    def check(self, op, kernel, storage):
        data = make_inputs(3, "normal", 2, 4, HIDDEN, storage)
        residual = np.broadcast_to(np.arange(1.0, 5.0)[None, :, None], (2, 4, HIDDEN))
        weights = {name: data[name] for name in ("fn", "scale", "base")} if op == "seam" else {}
        problem = Problem(op, 4, HIDDEN, 2, CONSTS, storage, kernel=kernel)
        for old, new in itertools.product(range(4), range(4)):
            comb = np.zeros((2, 4, 4))
            comb[:, old, new] = 1.0
            out = problem.run(2, residual=residual, sublayer_output=np.zeros((2, HIDDEN)), post_in=data["post_in"],
                              comb_in=comb, **weights)["residual_out"]
            wanted = np.zeros((2, 4, HIDDEN))
            wanted[:, new] = old + 1.0
            np.testing.assert_array_equal(out, wanted, f"{op} {kernel} {storage} comb[{old},{new}]")
            self.mixes += 1

    def test_single_entry_mixes(self):
        self.mixes = 0
        for op, kernel, storage in itertools.product(("post", "seam"), ALL, ("bf16", "f16", "f32")):
            self.check(op, kernel, storage)
        self.assertEqual(self.mixes, 2 * len(ALL) * 3 * 16)


class SinkhornForms(unittest.TestCase):
    def test_constant_and_shared_peak_give_a_quarter(self):
        shared = np.zeros((4, 4))
        shared[:, 2] = 30.0
        for kernel, logits in itertools.product(ALL, (np.full((4, 4), 7.5), shared)):
            comb = finish_logits(kernel, logits[None], CONSTS)[0]
            np.testing.assert_allclose(comb, 0.25, atol=1e-6, err_msg=kernel)
            np.testing.assert_allclose(comb.sum(axis=0), 0.999999, atol=3e-7, err_msg=kernel)

    def test_identity_times_hundred(self):
        for kernel in ALL:
            comb = finish_logits(kernel, 100.0 * np.eye(4)[None], CONSTS)[0]
            np.testing.assert_allclose(np.diag(comb), 0.999996, atol=3e-7, err_msg=kernel)
            np.testing.assert_allclose(comb[~np.eye(4, dtype=bool)], 9.99995e-7, rtol=1e-5, err_msg=kernel)

    def test_colliding_rows(self):
        """Rows 0 and 1 peak on column 0, rows 2 and 3 on columns 2 and 3; column 1 is unclaimed."""
        logits = np.zeros((4, 4))
        logits[[0, 1, 2, 3], [0, 0, 2, 3]] = 100.0
        for kernel in ALL:
            comb = finish_logits(kernel, logits[None], CONSTS)[0]
            np.testing.assert_allclose(comb[:2, 0], 0.5, atol=1e-4, err_msg=kernel)
            np.testing.assert_allclose(comb[:2, 1], 0.4742, atol=1e-4, err_msg=kernel)
            np.testing.assert_allclose(comb[2:, 1], 0.0258, atol=1e-4, err_msg=kernel)
            np.testing.assert_allclose(comb.sum(axis=1), [0.974, 0.974, 1.026, 1.026], atol=1e-3, err_msg=kernel)

    def test_hard_logits(self):
        """Finite, non-negative and within 1e-6 of the oracle, entries and column sums alike."""
        rng = np.random.default_rng(11)
        one_left = np.full((16, 4, 4), -1e30)
        one_left.reshape(16, 16)[np.arange(16), np.arange(16)] = 1.0
        permutations = [50.0 * np.eye(4)[list(order)] for order in itertools.permutations(range(4))]
        normal = rng.standard_normal((200, 4, 4))
        families = {"normal": normal, "x20": 20 * normal, "x1e4": 1e4 * normal, "equal": np.zeros((1, 4, 4)),
                    "all but one": one_left, "permutations": np.array(permutations)}
        checked = 0
        for kernel, (family, logits) in itertools.product(ALL, families.items()):
            logits = round_to(logits, "f32")
            comb, wanted = finish_logits(kernel, logits, CONSTS), oracle.sinkhorn(logits, CONSTS)
            where = f"{kernel} {family}"
            self.assertTrue(np.isfinite(comb).all() and (comb >= 0).all(), where)
            np.testing.assert_allclose(comb, wanted, rtol=0, atol=1e-6, err_msg=where)
            np.testing.assert_allclose(comb.sum(axis=1), wanted.sum(axis=1), rtol=0, atol=1e-6, err_msg=where)
            checked += len(logits)
        self.assertEqual(checked, len(ALL) * (3 * 200 + 1 + 16 + 24))


class Slices(unittest.TestCase):
    def test_place_of_a_partial(self):
        """A partial alone among zeros gives the same bits in every slice: none is dropped or counted twice."""
        data, placed = make_inputs(7, "normal", 5, 4, 1792), 0
        residual = round_to(data["residual"], "f32")
        dots, squares = (round_to(part, "f32") for part in oracle.project(residual, data["fn"]))
        for kernel in ALL:
            problem = Problem("finish", 4, 1792, 5, CONSTS, "f32", kernel=kernel)

            def coefficients(slices, place):
                parts = [np.zeros((slices, *part.shape[1:])) for part in (dots, squares)]
                parts[0][place], parts[1][place] = dots[0], squares[0]
                return problem.run(5, dot_mix_in=parts[0], sqrsum_in=parts[1], residual=residual, scale=data["scale"],
                                   base=data["base"])

            wanted = coefficients(1, 0)
            for slices, place in ((2, 0), (2, 1), (3, 2), (7, 3), (112, 111)):
                got = coefficients(slices, place)
                where = f"{kernel} slice {place} of {slices}"
                for name in wanted:
                    np.testing.assert_array_equal(got[name], wanted[name], f"{where}: {name}")
                placed += 1
        self.assertEqual(placed, 5 * len(ALL))


class RangeEdges(unittest.TestCase):
    """The middle token takes an extreme value; its neighbours must keep the bits they have without it."""

    def run_pre(self, kernel, storage, data, residual):
        problem = Problem("pre", 4, HIDDEN, 3, CONSTS, storage, kernel=kernel, batch_invariant=True)
        return problem.run(3, residual=residual, **{name: data[name] for name in ("fn", "scale", "base")})

    def check(self, kernel, storage, value, everywhere, in_domain):
        data = make_inputs(5, "normal", 3, 4, HIDDEN, storage)
        plain = self.run_pre(kernel, storage, data, data["residual"])
        residual = data["residual"].copy()
        if everywhere:
            residual[1] = round_to(value, storage)
        else:
            residual[1, 2, 7] = round_to(value, storage)
        out = self.run_pre(kernel, storage, data, residual)
        where = f"{kernel} {storage} {value:g} {'everywhere' if everywhere else 'once'}"
        for name in out:
            np.testing.assert_array_equal(out[name][[0, 2]], plain[name][[0, 2]], f"{where}: a neighbour's {name}")
        if in_domain:
            wanted = oracle.pre(residual, data["fn"], data["scale"], data["base"], CONSTS)
            for name in ("pre_mix", "post_mix", "comb_mix"):
                np.testing.assert_allclose(out[name], wanted[name], rtol=0, atol=3e-6, err_msg=f"{where}: {name}")
            finite = np.isfinite(round_to(wanted["layer_input"], storage))
            np.testing.assert_array_equal(np.isfinite(out["layer_input"]), finite, where)
        return out, data

    def test_zero_residual_leaves_the_base(self):
        for kernel, storage in itertools.product(ALL, ("bf16", "f16", "f32")):
            out, data = self.check(kernel, storage, 0.0, True, True)
            base = data["base"]
            np.testing.assert_allclose(out["pre_mix"][1], oracle.sigmoid(base[:4]) + 1e-6, rtol=0, atol=3e-7)
            np.testing.assert_allclose(out["post_mix"][1], 2 * oracle.sigmoid(base[4:8]), rtol=0, atol=6e-7)
            np.testing.assert_array_equal(out["layer_input"][1], 0.0)

    def test_range(self):
        checked = 0
        for kernel, storage in itertools.product(ALL, ("bf16", "f16", "f32")):
            largest = FORMATS[storage][2]
            wide = storage != "f16"
            values = [(1e-30, True, True), (1e18, True, False), (1e20, True, False)] if wide else []
            values += [] if wide else [(largest, True, True)]
            values += [(largest, False, not wide), (np.inf, False, False), (np.nan, False, False)]
            for value, everywhere, in_domain in values:
                self.check(kernel, storage, value, everywhere, in_domain)
                checked += 1
        self.assertEqual(checked, len(ALL) * (6 + 4 + 6))


if __name__ == "__main__":
    unittest.main()
