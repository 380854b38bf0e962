"""tools/check_layers.py accepts this tree and refuses a planted fault of every kind."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "check_layers.py"

# file, its include, file that is included, part of the expected message (None: accepted)
CASES = [
    ("src/core/a.h", "ops/b.h", "src/ops/b.h", "src/core may not include src/ops"),
    ("src/plan/a.cpp", "backends/cpu/b.h", "src/backends/cpu/b.h", "src/plan may not include src/backends"),
    ("src/backends/cpu/a.cpp", "backends/ref/b.h", "src/backends/ref/b.h", "backend cpu may not include backend ref"),
    ("src/backends/cpu/a.cpp", "plan/b.h", "src/plan/b.h", "src/backends may not include src/plan"),
    ("cli/a.cpp", "core/b.h", "src/core/b.h", "cli may not include src/core"),
    ("io/a.cpp", "plan/b.h", "src/plan/b.h", "io may not include src/plan"),
    ("src/backends/all.cpp", "backends/ref/b.h", "src/backends/ref/b.h", None),
    ("src/api/a.cpp", "plan/b.h", "src/plan/b.h", None),
]


def run(root: pathlib.Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, TOOL, root], capture_output=True, text=True, check=False)


class CheckLayers(unittest.TestCase):
    def test_this_tree(self):
        result = run(ROOT)
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_planted(self):
        for source, include, target, message in CASES:
            with self.subTest(source=source, include=include), tempfile.TemporaryDirectory() as folder:
                root = pathlib.Path(folder)
                for path, text in ((target, "#pragma once\n"), (source, f'#include "{include}"\n')):
                    (root / path).parent.mkdir(parents=True, exist_ok=True)
                    (root / path).write_text(text)
                result = run(root)
                self.assertEqual(result.returncode, 0 if message is None else 1, result.stdout)
                if message:
                    self.assertIn(message, result.stdout)

    def test_empty_tree_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run(pathlib.Path(folder)).returncode, 1)


if __name__ == "__main__":
    unittest.main()
