# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The command ``dev/demo``."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from flights import session
from flights.demo import Demo
from flights.timetable import DAYS_OF_YEAR

DEFAULT_DAYS = 45  # up to mid-February, with the blizzard of 8 and 9 February


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="dev/demo",
        description="Maintains views of the flights from New York in 2013 while the flights are "
        "delayed and cancelled, and compares the views with batch Spark.",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--days",
        type=int,
        default=DEFAULT_DAYS,
        metavar="N",
        help="the first N days of the year (default: %(default)s)",
    )
    size.add_argument(
        "--whole-year",
        action="store_const",
        const=DAYS_OF_YEAR,
        dest="days",
        help="all 365 days, 336,776 flights",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("target/demo"),
        metavar="FOLDER",
        help="folder for the results, emptied at the start (default: %(default)s)",
    )
    parsed = parser.parse_args(arguments)
    if not 1 <= parsed.days <= DAYS_OF_YEAR:
        parser.error(f"--days takes 1 to {DAYS_OF_YEAR}")
    return parsed


def main(arguments: Sequence[str]) -> int:
    """Run the demo, and return 0 if every view equals batch Spark's result."""
    parsed = parse(arguments)
    out: Path = parsed.out
    log = out / "spark.log"
    if out.exists() and any(out.iterdir()) and not log.exists():
        print(f"error: {out} has files: pass --out with an empty folder", file=sys.stderr)
        return 2
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    console = Console()
    console.print(f"Results are in {out}, Spark's log is in {log}.", highlight=False)
    with console.status("Starting Spark"):
        spark = session.start(log)
    try:
        return 0 if Demo(spark, out, parsed.days, console).run() else 1
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
