"""flashmhc resolve: orders, switches, refusals, text and JSON."""

import unittest

import tool

ON_H200 = ("--op", "pre", "--target", "h200", "--class", "R")
ALL = ("--with", "flashinfer", "tilelang", "aiter", "torch")


def chosen(*arguments: str, **variables: str) -> str:
    return tool.answer("resolve", *arguments, **variables)["chosen"]


class Resolve(unittest.TestCase):
    def test_sglang_order(self):
        sglang = (*ON_H200, "--order", "sglang")
        self.assertEqual(chosen(*sglang, *ALL), "torch")  # every switch is off by default
        self.assertEqual(chosen(*sglang, "--use-tilelang", *ALL), "tilelang")
        self.assertEqual(chosen(*sglang, "--use-tilelang", "--use-flashinfer", *ALL), "flashinfer")
        self.assertEqual(chosen(*sglang, "--use-aiter", "--amd", *ALL), "aiter")

    def test_post_like_pre(self):
        post = ("--op", "post", "--target", "h200", "--order", "sglang")
        self.assertEqual(chosen(*post, "--use-tilelang", "--use-flashinfer", *ALL), "flashinfer")
        self.assertEqual(chosen(*post, "--use-tilelang", *ALL), "tilelang")

    def test_ours_first(self):
        self.assertIn(chosen("--op", "pre", *ALL), ("cpu", "ref"))

    def test_every_backend_has_a_reason(self):
        report = tool.answer("resolve", *ON_H200, *ALL)
        self.assertEqual([row["rank"] for row in report["candidates"]], list(range(9)))
        self.assertTrue(all(row["reason"] for row in report["candidates"]))
        self.assertEqual(sum(row["chosen"] for row in report["candidates"]), 1)
        text = tool.run("resolve", *ON_H200, *ALL).stdout
        for row in report["candidates"]:
            self.assertIn(row["reason"], text)

    def test_strict(self):
        report = tool.answer("resolve", *ON_H200, "--strict", "--backend", "flashinfer", code=1)
        self.assertIsNone(report["chosen"])
        self.assertIn("flashinfer", report["reason"])
        self.assertEqual(chosen(*ON_H200, "--backend", "flashinfer", *ALL), "flashinfer")
        tool.answer("resolve", *ON_H200, "--with", "torch", code=1, FLASHMHC_BACKEND="cpu", FLASHMHC_STRICT="1")

    def test_versions(self):
        untested = ("--order", "sglang", "--backend", "flashinfer", "--with", "flashinfer=untested:9.9", "torch")
        self.assertEqual(chosen(*ON_H200, *untested), "torch")
        self.assertEqual(chosen(*ON_H200, "--allow-untested", *untested), "flashinfer")
        rows = tool.answer("resolve", *ON_H200, *untested)["candidates"]
        self.assertIn("9.9", rows[0]["reason"])

    def test_refusals(self):
        cases = [
            (("--with", "nothing"), "nothing"),
            (("--with", "torch=maybe"), "maybe"),
            (("--order", "some"), "sglang"),
            (("--backend", "nothing"), "nothing"),
            (("--amd",), "amd"),
        ]
        for arguments, text in cases:
            with self.subTest(arguments):
                result = tool.run("resolve", *arguments)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn(text, result.stderr)


if __name__ == "__main__":
    unittest.main()
