"""flashmhc synth: every recorded value against the numpy oracle, the distributions, and files that fail."""
import os
import signal
import subprocess
import tempfile
import time
import unittest

import numpy as np

import files
import oracle
import tool
from storage import read_safetensors

MODELS = {
    "v4-flash": ("deepseek_v4", 4096, 1e-6),
    "v4-pro": ("deepseek_v4", 7168, 1e-6),
    "v41-flash": ("deepseek_v41", 5120, 1e-20),
    "glm5": ("glm5_next", 4096, 1e-5),
}
RECORDING = {"v4-flash": "hf_v4_h256_l4_bf16", "v41-flash": "sglang_v41_h256_l3_bf16", "glm5": "hf_glm5_h256_l4_f32"}


class Trace:
    def __init__(self, path):
        self.metadata, self.tensors, self.dtypes = read_safetensors(path)
        self.layers = int(self.metadata["num_hidden_layers"])
        self.carried = self.metadata["model_type"] == "deepseek_v41"
        self.storage = {"float32": "f32", "bfloat16": "bf16"}[self.metadata["dtype"]]
        eps, rms_eps = float(self.metadata["hc_eps"]), float(self.metadata["rms_norm_eps"])
        self.consts = oracle.Consts(np.float32(rms_eps), np.float32(eps), np.float32(eps),
                                    float(self.metadata["hc_post_mult"]), int(self.metadata["hc_sinkhorn_iters"]),
                                    np.float32(rms_eps))

    def get(self, name):
        return self.tensors["trace." + name][0]

    def weights(self, front):
        return [self.tensors[f"model.{front}{part}"] for part in ("fn", "scale", "base")]


class Synth(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.out = os.path.join(self.folder, "trace.safetensors")

    def synth(self, model, *more, tokens=6, layers=2, code=0):
        return files.run("synth", "--model", model, "--tokens", tokens, "--layers", layers, "--out", self.out, *more,
                         code=code)

    def check_collapse(self, got, wanted, trace):
        """Equal up to rare neighbours in the storage grid: the reference's sums are exact to far below that."""
        np.testing.assert_allclose(got, wanted, rtol=2.0**-7 if trace.storage == "bf16" else 2.0**-22, atol=1e-12)
        self.assertLess(np.mean(got != wanted), 2e-3)

    def replay(self):
        """Teacher-forced numpy replay of the file; returns the number of sites."""
        trace, seen = Trace(self.out), 0
        tokens = int(trace.metadata["tokens"])
        carried = np.tile([1.0, 0.0, 0.0, 0.0], (tokens, 1)) if trace.carried else None
        before = oracle.expand(trace.get("embedding"), 4)
        for layer in range(trace.layers):
            for site, norm in (("attn", "input"), ("ffn", "post_attention")):
                front = f"layers.{layer}.{site}."
                residual = trace.get(front + "residual")
                np.testing.assert_array_equal(residual, before)
                out = oracle.pre(residual, *trace.weights(f"layers.{layer}.{site}_hc."), trace.consts,
                                 storage=trace.storage, pre_in=carried)
                for name in ("post_mix", "comb_mix") + (("pre_mix",) if trace.carried else ()):
                    np.testing.assert_allclose(trace.get(front + name), out[name], rtol=0, atol=3e-7, err_msg=front)
                self.check_collapse(trace.get(front + "layer_input"), out["layer_input"], trace)
                if trace.carried:
                    weight = trace.tensors[f"model.layers.{layer}.{norm}_layernorm.weight"]
                    normed = oracle.contract_mix(residual, carried, trace.storage, trace.consts, "unfused", weight)
                    self.check_collapse(trace.get(front + "normed_input"), normed, trace)
                    carried = trace.get(front + "pre_mix")
                before = trace.get(f"layers.{layer}.ffn.residual" if site == "attn" else f"layers.{layer}.residual_out")
                wanted = oracle.post(residual, trace.get(front + "sublayer_output"), trace.get(front + "post_mix"),
                                     trace.get(front + "comb_mix"), trace.storage)
                self.check_collapse(before, wanted, trace)
                seen += 1
        np.testing.assert_array_equal(trace.get("head.residual"), before)
        if trace.carried:
            wanted = oracle.contract_mix(before, carried, trace.storage)
        elif trace.metadata["model_type"] == "glm5_next":
            wanted = oracle.contract_mean(before, trace.storage)
        else:
            wanted = oracle.head(before, *trace.weights("hc_head.hc_"), trace.consts, trace.storage)["layer_input"]
        self.check_collapse(trace.get("head.output"), wanted, trace)
        return seen

    def test_every_model_agrees_with_the_oracle(self):
        for model, (model_type, _, rms_eps) in MODELS.items():
            for dtype in ("bf16", "f32"):
                for more in ((), ("--peaked",)):
                    with self.subTest(model=model, dtype=dtype, more=more):
                        self.synth(model, "--hidden", 96, "--dtype", dtype, "--seed", 7, *more)
                        self.assertEqual(self.replay(), 4)
                        metadata = Trace(self.out).metadata
                        self.assertEqual(metadata["model_type"], model_type)
                        self.assertEqual(float(metadata["rms_norm_eps"]), rms_eps)
                        self.assertEqual(tool.answer("inspect", self.out)["problems"], [])

    def test_tensors_and_metadata_are_those_of_a_recording(self):
        for model, name in RECORDING.items():
            recorded = Trace(files.recorded(name))
            self.synth(model, "--hidden", 256, "--dtype", {"f32": "f32", "bf16": "bf16"}[recorded.storage],
                       tokens=recorded.metadata["tokens"], layers=recorded.layers)
            made = Trace(self.out)
            # Scores need an output matrix that a trace does not hold.
            wanted = {k: (v.shape, recorded.dtypes[k]) for k, v in recorded.tensors.items() if k != "trace.logits"}
            self.assertEqual({k: (v.shape, made.dtypes[k]) for k, v in made.tensors.items()}, wanted)
            self.assertEqual(set(made.metadata), set(recorded.metadata))
            for key in set(made.metadata) - {"source", "note", "hc_post_mult"}:
                self.assertEqual(made.metadata[key], recorded.metadata[key], key)

    def test_full_width(self):
        for model, (_, hidden, _) in MODELS.items():
            self.synth(model, tokens=2, layers=1)
            self.assertEqual(Trace(self.out).get("embedding").shape, (2, hidden))
            self.assertEqual(self.replay(), 2)

    def test_distributions(self):
        self.synth("v4-flash", "--hidden", 2048, tokens=64)
        trace = Trace(self.out)
        residual = trace.get("layers.1.attn.residual").reshape(64, -1)
        fn, scale, base = trace.weights("layers.1.attn_hc.")
        logits = residual @ fn.T / np.sqrt(np.mean(residual**2, axis=1, keepdims=True))
        self.assertTrue(0.7 < logits.std() < 1.4, logits.std())
        bases = np.concatenate([trace.weights(f"layers.{n}.{s}_hc.")[2] for n in range(2) for s in ("attn", "ffn")])
        self.assertTrue(0.8 < bases.std() < 1.2, bases.std())
        output = trace.get("layers.1.ffn.sublayer_output")
        channels = np.sqrt(np.mean(output**2, axis=0))
        self.assertGreater(channels.max() / np.median(channels), 8)
        self.assertTrue(0.05 < np.sqrt(np.mean(output**2)) < 1)
        calm = np.abs(trace.get("layers.1.ffn.comb_mix").sum(axis=2) - 1).max()
        self.synth("v4-flash", "--hidden", 2048, "--peaked", tokens=64)
        peaked = np.abs(Trace(self.out).get("layers.1.ffn.comb_mix").sum(axis=2) - 1).max()
        self.assertLess(calm, 5e-3)
        self.assertGreater(peaked, 2e-2)

    def test_seed_decides_every_byte(self):
        def content(*more):
            self.synth("v41-flash", "--hidden", 64, *more)
            with open(self.out, "rb") as f:
                return f.read()

        first = content("--seed", 3, "--threads", 1)
        self.assertEqual(first, content("--seed", 3, "--threads", 2))
        self.assertNotEqual(first, content("--seed", 4))
        one, other = files.load(self.out)[1], {}
        content("--seed", 3)
        other = files.load(self.out)[1]
        self.assertEqual([k for k in one if one[k][2] == other[k][2]], [])

    def test_no_tokens(self):
        for model in MODELS:
            self.synth(model, "--hidden", 8, tokens=0)
            self.assertEqual(tool.answer("inspect", self.out)["problems"], [])

    def test_json(self):
        out = tool.answer("synth", "--model", "glm5", "--tokens", 2, "--layers", 1, "--hidden", 8, "--out", self.out)
        self.assertEqual(out["schema"], "flashmhc-synth-1")
        self.assertEqual(out["bytes"], os.path.getsize(self.out))
        self.assertEqual(out["tensors"], len(files.load(self.out)[1]))
        self.assertEqual(out["metadata"], files.load(self.out)[0])

    def test_bad_usage_writes_nothing(self):
        good = ["--model", "glm5", "--tokens", "2", "--layers", "1", "--hidden", "8", "--out", self.out]
        changes = {"--model": ["v5", "", "deepseek_v4"], "--tokens": ["-1", "x", "1.5", "99999999999"],
                   "--layers": ["0", "5000"], "--hidden": ["0", "-8"], "--out": ["", "/dev/null", self.folder]}
        cases = 0
        for option, values in changes.items():
            for value in [None] + values if option != "--hidden" else values:
                at = good.index(option)
                arguments = good[:at] + ([] if value is None else [option, value]) + good[at + 2 :]
                done = files.run("synth", *arguments, code=2)
                self.assertNotEqual(done.stderr, "", arguments)
                cases += 1
        for more in (["--dtype", "f16"], ["--seed", "-1"], ["--seed", str(2**64)], ["--threads", "0"], ["--unknown"]):
            files.run("synth", *good, *more, code=2)
            cases += 1
        self.assertEqual(cases, 23)
        self.assertEqual(os.listdir(self.folder), [])

    def test_failure_keeps_the_old_file(self):
        with open(self.out, "w") as f:
            f.write("old")
        self.synth("glm5", tokens=2**31, layers=4096, code=2)  # more than any disk
        missing = os.path.join(self.folder, "missing", "x")
        files.run("synth", "--model", "glm5", "--tokens", 2, "--layers", 1, "--hidden", 8, "--out", missing, code=2)
        with open(self.out) as f:
            self.assertEqual(f.read(), "old")
        self.assertEqual(os.listdir(self.folder), ["trace.safetensors"])

    def test_interrupt_removes_the_unfinished_file(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen([tool.TOOL, "synth", "--model", "v4-flash", "--tokens", "64", "--layers",
                                        "4000", "--hidden", "64", "--out", self.out], stderr=subprocess.PIPE)
            deadline = time.monotonic() + 60
            while not os.listdir(self.folder) and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(0.1)
            process.send_signal(number)
            _, text = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 128 + number)
            self.assertIn(b"interrupted", text)
            self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
