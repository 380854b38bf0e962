#!/usr/bin/env python3
"""Writes the planner's measured points from benchmark results.

Reads JSON lines of `flashmhc bench` or flashmhc_gpu bench; the records that count are chained launches with
programmatic overlap, cold streams, bf16, without a norm: one for each kernel, hidden size and token count, the last one
read winning. Writes src/plan/tuned_smNN.h; --check only compares.
"""

import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COUNTS = {"mode": "chained", "pdl": 1, "residual": "cold", "dtype": "bf16", "norm": "none"}
HEAD = """// Points measured on sm_{arch} cards; written by tools/tune_planner.py from {sources}.
#pragma once

#include <array>

#include "plan/tuned.h"

namespace fmhc {{

inline constexpr std::array<TunedPoint, {count}> kTunedSm{arch}{{{{
"""
TAIL = """}};

}  // namespace fmhc
"""


def read_points(paths):
    points = {}
    for path in paths:
        date = "-".join(path.name.split("-")[1:4])
        for line in path.read_text().splitlines():
            record = json.loads(line)
            if all(record.get(key) == value for key, value in COUNTS.items()) and record.get("ok", True):
                key = (record["kernel"], record["hidden"], record["tokens"])
                points[key] = (record["us"], record["card"], date)
    return points


def write_header(arch, paths, points):
    sources = "bench/results/" + paths[0].name.split("-tune-")[0] + "-tune-*.jsonl"
    lines = [HEAD.format(arch=arch, sources=sources, count=len(points))]
    for (kernel, hidden, tokens), (us, card, date) in sorted(points.items()):
        lines.append(f'    {{"{kernel}", {hidden}, {tokens}, {us:.4g}, "{card}", "{date}"}},\n')
    return "".join(lines) + TAIL


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="90", help="which table (default 90)")
    parser.add_argument("--check", action="store_true", help="exit 1 if the table and the results differ")
    parser.add_argument("results", nargs="*", type=pathlib.Path,
                        help="default: bench/results/h200-*-tune-*.jsonl")
    arguments = parser.parse_args()
    paths = arguments.results or sorted((ROOT / "bench" / "results").glob("h200-*-tune-*.jsonl"))
    if not paths:
        parser.error("no results to read")
    header = ROOT / "src" / "plan" / f"tuned_sm{arguments.arch}.h"
    text = write_header(arguments.arch, paths, read_points(paths))
    if arguments.check:
        same = header.read_text() == text
        print(f"{header.relative_to(ROOT)}: {'as measured' if same else 'differs from the results'}")
        return 0 if same else 1
    header.write_text(text)
    print(f"{header.relative_to(ROOT)}: {len(read_points(paths))} points")
    return 0


if __name__ == "__main__":
    sys.exit(main())
