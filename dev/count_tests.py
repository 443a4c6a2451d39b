# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Adds up JUnit reports: prints how many tests passed, and fails if one or a step did not."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from xml.etree import ElementTree


def count(report: Path) -> tuple[int, int, int]:
    """Return how many tests of a report passed, failed and were skipped."""
    passed = failed = skipped = 0
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        bad = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        left_out = int(suite.get("skipped", 0))
        passed += int(suite.get("tests", 0)) - bad - left_out
        failed += bad
        skipped += left_out
    return passed, failed, skipped


def main() -> int:
    """Count over all reports given."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--failed-steps", type=int, default=0)
    parser.add_argument("reports", type=Path, nargs="+", help="report files, or folders of them")
    arguments = parser.parse_args()
    files = [
        file
        for path in arguments.reports
        for file in (path.glob("*.xml") if path.is_dir() else [path])
        if file.is_file()
    ]
    counts = [count(file) for file in files] or [(0, 0, 0)]
    passed, failed, skipped = (sum(column) for column in zip(*counts, strict=True))
    failed = max(failed, arguments.failed_steps)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
