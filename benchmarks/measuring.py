# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Runs measurements in separate processes, and saves the results."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

ROOT = Path(__file__).parents[1]
CACHE = ROOT / ".cache"
RESULTS = Path(__file__).with_name("results")
PREFIX = "RESULT "
OURS = "ours"  # the name of the wheel's build among several builds

_STATE = "org.apache.spark.sql.execution.streaming.state"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
MEMORY = {PROVIDER: f"{_STATE}.HDFSBackedStateStoreProvider"}
ROCKSDB = {PROVIDER: f"{_STATE}.RocksDBStateStoreProvider"}
STATES: dict[str, dict[str, str]] = {"pages": {}, "memory": MEMORY, "rocksdb": ROCKSDB}


def number(text: str) -> int:
    """Read ``200k`` or ``5M``.

    >>> number("5M")
    5000000
    """
    units = {"k": 1000, "m": 1_000_000}
    unit = units.get(text[-1].lower())
    return int(text) if unit is None else int(float(text[:-1]) * unit)


def builds(given: list[str]) -> dict[str, str]:
    """Read the names and jars of builds to compare with the wheel's build.

    >>> builds(["before=old.jar"])
    {'before': 'old.jar', 'ours': ''}
    """
    return dict(one.split("=", 1) for one in given) | {OURS: ""}


def measure(command: list[str], log: Path, timeout: int) -> dict[str, Any]:
    """Run a process, and return its last printed result, or its error as a result."""
    with log.open("w") as errors:
        try:
            done = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                timeout=timeout,
                cwd=ROOT,
            )
        except subprocess.TimeoutExpired:
            return {"error": f"took more than {timeout} s"}
    results = [line for line in done.stdout.splitlines() if line.startswith(PREFIX)]
    log.write_text(done.stdout + log.read_text())
    if done.returncode or not results:
        return {"error": f"exit code {done.returncode}, see {log}"}
    found: dict[str, Any] = json.loads(results[-1].removeprefix(PREFIX))
    return found


def measure_side(script: str, task: dict[str, Any], log: Path, timeout: int) -> dict[str, Any]:
    """Run a script of this folder with a task, in a separate process."""
    path = Path(__file__).with_name(script)
    return measure([sys.executable, str(path), json.dumps(task)], log, timeout)


def measure_each(
    script: str,
    plan: Sequence[tuple[dict[str, Any], dict[str, Any]]],
    about: dict[str, Any],
    render: Callable[[dict[str, Any], list[dict[str, Any]]], str],
    options: argparse.Namespace,
    name: str = "found",
) -> None:
    """Run a script with each task in turn, and print and save the table of results.

    ``plan`` has pairs of the columns to identify a task, and the task. ``name`` is the key of the
    results in the saved document.
    """
    logs = Path(tempfile.mkdtemp(prefix="bench-logs-"))
    found: list[dict[str, Any]] = []
    text = ""
    progress = tqdm(plan, file=sys.stderr, smoothing=0)
    for told, task in progress:
        label = " ".join(map(str, told.values()))
        progress.set_postfix_str(label)
        log = logs / f"{label.replace(' ', '-')}.log"
        found.append({**told, **measure_side(script, task, log, options.timeout)})
        text = render(about, found)
        keep(options.output, {**about, name: found}, text)
    print(text)
    if any("error" in one for one in found):
        sys.exit(f"some runs failed; their logs are in {logs}")
    shutil.rmtree(logs)
    if not all(one.get("right", True) for one in found):
        sys.exit("some results are wrong")


def generate_apart(code: str, folder: Path, *sizes: float) -> None:
    """Generate data in a separate process, to keep its memory out of the measurement.

    ``code`` has the folder and the sizes in ``sys.argv``, and a session in ``s``.
    """
    session = "import sys, pathlib, data, sessions; s = sessions.session({}, '4g'); "
    command = [sys.executable, "-c", session + code, str(folder), *map(str, sizes)]
    subprocess.run(command, check=True, cwd=Path(__file__).parent)


def generate_events(folder: Path, events: int) -> None:
    """Generate the tables for a number of Nexmark events."""
    print(f"generating {events:,} events", file=sys.stderr)
    code = "data.generate(s, pathlib.Path(sys.argv[1]), int(sys.argv[2]))"
    generate_apart(code, folder, events)


def keep(output: Path, document: dict[str, Any], text: str) -> None:
    """Save the results so far as text and JSON, for the case of an interrupted run."""
    output.parent.mkdir(parents=True, exist_ok=True)
    Path(f"{output}.json").write_text(json.dumps(document, indent=1) + "\n")
    Path(f"{output}.txt").write_text(text + "\n")


def surroundings() -> dict[str, Any]:
    """Return the time, the machine, the commit and the arguments of this run."""
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    asked = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    asked.add_argument("--output")  # left out of the results: a local path
    return {
        "command": " ".join(asked.parse_known_args()[1]),
        "started": time.strftime("%Y-%m-%d %H:%M"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "commit": done.stdout.strip() or "unknown",
    }
