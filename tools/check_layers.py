#!/usr/bin/env python3
"""Checks that includes point one way only.

Reads every #include "..." of the tree and compares the layer of the file with the layer of what it includes, by the one
table below. Prints each forbidden edge as file:line and exits 1 if there is any.
"""

import argparse
import pathlib
import re
import sys

# Layer -> layers it may include besides itself. `include` is the public interface.
ALLOWED = {
    "src/core": {"include"},
    "src/ops": {"include", "src/core"},
    "src/device": {"include", "src/core", "src/ops"},
    "src/kernels": {"include", "src/core", "src/ops"},
    "src/plan": {"include", "src/core", "src/ops", "src/device", "src/kernels"},
    "src/backends": {"include", "src/core", "src/ops", "src/device", "src/kernels"},
    "src/api": {"include", "src/core", "src/ops", "src/device", "src/kernels", "src/plan"},
    "include": set(),
    "io": {"include"},
    "check": {"include"},
    "cli": {"include", "io", "check"},
    "bindings": {"include"},
}
# A backend sees no other backend; only the list of backends sees them all.
BACKEND_LIST = "src/backends/all.cpp"
SUFFIXES = {".h", ".hpp", ".cpp", ".cc", ".cu", ".cuh", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def layer_of(path: str) -> str | None:
    """The longest entry of the table that holds the path."""
    matches = [layer for layer in ALLOWED if path.startswith(layer + "/")]
    return max(matches, key=len, default=None)


def resolve(root: pathlib.Path, source: pathlib.Path, name: str) -> str | None:
    """The included file, relative to the root; None for one outside the tree."""
    for base in (source.parent, root / "src", root / "include", root):
        candidate = (base / name).resolve()
        if candidate.is_file() and candidate.is_relative_to(root):
            return candidate.relative_to(root).as_posix()
    return None


def backend_of(path: str) -> str | None:
    parts = path.split("/")
    return parts[2] if path.startswith("src/backends/") and len(parts) > 3 else None


def forbidden(path: str, target: str) -> str | None:
    """Why `path` may not include `target`, or None."""
    layer, other = layer_of(path), layer_of(target)
    if layer is None or other is None:
        return None
    if layer != other and other not in ALLOWED[layer]:
        return f"{layer} may not include {other}"
    mine, theirs = backend_of(path), backend_of(target)
    if theirs and mine != theirs and path != BACKEND_LIST:
        return f"backend {mine or layer} may not include backend {theirs}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).resolve().parent.parent, type=pathlib.Path)
    root = parser.parse_args().root.resolve()
    files = edges = faults = 0
    for layer in ALLOWED:
        for source in sorted((root / layer).rglob("*")):
            if source.suffix not in SUFFIXES:
                continue
            files += 1
            path = source.relative_to(root).as_posix()
            for number, line in enumerate(source.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                target = match and resolve(root, source, match[1])
                if not target:
                    continue
                edges += 1
                why = forbidden(path, target)
                if why:
                    faults += 1
                    print(f'{path}:{number}: "{match[1]}": {why}')
    print(f"{files} files, {edges} includes, {faults} against the layers")
    return 1 if faults or not edges else 0


if __name__ == "__main__":
    sys.exit(main())
