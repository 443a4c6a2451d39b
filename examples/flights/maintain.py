# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Runs queries over the changes of flights, and shows their progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from rich.progress import Progress

import spark_changelog as changelog
from flights.timetable import KEY
from flights.verify import BATCH


@dataclass(frozen=True)
class Run:
    """The result of running one streaming query."""

    batches: int
    changes: int
    seconds: float

    @property
    def changes_per_second(self) -> float:
        """The changes of flights read per second, with the start of the query."""
        return self.changes / self.seconds


def stream_flights(spark: SparkSession, folder: Path) -> DataFrame:
    """Read the table of flights from files of changes, one file per day and batch."""
    schema = spark.read.parquet(str(folder)).schema
    raw = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    return changelog.from_changelog(raw, change_type="op", key=KEY)


def maintain(
    name: str, writer: DataStreamWriter, checkpoint: Path, batches: int, progress: Progress
) -> Run:
    """Run a query over the existing files to the end."""
    task = progress.add_task(name, total=batches)
    start = time.monotonic()
    query = (
        writer.queryName(name)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    while query.isActive:
        progress.update(task, completed=_batches(query))
        time.sleep(0.1)
    query.awaitTermination()  # raises the error of a failed query
    seconds = time.monotonic() - start
    progress.update(task, completed=_batches(query))
    changes = sum(report.numInputRows for report in query.recentProgress)
    return Run(_batches(query), changes, seconds)


def _batches(query: StreamingQuery) -> int:
    last = query.lastProgress
    return 0 if last is None else last.batchId + 1


def folder_per_batch(folder: Path) -> Callable[[DataFrame, int], None]:
    """Write each batch to a separate folder, so a repeated batch replaces its files."""

    def write(batch: DataFrame, batch_id: int) -> None:
        batch.coalesce(1).write.mode("overwrite").parquet(str(folder / f"{BATCH}={batch_id}"))

    return write
