# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Measures whether AUTO refreshes a view in the cheapest way.

Each case draws a query, a number of rows, a storage format, a share of changed rows, and whether
the view was refreshed before. Three views of the query are refreshed after the same change: as
AUTO decides, INCREMENTAL and FULL. A case costs what AUTO takes divided by the faster of the
others. The seed determines the cases, and a run with the same output continues.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from measuring import RESULTS, measure_each, surroundings

AT_ONCE = 5  # the number of cases in one process


def main() -> None:
    """Measure the cases of the command line, and print and save the table."""
    parser = argparse.ArgumentParser(prog="dev/bench decisions", description=__doc__)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory", default="6g")
    parser.add_argument("--timeout", type=int, default=1800)
    parser.add_argument("--output", type=Path, default=RESULTS / "decisions")
    options = parser.parse_args()
    about = {"seed": options.seed, **surroundings()}
    done = _done(options)
    plan = []
    for first in range(0, options.cases, AT_ONCE):
        told = {"first": first, "seed": options.seed}
        count = min(AT_ONCE, options.cases - first)
        plan.append((told, {**told, "count": count, "memory": options.memory}))
    left = [(told, task) for told, task in plan if told["first"] not in done]
    measure_each(
        "decisions_side.py",
        left,
        about,
        lambda about, found: render(about, [*done.values(), *found]),
        options,
    )


def _done(options: argparse.Namespace) -> dict[int, dict[str, Any]]:
    """Return the results of an earlier run of this seed, by the first case."""
    earlier = Path(f"{options.output}.json")
    if not earlier.exists():
        return {}
    found = json.loads(earlier.read_text())["found"]
    same = [one for one in found if one["seed"] == options.seed and "error" not in one]
    return {one["first"]: one for one in same}


def render(about: dict[str, Any], found: list[dict[str, Any]]) -> str:
    """Write the table: a line per case, and the geometric mean and largest quotient."""
    lines = [
        f"{about['machine']}; commit {about['commit']}; seed {about['seed']}; {about['started']}",
        "Seconds of a refresh; changed: the share of changed rows; cost: AUTO's time divided by",
        "the time of the faster other way",
        "",
        f"{'case':>4}  {'query':<9}{'format':<9}{'rows':>8}{'changed':>9}{'':>6}{'AUTO':>7}"
        f"{'INCR.':>7}{'FULL':>7}{'cost':>6}  way",
    ]
    costs = []
    for one in found:
        for case in one.get("cases", []):
            best = min(case["incremental"], case["full"])
            costs.append(case["auto"] / best)
            lines.append(
                f"{case['number']:>4}  {case['query']:<9}{case['format']:<9}{case['rows']:>8}"
                f"{case['share']:>9.4f}{'warm' if case['warm'] else 'cold':>6}"
                f"{case['auto']:>7.2f}{case['incremental']:>7.2f}{case['full']:>7.2f}"
                f"{costs[-1]:>6.2f}  {case['way']}: {case['reason']}"
            )
        if "error" in one:
            lines.append(f"{one['first']:>4}  {one['error']}")
    if costs:
        mean = math.exp(sum(map(math.log, costs)) / len(costs))
        lines.append(f"mean of {len(costs)}: {mean:.2f}; largest: {max(costs):.2f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
