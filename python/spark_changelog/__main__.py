# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The command ``spark-changelog``; also ``python -m spark_changelog``."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Sequence
from threading import Event
from types import FrameType

from pyspark.sql import SparkSession

from spark_changelog.run import run
from spark_changelog.session import configure


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with ``arguments``, those of the process by default."""
    options = _parser().parse_args(arguments)
    stop = Event()
    _stop_by_signal(stop)
    builder = SparkSession.builder.appName("spark-changelog run")
    for setting in options.conf:
        name, separator, value = setting.partition("=")
        if not separator:
            _parser().error(f"--conf {setting}: name=value is expected")
        builder = builder.config(name, value)
    spark = configure(builder).getOrCreate()
    # once more, as Spark has done so: its own handler cancels the refresh that is under way
    _stop_by_signal(stop)
    try:
        run(
            spark,
            databases=options.database or None,
            status=options.status_table,
            poll=options.poll,
            stop=stop,
        )
    finally:
        spark.stop()
    return 0


def _stop_by_signal(stop: Event) -> None:
    """Let the first signal end the command when a refresh has ended, the second at once."""

    def handle(number: int, _frame: FrameType | None) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("spark-changelog", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    command = commands.add_parser(
        "run", help="keep every view within the lag that its property changelog.lag allows"
    )
    command.add_argument(
        "--database",
        action="append",
        default=[],
        metavar="NAME",
        help="one whose views are kept; all by default",
    )
    command.add_argument(
        "--status-table", metavar="NAME", help="a view that tells others how the views do"
    )
    command.add_argument(
        "--poll",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="how often new views and properties are looked for (default: 10)",
    )
    command.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark's, such as spark.master=local[4]",
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
