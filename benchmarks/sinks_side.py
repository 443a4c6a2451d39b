# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Writes the result of one aggregate with one sink, in a separate process.

The table comes from ``growth_side``: a history, then batches of changes.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_changelog as changelog
from growth_side import _shuffled, changing_table
from sessions import answer, cpu_seconds, jvm, session

QUERY = "SELECT id, count(*) AS n, sum(v) AS total FROM t GROUP BY id"
SCHEMA = "id BIGINT, n BIGINT, total BIGINT"
SMALL = 10  # the unmeasured first run has a table smaller by this factor

SINKS = ("noop", "jdbc", "delta", "kafka", "memory")
# The servers of dev/services, by sink.
SERVICES = {"jdbc": "postgres", "kafka": "kafka"}

PACKAGES = {
    "jdbc": "org.postgresql:postgresql:42.7.8",
    "delta": "io.delta:delta-spark_4.2_2.13:4.4.0",
    "kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
}
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


@dataclass(frozen=True)
class Task:
    """The task of one process."""

    sink: str
    name: str
    cache: str
    rows: int
    changes: int
    batches: int
    jar: str
    address: dict[str, Any]
    memory: str


class Target:
    """The target of a sink, with functions to write and read it."""

    def __init__(self, spark: SparkSession, task: Task, name: str, folder: Path) -> None:
        """Name a new target."""
        self.spark, self.task, self.name = spark, task, name
        self.path = str(folder / name)
        # JDBC finds drivers of later added jars by class name only.
        self.database = {"driver": "org.postgresql.Driver"}
        self.database |= {key: task.address.get(key, "") for key in ("url", "user", "password")}

    def write(self) -> tuple[str, dict[str, str]]:
        """Return the format and the options of the sink."""
        if self.task.sink == "jdbc":
            return "changelog-jdbc", {
                **self.database,
                "dbtable": self.name,
                "createTable": "true",
            }
        if self.task.sink == "delta":
            return "changelog-table", {"path": self.path, "createTable": "true"}
        if self.task.sink == "kafka":
            servers = {"kafka.bootstrap.servers": self.task.address["bootstrap"]}
            return "changelog-kafka", {**servers, "topic": self.name}
        if self.task.sink == "memory":
            return "changelog-memory", {"queryName": self.name}
        return "noop", {}

    def read(self) -> DataFrame | None:
        """Return the rows of the target, None for the sink `noop`."""
        read = self.spark.read
        if self.task.sink == "jdbc":
            return read.format("jdbc").options(**self.database, dbtable=self.name).load()
        if self.task.sink == "delta":
            return read.format("delta").load(self.path)
        if self.task.sink == "kafka":
            servers = {"kafka.bootstrap.servers": self.task.address["bootstrap"]}
            records = read.format("kafka").options(**servers, subscribe=self.name).load()
            newest = records.groupBy("key").agg(
                F.max_by(F.struct("value"), F.struct("partition", "offset")).alias("newest")
            )
            rows = F.from_json(F.col("newest.value").cast("string"), SCHEMA).alias("row")
            return newest.where("newest.value IS NOT NULL").select(rows).select("row.*")
        if self.task.sink == "memory":
            return self.spark.table(self.name)
        return None


def main() -> None:
    """Run the task of the first argument."""
    task = Task(**json.loads(sys.argv[1]))
    settings = dict(DELTA) if task.sink == "delta" else {}
    if task.sink in PACKAGES:
        settings["spark.jars.packages"] = PACKAGES[task.sink]
    spark = session(settings, task.memory, jar=task.jar)
    cache = Path(task.cache)
    small = changing_table(cache, task.rows // SMALL, task.changes // SMALL, task.batches)
    _keep(spark, task, f"{task.name}_small", small)
    folder = changing_table(cache, task.rows, task.changes, task.batches)
    answer(spark, _keep(spark, task, task.name, folder))
    spark.stop()


def _keep(spark: SparkSession, task: Task, name: str, folder: Path) -> dict[str, Any]:
    """Run the query over the files of a folder, one batch per file."""
    place = Path(tempfile.mkdtemp(prefix="bench-sink-"))
    raw = (
        spark.readStream.schema(spark.read.parquet(str(folder)).schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder))
    )
    table = changelog.from_changelog(raw, change_type="op", key=["id"])
    table.createOrReplaceTempView("t")
    target = Target(spark, task, name, place)
    sink, options = target.write()
    before, cpu = _shuffled(spark), _cpu_seconds(spark)
    query = (
        changelog.to_changelog(spark.sql(QUERY))
        .writeStream.format(sink)
        .options(**options)
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    shuffled, cpu = _shuffled(spark) - before, _cpu_seconds(spark) - cpu
    reports = [report for report in query.recentProgress if report.numInputRows]
    seconds = [report.durationMs["triggerExecution"] / 1000 for report in reports]
    found = {
        "history": seconds[0],
        "batches": seconds[1:],
        "shuffled_bytes": shuffled,
        "cpu": cpu,
        "right": _is_right(spark, folder, target.read()),
    }
    shutil.rmtree(place, ignore_errors=True)
    print(found, file=sys.stderr, flush=True)
    return found


def _cpu_seconds(spark: SparkSession) -> float:
    """Return the CPU time of the JVM, hardly affected by the machine's load."""
    stat = jvm(spark) / "stat"
    return cpu_seconds(stat.read_text())[1] if stat.exists() else 0.0


def _is_right(spark: SparkSession, folder: Path, kept: DataFrame | None) -> bool:
    """Tell whether the target's rows equal batch Spark's rows. True for a sink without rows."""
    if kept is None:
        return True
    sign = F.when(F.col("op").isin("UPDATE_BEFORE", "DELETE"), -1).otherwise(1)
    changes = spark.read.parquet(str(folder)).groupBy("id")
    wanted = changes.agg(F.sum(sign).alias("n"), F.sum(sign * F.col("v")).alias("total"))
    return _sums(kept) == _sums(wanted.where("n > 0"))


def _sums(rows: DataFrame) -> tuple[Any, ...]:
    columns = ("id", "n", "total")
    hashed = F.xxhash64(*[F.col(name).cast("BIGINT") for name in columns])
    sums = F.sum(hashed.cast("DECIMAL(20, 0)"))
    return tuple(rows.agg(F.count("*"), sums).head() or ())


if __name__ == "__main__":
    main()
