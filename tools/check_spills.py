#!/usr/bin/env python3
"""Fails if a kernel of a measured architecture spills registers or keeps local memory.

Reads the assembler reports (*.ptxas) that the CUDA build leaves beside its objects; elsewhere than on the measured
architectures a spill is only reported. Usage: check_spills.py BUILD_DIR [--measured sm_90]
"""
import argparse
import pathlib
import re
import sys

ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(\w+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def kernels(report):
    """(function, architecture, stack frame, spilled bytes) of every kernel in one report."""
    name = arch = None
    for line in report.splitlines():
        if entry := ENTRY.search(line):
            name, arch = entry.groups()
        elif (frame := FRAME.search(line)) and name:
            stack, stores, loads = map(int, frame.groups())
            yield name, arch, stack, stores + loads
            name = None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--measured", action="append", default=None, help="architectures where a spill is an error")
    options = parser.parse_args()
    measured = set(options.measured or ["sm_90"])
    seen = errors = 0
    for path in sorted(options.build.rglob("*.ptxas")):
        for name, arch, stack, spilled in kernels(path.read_text()):
            seen += 1
            if stack == 0 and spilled == 0:
                continue
            is_error = arch in measured
            errors += is_error
            print(f"{'error' if is_error else 'note'}: {path.stem}: {name} for {arch}: "
                  f"{stack} bytes of stack, {spilled} bytes spilled")
    print(f"{seen} kernels, {errors} errors")
    if seen == 0:
        print("error: no assembler report under", options.build)
    return 1 if errors or seen == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
