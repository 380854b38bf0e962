"""Replays every recorded trace with the numpy oracle, teacher-forced, against the recording.

Each site gets the recorded residual; its post gets the oracle's own coefficients on fp32 traces, and
the recorded ones on bf16 traces. The bounds are what float32 code is off from exact arithmetic on
this data; docs/accuracy.md derives those of the bf16 recordings.
"""
import pathlib
import unittest

import numpy as np

import oracle
from storage import read_safetensors, round_to

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
UNIT = 2.0**-8  # unit roundoff of bf16
RMS_UNIT = 2.0**-9.24  # root mean square of one rounding to bf16, relative


def relative_norm(got, wanted):
    return np.linalg.norm(got - wanted) / np.linalg.norm(wanted)


def max_abs(got, wanted):
    return np.max(np.abs(got - wanted))


class Trace:
    def __init__(self, name):
        self.meta, self.tensors, _ = read_safetensors(DATA / f"{name}.safetensors")
        self.layers = int(self.meta["num_hidden_layers"])
        self.carried = self.meta["model_type"] == "deepseek_v41"
        self.storage = {"float32": "f32", "bfloat16": "bf16"}[self.meta["dtype"]]
        eps = float(self.meta["hc_eps"])
        rms_eps = float(self.meta["rms_norm_eps"])
        self.consts = oracle.Consts(rms_eps, eps, eps, float(self.meta["hc_post_mult"]),
                                    int(self.meta["hc_sinkhorn_iters"]), rms_eps)

    def get(self, name):
        """A tensor of one recorded pass, without its batch axis of 1."""
        return self.tensors[f"trace.{name}"][0]

    def sites(self):
        """(layer, site, recorded tensors, weights, residual after the site), in running order."""
        for layer in range(self.layers):
            for site in ("attn", "ffn"):
                prefix = f"trace.layers.{layer}.{site}."
                recorded = {k[len(prefix):]: v[0] for k, v in self.tensors.items() if k.startswith(prefix)}
                weights = [self.tensors[f"model.layers.{layer}.{site}_hc.{w}"] for w in ("fn", "scale", "base")]
                after = f"layers.{layer}.ffn.residual" if site == "attn" else f"layers.{layer}.residual_out"
                yield layer, site, recorded, weights, self.get(after)

    def head(self, storage="f64"):
        residual = self.get("head.residual")
        if "model.hc_head.hc_fn" not in self.tensors:
            return oracle.contract_mean(residual, storage)
        weights = [self.tensors[f"model.hc_head.hc_{w}"] for w in ("fn", "scale", "base")]
        return oracle.head(residual, *weights, self.consts, storage)["layer_input"]


class WorstErrors(dict):
    """name -> worst error of a trace; `check` prints and asserts all of them."""

    def note(self, name, error):
        self[name] = max(self.get(name, 0.0), float(error))

    def check(self, test, title, bounds):
        print(f"\n{title}: " + ", ".join(f"{k} {self[k]:.3g} (<= {bounds[k]:.3g})" for k in bounds))
        test.assertEqual(set(self), set(bounds))
        for name, bound in bounds.items():
            test.assertLessEqual(self[name], bound, f"{title}: {name}")


class RecordedTraces(unittest.TestCase):
    FP32_BOUNDS = {"post_mix": 2.6e-7, "comb_mix": 5.8e-7, "layer_input": 0.8e-7, "residual": 1.5e-7, "head": 1e-7}

    def check_fp32(self, name, change=None):
        trace, worst, seen = Trace(name), WorstErrors(), 0
        if change:
            change(trace)
        for _, _, recorded, weights, after in trace.sites():
            out = oracle.pre(recorded["residual"], *weights, trace.consts, storage="f32")
            new = oracle.post(recorded["residual"], recorded["sublayer_output"], out["post_mix"], out["comb_mix"])
            worst.note("post_mix", max_abs(out["post_mix"], recorded["post_mix"]))
            worst.note("comb_mix", max_abs(out["comb_mix"], recorded["comb_mix"]))
            worst.note("layer_input", relative_norm(out["layer_input"], recorded["layer_input"]))
            worst.note("residual", relative_norm(new, after))
            seen += 1
        worst.note("head", relative_norm(trace.head(), trace.get("head.output")))
        self.assertEqual(seen, 8)
        worst.check(self, name, self.FP32_BOUNDS)

    def test_v4_f32(self):
        self.check_fp32("hf_v4_h256_l4_f32")

    def test_v4_f32_peaked(self):
        self.check_fp32("hf_v4_h256_l4_f32_peaked")

    def test_glm5_f32(self):
        self.check_fp32("hf_glm5_h256_l4_f32")

    def test_damaged_trace_is_noticed(self):
        damages = {"comb_mix": ("layers.1.ffn.comb_mix", (5, 2, 1)), "residual": ("layers.2.residual_out", (3, 1, 200))}
        for tensor, (name, index) in damages.items():
            def change(trace):
                trace.get(name)[index] += 1e-3

            with self.subTest(tensor), self.assertRaisesRegex(AssertionError, tensor):
                self.check_fp32("hf_v4_h256_l4_f32", change)

    def test_entry_and_exit(self):
        names = ("hf_v4_h256_l4_f32", "hf_v4_h256_l4_f32_peaked", "hf_glm5_h256_l4_f32", "hf_v4_h256_l4_bf16",
                 "sglang_v41_h256_l3_bf16")
        for name in names:
            trace = Trace(name)
            entry = oracle.expand(trace.get("embedding"), 4)
            np.testing.assert_array_equal(entry, trace.get("layers.0.attn.residual"), name)
            last = trace.get(f"layers.{trace.layers - 1}.residual_out")
            np.testing.assert_array_equal(last, trace.get("head.residual"), name)

    def test_v4_bf16(self):
        """Coefficients as tight as fp32, layer input bit-equal, the residual explained by the casts."""
        trace, worst, seen = Trace("hf_v4_h256_l4_bf16"), WorstErrors(), 0
        for layer, site, recorded, weights, after in trace.sites():
            operands = [recorded[k] for k in ("residual", "sublayer_output", "post_mix", "comb_mix")]
            residual, _, post_mix, comb_mix = operands
            out = oracle.pre(residual, *weights, trace.consts, storage="bf16")
            exact = oracle.post(*operands)
            worst.note("post_mix", max_abs(out["post_mix"], post_mix))
            worst.note("comb_mix", max_abs(out["comb_mix"], comb_mix))
            worst.note("residual norm", relative_norm(exact, after))
            worst.note("rounded residual norm", relative_norm(round_to(exact, "bf16"), after))
            worst.note("residual / bound", np.max(np.abs(exact - after) / cast_bound(*operands)))
            where = f"layer {layer} {site}"
            np.testing.assert_array_equal(out["layer_input"], recorded["layer_input"], where)
            np.testing.assert_array_equal(post_with_casts(*operands), after, where)
            seen += 1
        self.assertEqual(seen, 8)
        np.testing.assert_array_equal(trace.head("bf16"), trace.get("head.output"))
        # Three roundings separate the recording from the exact value, four from its rounded form.
        bounds = {"post_mix": 2.6e-7, "comb_mix": 5.8e-7, "residual norm": 1.25 * 3**0.5 * RMS_UNIT,
                  "rounded residual norm": 1.25 * 4**0.5 * RMS_UNIT, "residual / bound": 1.0}
        worst.check(self, "hf_v4_h256_l4_bf16", bounds)

    def test_v41_bf16(self):
        """The layer input of a site collapses with the mix that the site before predicted."""
        trace, worst, seen = Trace("sglang_v41_h256_l3_bf16"), WorstErrors(), 0
        tokens = int(trace.meta["tokens"])
        carried = np.tile([1.0, 0.0, 0.0, 0.0], (tokens, 1))
        for layer, site, recorded, weights, after in trace.sites():
            residual = recorded["residual"]
            out = oracle.pre(residual, *weights, trace.consts, storage="bf16", pre_in=carried)
            new = oracle.post(residual, recorded["sublayer_output"], recorded["post_mix"], recorded["comb_mix"], "bf16")
            for name in ("pre_mix", "post_mix", "comb_mix"):
                worst.note(name, max_abs(out[name], recorded[name]))
            worst.note("residual", relative_norm(new, after))
            where = f"layer {layer} {site}"
            np.testing.assert_array_equal(out["layer_input"], recorded["layer_input"], where)
            normed = normed_with_two_roundings(trace, layer, site, residual, carried)
            np.testing.assert_array_equal(normed, recorded["normed_input"], where)
            carried = recorded["pre_mix"]
            seen += 1
        self.assertEqual(seen, 6)
        exit_row = oracle.contract_mix(trace.get("head.residual"), carried, "bf16")
        np.testing.assert_array_equal(exit_row, trace.get("head.output"))
        bounds = {"pre_mix": 5e-7, "post_mix": 5e-7, "comb_mix": 5e-7, "residual": 1e-4}
        worst.check(self, "sglang_v41_h256_l3_bf16", bounds)


def post_with_casts(residual, z, post_mix, comb_mix):
    """post as the bf16 recording computes it: coefficients, product, mix and sum each rounded."""
    product = round_to(round_to(post_mix, "bf16")[:, :, None] * z[:, None, :], "bf16")
    mixed = round_to(np.einsum("tjk,tjh->tkh", round_to(comb_mix, "bf16"), residual), "bf16")
    return round_to(product + mixed, "bf16")


def cast_bound(residual, z, post_mix, comb_mix):
    """Elementwise distance that those roundings can cause: two per term, then one of the sum."""
    terms = oracle.post(np.abs(residual), np.abs(z), np.abs(post_mix), np.abs(comb_mix))
    two_roundings = ((1 + UNIT) ** 2 - 1) * terms
    return two_roundings + UNIT * (np.abs(oracle.post(residual, z, post_mix, comb_mix)) + two_roundings)


def normed_with_two_roundings(trace, layer, site, residual, mix):
    """`unfused`, except that the recording rounds once more before it multiplies by the weight."""
    norm = {"attn": "input", "ffn": "post_attention"}[site]
    weight = trace.tensors[f"model.layers.{layer}.{norm}_layernorm.weight"]
    return round_to(oracle.contract_mix(residual, mix, "bf16", trace.consts, "unfused") * weight, "bf16")


if __name__ == "__main__":
    unittest.main()
