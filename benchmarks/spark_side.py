# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""One run of a workload with Spark, in a separate process: ours, stock, batch or recompute.

Reads its task as JSON from the first argument, and prints its results as JSON.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

import spark_changelog as changelog
from data import FILES
from sessions import answer, measured, session, stream
from workloads import BY_NAME, KEYS, SQUARED, Workload, hashed, mixed

UNCHECKED = {
    "spark.sql.streaming.unsupportedOperationCheck": "false",
    "spark.sql.streaming.statefulOperator.checkCorrectness.enabled": "false",
}


@dataclass(frozen=True)
class Task:
    """The task of one process."""

    workload: str
    side: str
    folder: str
    warm_folder: str
    warm_runs: int
    batches: int
    settings: dict[str, str]
    memory: str
    master: str = "local[2]"
    verify: bool = False


def main() -> None:
    """Run the task of the first argument."""
    task = Task(**json.loads(sys.argv[1]))
    workload = BY_NAME[task.workload]
    settings = {**task.settings, **(UNCHECKED if task.side == "stock" else {})}
    spark = session(settings, task.memory, task.master)
    run = {"ours": _ours, "stock": _stock, "batch": _batch, "recompute": _recompute}[task.side]
    for _ in range(task.warm_runs):
        run(spark, workload, Path(task.warm_folder), task.batches, False)
    result = run(spark, workload, Path(task.folder), task.batches, task.verify)
    answer(spark, result)
    spark.stop()


def _read(spark: SparkSession, folder: Path, name: str, batches: int) -> DataFrame:
    """Read a table as a stream, in the given number of batches."""
    path = str(folder / name)
    return (
        spark.readStream.schema(spark.read.parquet(path).schema)
        .option("maxFilesPerTrigger", FILES // batches)
        .parquet(path)
    )


def _view(frame: DataFrame, name: str) -> None:
    """Define the table of a query from its changes."""
    key = KEYS.get(name)
    # Append-only tables too, since EXISTS can't read a plain stream.
    table = (
        changelog.from_changelog(frame, change_type="op", key=[key])
        if key
        else changelog.from_changelog(frame)
    )
    table.createOrReplaceTempView(name)


def _ours(
    spark: SparkSession, workload: Workload, folder: Path, batches: int, verify: bool
) -> dict[str, Any]:
    for name in workload.tables:
        _view(_read(spark, folder, name, batches), name)
    changes = changelog.to_changelog(spark.sql(workload.sql))
    sign = F.when(F.col("_change_type").isin("insert", "update_postimage"), 1).otherwise(-1)
    return _measured(_checked(changes, workload, sign), "append")


def _stock(
    spark: SparkSession, workload: Workload, folder: Path, batches: int, verify: bool
) -> dict[str, Any]:
    for name in workload.tables:
        _read(spark, folder, name, batches).createOrReplaceTempView(name)
    frame = spark.sql(workload.stock or workload.sql)
    result = _measured(_checked(frame, workload, F.lit(1)), "update")
    result["sum"] = result["count"] = None  # after images alone have no meaningful sum
    if verify:
        result |= _newest_rows(
            spark, spark.sql(hashed(workload.stock or "", workload.check)), workload
        )
    return result


def _newest_rows(spark: SparkSession, frame: DataFrame, workload: Workload) -> dict[str, Any]:
    """Run once more, store every emitted row, and check the newest row of each key."""
    folder = tempfile.mkdtemp(prefix="bench-stock-")

    def write(batch: DataFrame, number: int) -> None:
        kept = batch.select(*workload.key, "h").withColumn("batch", F.lit(number))
        kept.write.mode("append").parquet(f"{folder}/rows")

    query = (
        frame.writeStream.foreachBatch(write)
        .outputMode("update")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows = spark.read.parquet(f"{folder}/rows")
    newest = rows.groupBy(*workload.key).agg(F.max_by("h", "batch").alias("h"))
    count, total = newest.agg(F.count("*"), F.sum("h")).collect()[0]
    shutil.rmtree(folder, ignore_errors=True)
    return {"count": count, "sum": total}


def _batch(
    spark: SparkSession, workload: Workload, folder: Path, batches: int, verify: bool
) -> dict[str, Any]:
    for name in workload.tables:
        path = folder / (f"{name}_now" if name in KEYS else name)
        spark.read.parquet(str(path)).createOrReplaceTempView(name)
    return _once(spark, workload)


def _recompute(
    spark: SparkSession, workload: Workload, folder: Path, batches: int, verify: bool
) -> dict[str, Any]:
    """Run the batch query over the changelogs in place of the final tables."""
    for name in workload.tables:
        _view(spark.read.parquet(str(folder / name)), name)
    return _once(spark, workload)


def _once(spark: SparkSession, workload: Workload) -> dict[str, Any]:
    observation = Observation("check")
    frame = spark.sql(hashed(workload.sql, workload.check))
    frame = frame.observe(observation, F.count("*").alias("count"), F.sum("h").alias("sum"))
    started = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    seconds = time.perf_counter() - started
    return {"seconds": seconds, **observation.get}


def _checked(frame: DataFrame, workload: Workload, sign: Column) -> DataFrame:
    """Observe the sum of the emitted rows' hashes, with retracted rows negative."""
    return frame.withColumn("g", F.expr(mixed(workload.check))).observe(
        "check",
        F.count("*").alias("emitted"),
        F.sum(sign).alias("count"),
        F.sum(sign * F.expr(SQUARED)).alias("sum"),
    )


def _measured(frame: DataFrame, output_mode: str) -> dict[str, Any]:
    reports, disk = stream(frame, output_mode)
    return measured(reports) | {"disk_bytes": disk}


if __name__ == "__main__":
    main()
