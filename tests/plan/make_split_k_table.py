#!/usr/bin/env python3
"""Writes the stored table of split counts to standard output; with a file, compares that with it and exits 1.

Written from the rules alone, in exact integers: the planner is tested against it, not it against the planner.
"""

import itertools
import sys

TOKENS = (0, 1, 63, 64, 65, 127, 128, 129, 1000, 1024, 2048, 4096, 4224, 4225, 8448, 8449, 10**7)
FLATS = (1, 64, 255, 256, 1024, 7680, 16384, 20480, 28672, 131072, 2**31 - 64)
UNITS = (1, 78, 108, 132, 148, 160)
HEADER = "tokens,flat,units,sglang,auto,auto_batch_invariant"


def blocks(count: int) -> int:
    return -(-count // 64)


def largest(allowed: list[int], raw: int) -> int:
    return max(size for size in allowed if size <= raw)


def sglang(tokens: int, flat: int, units: int) -> int:
    raw = max(1, min(units // max(blocks(tokens), 1), blocks(flat) // 4))
    return largest([1, 2, 4, 8, 16], raw)


def auto(tokens: int, flat: int, units: int, invariant: bool) -> int:
    by_units = 16 if invariant else units // max(blocks(tokens), 1)
    raw = max(1, min(by_units, blocks(flat) // 4))
    splits = largest([1, 2, 4, 8, 16, 32, 64], raw)
    return next((size for size in (splits << up for up in range(7)) if size == 64 or size * 1024 >= flat), 64)


def table() -> str:
    rows = [HEADER]
    for tokens, flat, units in itertools.product(TOKENS, FLATS, UNITS):
        splits = (sglang(tokens, flat, units), auto(tokens, flat, units, False), auto(tokens, flat, units, True))
        rows.append(",".join(map(str, (tokens, flat, units, *splits))))
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.stdout.write(table())
    else:
        with open(sys.argv[1], encoding="ascii") as stored:
            sys.exit(0 if stored.read() == table() else f"{sys.argv[1]} is not what this script writes")
