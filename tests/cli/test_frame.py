"""Help, version, exit codes and the environment table, for every subcommand there is."""

import re
import unittest

import tool

VARIABLES = {
    "FLASHMHC_BACKEND", "FLASHMHC_STRICT", "FLASHMHC_SGLANG", "FLASHMHC_VLLM", "FLASHMHC_LOG", "FLASHMHC_LOG_FILE",
    "FLASHMHC_CPU_TARGET", "FLASHMHC_BATCH_INVARIANT", "FLASHMHC_NVTX", "FLASHMHC_STATUS_DIR"}


def subcommands() -> list[str]:
    text = tool.run("--help").stdout
    return re.findall(r"^  (\w+)  ", text[text.index("Subcommands:"):], re.MULTILINE)


class Frame(unittest.TestCase):
    def test_help_everywhere(self):
        self.assertEqual(tool.run("--help").returncode, 0)
        names = subcommands()
        self.assertLessEqual({"info", "plan"}, set(names))
        for name in names:
            with self.subTest(name):
                result = tool.run(name, "--help")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("--json", result.stdout)
                self.assertEqual(result.stderr, "")

    def test_version(self):
        result = tool.run("--version")
        self.assertEqual((result.returncode, result.stdout), (0, "flashmhc 0.1.0\n"))

    def test_bad_usage(self):
        cases = [(), ("nothing",), ("--nothing",)]
        cases += [(name, "--no-such-option") for name in subcommands()]
        for arguments in cases:
            with self.subTest(arguments):
                result = tool.run(*arguments)
                self.assertEqual(result.returncode, 2)
                self.assertEqual(result.stdout, "")
                self.assertNotEqual(result.stderr, "")

    def test_full_disk(self):
        import subprocess
        with open("/dev/full", "w", encoding="ascii") as full:
            result = subprocess.run([tool.TOOL, "info"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("standard output", result.stderr)

    def test_info(self):
        info = tool.answer("info")
        self.assertEqual(info["build"]["version"], "0.1.0")
        self.assertGreaterEqual(info["devices"][0]["units"], 1)
        names = [kernel["name"] for kernel in info["kernels"]]
        self.assertIn("ref.expand", names)
        for kernel in info["kernels"]:
            self.assertIsInstance(kernel["usable"], bool)
            self.assertEqual("reason" in kernel, not kernel["usable"])
        self.assertEqual({row["name"] for row in info["environment"]}, VARIABLES)
        text = tool.run("info").stdout
        for name in names + sorted(VARIABLES):
            self.assertIn(name, text)


class EnvironmentTable(unittest.TestCase):
    def test_value_is_shown(self):
        info = tool.answer("info", FLASHMHC_CPU_TARGET="avx2")
        values = {row["name"]: row["value"] for row in info["environment"]}
        self.assertEqual(values["FLASHMHC_CPU_TARGET"], "avx2")
        self.assertIsNone(values["FLASHMHC_BACKEND"])

    def test_unknown_name_warns(self):
        result = tool.run("info", FLASHMHC_TYPO="1")
        self.assertEqual(result.returncode, 0)
        self.assertIn("warning: FLASHMHC_TYPO", result.stderr)

    def test_unknown_name_is_an_error_in_strict(self):
        result = tool.run("info", FLASHMHC_TYPO="1", FLASHMHC_STRICT="1")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("FLASHMHC_TYPO", result.stderr)

    def test_bad_value_is_an_error(self):
        for name in ("FLASHMHC_BACKEND", "FLASHMHC_STRICT", "FLASHMHC_CPU_TARGET", "FLASHMHC_BATCH_INVARIANT"):
            result = tool.run("info", **{name: "maybe"})
            self.assertEqual(result.returncode, 2)
            self.assertIn(f'{name} is "maybe"', result.stderr)

    def test_backend_and_target_become_the_kernel(self):
        self.assertEqual(tool.answer("plan", "--op", "expand", FLASHMHC_BACKEND="ref")["hints"]["kernel"], "ref")
        plan = tool.answer("plan", "--op", "expand", "--kernel", "ref", FLASHMHC_CPU_TARGET="avx2")
        self.assertEqual(plan["hints"]["kernel"], "ref")
        self.assertTrue(tool.answer("plan", FLASHMHC_BATCH_INVARIANT="1")["problem"]["batch_invariant"])


if __name__ == "__main__":
    unittest.main()
