# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Runs what is measured in processes of their own, and keeps what they found."""

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
OURS = "ours"  # the build that is measured, of those that take turns

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
    """Read names and jars of other builds, which take turns with that of the wheel.

    >>> builds(["before=old.jar"])
    {'before': 'old.jar', 'ours': ''}
    """
    return dict(one.split("=", 1) for one in given) | {OURS: ""}


def measure(command: list[str], log: Path, timeout: int) -> dict[str, Any]:
    """Run a process and read the last result it prints; what goes wrong is a result as well."""
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
    """Give a task to a script beside this one, in a process of its own."""
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
    """Give one task after the other to a script, and print and keep the table of what they found.

    ``plan`` has what tells a task from others, and the task; ``name`` is what the results are
    called where they are kept.
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
    """Generate in a process of its own, whose memory then doesn't count.

    ``code`` finds the folder and the sizes in ``sys.argv``, and a session in ``s``.
    """
    session = "import sys, pathlib, data, sessions; s = sessions.session({}, '4g'); "
    command = [sys.executable, "-c", session + code, str(folder), *map(str, sizes)]
    subprocess.run(command, check=True, cwd=Path(__file__).parent)


def generate_events(folder: Path, events: int) -> None:
    """Generate the tables of so many events of Nexmark."""
    print(f"generating {events:,} events", file=sys.stderr)
    code = "data.generate(s, pathlib.Path(sys.argv[1]), int(sys.argv[2]))"
    generate_apart(code, folder, events)


def keep(output: Path, document: dict[str, Any], text: str) -> None:
    """Write what is known so far, as text and JSON: a run that is cut short is not lost."""
    output.parent.mkdir(parents=True, exist_ok=True)
    Path(f"{output}.json").write_text(json.dumps(document, indent=1) + "\n")
    Path(f"{output}.txt").write_text(text + "\n")


def surroundings() -> dict[str, Any]:
    """Tell when and where this runs, of what commit, and what was asked for."""
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    asked = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    asked.add_argument("--output")  # a path of this machine
    return {
        "command": " ".join(asked.parse_known_args()[1]),
        "started": time.strftime("%Y-%m-%d %H:%M"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "commit": done.stdout.strip() or "unknown",
    }
