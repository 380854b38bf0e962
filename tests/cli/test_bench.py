"""flashmhc bench: records are complete and consistent. Nothing is said about speed."""

import json
import unittest

import tool

OPS = ("expand", "project", "finish", "pre", "post", "seam", "head", "contract")
SHORT = ("--quick", "--samples", 1, "--warm", "--json")


def records(*arguments: object, code: int = 0) -> list[dict]:
    result = tool.run("bench", *SHORT, *arguments)
    if result.returncode != code:
        raise AssertionError(f"exit {result.returncode}: {result.stderr}")
    return [json.loads(line) for line in result.stdout.splitlines()]


class Bench(unittest.TestCase):
    def test_every_operator(self):
        machine, *times = records("--op", ",".join(OPS), "--tokens", "1,5", "--hidden", 256, "--threads", 2)
        self.assertEqual((machine["record"], machine["threads"]), ("machine", 2))
        self.assertGreater(machine["copy_gbs"], 0)
        self.assertGreater(machine["fma_gflops"], 0)
        self.assertEqual([(row["op"], row["tokens"]) for row in times], [(op, count) for op in OPS for count in (1, 5)])
        for row in times:
            self.assertGreater(row["us"], 0)
            self.assertAlmostEqual(row["ratio"], row["us"] / row["floor_us"], delta=0.01 * row["ratio"])
            self.assertAlmostEqual(row["gbs"], row["bytes"] / row["us"] / 1e3, delta=0.01 * row["gbs"])
            self.assertTrue(row["kernel"].endswith("." + row["op"]))

    def test_bytes_and_flops(self):
        tokens, hidden = 3, 128
        flat, logits = 4 * hidden, 24
        _, pre, post, seam = records("--op", "pre", "post", "seam", "--tokens", tokens, "--hidden", hidden)
        site = 4 * logits * flat + 4 * 3 + 4 * logits  # fn, scale, base
        mixes = 4 * (4 + 16)
        self.assertEqual(pre["bytes"], tokens * (2 * flat + 2 * hidden + mixes) + site)
        self.assertEqual(post["bytes"], tokens * (4 * flat + 2 * hidden + mixes))
        self.assertEqual(seam["bytes"], tokens * (4 * flat + 4 * hidden + 2 * mixes) + site)
        self.assertEqual(pre["flops"], tokens * flat * (2 * (logits + 1) + 2))
        self.assertEqual(seam["flops"], pre["flops"] + post["flops"])

    def test_options_reach_the_kernel(self):
        _, row = records("--op", "pre", "--tokens", 2, "--hidden", 64, "--kernel", "ref", "--dtype", "fp32", "--norm",
                         "engine", "--model", "deepseek_v41")
        self.assertEqual((row["kernel"], row["dtype"], row["norm"]), ("ref.pre", "fp32", "engine"))

    def test_copies_rotate(self):
        result = tool.run("bench", "--quick", "--samples", 1, "--json", "--op", "pre", "--tokens", 1, "--hidden", 4096)
        machine, row = map(json.loads, result.stdout.splitlines())
        self.assertEqual(row["caches"], "cold")
        self.assertGreaterEqual(row["copies"] * row["bytes"],
                                min(2 * machine["last_level_cache_bytes"], 256 * 2**20))

    def test_text(self):
        result = tool.run("bench", "--quick", "--samples", 1, "--op", "post", "--tokens", 1, "--hidden", 64)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("GB/s", result.stdout)

    def test_refusals(self):
        for arguments, code in ((("--op", "nothing"), 2), (("--tokens", 0), 2), (("--threads", 0), 2),
                                (("--kernel", "nothing"), 2), (("--kernel", "cuda"), 1)):
            with self.subTest(arguments):
                result = tool.run("bench", *SHORT, "--hidden", 64, *arguments)
                self.assertEqual(result.returncode, code)
                self.assertNotEqual(result.stderr, "")


if __name__ == "__main__":
    unittest.main()
