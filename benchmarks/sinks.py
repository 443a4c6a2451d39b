# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Measures the cost of each sink: a database, a Delta table, a topic.

An aggregate of one group per row reads a history, then batches of changes at random positions.
One sink writes the result. The sink `noop` has no effect: the cost of a sink is the difference
from `noop`. The final rows of a target are compared with batch Spark. With --jar, several builds
of this project take turns with the last build.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from tqdm import tqdm

from measuring import CACHE, OURS, RESULTS, ROOT, builds, keep, measure_side, number, surroundings
from sinks_side import SERVICES, SINKS

Run = dict[str, Any]


def main() -> None:
    """Run the sinks of the command line, and print and save the table."""
    options = _options()
    about = {
        "rows": options.rows,
        "changes": options.changes,
        "batches": options.batches,
        "repeat": options.repeat,
        "memory": options.memory,
        **surroundings(),
    }
    jars = builds(options.jar)
    logs = Path(tempfile.mkdtemp(prefix="bench-logs-"))
    runs: list[Run] = []
    text = ""
    plan = [
        (sink, turn, build)
        for sink in options.sinks
        for turn in range(options.repeat)
        for build in jars
    ]
    with _services(options.sinks) as addresses:
        progress = tqdm(plan, file=sys.stderr, smoothing=0)
        for sink, turn, build in progress:
            progress.set_postfix_str(f"{sink} {build}")
            task = {
                "sink": sink,
                "name": f"{sink}_{build}_{turn}",
                "cache": str(CACHE / "bench"),
                "rows": options.rows,
                "changes": options.changes,
                "batches": options.batches,
                "jar": jars[build],
                "address": addresses.get(SERVICES.get(sink, ""), {}),
                "memory": options.memory,
            }
            log = logs / f"{sink}-{build}-{turn}.log"
            result = measure_side("sinks_side.py", task, log, options.timeout)
            runs.append({"sink": sink, "build": build, "turn": turn, **result})
            text = render(about, runs)
            keep(options.output, {**about, "runs": runs}, text)
    print(text)
    if any(not run.get("right", False) for run in runs):
        sys.exit(f"some runs failed or were wrong; their logs are in {logs}")
    shutil.rmtree(logs)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev/bench sinks", description=__doc__)
    parser.add_argument("sink", nargs="*", help=f"any of {', '.join(SINKS)}; default: all")
    parser.add_argument("--rows", type=number, default=1_000_000)
    parser.add_argument("--changes", type=number, default=100_000, help="changes in a batch")
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--jar", action="append", default=[], metavar="NAME=JAR")
    parser.add_argument("--memory", default="6g")
    parser.add_argument("--timeout", type=int, default=1800)
    parser.add_argument("--output", type=Path, default=RESULTS / "sinks")
    options = parser.parse_args()
    options.sinks = options.sink or list(SINKS)
    unknown = [name for name in options.sinks if name not in SINKS]
    if unknown:
        parser.error(f"no sink {', '.join(unknown)}; there are {', '.join(SINKS)}")
    return options


@contextmanager
def _services(sinks: list[str]) -> Iterator[dict[str, Any]]:
    """Run the servers of the sinks, and yield their connection settings."""
    wanted = sorted({SERVICES[sink] for sink in sinks if sink in SERVICES})
    if not wanted:
        yield {}
        return
    command = [sys.executable, str(ROOT / "dev" / "services"), "run", *wanted]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        addresses: dict[str, Any] = json.loads(process.stdout.readline())
        try:
            for name in wanted:
                if "missing" in addresses[name]:
                    sys.exit(f"{name} is needed: {addresses[name]['missing']}")
            yield addresses
        finally:
            process.stdin.close()


def render(about: dict[str, Any], runs: list[Run]) -> str:
    """Write the table: a line per sink and build."""
    versions = sorted({run["version"] for run in runs if "version" in run})
    lines = [
        f"{'; '.join(versions)}; {about['machine']}; commit {about['commit']}",
        f"{about['rows']:,} groups, then {about['batches']} batches of {about['changes']:,} "
        f"changes; seconds, medians of {about['repeat']} runs; heap {about['memory']}; "
        f"{about['started']}",
        "batch: the median batch of changes; sink: what of it is above that of noop; x: as a "
        f"multiple of what {OURS} takes; cpu: of the JVM, all batches",
        "",
        f"{'':<10}{'':<10}{'history':>9}{'x':>7}{'batch':>9}{'x':>7}{'sink':>9}{'x':>7}"
        f"{'in all':>9}{'x':>7}{'cpu':>9}{'x':>7}{'shuffle MB':>12}{'result':>8}",
    ]
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run["sink"], run["build"]), []).append(run)
    for (sink, build), found in groups.items():
        head = f"{sink:<10}{build:<10}"
        errors = [run["error"] for run in found if "error" in run]
        if errors:
            lines.append(f"{head}{errors[0]}")
            continue
        own = _times(groups, sink, build)
        ours = _times(groups, sink, OURS)
        cells = ""
        for part, seconds in own.items():
            of_ours = ours.get(part, 0)
            ratio = f"{seconds / of_ours:.2f}" if of_ours > 0 else ""
            cells += f"{seconds:>9.2f}{ratio:>7}"
        shuffled = found[0]["shuffled_bytes"] / 2**20
        is_right = all(run["right"] for run in found)
        lines.append(f"{head}{cells}{shuffled:>12.0f}{'right' if is_right else 'WRONG':>8}")
    return "\n".join(lines)


def _times(groups: dict[tuple[str, str], list[Run]], sink: str, build: str) -> dict[str, float]:
    """Return the median times of a sink's runs, and their differences from `noop`."""
    runs = [run for run in groups.get((sink, build), []) if "error" not in run]
    if not runs:
        return {}
    batch = median(median(run["batches"]) for run in runs)
    found = {"history": median(run["history"] for run in runs), "batch": batch}
    idle = [run for run in groups.get(("noop", build), []) if "error" not in run]
    found["sink"] = batch - median(median(run["batches"]) for run in idle) if idle else 0.0
    found["all"] = median(run["history"] + sum(run["batches"]) for run in runs)
    found["cpu"] = median(run["cpu"] for run in runs)
    return found


if __name__ == "__main__":
    main()
