"""flashmhc verify: every recorded trace passes on every CPU kernel, and each kind of damage fails and is named."""
import json
import os
import re
import struct
import tempfile
import unittest

import numpy as np

import files
import tool

TRACES = ["hf_v4_h256_l4_f32", "hf_v4_h256_l4_f32_peaked", "hf_glm5_h256_l4_f32", "hf_v4_h256_l4_bf16",
          "sglang_v41_h256_l3_bf16"]
CONSTANTS = {"model_type": str, "dtype": str, "hidden_size": int, "num_hidden_layers": int, "hc_mult": int, "tokens": int,
             "hc_sinkhorn_iters": int, "hc_eps": float, "hc_post_mult": float, "rms_norm_eps": float}
RULE = {"rule": str, "measured": (int, float, type(None)), "limit": (int, float), "holds": bool}
RECORD = {"layer": int, "site": str, "tensor": str, "vs": str, "elements": int, "violations": int, "max_abs": (int, float),
          "relative_norm": (int, float), "bound": (int, float), "ratio": (int, float, type(None)), "worst_index": list,
          "got": (int, float), "wanted": (int, float), "rules": list, "verdict": str}


def verify(*arguments, code=0):
    return files.run("verify", *arguments, code=code)


def verify_json(*arguments, code=0):
    return json.loads(verify("--json", "-", *arguments, code=code).stdout)


def cpu_backends():
    """Kernel families of this machine that take host memory, each by its prefix."""
    kernels = json.loads(files.run("info", "--json").stdout)["kernels"]
    usable = [k["name"] for k in kernels if k["usable"] and k["backend"] in ("ref", "cpu")]
    return sorted({name.rsplit(".", 1)[0] for name in usable})


def check_keys(test, entry, types, optional=()):
    test.assertEqual(set(entry) - set(optional), set(types))
    for key, kind in types.items():
        test.assertIsInstance(entry[key], kind, key)


class Damage:
    """A copy of a recorded trace with one thing changed."""

    def __init__(self, name, change):
        self.directory = tempfile.TemporaryDirectory()
        metadata, tensors = files.load(files.recorded(name))
        change(metadata, tensors)
        self.path = files.save(os.path.join(self.directory.name, "damaged.safetensors"), tensors, metadata)

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        self.directory.cleanup()


def add(tensor, index, amount):
    """Adds to one element, in the tensor's format."""
    def change(_, tensors):
        dtype, shape, content = tensors[tensor]
        content = bytearray(content)
        at = int(np.ravel_multi_index(index, shape))
        if dtype == "F32":
            (value,) = struct.unpack_from("<f", content, 4 * at)
            struct.pack_into("<f", content, 4 * at, value + amount)
        else:
            (bits,) = struct.unpack_from("<H", content, 2 * at)
            (value,) = struct.unpack("<f", struct.pack("<I", bits << 16))
            (moved,) = struct.unpack("<I", struct.pack("<f", value + amount))
            struct.pack_into("<H", content, 2 * at, moved >> 16)
        tensors[tensor][2] = bytes(content)
    return change


class RecordedTraces(unittest.TestCase):
    def test_every_trace_passes_on_every_backend(self):
        backends = cpu_backends()
        self.assertIn("ref", backends)
        self.assertGreaterEqual(len(backends), 2)
        for backend in backends:
            report = verify_json("--backend", backend, *map(files.recorded, TRACES))
            self.assertEqual((report["verdict"], len(report["traces"])), ("pass", len(TRACES)))
            for trace in report["traces"]:
                self.assertTrue(all(k.startswith(backend + ".") for k in trace["kernels"]), trace["kernels"])
                self.print_worst(backend, trace)

    def print_worst(self, backend, trace):
        worst = {}
        for record in trace["records"]:
            if record["vs"] == "recorded":
                measure = "max_abs" if record["tensor"].endswith("_mix") else "relative_norm"
                worst[record["tensor"]] = max(worst.get(record["tensor"], 0), record[measure])
        print(backend, os.path.basename(trace["file"]), ", ".join(f"{k} {v:.2e}" for k, v in worst.items()))

    def test_every_site_is_compared(self):
        for name in TRACES:
            trace = verify_json(files.recorded(name))["traces"][0]
            layers = trace["constants"]["num_hidden_layers"]
            v41 = trace["constants"]["model_type"] == "deepseek_v41"
            outputs = {"post_mix", "comb_mix", "layer_input", "residual_out"} | ({"pre_mix", "normed_input"} if v41 else set())
            seen = {(r["layer"], r["site"], r["tensor"]) for r in trace["records"] if r["vs"] == "recorded"}
            wanted = {(layer, site, t) for layer in range(layers) for site in ("attn", "ffn") for t in outputs}
            self.assertEqual(seen, wanted | {(0, "entry", "residual_out"), (layers, "exit", "output")})
            oracle = [r for r in trace["records"] if r["vs"] == "ref" and r["site"] in ("attn", "ffn")]
            self.assertEqual(len(oracle), 2 * layers * (5 + v41))
            self.assertEqual(sum(r["vs"] == "composed" for r in trace["records"]), 5 * (2 * layers - 1))
            self.assertEqual(sum(r["vs"] == "chain" for r in trace["records"]), 2 * layers)
            self.assertEqual(len(trace["free_run"]["layers"]), layers + 1)

    def test_vs_chooses(self):
        path = files.recorded(TRACES[0])
        self.assertEqual({r["vs"] for r in verify_json("--vs", "ref", path)["traces"][0]["records"]}, {"ref", "composed"})
        recorded = verify_json("--vs", "recorded", path)["traces"][0]["records"]
        self.assertEqual({r["vs"] for r in recorded}, {"recorded", "composed", "chain"})

    def test_table(self):
        text = verify("--backend", "ref", files.recorded(TRACES[0])).stdout
        self.assertRegex(text, r"(?m)^layer 3 ffn +residual_out .* ok$")
        self.assertRegex(text, r"(?m)^PASS .*: \d+ comparisons$")
        self.assertEqual(verify("--summary", files.recorded(TRACES[0])).stdout.count("worst "), 7)


class Json(unittest.TestCase):
    def test_schema(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "out.json")
            text = verify("--json", path, *map(files.recorded, TRACES)).stdout
            self.assertEqual(text.count("PASS"), len(TRACES))
            self.assertEqual(os.listdir(directory), ["out.json"])
            with open(path) as f:
                report = json.load(f)
        check_keys(self, report, {"schema": str, "version": str, "backend": str, "vs": str, "traces": list, "verdict": str})
        self.assertEqual(report["schema"], "flashmhc-verify-1")
        for trace in report["traces"]:
            check_keys(self, trace, {"file": str, "constants": dict, "kernels": list, "records": list, "free_run": dict,
                                     "verdict": str})
            check_keys(self, trace["constants"], CONSTANTS)
            check_keys(self, trace["free_run"], {"layers": list, "rules": list, "verdict": str})
            for record in trace["records"]:
                check_keys(self, record, RECORD, optional={"failed_rule", "reasons"})
                self.assertGreater(record["elements"], 0)
                self.assertTrue(record["rules"])
                for rule in record["rules"]:
                    check_keys(self, rule, RULE)

    def test_documented(self):
        page = (tool.SOURCE / "docs" / "verify-schema.md").read_text()
        named = set(re.findall(r"`([a-z_]+)`", page))
        self.assertLessEqual(set(RECORD) | set(RULE) | set(CONSTANTS) | {"failed_rule", "reasons"}, named)


class DamagedTraces(unittest.TestCase):
    def fails(self, name, change, *named):
        """Fails with 1 on ref and on the default backend, naming each of `named` in one FAIL line."""
        with Damage(name, change) as path:
            for backend in ("ref", "auto"):
                text = verify("--backend", backend, path, code=1).stdout
                lines = [line for line in text.splitlines() if line.startswith("FAIL") and all(n in line for n in named)]
                self.assertTrue(lines, f"{name} {backend}: no line names {named}\n{text[-2000:]}")

    def test_one_comb_entry(self):
        for name in TRACES:
            change = add("trace.layers.1.ffn.comb_mix", (0, 5, 2, 1), 1e-3)
            self.fails(name, change, "layer 1 ffn: comb_mix[5, 2, 1]: got", "wanted", "vs recorded")

    def test_one_post_and_one_pre_entry(self):
        self.fails(TRACES[0], add("trace.layers.0.attn.post_mix", (0, 12, 3), 1e-3), "layer 0 attn: post_mix[12, 3]")
        self.fails(TRACES[4], add("trace.layers.2.ffn.pre_mix", (0, 8, 0), 1e-3), "layer 2 ffn: pre_mix[8, 0]")

    def test_one_residual_element(self):
        for name, amount in zip(TRACES, (1e-3, 1e-3, 1e-3, 0.125, 0.125)):
            change = add("trace.layers.1.residual_out", (0, 3, 1, 200), amount)
            self.fails(name, change, "layer 1 ffn: residual_out[3, 1, 200]", "vs recorded")
            self.fails(name, change, "layer 2 attn: residual[3, 1, 200]", "vs chain")
            self.fails(name, add("trace.layers.2.attn.residual", (0, 3, 1, 200), amount),
                       "layer 2 attn: residual[3, 1, 200]", "vs chain")

    def test_one_layer_input_element(self):
        for name, amount in zip(TRACES, (1e-3, 1e-3, 1e-3, 0.125, 0.125)):
            self.fails(name, add("trace.layers.0.ffn.layer_input", (0, 2, 100), amount),
                       "layer 0 ffn: layer_input[2, 100]", "vs recorded")

    def test_exit_and_entry(self):
        self.fails(TRACES[2], add("trace.head.output", (0, 4, 77), 1e-3), "exit: output[4, 77]")
        self.fails(TRACES[2], add("trace.embedding", (0, 4, 77), 1e-3), "entry: residual_out[4, ")

    def test_a_weight(self):
        self.fails(TRACES[0], add("model.layers.3.attn_hc.base", (23,), 1e-2), "layer 3 attn: comb_mix[")

    def test_another_constant(self):
        def one_round_less(metadata, _):
            metadata["hc_sinkhorn_iters"] = "19"
        self.fails(TRACES[1], one_round_less, "comb_mix", "vs recorded")

    def test_missing_constants(self):
        for key in CONSTANTS:
            def drop(metadata, _, key=key):
                del metadata[key]
            with Damage(TRACES[0], drop) as path:
                self.assertIn(key, verify(path, code=2).stderr)

    def test_missing_tensor_is_told_before_anything_runs(self):
        def drop(_, tensors):
            del tensors["trace.layers.3.ffn.comb_mix"]
        with Damage(TRACES[0], drop) as path:
            done = verify(files.recorded(TRACES[0]), path, code=2)
            self.assertIn("trace.layers.3.ffn.comb_mix", done.stderr)
            self.assertEqual(done.stdout, "")

    def test_one_bad_of_two(self):
        with Damage(TRACES[0], add("trace.layers.1.ffn.comb_mix", (0, 5, 2, 1), 1e-3)) as path:
            text = verify(path, files.recorded(TRACES[0]), code=1).stdout
        self.assertEqual(len(re.findall(r"(?m)^(?:PASS|FAIL) \S+: \d+ comparisons", text)), 2)


class BoundsAndUsage(unittest.TestCase):
    def test_bounds_replace_and_tighten(self):
        path = files.recorded(TRACES[0])
        text = verify("--bound-comb-mix", "1e-9", path, code=1).stdout
        self.assertIn("comb_mix", text)
        self.assertNotIn(": post_mix[", text)
        for tensor in ("post-mix", "layer-input", "residual-out", "output"):
            self.assertIn(tensor.replace("-", "_"), verify(f"--bound-{tensor}", "1e-12", path, code=1).stdout)
        verify("--bound-pre-mix", "0", "--bound-normed-input", "0", "--vs", "recorded", path)

    def test_bound_file(self):
        path = files.recorded(TRACES[0])
        with tempfile.TemporaryDirectory() as directory:
            bounds = os.path.join(directory, "bounds.json")

            def given(text):
                with open(bounds, "w") as f:
                    f.write(text)
                return ("--bound", bounds, path)

            verify(*given('{"format": "flashmhc-bounds-1", "bounds": {"comb_mix": 1e-6}}'))
            tight = given('{"format": "flashmhc-bounds-1", "bounds": {"comb_mix": 1e-9}}')
            verify(*tight, code=1)
            verify("--bound-comb-mix", "1e-6", *tight)
            for text in ("", "[]", "{", '{"format": "flashmhc-bounds-1"}', '{"format": "x", "bounds": {}}',
                         '{"format": "flashmhc-bounds-1", "bounds": {"fn": 1}}',
                         '{"format": "flashmhc-bounds-1", "bounds": {"comb_mix": "1"}}',
                         '{"format": "flashmhc-bounds-1", "bounds": {"comb_mix": -1}}',
                         '{"format": "flashmhc-bounds-1", "bounds": {}, "more": 1}'):
                self.assertIn("bounds.json" if "-1}" not in text else "comb_mix", verify(*given(text), code=2).stderr)
            verify("--bound", directory, path, code=2)

    def test_bad_usage(self):
        path = files.recorded(TRACES[0])
        for arguments in ([], ["missing.safetensors"], ["--vs", "hf", path], ["--backend", "nope", path],
                          ["--threads", "0", path], ["--bound-comb-mix", "x", path], ["--bound-comb-mix", "-1", path],
                          ["--json", "/nonexistent/out.json", path], ["--bound", "/nonexistent", path]):
            self.assertTrue(verify(*arguments, code=2).stderr)

    def test_threads_do_not_show(self):
        reports = [verify_json("--backend", "cpu", "--threads", str(n), files.recorded(TRACES[1])) for n in (1, 3)]
        self.assertEqual(reports[0]["traces"][0]["records"], reports[1]["traces"][0]["records"])

    def test_synthetic_trace(self):
        with tempfile.TemporaryDirectory() as directory:
            for model in ("v4-flash", "v41-flash", "glm5"):
                path = os.path.join(directory, model)
                files.run("synth", "--model", model, "--hidden", "520", "--layers", "2", "--tokens", "9", "--out", path)
                verify("--backend", "ref", path)
                verify("--backend", "cpu", path)


if __name__ == "__main__":
    unittest.main()
