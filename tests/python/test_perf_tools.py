"""The tables made from benchmark results: what counts, what is left out, what is refused."""

import json
import os
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))

import perf_results  # noqa: E402
import perf_tables  # noqa: E402


def row(**changes):
    base = {"op": "post", "norm": "none", "class": "F", "mode": "chained", "pdl": 1, "coresident_units": 0,
            "carried_pre": 0, "batch_invariant": 0, "residual": "warm", "dtype": "bf16", "hidden": 4096, "tokens": 1,
            "us": 1.05, "floor_us": 0.02, "card": "NVIDIA H200", "driver": "580", "clock_mhz": 1980, "copy_tbps": 4.2,
            "commit": "abc", "ok": True}
    return {**base, **changes}


class Results(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, rows):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as stream:
            stream.writelines((entry if isinstance(entry, str) else json.dumps(entry)) + "\n" for entry in rows)
        return path

    def render(self, rows):
        self.write("a.jsonl", rows)
        with open(os.path.join(ROOT, "bench", "targets.json"), encoding="utf-8") as stream:
            targets = json.load(stream)
        return perf_tables.render(perf_results.load([self.folder.name]),
                                  perf_results.load([self.folder.name], "sweep"), targets)

    def test_last_line_of_the_last_file_counts(self):
        self.write("2.jsonl", [row(us=3.0), row(us=4.0)])
        self.write("1.jsonl", [row(us=9.0)])
        self.assertEqual([r["us"] for r in perf_results.load([self.folder.name])], [4.0])

    def test_failed_cells_are_left_out(self):
        self.write("a.jsonl", [row(ok=False)])
        self.assertEqual(perf_results.load([self.folder.name]), [])

    def test_a_line_without_a_key_is_refused_by_name(self):
        bad = row()
        del bad["pdl"]
        path = self.write("a.jsonl", [row(), bad])
        with self.assertRaisesRegex(perf_results.ResultError, r"a\.jsonl:2: no pdl"):
            perf_results.load([path])

    def test_a_broken_line_is_refused_with_its_place(self):
        path = self.write("a.jsonl", ["{"])
        with self.assertRaisesRegex(perf_results.ResultError, r"a\.jsonl:1: "):
            perf_results.load([path])

    def test_three_columns_of_a_small_count(self):
        text = self.render([row(), row(pdl=0, us=1.5), row(pdl=0, mode="foreign", us=2.25)])
        self.assertIn("| post F | 4096 | 1.50 / 2.25 / 1.05 |", text)

    def test_large_counts_take_the_better_of_pdl(self):
        text = self.render([row(tokens=4096, residual="cold", pdl=p, us=us, floor_us=70.2)
                            for p, us in ((0, 73.0), (1, 72.0))])
        self.assertIn("| post F | 4096 | 72.0 (1.03) |", text)

    def test_targets_are_met_missed_or_open(self):
        text = self.render([row(), row(tokens=16, us=1.4)])
        self.assertIn("| post | 4096 | 1 | 1.1 us | 1.05 | met |", text)
        self.assertIn("| post | 4096 | 16 | 1.25 us | 1.40 | **missed** |", text)
        self.assertIn("| post | 4096 | 64 | 1.7 us | – | not measured |", text)
        self.assertIn("1 met, 1 missed,", text)

    def test_waiting_kernels_do_not_count_for_the_targets(self):
        text = self.render([row(coresident_units=132)])
        self.assertIn("0 met, 0 missed,", text)
        self.assertIn("post F (132 units)", text)

    def test_sweeps_give_jumps_and_no_cells(self):
        self.write("h200-sweep-1.jsonl", [row(tokens=t, us=us) for t, us in ((8, 1.0), (9, 1.5), (16, 2.0), (17, 2.1))])
        text = self.render([row()])
        self.assertIn("| post F | 4096 | 2 | 1.50 at T=8 | 1 |", text)
        self.assertNotIn("T=9 ", text.split("### From")[0])

    def test_tuning_runs_are_no_cells(self):
        self.write("h200-tune-x.jsonl", [row(us=0.1)])
        self.write("a.jsonl", [row()])
        self.assertEqual([r["us"] for r in perf_results.load([self.folder.name])], [1.05])

    def test_document_keeps_its_own_text(self):
        document = f"head\n{perf_tables.BEGIN}\nold\n{perf_tables.END}\ntail\n"
        new = perf_tables.replace_generated(document, "new")
        self.assertTrue(new.startswith("head\n") and new.endswith("tail\n") and "old" not in new and "new" in new)
        with self.assertRaises(perf_results.ResultError):
            perf_tables.replace_generated("no markers", "new")

    def test_the_document_is_up_to_date(self):
        self.assertEqual(perf_tables.main(["--doc", os.path.join(ROOT, "docs", "performance.md"), "--check"]), 0)


if __name__ == "__main__":
    unittest.main()
