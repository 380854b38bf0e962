#!/usr/bin/env python3
"""Plots time over tokens with the floor as a line, one panel an operator and hidden size.

Usage: plot_bench.py [RESULTS...] [--out docs/performance.png] [--class F2] [--sweep]
Needs matplotlib. --sweep takes the files of flashmhc_gpu sweep (sweep in the name) and draws points instead of lines.
"""

import argparse
import os
import sys

import perf_results

# (mode, pdl, residual) -> label, colour, marker
SERIES = {
    ("chained", 0, "cold"): ("chained, cold", "#1f77b4", "o"),
    ("chained", 1, "cold"): ("chained + PDL, cold", "#2ca02c", "s"),
    ("chained", 1, "warm"): ("chained + PDL, warm", "#ff7f0e", "^"),
    ("chained", 0, "warm"): ("chained, warm", "#9467bd", "v"),
    ("foreign", 0, "warm"): ("behind a foreign kernel, warm", "#d62728", "x"),
}


def draw_panel(axes, rows, points):
    for (mode, pdl, residual), (name, colour, marker) in SERIES.items():
        units = sorted({row["coresident_units"] for row in rows})
        for place, count in enumerate(units):
            series = sorted(perf_results.select(rows, mode=mode, pdl=pdl, residual=residual, coresident_units=count),
                            key=lambda row: row["tokens"])
            if not series:
                continue
            text = name + (f", {count} units" if count else "")
            axes.plot([row["tokens"] for row in series], [row["us"] for row in series], marker=marker, color=colour,
                      label=text, linestyle="" if points else ("-", "--", ":")[place % 3], markersize=4)
    floor = sorted({(row["tokens"], row["floor_us"]) for row in rows})
    axes.plot([tokens for tokens, _ in floor], [us for _, us in floor], color="black", linewidth=1, label="floor")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.grid(True, which="both", alpha=0.25)
    axes.set_title(f"{perf_results.label(rows[0])} {rows[0]['class']}, H = {rows[0]['hidden']}", fontsize=9)


def draw(rows, out, points):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot

    panels = sorted({(perf_results.OP_ORDER.index(row["op"]), perf_results.label(row)) for row in rows})
    hidden = sorted({row["hidden"] for row in rows})
    figure, grid = pyplot.subplots(len(panels), len(hidden), figsize=(5.2 * len(hidden), 3.1 * len(panels)),
                                   squeeze=False, sharex=True)
    for line, (_, name) in enumerate(panels):
        for column, width in enumerate(hidden):
            mine = [row for row in rows if perf_results.label(row) == name and row["hidden"] == width]
            if mine:
                draw_panel(grid[line][column], mine, points)
            if column == 0:
                grid[line][column].set_ylabel("us")
            if line == len(panels) - 1:
                grid[line][column].set_xlabel("tokens")
    handles = {}
    for axes in figure.axes:
        for handle, text in zip(*axes.get_legend_handles_labels()):
            handles.setdefault(text, handle)
    figure.legend(handles.values(), handles.keys(), loc="upper center", ncol=3, fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.9 / figure.get_figheight()))
    figure.savefig(out, dpi=80, metadata={"Software": None})


def main(arguments):
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("results", nargs="*", default=[os.path.join(root, "bench", "results")])
    parser.add_argument("--out", default=os.path.join(root, "docs", "performance.png"))
    parser.add_argument("--class", dest="projection", default="F2", help="of the projecting operators")
    parser.add_argument("--card", default=None, help="of several recorded ones")
    parser.add_argument("--sweep", action="store_true", help="the sweeps, as points")
    options = parser.parse_args(arguments)
    try:
        rows = perf_results.load(options.results, "sweep" if options.sweep else "bench")
    except (perf_results.ResultError, OSError) as error:
        print(f"plot_bench: {error}", file=sys.stderr)
        return 1
    projecting = ("pre", "seam", "head", "project")
    rows = [row for row in rows if (row["class"] == options.projection or row["op"] not in projecting)
            and row["batch_invariant"] == 0 and options.card in (None, row["card"])]
    if not rows:
        print("plot_bench: no result fits; give files of flashmhc_gpu bench or sweep", file=sys.stderr)
        return 1
    draw(rows, options.out, options.sweep)
    print(f"plot_bench: {len(rows)} cells -> {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
