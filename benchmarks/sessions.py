# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Common functions of measured Spark processes: sessions, queries and progress reports."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.types import DoubleType

import spark_changelog as changelog
from measuring import PREFIX


def session(
    settings: dict[str, str], memory: str, master: str = "local[2]", jar: str = ""
) -> SparkSession:
    """Start a session with our extension, from the wheel or from ``jar``.

    The extension leaves plans of stock queries unchanged.
    """
    builder = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", memory)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.numRecentProgressUpdates", "10000")
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
    )
    for key, value in settings.items():
        builder = builder.config(key, value)
    builder = changelog.configure(builder)
    if jar:
        builder = builder.config("spark.jars", jar)  # in place of the wheel's jar
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def answer(spark: SparkSession, result: dict[str, Any]) -> None:
    """Print a result for the parent process."""
    java = spark._jvm.System.getProperty("java.version")  # type: ignore[union-attr]
    about = {"peak_bytes": peak_bytes(spark), "version": f"Spark {spark.version}, Java {java}"}
    print(PREFIX + json.dumps(result | about), flush=True)


def compiled(spark: SparkSession) -> int:
    """Return the number of classes generated and compiled by Spark so far."""
    metrics = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics  # type: ignore[union-attr]
    return int(metrics.METRIC_COMPILATION_TIME().getCount())


def peak_bytes(spark: SparkSession) -> int | None:
    """Return the largest resident size of the JVM, None if the system doesn't report it."""
    status = jvm(spark) / "status"
    if not status.exists():
        return None
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def jvm(spark: SparkSession) -> Path:
    """Return the JVM's folder below ``/proc``."""
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    return Path(f"/proc/{pid}")


def cpu_seconds(stat: str) -> tuple[str, float]:
    """Read the name and the processor time of a process or thread from its ``stat``.

    >>> name, seconds = cpu_seconds("7 (C2 (x) 1) S 1 1 1 0 -1 4 0 0 0 0 250 50 0 0 20")
    >>> name, seconds * os.sysconf("SC_CLK_TCK")
    ('C2 (x) 1', 300.0)
    """
    # The name is in parentheses, and may have spaces and parentheses.
    name, _, rest = stat.partition("(")[2].rpartition(")")
    fields = rest.split()
    return name, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def checked(changes: DataFrame) -> DataFrame:
    """Observe the count and the sum of row hashes as ``check``. Retractions count negative."""
    sign = F.when(F.col("_change_type").isin("insert", "update_postimage"), 1).otherwise(-1)
    return changes.observe(
        "check",
        F.count("*").alias("emitted"),
        F.sum(sign).alias("count"),
        F.sum(sign * row_hash(changes.drop("_change_type"))).alias("sum"),
    )


def row_hash(frame: DataFrame) -> Column:
    """Return a row's hash, small enough to sum. Doubles are rounded to their first digits."""
    columns = [
        F.format_string("%.6e", field.name)
        if field.dataType == DoubleType()
        else F.col(field.name)
        for field in frame.schema.fields
    ]
    return F.shiftright(F.xxhash64(*columns), 32)


def stream(
    frame: DataFrame, output_mode: str, checkpoint: str | None = None
) -> tuple[Sequence[StreamingQueryProgress], int]:
    """Run a query over its whole input into a sink without effect.

    Return the progress reports, and the size of the checkpoint in bytes. A named checkpoint stays
    after the run.
    """
    folder = checkpoint or tempfile.mkdtemp(prefix="bench-checkpoint-")
    query = (
        frame.writeStream.format("noop")
        .outputMode(output_mode)
        .option("checkpointLocation", folder)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    reports = query.recentProgress
    disk = sum(f.stat().st_size for f in Path(folder).rglob("*") if f.is_file())
    if not checkpoint:
        shutil.rmtree(folder, ignore_errors=True)
    return reports, disk


def measured(reports: Sequence[StreamingQueryProgress]) -> dict[str, Any]:
    """Summarize a query's progress reports. Its time starts with the first batch."""
    first, last = reports[0], reports[-1]
    totals = [report.durationMs["triggerExecution"] / 1000 for report in reports]
    seconds = _seconds(last.timestamp) - _seconds(first.timestamp) + totals[-1]
    checks = [report.observedMetrics["check"] for report in reports if report.observedMetrics]
    return {
        "seconds": seconds,
        "batch_seconds": [
            total for total, report in zip(totals, reports, strict=True) if report.numInputRows
        ],
        "emitted": sum(check["emitted"] or 0 for check in checks),
        "count": sum(check["count"] or 0 for check in checks),
        "sum": sum(check["sum"] or 0 for check in checks),
        "state_bytes": sum(state.memoryUsedBytes for state in last.stateOperators),
        "state_rows": sum(state.numRowsTotal for state in last.stateOperators),
        "state_reloads": _reloads(last),
    }


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp()


def _reloads(report: StreamingQueryProgress) -> int | None:
    """Return how often in-memory state was reloaded from files, None if not reported.

    A reload happens if a partition moves to a different executor between two batches.
    """
    metric = "loadedMapCacheMissCount"
    metrics = [state.customMetrics for state in report.stateOperators]
    counts = [found[metric] for found in metrics if metric in found]
    return sum(counts) if counts else None
