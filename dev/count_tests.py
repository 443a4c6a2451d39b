# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Summarizes JUnit reports: prints each failed test with its message, then the counts.

``--keep-seconds tests/suite-seconds.tsv`` also records the seconds of each whole suite in the
file. The file determines the division of suites among processes, and each suite's share of
tests.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

LONGEST_MESSAGE = 1500
# A suite of s seconds runs one test in s to this power: a twelfth of a minute's tests.
SHARE_POWER = 0.6


def outcome(case: ElementTree.Element) -> str:
    """Return whether a test case ``passed``, ``failed`` or was ``skipped``."""
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "passed" if case.find("skipped") is None else "skipped"


def told(case: ElementTree.Element) -> str:
    """Return the name and the message of a failed test case."""
    messages = [
        problem.get("message") or problem.text or ""
        for kind in ("failure", "error")
        for problem in case.findall(kind)
    ]
    message = "\n".join(messages)[:LONGEST_MESSAGE]
    return f"failed: {case.get('classname')}: {case.get('name')}\n{message}"


def keep_seconds(file: Path, reports: list[Path]) -> None:
    """Replace the figures of the suites with reports: seconds, and n if one test in n runs."""
    lines = [line.split("\t") for line in file.read_text().splitlines()]
    known = {name: float(seconds) for name, seconds, _ in lines}
    shares = {name: int(one_in) for name, _, one_in in lines}
    took: Counter[str] = Counter()
    for report in reports:
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            took[case.get("classname", "").split(".")[-1]] += float(case.get("time", 0))
    for name, seconds in took.items():
        known[name] = seconds * shares.get(name, 1)
    slow = sorted((-seconds, name) for name, seconds in known.items() if seconds >= 1)
    file.write_text(
        "".join(
            f"{name}\t{-seconds:.1f}\t{max(1, math.ceil((-seconds) ** SHARE_POWER))}\n"
            for seconds, name in slow
        )
    )


def main() -> int:
    """Summarize the reports of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--failed-steps", type=int, default=0)
    parser.add_argument("reports", type=Path, nargs="+", help="report files, or folders of them")
    parser.add_argument("--keep-seconds", type=Path, help="file to record suites' seconds in")
    arguments = parser.parse_args()
    files = [
        file
        for path in arguments.reports
        for file in (path.glob("*.xml") if path.is_dir() else [path])
        if file.is_file()
    ]
    if arguments.keep_seconds:
        keep_seconds(arguments.keep_seconds, files)
    cases = [
        case for file in files for case in ElementTree.parse(file).getroot().iter("testcase")
    ]
    counts = Counter(map(outcome, cases))
    for case in cases:
        if outcome(case) == "failed":
            print(told(case), file=sys.stderr)
    passed, skipped = counts["passed"], counts["skipped"]
    failed = max(counts["failed"], arguments.failed_steps)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
