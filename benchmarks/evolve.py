# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Measures the cost of a changed query, compared with a new start.

A query reads a history and some batches of changes, and stops. The changed query then runs twice:
from the kept state with EVOLVE, and from the beginning over the whole history. Both runs must
give equal rows.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from evolve_side import CHANGED
from measuring import CACHE, RESULTS, STATES, measure_each, number, surroundings

WARM_ROWS = 100_000


def main() -> None:
    """Run the changes of the command line, and print and save the table."""
    options = _options()
    about = {
        "rows": options.rows,
        "memory": options.memory,
        "state": options.state,
        **surroundings(),
    }
    plan = [
        (
            {"change": change},
            {
                "change": change,
                "cache": str(CACHE / "bench"),
                "rows": options.rows,
                "warm_rows": WARM_ROWS,
                "settings": STATES[options.state],
                "memory": options.memory,
            },
        )
        for change in options.changes
    ]
    measure_each("evolve_side.py", plan, about, render, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev/bench evolve", description=__doc__)
    parser.add_argument("change", nargs="*", help=f"any of {', '.join(CHANGED)}; default: all")
    parser.add_argument("--rows", type=number, default=3_000_000, help="rows of the history")
    parser.add_argument("--state", choices=STATES, default="pages")
    parser.add_argument("--memory", default="6g")
    parser.add_argument("--timeout", type=int, default=900)
    parser.add_argument("--output", type=Path, default=RESULTS / "evolve")
    options = parser.parse_args()
    options.changes = options.change or list(CHANGED)
    unknown = [name for name in options.changes if name not in CHANGED]
    if unknown:
        parser.error(f"no change {', '.join(unknown)}; there are {', '.join(CHANGED)}")
    return options


def render(about: dict[str, Any], found: list[dict[str, Any]]) -> str:
    """Write the table, a line per change."""
    versions = sorted({one["version"] for one in found if "version" in one})
    lines = [
        f"{'; '.join(versions)}; {about['machine']}; commit {about['commit']}",
        f"{about['rows']:,} rows; state in {about['state']}; heap {about['memory']}; "
        f"{about['started']}",
        "operators with kept and rebuilt state; seconds taken; "
        "anew: of the changed query over all history",
        "",
        f"{'':<25}{'kept':>6}{'rebuilt':>9}{'taken':>8}{'anew':>8}{'gain':>7}  result",
    ]
    for one in found:
        head = f"{one['change']:<25}"
        if "error" in one:
            lines.append(f"{head}{one['error']}")
            continue
        kept, rebuilt = (one["states"].count(state) for state in ("kept", "rebuilt"))
        lines.append(
            f"{head}{kept:>6}{rebuilt:>9}{one['seconds']:>8.1f}{one['anew_seconds']:>8.1f}"
            f"{one['anew_seconds'] / one['seconds']:>7.2f}  "
            f"{'right' if one['right'] else 'WRONG'}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
