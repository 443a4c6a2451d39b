# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Measures refreshes of views after changes to a share of the rows, and the decisions of AUTO.

Each TPC-H query has three views: refreshed with INCREMENTAL, with FULL, and by AUTO's decision.
Each round has three refreshes, after changes to a ten-thousandth, a hundredth and three tenths of
the rows of every large table. VERIFY compares the views with their queries.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from measuring import RESULTS, ROOT, STATES, measure_each, surroundings
from views_side import KINDS, SHARES

WORST = 1.2  # the decision counts as wrong if slower than the better refresh by this factor


def main() -> None:
    """Run the queries of the command line, and print and save the table."""
    options = _options()
    about = {
        "scale": options.scale,
        "rounds": options.rounds,
        "using": options.using,
        "memory": options.memory,
        "state": options.state,
        **surroundings(),
    }
    plan = [
        (
            {"kind": kind, "query": query},
            {
                "kind": kind,
                "query": query,
                "scale": options.scale,
                "rounds": options.rounds,
                "using": options.using,
                "settings": STATES[options.state],
                "jar": options.jar,
                "memory": options.memory,
            },
        )
        for kind in options.kinds
        for query in options.queries
    ]
    measure_each("views_side.py", plan, about, render, options)


def _options() -> argparse.Namespace:
    known = sorted(path.stem for path in (ROOT / "tests" / "sql" / "tpch").glob("*.sql"))
    parser = argparse.ArgumentParser(prog="dev/bench views", description=__doc__)
    parser.add_argument("queries", nargs="*", metavar="query", help="such as q03; default: all")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=["feeds"])
    parser.add_argument("--scale", type=float, default=0.1, help="TPC-H's scale factor")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--using", choices=("parquet", "delta"), default="parquet")
    parser.add_argument("--state", choices=STATES, default="pages")
    parser.add_argument("--jar", default="", help="jar to measure in place of the wheel's jar")
    parser.add_argument("--memory", default="6g")
    parser.add_argument("--timeout", type=int, default=3600)
    parser.add_argument("--output", type=Path, default=RESULTS / "views")
    options = parser.parse_args()
    options.queries = options.queries or known
    unknown = [query for query in options.queries if query not in known]
    if unknown:
        parser.error(f"no query {', '.join(unknown)}; there are {', '.join(known)}")
    return options


def render(about: dict[str, Any], found: list[dict[str, Any]]) -> str:
    """Write the table: a line per query and share of changed rows, with every round."""
    versions = sorted({one["version"] for one in found if "version" in one})
    lines = [
        f"{'; '.join(versions)}; {about['machine']}; commit {about['commit']}",
        f"TPC-H of scale {about['scale']:g}, views USING {about['using']}, "
        f"state {about['state']}, heap {about['memory']}; {about['started']}",
        "Seconds of a refresh by what has changed, of a full one, and of the one that AUTO took; "
        "expected: what it thought both would take",
        "x: what the way it took costs, as a multiple of the better one of the two others; "
        f"cpu: the same of the JVM's processor time; a cross, where that is more than {WORST:g}",
        "",
        f"{'':<9}{'query':<6}{'round':>6}{'changed':>9}{'incr.':>8}{'full':>8}{'auto':>8}  "
        f"{'took':<13}{'expected':>15}{'x':>7}{'cpu':>7}",
    ]
    for one in found:
        head = f"{one['kind']:<9}{one['query']:<6}"
        if "error" in one:
            lines.append(f"{head}{one['error']}")
            continue
        for refresh in one["refreshes"]:
            times, cpu = _ratio(refresh), _ratio(refresh, "_cpu")
            expected = " / ".join(
                "?" if seconds is None else f"{seconds:.1f}" for seconds in refresh["expected"]
            )
            lines.append(
                f"{head}{refresh['round']:>6}{refresh['share']:>9.2%}"
                f"{refresh['incremental']:>8.2f}{refresh['full']:>8.2f}{refresh['auto']:>8.2f}  "
                f"{refresh['mode']:<13}{expected:>15}{times:>7.2f}{cpu:>7.2f}"
                f"{'  x' if cpu > WORST else ''}{'' if one['right'] else '  WRONG'}"
            )
    refreshes = [refresh for one in found for refresh in one.get("refreshes", [])]
    for share in SHARES:
        ratios = [_ratio(refresh, "_cpu") for refresh in refreshes if refresh["share"] == share]
        if ratios:
            good = sum(ratio <= WORST for ratio in ratios)
            lines.append(
                f"{share:.2%} changed: {good} of {len(ratios)} within {WORST:g} of the better "
                f"way by processor time, at worst {max(ratios):.2f}"
            )
    return "\n".join(lines)


def _ratio(refresh: dict[str, Any], of: str = "") -> float:
    """Compare by the times of the views without a decision, to be independent of load."""
    taken: float = refresh[refresh["mode"] + of]
    better: float = min(refresh["incremental" + of], refresh["full" + of])
    return taken / better


if __name__ == "__main__":
    main()
