"""flashmhc plan: the stored split table through the tool, text and JSON, refusals."""

import csv
import unittest

import tool


def split_table() -> list[dict[str, str]]:
    with open(tool.SOURCE / "tests/plan/split_k_table.csv", encoding="ascii") as file:
        return list(csv.DictReader(file))


class Plan(unittest.TestCase):
    def test_split_table(self):
        rows = split_table()
        self.assertGreaterEqual(len(rows), 400)
        checked = 0
        for row in rows[::5]:  # 5 and the period of the table have no common factor: every T, K and unit count is met
            for policy in ("sglang", "auto"):
                plan = tool.answer(
                    "plan", "--op", "project", "--streams", 1, "--hidden", row["flat"], "--tokens", row["tokens"],
                    "--units", row["units"], "--split-k", policy)
                self.assertEqual(plan["split_k"], int(row[policy]), row)
                checked += 1
        self.assertEqual(checked, 450)

    def test_four_streams(self):
        plan = tool.answer("plan", "--op", "project", "--streams", 4, "--hidden", 4096, "--tokens", 1024, "--units", 132,
                           "--split-k", "sglang")
        self.assertEqual(plan["split_k"], 8)

    def test_this_machine(self):
        plan = tool.answer("plan", "--op", "expand", "--tokens", 33)
        self.assertTrue(plan["runnable"])
        self.assertEqual(plan["target"]["device_kind"], "cpu")
        self.assertEqual(plan["ranges"][-1]["to"], 33)
        text = tool.run("plan", "--op", "expand", "--tokens", 33, "--explain")
        self.assertEqual(text.returncode, 0)
        for candidate in plan["candidates"]:
            self.assertIn(candidate["kernel"], text.stdout)

    def test_refusals(self):
        cases = [
            (("--op", "nothing"), 2, "--op"),
            (("--dtype", "int8"), 2, "--dtype"),
            (("--model", "nothing"), 2, "deepseek_v4"),
            (("--target", "nothing"), 2, "h200"),
            (("--hidden", 0), 2, "hidden"),
            (("--streams", 9), 2, "1..8"),
            (("--units", 0), 2, "--units"),
            (("--split-k", "some"), 2, "sglang"),
            (("--split-k", "-1"), 2, "split"),
            (("--kernel", "nothing"), 2, "nothing"),
            (("--op", "post", "--norm", "engine"), 2, "norm"),
            (("--op", "expand", "--carried-pre"), 2, "carried_pre"),
        ]
        for arguments, code, text in cases:
            with self.subTest(arguments):
                result = tool.run("plan", *arguments)
                self.assertEqual((result.returncode, result.stdout), (code, ""))
                self.assertIn(text, result.stderr)

    def test_a_named_kernel_that_cannot_serve_is_a_no(self):
        result = tool.run("plan", "--op", "expand", "--target", "h200", "--kernel", "ref")
        self.assertEqual(result.returncode, 1)
        self.assertIn("runs on a CPU", result.stdout)


if __name__ == "__main__":
    unittest.main()
