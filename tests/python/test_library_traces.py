"""Replays the recorded traces through `ref` and every SIMD target of `cpu`, teacher-forced.

Site by site: pre on the recorded residual, then post with the coefficients that pre gave (bf16: with the
recorded ones), against what was recorded. docs/accuracy.md explains the bound of the bf16 residual.
"""
import itertools
import unittest

import numpy as np

from backends import ALL
from flashmhc_ctypes import Problem
from test_oracle_traces import RMS_UNIT, Trace, WorstErrors, cast_bound, max_abs, relative_norm

FP32_BOUNDS = {"post_mix": 5e-7, "comb_mix": 1e-6, "layer_input": 2e-7, "residual": 3e-7, "exit": 2e-7}
# float32 arithmetic itself is 1.04e-6 off on the peaked logits.
PEAKED_BOUNDS = {**FP32_BOUNDS, "comb_mix": 2e-6}
BF16_BOUNDS = {"post_mix": 1e-6, "comb_mix": 1e-6, "residual": 1.25 * 2 * RMS_UNIT, "residual / bound": 1.0}
V41_BOUNDS = {"pre_mix": 5e-7, "post_mix": 5e-7, "comb_mix": 5e-7, "residual": 1e-4}


class Replay:
    """One trace through one kernel."""

    def __init__(self, name, kernel):
        self.trace, self.kernel, self.worst, self.sites = Trace(name), kernel, WorstErrors(), 0
        self.tokens = int(self.trace.meta["tokens"])

    def call(self, op, carried=False, **inputs):
        inputs = {name: array for name, array in inputs.items() if array is not None}
        hidden = inputs["residual"].shape[-1]
        problem = Problem(op, 4, hidden, self.tokens, self.trace.consts, self.trace.storage, carried_pre=carried,
                          kernel=self.kernel)
        return problem.run(self.tokens, **inputs)

    def run(self, visit):
        """visit(recorded, out of pre, residual after post) at every site; returns the last predicted mix."""
        carried = np.tile([1.0, 0.0, 0.0, 0.0], (self.tokens, 1)) if self.trace.carried else None
        for _, _, recorded, (fn, scale, base), after in self.trace.sites():
            out = self.call("pre", self.trace.carried, residual=recorded["residual"], fn=fn, scale=scale, base=base,
                            pre_in=carried)
            mixes = out if self.trace.storage == "f32" else recorded
            new = self.call("post", residual=recorded["residual"], sublayer_output=recorded["sublayer_output"],
                            post_in=mixes["post_mix"], comb_in=mixes["comb_mix"])["residual_out"]
            visit(recorded, out, new, after)
            carried = recorded["pre_mix"] if self.trace.carried else None
            self.sites += 1
        return carried

    def coefficients(self, recorded, out):
        for name in ("pre_mix", "post_mix", "comb_mix"):
            if name in recorded:
                self.worst.note(name, max_abs(out[name], recorded[name]))

    def exit_row(self, carried):
        residual = self.trace.get("head.residual")
        if "model.hc_head.hc_fn" not in self.trace.tensors:
            return self.call("contract", self.trace.carried, residual=residual, pre_in=carried)["layer_input"]
        weights = {name: self.trace.tensors[f"model.hc_head.hc_{name}"] for name in ("fn", "scale", "base")}
        return self.call("head", residual=residual, **weights)["layer_input"]


class LibraryTraces(unittest.TestCase):
    def check_fp32(self, name, bounds):
        for kernel in ALL:
            replay = Replay(name, kernel)

            def visit(recorded, out, new, after):
                replay.coefficients(recorded, out)
                replay.worst.note("layer_input", relative_norm(out["layer_input"], recorded["layer_input"]))
                replay.worst.note("residual", relative_norm(new, after))

            carried = replay.run(visit)
            replay.worst.note("exit", relative_norm(replay.exit_row(carried), replay.trace.get("head.output")))
            self.assertEqual(replay.sites, 8)
            replay.worst.check(self, f"{kernel} {name}", bounds)

    def test_v4_f32(self):
        self.check_fp32("hf_v4_h256_l4_f32", FP32_BOUNDS)

    def test_v4_f32_peaked(self):
        self.check_fp32("hf_v4_h256_l4_f32_peaked", PEAKED_BOUNDS)

    def test_glm5_f32(self):
        self.check_fp32("hf_glm5_h256_l4_f32", FP32_BOUNDS)

    def check_16_bit(self, name, sites, bounds, note_residual):
        """Coefficients within bounds; layer input and exit equal to the recording bit for bit."""
        for kernel in ALL:
            replay = Replay(name, kernel)

            def visit(recorded, out, new, after):
                replay.coefficients(recorded, out)
                note_residual(replay, recorded, new, after)
                np.testing.assert_array_equal(out["layer_input"], recorded["layer_input"], kernel)

            carried = replay.run(visit)
            np.testing.assert_array_equal(replay.exit_row(carried), replay.trace.get("head.output"), kernel)
            self.assertEqual(replay.sites, sites)
            replay.worst.check(self, f"{kernel} {name}", bounds)

    def test_v4_bf16(self):
        def note_residual(replay, recorded, new, after):
            operands = [recorded[name] for name in ("residual", "sublayer_output", "post_mix", "comb_mix")]
            replay.worst.note("residual", relative_norm(new, after))
            rounded = cast_bound(*operands) + np.abs(new) * 2.0**-8
            replay.worst.note("residual / bound", np.max(np.abs(new - after) / rounded))

        self.check_16_bit("hf_v4_h256_l4_bf16", 8, BF16_BOUNDS, note_residual)

    def test_v41_bf16(self):
        def note_residual(replay, _, new, after):
            replay.worst.note("residual", relative_norm(new, after))

        self.check_16_bit("sglang_v41_h256_l3_bf16", 6, V41_BOUNDS, note_residual)


if __name__ == "__main__":
    unittest.main()
