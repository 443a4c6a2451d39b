# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Measures the queries of TPC-H and Nexmark: the time of a batch, and of a recompute.

TPC-H's tables arrive in one batch. Ten batches of changes follow, each to a thousandth of the
rows. Nexmark's events arrive in ten batches of equal size. Every result is compared with batch
Spark's. Each query first runs twice over small tables, to compile most of its code. To measure
long-running queries, set --batches, --warm and --anew. With --jar, several builds of this project
take turns with the wheel's build.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

import data
from measuring import (
    CACHE,
    OURS,
    RESULTS,
    ROOT,
    STATES,
    builds,
    generate_apart,
    generate_events,
    measure_each,
    number,
    surroundings,
)
from report import geometric_mean, percentile
from suites_side import MOST_BATCHES

WARM_SCALE = 0.01
WARM_BATCHES = 10
WARM_EVENTS = 50_000


def main() -> None:
    """Run the queries of the command line, and print and save the table."""
    options = _options()
    about = {
        "scale": options.scale,
        "events": options.events,
        "memory": options.memory,
        "state": options.state,
        "batches": options.batches,
        "warm": options.warm,
        "anew": options.anew,
        **surroundings(),
    }
    folders = {
        "tpch": CACHE / "bench" / f"tpch-{options.scale:g}-{options.batches}",
        "nexmark": CACHE / "bench" / str(options.events),
    }
    warm = {
        "tpch": CACHE / "bench" / f"tpch-{WARM_SCALE:g}-{WARM_BATCHES}",
        "nexmark": CACHE / "bench" / str(WARM_EVENTS),
    }
    suites = {suite for suite, _ in options.queries}
    _generate(folders, suites, options.scale, options.batches, options.events)
    _generate(warm, suites, WARM_SCALE, WARM_BATCHES, WARM_EVENTS)
    jars = builds(options.jar)
    plan = [
        (
            {"suite": suite, "query": query, "build": build},
            {
                "suite": suite,
                "query": query,
                "folder": str(folders[suite]),
                "warm_folder": str(warm[suite]),
                "anew": options.anew,
                "settings": STATES[options.state],
                "memory": options.memory,
                "jar": jar,
            },
        )
        for suite, query in options.queries
        for build, jar in jars.items()
    ]
    measure_each("suites_side.py", plan, about, render, options)


def _options() -> argparse.Namespace:
    known = {
        suite: sorted(path.stem for path in (ROOT / "tests" / "sql" / suite).glob("*.sql"))
        for suite in ("tpch", "nexmark")
    }
    parser = argparse.ArgumentParser(prog="dev/bench suites", description=__doc__)
    parser.add_argument(
        "query", nargs="*", help="tpch, nexmark, or one query such as tpch/q03; default: all"
    )
    parser.add_argument("--scale", type=float, default=0.1, help="TPC-H's scale factor")
    parser.add_argument("--events", type=number, default=1_000_000, help="Nexmark events")
    parser.add_argument("--batches", type=int, default=10, help="batches of TPC-H's changes")
    parser.add_argument(
        "--warm", type=int, default=0, help="unmeasured batches after the first batch"
    )
    parser.add_argument("--anew", type=int, default=3, help="number of recomputes")
    parser.add_argument("--jar", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--state", choices=STATES, default="pages")
    parser.add_argument("--memory", default="6g")
    parser.add_argument("--timeout", type=int, default=900)
    parser.add_argument("--output", type=Path, default=RESULTS / "suites")
    options = parser.parse_args()
    if options.batches > MOST_BATCHES:
        parser.error(f"there are changes for {MOST_BATCHES} batches at most")
    options.queries = []
    for given in options.query or list(known):
        suite, _, query = given.partition("/")
        if suite not in known or (query and query not in known[suite]):
            parser.error(f"no query {given}; there are tpch, nexmark, tpch/q01, nexmark/q0, …")
        queries = [query] if query else known[suite]
        options.queries += [(suite, name) for name in queries]
    return options


def _generate(
    folders: dict[str, Path], suites: set[str], scale: float, batches: int, events: int
) -> None:
    if "tpch" in suites and not (folders["tpch"] / "done").exists():
        print(f"generating TPC-H of scale {scale:g}", file=sys.stderr)
        code = "import suites_side; "
        code += "suites_side.generate_tpch(s, pathlib.Path(sys.argv[1]), float(sys.argv[2]), "
        code += "int(sys.argv[3]))"
        generate_apart(code, folders["tpch"], scale, batches)
    if "nexmark" in suites and not data.is_there(folders["nexmark"]):
        generate_events(folders["nexmark"], events)


def render(about: dict[str, Any], found: list[dict[str, Any]]) -> str:
    """Write the table, a line per query."""
    versions = sorted({one["version"] for one in found if "version" in one})
    width = 14 + max(0 if one["build"] == OURS else len(one["build"]) for one in found)
    lines = [
        f"{'; '.join(versions)}; {about['machine']}; commit {about['commit']}",
        f"TPC-H of scale {about['scale']:g}, Nexmark of {about['events']:,} events; state in "
        f"{about['state']}; heap {about['memory']}; {about['started']}",
        f"seconds; a batch: the median of those after the first {1 + about['warm']}; gain: what "
        f"computing anew takes, the best of {about['anew']}, as a multiple of a batch; tables "
        "MB: files; classes: generated and compiled in all batches",
        "",
        f"{'':<{width}}{'first':>8}{'batch':>8}{'p99':>8}{'anew':>8}{'gain':>8}{'rows out':>10}"
        f"{'state rows':>12}{'state MB':>10}{'tables MB':>11}{'classes':>9}  result",
    ]
    gains: dict[str, list[float]] = {}
    for one in found:
        build = one["build"]
        name = one["suite"] + "/" + one["query"] + ("" if build == OURS else " " + build)
        head = f"{name:<{width}}"
        if "error" in one:
            lines.append(f"{head}{one['error']}")
            continue
        first, *later = one["batch_seconds"]
        later = later[about["warm"] :] or [first]
        batch = statistics.median(later)
        anew = min(one["recompute_seconds"])
        gains.setdefault(f"{one['suite']} {build}", []).append(anew / batch)
        lines.append(
            f"{head}{first:>8.2f}{batch:>8.2f}{percentile(later, 0.99):>8.2f}"
            f"{anew:>8.2f}{anew / batch:>8.2f}{one['emitted']:>10,}{one['state_rows']:>12,}"
            f"{one['state_bytes'] / 2**20:>10.0f}{one['table_bytes'] / 2**20:>11.1f}"
            f"{one['classes']:>9}  {'right' if one['right'] else 'WRONG'}"
        )
    for suite, ratios in gains.items():
        lines.append(
            f"{suite.removesuffix(' ' + OURS)}: geometric mean of the gains "
            f"{geometric_mean(ratios):.2f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
