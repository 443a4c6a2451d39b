# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Starts a Spark session with the extension, and writes Spark's log to a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

import spark_changelog as changelog


def start(log: Path) -> SparkSession:
    """Start a local session on every core, with a log file ``log``."""
    builder = (
        SparkSession.builder.master("local[*]")
        .appName("flights")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.numRecentProgressUpdates", 1000)
        .config("spark.sql.warehouse.dir", str(log.with_name("warehouse")))
        .config("spark.ui.enabled", "false")
    )
    with _errors_to(log):
        return changelog.configure(builder).getOrCreate()


@contextmanager
def _errors_to(log: Path) -> Iterator[None]:
    """Redirect the standard error of processes started inside to ``log``."""
    sys.stderr.flush()
    console = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(console, 2)
        os.close(console)
