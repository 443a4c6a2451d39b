# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The command ``spark-changelog``; also ``python -m spark_changelog``."""

from __future__ import annotations

import argparse
import json
import signal
from collections.abc import Sequence
from dataclasses import asdict
from threading import Event
from types import FrameType

from pyspark.sql import SparkSession

from spark_changelog.doctor import Finding, doctor, java_command, python
from spark_changelog.run import run
from spark_changelog.session import configure


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with ``arguments``, by default the arguments of the process."""
    options = _parser().parse_args(arguments)
    result: int = options.function(options)
    return result


def _run(options: argparse.Namespace) -> int:
    stop = Event()
    _stop_by_signal(stop)
    spark = _start(options)
    # Again: starting Spark has installed a handler that cancels the running refresh.
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


def _doctor(options: argparse.Namespace) -> int:
    findings = [python()]
    try:
        missing = java_command()
        findings = [python(), missing] if missing else doctor(_start(options))
    except Exception as error:
        line = next(iter(str(error).splitlines()), type(error).__name__)
        findings.append(Finding("Session", "wrong", f"can't be started or used ({line})"))
    if options.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        print(*findings, sep="\n")
    return int(any(finding.state == "wrong" for finding in findings))


def _start(options: argparse.Namespace) -> SparkSession:
    builder = SparkSession.builder.appName(f"spark-changelog {options.command}")
    for setting in options.conf:
        name, separator, value = setting.partition("=")
        if not separator:
            _parser().error(f"--conf {setting}: name=value is expected")
        builder = builder.config(name, value)
    return configure(builder).getOrCreate()


def _stop_by_signal(stop: Event) -> None:
    """End the command after the running refresh at the first signal, at once at the second."""

    def handle(number: int, _frame: FrameType | None) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("spark-changelog", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command", dest="command")
    command = commands.add_parser(
        "run", help="refresh every view in time for its permitted lag (property changelog.lag)"
    )
    command.set_defaults(function=_run)
    command.add_argument(
        "--database",
        action="append",
        default=[],
        metavar="NAME",
        help="refresh the views of this database only; may be repeated (default: all databases)",
    )
    command.add_argument(
        "--status-table", metavar="NAME", help="a view to publish the state of each view in"
    )
    command.add_argument(
        "--poll",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="seconds between two searches for new views and properties (default: 10)",
    )
    check = commands.add_parser(
        "doctor", help="check versions, extension, state store, connectors"
    )
    check.set_defaults(function=_doctor)
    check.add_argument("--json", action="store_true", help="print the findings as JSON")
    for each in command, check:
        each.add_argument(
            "--conf",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="a Spark setting, such as spark.master=local[4]; may be repeated",
        )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
