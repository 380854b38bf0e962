"""Runs the killers on every seeded fault and prints which of them noticed.

Takes a mutant build: the library, the command line tool and the preloaded selector. Killers are the ordinary Python
tests, restricted to the backend `cpu`, and the replay of the recorded traces by `flashmhc verify`. Without a fault all
must pass; each fault must be killed by at least two, one of them not a replay of traces.
"""
import argparse
import concurrent.futures
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PYTHON_TESTS = HERE.parent / "python"
REPLAY = "test_library_traces"
MODULES = (REPLAY, "test_closed_forms", "test_storage_vs_numpy", "test_bits", "test_scratch")
VERIFY = "verify"  # of the command line tool
TIMEOUT = 120  # seconds for one killer process; a fault that hangs counts as noticed
SELECTOR_MISSING = 99  # exit code of select_mutant.c


def run_module(module):
    """In a process of its own: prints a JSON list of the tests of a module that failed, and their count."""
    sys.path.insert(0, str(PYTHON_TESTS))
    suite = unittest.defaultTestLoader.loadTestsFromName(module)
    result = unittest.TestResult()
    with open(os.devnull, "w") as quiet:
        sys.stdout = quiet
        suite.run(result)
        sys.stdout = sys.__stdout__
    failed = {test.id() for test, _ in result.failures + result.errors}
    if not os.environ["FMHC_TEST_MUTANT"].strip("0"):
        print("".join(text for _, text in result.failures + result.errors), file=sys.stderr)
    print(json.dumps({"ran": result.testsRun, "failed": sorted(failed)}))


class Build:
    def __init__(self, options):
        self.options = options
        library = ctypes.CDLL(options.library)
        library.fmhc_test_mutant_name.restype = ctypes.c_char_p
        self.names = {}
        while name := library.fmhc_test_mutant_name(len(self.names) + 1):
            self.names[len(self.names) + 1] = name.decode()

    def environment(self, mutant):
        return {**os.environ, "FMHC_TEST_LIBRARY": self.options.library, "FMHC_TEST_KERNELS": "cpu",
                "FMHC_TEST_MUTANT": str(mutant), "OPENBLAS_NUM_THREADS": "1"}

    def verify(self, mutant):
        """Names of the traces that `flashmhc verify` rejects."""
        if not self.options.cli:
            return []
        killed = []
        for trace in sorted((HERE.parent / "data").glob("*.safetensors")):
            command = [self.options.cli, "verify", str(trace), "--backend", "cpu"]
            code, _, errors = run(command, {**self.environment(mutant), "LD_PRELOAD": self.options.selector})
            if code in (2, SELECTOR_MISSING):
                raise SystemExit(f"{' '.join(command)}: exit code {code}: {errors}")
            if code != 0:
                killed.append(f"{VERIFY} {trace.stem}")
        return killed

    def module(self, mutant, module):
        """Names of the tests of one module that failed."""
        code, output, errors = run([sys.executable, __file__, "--module", module], self.environment(mutant))
        if code != 0:
            if not mutant:
                raise SystemExit(f"{module} without a fault: exit code {code}: {errors}")
            return [f"{module} (exit code {code})"]
        report = json.loads(output)
        if report["ran"] == 0:
            raise SystemExit(f"{module} ran no test")
        if not mutant and report["failed"]:
            print(errors, file=sys.stderr)
        return report["failed"]

    def killers(self, mutant):
        killed = self.verify(mutant)
        for module in MODULES:
            killed += self.module(mutant, module)
        return killed


def run(command, environment):
    try:
        done = subprocess.run(command, env=environment, cwd=PYTHON_TESTS, capture_output=True, text=True,
                              timeout=TIMEOUT)
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        return "timeout", "", ""


def is_trace(name):
    return name.startswith((VERIFY, REPLAY))


def describe(killed):
    counted = {"verify": sum(name.startswith(VERIFY) for name in killed),
               "traces": sum(name.startswith(REPLAY) for name in killed)}
    others = [name.split(".")[-1].removeprefix("test_") for name in killed if not is_trace(name)]
    return ", ".join([*(f"{what} x{count}" for what, count in counted.items() if count), *others])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", help="libflashmhc of the mutant build")
    parser.add_argument("--cli", help="flashmhc of the mutant build; without it traces are replayed by Python alone")
    parser.add_argument("--selector", help="the preloaded select_mutant library, needed with --cli")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", type=int, help="one fault's number")
    parser.add_argument("--module", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.module:
        return run_module(options.module)
    started = time.monotonic()
    build = Build(options)
    numbers = [options.only] if options.only else list(build.names)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = dict(zip([0, *numbers], pool.map(build.killers, [0, *numbers])))
    if results[0]:
        raise SystemExit("killers that fail without a fault: " + describe(results[0]))
    killed = 0
    for number in numbers:
        names = results[number]
        enough = len(names) >= 2 and any(not is_trace(name) for name in names)
        killed += enough
        verdict = "killed by" if enough else "SURVIVED, noticed by"
        print(f"{number:2} {build.names[number]:44} {verdict} {len(names)}: {describe(names) or 'nothing'}")
    print(f"{time.monotonic() - started:.0f} s")
    print(f"killed {killed} of {len(numbers)}")
    return 0 if killed == len(numbers) else 1


if __name__ == "__main__":
    sys.exit(main())
