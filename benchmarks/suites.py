# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Measures the queries of TPC-H and Nexmark: a batch's time beside computing all anew.

TPC-H's tables come at once and then change in ten batches, a thousandth of the rows in each.
Nexmark's events come in ten batches of one size. Every result is compared with batch Spark's.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tqdm import tqdm

import data
from measuring import CACHE, RESULTS, ROOT, STATES, keep, measure, number, surroundings
from report import geometric_mean, percentile


def main() -> None:
    """Run what the command line names, and print and keep the table."""
    options = _options()
    about = {
        "scale": options.scale,
        "events": options.events,
        "memory": options.memory,
        "state": options.state,
        **surroundings(),
    }
    folders = {
        "tpch": CACHE / "bench" / f"tpch-{options.scale:g}",
        "nexmark": CACHE / "bench" / str(options.events),
    }
    _generate(folders, options)
    logs = Path(tempfile.mkdtemp(prefix="bench-logs-"))
    found: list[dict[str, Any]] = []
    text = ""
    progress = tqdm(options.queries, file=sys.stderr, smoothing=0)
    for suite, query in progress:
        progress.set_postfix_str(f"{suite} {query}")
        task = {
            "suite": suite,
            "query": query,
            "folder": str(folders[suite]),
            "settings": STATES[options.state],
            "memory": options.memory,
        }
        script = Path(__file__).with_name("suites_side.py")
        command = [sys.executable, str(script), json.dumps(task)]
        result = measure(command, logs / f"{suite}-{query}.log", options.timeout)
        found.append({"suite": suite, "query": query, **result})
        text = render(about, found)
        keep(options.output, {**about, "found": found}, text)
    print(text)
    if any("error" in one for one in found):
        sys.exit(f"some runs failed; their logs are in {logs}")
    shutil.rmtree(logs)
    if not all(one["right"] for one in found):
        sys.exit("some results are wrong")


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
    parser.add_argument("--events", type=number, default=1_000_000, help="of Nexmark")
    parser.add_argument("--state", choices=STATES, default="pages")
    parser.add_argument("--memory", default="6g")
    parser.add_argument("--timeout", type=int, default=900)
    parser.add_argument("--output", type=Path, default=RESULTS / "suites")
    options = parser.parse_args()
    options.queries = []
    for given in options.query or list(known):
        suite, _, query = given.partition("/")
        if suite not in known or (query and query not in known[suite]):
            parser.error(f"no query {given}; there are tpch, nexmark, tpch/q01, nexmark/q0, …")
        queries = [query] if query else known[suite]
        options.queries += [(suite, name) for name in queries]
    return options


def _generate(folders: dict[str, Path], options: argparse.Namespace) -> None:
    """Generate in a process of its own, whose memory then doesn't count."""
    wanted = {suite for suite, _ in options.queries}
    code = "import sys, pathlib, data, suites_side, sessions; s = sessions.session({}, '4g'); "
    if "tpch" in wanted and not (folders["tpch"] / "done").exists():
        print(f"generating TPC-H of scale {options.scale:g}", file=sys.stderr)
        code += "suites_side.generate_tpch(s, pathlib.Path(sys.argv[1]), float(sys.argv[2]))"
        size = str(options.scale)
        subprocess.run([sys.executable, "-c", code, folders["tpch"], size], check=True, cwd=_HERE)
    code = "import sys, pathlib, data, sessions; s = sessions.session({}, '4g'); "
    if "nexmark" in wanted and not data.is_there(folders["nexmark"]):
        print(f"generating {options.events:,} events", file=sys.stderr)
        code += "data.generate(s, pathlib.Path(sys.argv[1]), int(sys.argv[2]))"
        size = str(options.events)
        subprocess.run(
            [sys.executable, "-c", code, folders["nexmark"], size], check=True, cwd=_HERE
        )


_HERE = Path(__file__).parent


def render(about: dict[str, Any], found: list[dict[str, Any]]) -> str:
    """Make the table: a line for a query."""
    versions = sorted({one["version"] for one in found if "version" in one})
    lines = [
        f"{'; '.join(versions)}; {about['machine']}; commit {about['commit']}",
        f"TPC-H of scale {about['scale']:g}, Nexmark of {about['events']:,} events; state in "
        f"{about['state']}; heap {about['memory']}; {about['started']}",
        "seconds; a batch: the median of those after the first; gain: what computing anew takes, "
        "as a multiple of a batch",
        "",
        f"{'':<14}{'first':>8}{'batch':>8}{'p99':>8}{'anew':>8}{'gain':>8}{'rows out':>10}"
        f"{'state rows':>12}{'MB':>7}  result",
    ]
    gains: dict[str, list[float]] = {}
    for one in found:
        head = f"{one['suite'] + '/' + one['query']:<14}"
        if "error" in one:
            lines.append(f"{head}{one['error']}")
            continue
        first, *later = one["batch_seconds"]
        batch = statistics.median(later or [first])
        anew = min(one["recompute_seconds"])
        gains.setdefault(one["suite"], []).append(anew / batch)
        lines.append(
            f"{head}{first:>8.2f}{batch:>8.2f}{percentile(later or [first], 0.99):>8.2f}"
            f"{anew:>8.2f}{anew / batch:>8.2f}{one['emitted']:>10,}{one['state_rows']:>12,}"
            f"{one['state_bytes'] / 2**20:>7.0f}  {'right' if one['right'] else 'WRONG'}"
        )
    for suite, ratios in gains.items():
        lines.append(f"{suite}: geometric mean of the gains {geometric_mean(ratios):.2f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
