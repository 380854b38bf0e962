"""flashmhc inspect: statistics against numpy, both naming schemes, shards, and what is missing."""
import json
import os
import struct
import tempfile
import unittest

import numpy as np

import files
import tool
from storage import read_safetensors

STREAMS, HIDDEN, LOGITS = 2, 3, 8


def site(front):
    return {front + "fn": ["F32", [LOGITS, STREAMS * HIDDEN], None], front + "base": ["F32", [LOGITS], None],
            front + "scale": ["F32", [3], None]}


def flat_model():
    tensors = {"embed.weight": ["F8_E4M3", [2, 2], None]}
    for layer in range(2):
        tensors |= site(f"layers.{layer}.hc_attn_") | site(f"layers.{layer}.hc_ffn_")
    return tensors


class Inspect(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name="model.safetensors"):
        return os.path.join(self.folder, name)

    def test_statistics_of_recorded_traces(self):
        seen = 0
        for name in ("hf_v4_h256_l4_f32", "hf_v4_h256_l4_bf16", "hf_glm5_h256_l4_f32", "sglang_v41_h256_l3_bf16"):
            out = tool.answer("inspect", files.recorded(name))
            metadata, tensors, _ = read_safetensors(files.recorded(name))
            self.assertEqual((out["schema"], out["kind"]), ("flashmhc-inspect-1", "trace"))
            self.assertEqual((out["streams"], out["hidden"]), (4, 256))
            self.assertEqual(out["constants"]["model_type"], metadata["model_type"])
            self.assertEqual(float(out["constants"]["rms_norm_eps"]), float(metadata["rms_norm_eps"]))
            self.assertEqual(out["problems"], [])
            entries = [t for s in out["sites"] for t in s["tensors"]] + out["recorded"]
            self.assertEqual({t["name"] for t in entries}, set(tensors))
            for entry in entries:
                values = tensors[entry["name"]]
                self.assertEqual(entry["shape"], list(values.shape))
                self.assertEqual((entry["min"], entry["max"]), (values.min(), values.max()), entry["name"])
                self.assertAlmostEqual(entry["mean"], values.mean(), delta=1e-12 + 1e-9 * abs(values).mean())
                self.assertAlmostEqual(entry["rms"], np.sqrt(np.mean(values**2)), delta=1e-9 * entry["rms"])
                self.assertEqual(entry["non_finite"], 0)
                seen += 1
        self.assertGreater(seen, 250)

    def test_non_finite_values_and_half_precision(self):
        tensors = flat_model()
        floats = [float("nan"), float("inf"), -float("inf"), 1.5, -2.5, 0.0, 0.0, 5.0]
        tensors["layers.0.hc_attn_base"][2] = struct.pack("<8f", *floats)
        halves = np.array([65504, -2.0**-24, np.nan, -np.inf, 0.5, 1, 2, 3], dtype=np.float16)
        tensors["layers.0.hc_ffn_base"] = ["F16", [LOGITS], halves.tobytes()]
        tensors["layers.1.hc_ffn_base"][2] = struct.pack("<8f", *[float("nan")] * 8)
        out = tool.answer("inspect", files.save(self.path(), tensors), code=1)
        entries = {t["name"]: t for s in out["sites"] for t in s["tensors"]}
        first = entries["layers.0.hc_attn_base"]
        self.assertEqual((first["min"], first["max"], first["mean"], first["non_finite"]), (-2.5, 5.0, 0.8, 3))
        half = entries["layers.0.hc_ffn_base"]
        self.assertEqual((half["min"], half["max"], half["non_finite"]), (-(2.0**-24), 65504.0, 2))
        none = entries["layers.1.hc_ffn_base"]
        self.assertEqual((none["min"], none["rms"], none["non_finite"]), (None, None, 8))
        self.assertEqual([(p["code"], p["where"]) for p in out["problems"]], [("wrong_dtype", "layers.0.hc_ffn_base")])

    def test_shards_and_directory(self):
        tensors = flat_model()
        names = list(tensors)
        parts = {"a.safetensors": names[:5], "b.safetensors": names[5:]}
        for file, inside in parts.items():
            files.save(self.path(file), {n: tensors[n] for n in inside})
        index = {"metadata": {"total_size": 1.0}, "weight_map": {n: f for f, inside in parts.items() for n in inside}}
        with open(self.path("model.safetensors.index.json"), "w") as f:
            json.dump(index, f)
        for path in (self.folder, self.path("model.safetensors.index.json")):
            out = tool.answer("inspect", path)
            self.assertEqual((out["kind"], out["files"], out["tensors"]), ("checkpoint", 2, len(tensors)))
            self.assertEqual([s["site"] for s in out["sites"]],
                             ["layers.0.attn", "layers.0.ffn", "layers.1.attn", "layers.1.ffn"])
        index["weight_map"][names[0]] = "../outside.safetensors"
        with open(self.path("model.safetensors.index.json"), "w") as f:
            json.dump(index, f)
        self.assertIn("path_escape", files.run("inspect", self.folder, code=2).stderr)

    def test_missing_tensors_are_named(self):
        tensors = flat_model()
        del tensors["layers.1.hc_ffn_scale"]
        done = files.run("inspect", files.save(self.path(), tensors), code=1)
        self.assertIn("layers.1.hc_ffn_scale", done.stdout.splitlines()[-1])
        self.assertIn("missing_tensor", done.stdout.splitlines()[-1])

    def test_missing_tensors_of_a_trace(self):
        metadata, tensors = files.load(files.recorded("sglang_v41_h256_l3_bf16"))
        gone = ["trace.layers.2.ffn.pre_mix", "trace.head.output"]
        for name in gone:
            del tensors[name]
        out = tool.answer("inspect", files.save(self.path(), tensors, metadata), code=1)
        self.assertEqual([p["where"] for p in out["problems"]], gone)
        del metadata["hc_eps"]
        done = files.run("inspect", files.save(self.path(), tensors, metadata), code=2)
        self.assertIn("hc_eps", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_bad_files_and_usage(self):
        with open(self.path("text"), "w") as f:
            f.write("this is not a safetensors file")
        cases = {self.path("absent"): "cannot_open", self.path("text"): "header_too_long", "/dev/zero": "not_a_file",
                 self.folder: "not_a_file"}
        for path, code in cases.items():
            done = files.run("inspect", path, "--json", code=2)
            self.assertIn(code, done.stderr)
            self.assertIn(path, done.stderr)
            self.assertEqual(done.stdout, "")
        files.run("inspect", code=2)
        files.run("inspect", self.path("text"), "--unknown", code=2)


if __name__ == "__main__":
    unittest.main()
