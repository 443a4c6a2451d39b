# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Measures whether the cost of a batch depends on the changes alone, not on the state.

Each operator first reads a history of a given size. Small batches of changes follow, or of new
rows that advance a watermark. A query of one aggregate in stock Spark runs for comparison. The
times are from the query's progress reports: the whole batch, and its parts planning and running.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from growth_side import OPERATORS, STOCK
from growth_time import TIMED
from measuring import (
    CACHE,
    PROVIDER,
    RESULTS,
    STATES,
    measure_each,
    number,
    surroundings,
)
from report import part_cells, part_names, percentile, seconds_of


def main() -> None:
    """Run the operators of the command line, and print and save the table."""
    options = _options()
    about = {
        "sizes": options.sizes,
        "partitions": options.partitions,
        "changes": options.changes,
        "batches": options.batches,
        "memory": options.memory,
        **surroundings(),
    }
    states: dict[str, dict[str, str]] = {name: STATES[name] for name in options.state}
    states |= {n: {PROVIDER: c} for n, c in (given.split("=", 1) for given in options.provider)}
    plan = [
        (
            {"operator": operator, "state": state},
            {
                "operator": operator,
                "cache": str(CACHE / "bench"),
                "sizes": options.sizes,
                "partitions": options.partitions,
                "changes": options.changes,
                "batches": options.batches,
                "settings": settings | dict(given.split("=", 1) for given in options.settings),
                "memory": options.memory,
                "anew": options.anew,
            },
        )
        for operator in options.operators
        for state, settings in states.items()
    ]
    measure_each("growth_side.py", plan, about, render, options)


def _options() -> argparse.Namespace:
    names = [*OPERATORS, *TIMED, STOCK]
    parser = argparse.ArgumentParser(prog="dev/bench growth", description=__doc__)
    parser.add_argument("operator", nargs="*", help=f"any of {', '.join(names)}; default: all")
    parser.add_argument("--sizes", nargs="+", type=number, default=[100_000, 1_000_000])
    parser.add_argument("--partitions", nargs="+", type=int, default=[2, 200])
    parser.add_argument("--changes", type=int, default=1000, help="changes in a batch")
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--state", nargs="+", choices=STATES, default=["pages"])
    parser.add_argument("--provider", action="append", default=[], metavar="NAME=CLASS")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="settings"
    )
    parser.add_argument("--memory", default="6g")
    parser.add_argument(
        "--anew",
        action="store_true",
        help="also measure batch Spark: compute the history's result, and write rows and state",
    )
    parser.add_argument("--timeout", type=int, default=1800)
    parser.add_argument("--output", type=Path, default=RESULTS / "growth")
    options = parser.parse_args()
    options.operators = options.operator or names
    unknown = [name for name in options.operators if name not in names]
    if unknown:
        parser.error(f"no operator {', '.join(unknown)}; there are {', '.join(names)}")
    return options


def render(about: dict[str, Any], found: list[dict[str, Any]]) -> str:
    """Write the table: a line per operator, size and number of partitions."""
    versions = sorted({one["version"] for one in found if "version" in one})
    lines = [
        f"{'; '.join(versions)}; {about['machine']}; commit {about['commit']}",
        f"{about['batches']} batches of {about['changes']:,} changes; seconds; heap "
        f"{about['memory']}; {about['started']}",
        "growth: the median batch as a multiple of that with the smallest state; B: bytes "
        "of a record of state, and of checkpoint and shuffles for each row read; classes: "
        "generated and compiled in all batches",
        "",
        f"{'':<17}{'state':<9}{'partitions':>11}{'rows':>12}{part_names()}{'growth':>8}{'history':>9}{'anew':>7}"
        f"{'MB':>7}{'B state':>9}{'B disk':>8}{'B shuffle':>11}"
        f"{'classes':>9}",
    ]
    for one in found:
        head = f"{one['operator']:<17}{one['state']:<9}"
        if "error" in one:
            lines.append(f"{head}{one['error']}")
            continue
        for partitions in about["partitions"]:
            runs = [run for run in one["runs"] if run["partitions"] == partitions]
            first = _median(runs[0])
            lines += [f"{head}{_line(run, first)}" for run in runs]
    return "\n".join(lines)


def _median(run: dict[str, Any]) -> float:
    return percentile(seconds_of(run["durations"], "triggerExecution"), 0.5)


def _line(run: dict[str, Any], first: float) -> str:
    cells = part_cells(run["durations"])
    anew = f"{run['anew_seconds']:.1f}" if "anew_seconds" in run else ""
    return (
        f"{run['partitions']:>11}{run['rows']:>12,}{cells}{_median(run) / first:>8.2f}"
        f"{run['history_seconds']:>9.1f}{anew:>7}{run['state_bytes'] / 2**20:>7.0f}"
        f"{run['state_bytes'] / max(1, run['state_rows']):>9.0f}{run['disk_bytes_per_row']:>8.0f}"
        f"{run['shuffle_bytes_per_row']:>11.0f}{run['classes']:>9}"
    )


if __name__ == "__main__":
    main()
