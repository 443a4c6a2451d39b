# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Measures the cost of a view compared with a table of the same query.

CREATE is compared with CREATE TABLE AS, and REFRESH with INSERT OVERWRITE, in one session and in
a new process. Five TPC-H queries are stored USING parquet, and a thousandth of the rows of each
table is updated. Three views of many rows are stored USING delta, and 300 facts are updated.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from statistics import median
from typing import Any

from cost_side import FACTS, TPCH
from measuring import RESULTS, measure_each, number, surroundings


def main() -> None:
    """Run the workloads of the command line, and print and save the table."""
    options = _options()
    about = {"scale": options.scale, "facts": options.facts, **surroundings()}
    plan = [
        (
            {"workload": name},
            {
                "workload": name,
                "size": options.facts if name in FACTS else options.scale,
                "rounds": options.rounds,
                "memory": options.memory,
                "jar": options.jar,
            },
        )
        for name in options.workloads
    ]
    measure_each("cost_side.py", plan, about, render, options)


def _options() -> argparse.Namespace:
    known = [*TPCH, *FACTS]
    parser = argparse.ArgumentParser(prog="dev/bench cost", description=__doc__)
    parser.add_argument("workloads", nargs="*", metavar="workload", help=", ".join(known))
    parser.add_argument("--scale", type=float, default=1, help="TPC-H's scale factor")
    parser.add_argument("--facts", type=number, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jar", default="", help="jar to measure in place of the wheel's jar")
    parser.add_argument("--memory", default="6g")
    parser.add_argument("--timeout", type=int, default=3600)
    parser.add_argument("--output", type=Path, default=RESULTS / "cost")
    options = parser.parse_args()
    options.workloads = options.workloads or known
    unknown = [name for name in options.workloads if name not in known]
    if unknown:
        parser.error(f"no workload {', '.join(unknown)}; there are {', '.join(known)}")
    return options


def render(about: dict[str, Any], found: list[dict[str, Any]]) -> str:
    """Write the table: a line per workload, and the geometric means."""
    versions = sorted({one["version"] for one in found if "version" in one})
    lines = [
        f"{'; '.join(versions)}; {about['machine']}; commit {about['commit']}",
        f"TPC-H of scale {about['scale']:g}, {about['facts']:,} facts; {about['started']}",
        "Seconds; later: the median of later refreshes, and of INSERT OVERWRITE; new: in a new",
        "process; small: a later refresh with a tenth of the rows; jobs: of a later refresh;",
        "read: the bytes it reads, beside: the bytes kept beside the view, both divided by the",
        "compressed bytes of the columns that the query reads",
        "",
        f"{'':<6}{'CTAS':>7}{'CREATE':>8}{'first':>7}{'later':>7}{'overwr.':>8}{'new':>7}{'overwr.':>8}"
        f"{'jobs':>6} |{'CREATE':>8}{'+first':>8}{'later':>8}{'new':>8}{'small':>8}"
        f"{'read':>8}{'beside':>8}",
    ]
    ratios: dict[str, list[list[float]]] = {"TPC-H": [], "facts": []}
    for one in found:
        if "error" in one:
            lines.append(f"{one['workload']:<6}{one['error']}")
            continue
        later = median(refresh["seconds"] for refresh in one["refreshes"])
        overwrite = median(overwrite["seconds"] for overwrite in one["overwrites"])
        small = median(refresh["seconds"] for refresh in one["small"]["refreshes"])
        ctas, create, first = (one[name]["seconds"] for name in ("ctas", "create", "first"))
        jobs = median(refresh["jobs"] for refresh in one["refreshes"])
        each = [
            create / ctas,
            (create + first) / ctas,
            later / overwrite,
            one["new_refresh"] / one["new_overwrite"],
            later / small,
            median(refresh["read"] for refresh in one["refreshes"]) / one["used"],
            one["beside"] / one["used"],
        ]
        if one["workload"] != "days":
            ratios["facts" if one["workload"] in FACTS else "TPC-H"].append(each)
        seconds = [
            ctas,
            create,
            first,
            later,
            overwrite,
            one["new_refresh"],
            one["new_overwrite"],
        ]
        widths = [7, 8, 7, 7, 8, 7, 8]
        lines.append(
            f"{one['workload']:<6}"
            + "".join(
                f"{value:>{width}.2f}" for value, width in zip(seconds, widths, strict=True)
            )
            + f"{jobs:>6.0f} |"
            + "".join(f"{ratio:>8.2f}" for ratio in each)
            + ("" if one["right"] else "  WRONG")
        )
    for name, rows in ratios.items():
        if rows:
            means = [math.prod(column) ** (1 / len(rows)) for column in zip(*rows, strict=True)]
            lines.append(f"mean of {name:<50} |" + "".join(f"{mean:>8.2f}" for mean in means))
    written = [one for one in found if one.get("written")]
    if written:
        lines += ["", "Seconds of the jobs that write the changed rows, in a later refresh:"]
    for one in written:
        sink, merge, replaced = (
            median(each[name] for each in one["written"]) for name in ("sink", "merge", "replace")
        )
        lines.append(
            f"{one['workload']:<6}{sink:>7.2f}, Delta's MERGE {merge:.2f} ({sink / merge:.2f}), "
            f"DELETE and INSERT {replaced:.2f} ({sink / replaced:.2f})"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
