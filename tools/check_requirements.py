#!/usr/bin/env python3
"""Checks that every requirement names tests that exist.

tests/requirements.json maps a requirement to ctest names (a trailing * matches any), to results files for timing
requirements, or to the operators that it waits for. The list of tests comes from `ctest --show-only=json-v1`.
"""

import argparse
import fnmatch
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = {"tests", "results", "waits_for", "gpu_tests"}


def known_tests(build: pathlib.Path) -> set[str]:
    listing = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True,
                             check=True).stdout
    return {test["name"] for test in json.loads(listing)["tests"]}


def faults(requirements: dict, tests: set[str], gpu_tests: str) -> list[str]:
    found = []
    for name, entry in requirements.items():
        if not entry.keys() & KINDS:
            found.append(f"{name}: maps to nothing; accepted keys: {', '.join(sorted(KINDS))}")
        if entry.keys() - KINDS - {"what"}:
            found.append(f"{name}: unknown keys {sorted(entry.keys() - KINDS - {'what'})}")
        for pattern in entry.get("tests", []):
            if not fnmatch.filter(tests, pattern):
                found.append(f"{name}: no test is called {pattern}")
        for case in entry.get("gpu_tests", []):
            if f'"{case}"' not in gpu_tests:
                found.append(f"{name}: the GPU tests have no case \"{case}\"")
        for path in entry.get("results", []):
            if not list(ROOT.glob(path)):
                found.append(f"{name}: no results file {path}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path, help="configured build directory with the tests")
    build = parser.parse_args().build
    requirements = json.loads((ROOT / "tests" / "requirements.json").read_text())
    gpu_tests = "\n".join(path.read_text() for path in sorted((ROOT / "tests" / "gpu").rglob("*.c*")))
    tests = known_tests(build)
    found = faults(requirements, tests, gpu_tests)
    for fault in found:
        print(fault)
    print(f"{len(requirements)} requirements, {len(tests)} tests, {len(found)} faults")
    return 1 if found or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
