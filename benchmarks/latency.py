# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Measures the time of a batch of one row, independent of the state.

Each row is a batch. The queries are one aggregate, in stock Spark and in this project, and five
joins with an aggregate. The times are from the query's progress reports, the CPU times from the
JVM's threads. With --jar, several builds of this project take turns with the wheel's build.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from latency_side import CPU, QUERIES, STOCK
from measuring import OURS, RESULTS, builds, measure_each, surroundings
from report import part_cells, part_names


def main() -> None:
    """Run the queries of the command line, and print and save the table."""
    options = _options()
    about = {
        "batches": options.batches,
        "warm": options.warm,
        "memory": options.memory,
        **surroundings(),
    }
    jars = builds(options.jar)
    plan = [
        (
            {"query": query, "build": build, "turn": turn},
            {
                "query": query,
                "batches": options.batches,
                "warm": options.warm,
                "settings": dict(given.split("=", 1) for given in options.settings),
                "memory": options.memory,
                "jar": jars[build],
            },
        )
        for query in options.queries
        for turn in range(options.repeat)
        for build in jars
        if query != STOCK or build == OURS
    ]
    measure_each("latency_side.py", plan, about, render, options, name="runs")


def _options() -> argparse.Namespace:
    names = [*QUERIES, STOCK]
    parser = argparse.ArgumentParser(prog="dev/bench latency", description=__doc__)
    parser.add_argument("query", nargs="*", help=f"any of {', '.join(names)}; default: all")
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--warm", type=int, default=200, help="unmeasured batches at the start")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--jar", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="settings"
    )
    parser.add_argument("--memory", default="4g")
    parser.add_argument("--timeout", type=int, default=1800)
    parser.add_argument("--output", type=Path, default=RESULTS / "latency")
    options = parser.parse_args()
    options.queries = options.query or names
    unknown = [name for name in options.queries if name not in names]
    if unknown:
        parser.error(f"no query {', '.join(unknown)}; there are {', '.join(names)}")
    return options


def render(about: dict[str, Any], runs: list[dict[str, Any]]) -> str:
    """Write the table: a line per query, build and turn."""
    versions = sorted({run["version"] for run in runs if "version" in run})
    lines = [
        f"{'; '.join(versions)}; {about['machine']}; commit {about['commit']}",
        f"{about['batches']} batches of one row, after {about['warm']}; seconds; then ms of CPU "
        f"a batch; heap {about['memory']}; {about['started']}",
        "",
        f"{'':<17}{'build':<10}{part_names()}" + "".join(f"{name:>10}" for name in [*CPU, "all"]),
    ]
    for run in runs:
        head = f"{run['query']:<17}{run['build']:<10}"
        lines.append(f"{head}{run['error']}" if "error" in run else f"{head}{_line(run)}")
    return "\n".join(lines)


def _line(run: dict[str, Any]) -> str:
    spent = [run["cpu_ms"].get(name, 0) for name in CPU]
    return part_cells(run["durations"]) + "".join(f"{ms:>10.0f}" for ms in [*spent, sum(spent)])


if __name__ == "__main__":
    main()
