# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Tables of measured results."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

Run = dict[str, Any]

_MB = 2**20


# The parts of a batch's time: the name in the query's progress reports, and in our tables.
PARTS = {"triggerExecution": "batch", "queryPlanning": "planning", "addBatch": "run"}


def seconds_of(durations: Sequence[dict[str, int]], part: str) -> list[float]:
    """Return the seconds of a part of each batch."""
    return [batch.get(part, 0) / 1000 for batch in durations]


def part_names() -> str:
    """Return the headings of the columns of `part_cells`."""
    return "".join(f"{f'{part} p50':>14}{'p99':>7}" for part in PARTS.values())


def part_cells(durations: Sequence[dict[str, int]]) -> str:
    """Return the median and the 99th percentile of each part of the batches."""
    parts = [seconds_of(durations, part) for part in PARTS]
    return "".join(f"{percentile(s, 0.5):>14.3f}{percentile(s, 0.99):>7.3f}" for s in parts)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value with at least this share of the values at or below.

    >>> percentile([3, 1, 2], 0.5), percentile([3, 1, 2], 0.99)
    (2, 3)
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of ratios.

    >>> geometric_mean([1, 4])
    2.0
    """
    return statistics.geometric_mean(values)


def run_line(run: Run) -> str:
    """Return a line about one finished run, to print during a measurement."""
    head = f"{run['workload']:<5}{run['contestant']:<20}"
    if "error" in run:
        return f"{head}{run['error']}"
    return f"{head}{run['seconds']:>8.2f} s"


def is_right(run: Run, runs: Sequence[Run]) -> bool | None:
    """Tell whether a run's final rows equal batch Spark's rows. None means unknown."""
    if "error" in run or run.get("sum") is None:
        return None
    for other in runs:
        of_batch = other["contestant"] == "batch" and "sum" in other
        if of_batch and other["workload"] == run["workload"]:
            return (run["count"], run["sum"]) == (other["count"], other["sum"])
    return None


def wrong(runs: Sequence[Run]) -> list[Run]:
    """Return the runs with wrong results, except runs of stock Spark (known to be wrong)."""
    return [
        run
        for run in runs
        if is_right(run, runs) is False and not run["contestant"].startswith("stock")
    ]


def render(about: dict[str, Any], runs: Sequence[Run]) -> str:
    """Write the report: versions, every contestant's figures, and the ratios."""
    versions = sorted({run["version"] for run in runs if "version" in run})
    lines = [
        f"{'; '.join(versions)}; {about['machine']}; commit {about['commit']}",
        f"{about['events']:,} events in {about['batches']} batches, after {about['warm_runs']} x "
        f"{about['warm']:,} in the same process; {about['master']}, heap {about['memory']}; "
        f"median of {about['repeat']} runs, in turn; {about['started']}",
        "",
        f"{'':<5}{'':<20}{'seconds':>9}{'x ours':>8}{'rows out':>12}{'result':>8}{'peak MB':>9}"
        f"{'state MB':>10}{'p50 s':>8}{'p99 s':>8}",
    ]
    medians = _medians(runs)
    for (workload, name), found in _grouped(runs).items():
        lines.append(_line(workload, name, found, runs, medians.get((workload, "ours"))))
    return "\n".join([*lines, "", *_ratios(medians)])


def _grouped(runs: Sequence[Run]) -> dict[tuple[str, str], list[Run]]:
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run["workload"], run["contestant"]), []).append(run)
    return groups


def _medians(runs: Sequence[Run]) -> dict[tuple[str, str], float]:
    return {
        pair: statistics.median(run["seconds"] for run in found if "seconds" in run)
        for pair, found in _grouped(runs).items()
        if any("seconds" in run for run in found)
    }


def _line(
    workload: str, name: str, found: list[Run], runs: Sequence[Run], ours: float | None
) -> str:
    head = f"{workload:<5}{name:<20}"
    done = [run for run in found if "seconds" in run]
    if not done:
        return f"{head} {found[0]['error']}"
    seconds = statistics.median(run["seconds"] for run in done)
    last, right = done[0], is_right(done[0], runs)
    batches = [second for run in done for second in run.get("batch_seconds", [])]

    def megabytes(key: str) -> str:
        values = [run[key] for run in done if run.get(key) is not None]
        return f"{max(values) / _MB:.0f}" if values else ""

    return (
        f"{head}{seconds:>9.2f}{f'{seconds / ours:.2f}' if ours else '':>8}"
        f"{last['emitted'] if 'emitted' in last else last['count']:>12,}"
        f"{ {True: 'right', False: 'WRONG', None: '?'}[right]:>8}"
        f"{megabytes('peak_bytes'):>9}{megabytes('state_bytes'):>10}"
        + (
            f"{percentile(batches, 0.5):>8.2f}{percentile(batches, 0.99):>8.2f}"
            if batches
            else ""
        )
        + (f"  {len(found) - len(done)} failed" if len(done) < len(found) else "")
    )


def _ratios(medians: dict[tuple[str, str], float]) -> list[str]:
    """Compare each of our contestants with the best of each other kind, per workload."""
    names = list(dict.fromkeys(name for _, name in medians))
    ours = [name for name in names if name.startswith("ours")]
    groups = {
        f"best {kind}": [name for name in names if name.startswith(kind)]
        for kind in ("flink-heap", "flink-rocksdb", "stock", "batch", "recompute")
    }
    groups = {title: found for title, found in groups.items() if found}
    lines = ["throughput as a multiple of theirs, which take so many times as long", ""]
    for way in ours:
        lines.append(f"{way:<16}" + "".join(f"{title:>20}" for title in groups))
        columns: dict[str, list[float]] = {title: [] for title in groups}
        for workload in dict.fromkeys(workload for workload, _ in medians):
            if (workload, way) not in medians:
                continue
            line = f"  {workload:<14}"
            for title, found in groups.items():
                times = [medians[workload, name] for name in found if (workload, name) in medians]
                if times:
                    ratio = min(times) / medians[workload, way]
                    columns[title].append(ratio)
                    line += f"{ratio:>20.2f}"
                else:
                    line += f"{'':>20}"
            lines.append(line.rstrip())
        means = "".join(
            f"{geometric_mean(ratios):>20.2f}" if ratios else f"{'':>20}"
            for ratios in columns.values()
        )
        lines += [f"  {'geometric mean':<14}{means}", ""]
    return lines
