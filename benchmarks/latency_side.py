# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Measures batches of one row, in a separate process.

The table ``t`` has a history and gets the new rows. ``d1`` to ``d5`` are constant tables to join.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

import spark_changelog as changelog
from sessions import answer, cpu_seconds, jvm, session

HISTORY = 20_000
LED_TO = 1_000  # rows of each of d1 to d5

AGGREGATE = "SELECT k, count(*) AS n, sum(v) AS total FROM t GROUP BY k"
QUERIES = {
    "aggregate": AGGREGATE,
    "six operators": """SELECT w5, count(*) AS n, sum(v) AS total, max(w1 + w2 + w3 + w4) AS most
FROM t JOIN d1 ON k = id1 JOIN d2 ON n1 = id2 JOIN d3 ON n2 = id3 JOIN d4 ON n3 = id4
  JOIN d5 ON n4 = id5
GROUP BY w5""",
}
# A query of one aggregate in stock Spark.
STOCK = "stock aggregate"

CPU = ["driver", "tasks", "compiler", "other"]
# The work of the JVM's threads, by the prefix of their names.
THREADS = {
    "stream exec": "driver",
    "dag-sched": "driver",
    "Executor ta": "tasks",
    "C1 ": "compiler",
    "C2 ": "compiler",
}


@dataclass(frozen=True)
class Task:
    """The task of one process."""

    query: str
    batches: int
    warm: int
    settings: dict[str, str]
    memory: str
    jar: str


def main() -> None:
    """Run the task of the first argument."""
    task = Task(**json.loads(sys.argv[1]))
    spark = session(task.settings, task.memory, jar=task.jar)
    tables = Path(tempfile.mkdtemp(prefix="bench-latency-"))
    checkpoint = tempfile.mkdtemp(prefix="bench-checkpoint-")
    _history(tables)
    frame, mode = _query(spark, tables, task.query)
    query = (
        frame.writeStream.format("noop")
        .outputMode(mode)
        .option("checkpointLocation", checkpoint)
        .start()
    )
    query.processAllAvailable()
    before: dict[str, float] = {}
    for batch in range(1, task.warm + task.batches + 1):
        if batch == task.warm + 1:
            before = _cpu(spark)
        _write(tables / "t", batch, _rows(HISTORY + batch, HISTORY + batch + 1))
        query.processAllAvailable()
    after = _cpu(spark)
    reports = [report for report in query.recentProgress if report.numInputRows]
    found = {
        "durations": [dict(report.durationMs) for report in reports[-task.batches :]],
        "cpu_ms": {name: (after[name] - before[name]) / task.batches for name in CPU},
    }
    query.stop()
    answer(spark, found)
    spark.stop()
    shutil.rmtree(tables)
    shutil.rmtree(checkpoint)


def _history(tables: Path) -> None:
    _write(tables / "t", 0, _rows(0, HISTORY))
    ids = np.arange(LED_TO)
    for number in range(1, 6):
        columns = {f"id{number}": ids, f"n{number}": (ids * 7 + number) % LED_TO}
        inserted = np.full(LED_TO, "INSERT", dtype=object)
        _write(tables / f"d{number}", 0, {**columns, f"w{number}": ids % 13, "op": inserted})


def _rows(first: int, end: int) -> dict[str, Any]:
    ids = np.arange(first, end)
    inserted = np.full(len(ids), "INSERT", dtype=object)
    return {"id": ids, "k": ids % LED_TO, "v": ids * 31 % 1009, "op": inserted}


def _write(folder: Path, number: int, columns: dict[str, Any]) -> None:
    """Write a file under a hidden name and rename it, so the source never reads half a file."""
    folder.mkdir(exist_ok=True)
    unseen = folder / f".{number}"
    pq.write_table(pa.table(columns), unseen)
    unseen.rename(folder / f"{number:05}.parquet")


def _query(spark: SparkSession, tables: Path, name: str) -> tuple[DataFrame, str]:
    if name == STOCK:
        _raw(spark, tables / "t").createOrReplaceTempView("t")
        return spark.sql(AGGREGATE), "update"
    for table, key in [("t", "id"), *((f"d{number}", f"id{number}") for number in range(1, 6))]:
        raw = _raw(spark, tables / table)
        changelog.from_changelog(raw, change_type="op", key=[key]).createOrReplaceTempView(table)
    return changelog.to_changelog(spark.sql(QUERIES[name])), "append"


def _raw(spark: SparkSession, folder: Path) -> DataFrame:
    path = str(folder)
    return spark.readStream.schema(spark.read.parquet(path).schema).parquet(path)


def _cpu(spark: SparkSession) -> dict[str, float]:
    """Return the CPU time of the JVM's threads in ms, by kind of work. Needs Linux."""
    used = dict.fromkeys(CPU, 0.0)
    for stat in (jvm(spark) / "task").glob("*/stat"):
        try:
            name, seconds = cpu_seconds(stat.read_text())
        except OSError:  # the thread has ended
            continue
        does = [what for begin, what in THREADS.items() if name.startswith(begin)]
        used[does[0] if does else "other"] += 1000 * seconds
    return used


if __name__ == "__main__":
    main()
