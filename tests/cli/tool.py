"""Runs the tool that FMHC_TEST_TOOL names, with an environment free of the caller's FLASHMHC_* variables."""

import json
import os
import pathlib
import subprocess

TOOL = os.environ["FMHC_TEST_TOOL"]
SOURCE = pathlib.Path(os.environ["FMHC_TEST_SOURCE"])


def run(*arguments: object, **variables: str) -> subprocess.CompletedProcess:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FLASHMHC_")}
    return subprocess.run(
        [TOOL, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL,
        env={**environment, **variables})


def answer(*arguments: object, code: int = 0, **variables: str) -> dict:
    """The JSON object that `--json` prints, after checking the exit code."""
    result = run(*arguments, "--json", **variables)
    if result.returncode != code:
        raise AssertionError(f"exit {result.returncode}, expected {code}: {arguments}\n{result.stderr}")
    return json.loads(result.stdout)
