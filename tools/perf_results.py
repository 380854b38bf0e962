"""Benchmark results: the JSON lines that flashmhc_gpu writes, one measured cell a line.

Where several lines measure the same cell, the last one of the last file counts.
"""

import glob
import json
import os

# What makes two lines the same cell.
KEY = ("card", "op", "norm", "class", "mode", "pdl", "coresident_units", "carried_pre", "batch_invariant", "residual",
       "dtype", "hidden", "tokens")


class ResultError(Exception):
    """A line that is not a result; the text names file, line and what is wrong."""


# A file's name says what it holds: sweeps have T and T + 1 side by side, tune files forced kernels, both too many for
# the tables of cells.
KINDS = ("sweep", "tune")


def kind_of(path):
    """'sweep', 'tune' or 'bench', by the words of the file's name."""
    words = os.path.basename(path).removesuffix(".jsonl").split("-")
    return next((kind for kind in KINDS if kind in words), "bench")


def find_files(paths, kind):
    """Of the files given, and of the *.jsonl of directories by name, those of one kind."""
    files = []
    for path in paths:
        files += sorted(glob.glob(os.path.join(path, "*.jsonl"))) if os.path.isdir(path) else [path]
    return [name for name in files if kind_of(name) == kind]


def load(paths, kind="bench"):
    """All cells of the files, newest of each, failed ones left out. -> list of dicts."""
    cells = {}
    for path in find_files(paths, kind):
        with open(path, encoding="utf-8") as stream:
            for number, line in enumerate(stream, 1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except json.JSONDecodeError as error:
                    raise ResultError(f"{path}:{number}: {error}") from error
                missing = [name for name in KEY + ("us", "floor_us") if name not in row]
                if missing:
                    raise ResultError(f"{path}:{number}: no {', '.join(missing)}")
                row["file"] = os.path.basename(path)
                if row.get("ok", True):
                    cells[tuple(row[name] for name in KEY)] = row
    return list(cells.values())


def select(rows, **wanted):
    """Rows whose fields equal all the given ones."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def label(row):
    """'seam+norm', 'pre', 'head+unfused', 'contract+carried'."""
    norm = {"none": "", "engine": "+norm", "unfused": "+unfused"}[row["norm"]]
    return row["op"] + norm + ("+carried" if row["carried_pre"] else "")


OP_ORDER = ("pre", "seam", "post", "head", "finish", "project", "expand", "contract")


def group_key(row):
    """Sorts and groups the lines of a table."""
    return (OP_ORDER.index(row["op"]), label(row), row["class"] != "F2", row["hidden"], row["coresident_units"],
            row["batch_invariant"], row["dtype"])
