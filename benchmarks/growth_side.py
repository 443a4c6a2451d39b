# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Runs one query over a history and then over small batches of changes, in a separate process.

The table ``t`` has a key ``id``, a group ``k`` of ten rows, and a value ``v``. Each batch
updates, deletes and inserts rows at random positions. The tables of ``growth_time`` have a
watermark.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

import spark_changelog as changelog
from growth_time import TIMED, timed_query, timed_table
from sessions import answer, compiled, session, stream

SKIPPED = 3  # the unmeasured batches directly after the history

OPERATORS = {
    "aggregate": "SELECT id, count(*) AS n, sum(v) AS total, min(v) AS low FROM t GROUP BY id",
    "join": "SELECT a.id, a.v, b.v AS other FROM t a LEFT JOIN t b ON a.other = b.id",
    "rank": """SELECT id, k, v FROM (
  SELECT *, row_number() OVER (PARTITION BY k ORDER BY v, id) AS place
  FROM t) WHERE place <= 3""",
    "normalize": "SELECT id, v FROM t WHERE v % 10 < 9",
    "distinct": "SELECT k, count(DISTINCT v) AS n FROM t GROUP BY k",
    "replay": "SELECT id, k, sum(v) OVER (PARTITION BY k ORDER BY v, id) AS running FROM t",
    "neighbors": "SELECT id, lead(v) OVER (PARTITION BY k DIV 100 ORDER BY v, id) AS n FROM t",
    "sum": "SELECT k, sum(v) AS total FROM t GROUP BY k",
    "sum of doubles": "SELECT k, sum(CAST(v AS DOUBLE)) AS total FROM t GROUP BY k",
    "filter": "SELECT id, v FROM t WHERE v % 10 < 9",
    "unique": "SELECT id, v FROM t WHERE v % 10 < 9",
}
# Queries for batch Spark that write the result and the state of an operator, each with its
# clustering and sort columns.
WRITTEN: dict[str, list[tuple[str, str | None]]] = {
    "aggregate": [(OPERATORS["aggregate"], "id")],
    "join": [
        (OPERATORS["join"], None),
        ("SELECT other, id, v FROM t", "other"),
        ("SELECT id, v FROM t", "id"),
    ],
    "rank": [(OPERATORS["rank"], "k")],
    "normalize": [(OPERATORS["normalize"], None), ("SELECT id, v FROM t", "id")],
    "neighbors": [(OPERATORS["neighbors"], None)],
}
# A query of one aggregate in stock Spark, where every change is a new row.
STOCK = "stock aggregate"


@dataclass(frozen=True)
class Task:
    """The task of one process: an operator, at each size and number of partitions."""

    operator: str
    cache: str
    sizes: list[int]
    partitions: list[int]
    changes: int
    batches: int
    settings: dict[str, str]
    memory: str
    anew: bool


def main() -> None:
    """Run the task of the first argument."""
    task = Task(**json.loads(sys.argv[1]))
    spark = session(task.settings, task.memory)
    found = []
    cache, batches = Path(task.cache), task.batches + SKIPPED
    table = timed_table if task.operator in TIMED else changing_table
    # Twice as many batches over a small state compile the generated code.
    warm = table(cache, 2 * batches * task.changes, task.changes, 2 * batches)
    _run(spark, task.operator, warm, 2)
    for size in task.sizes:
        folder = table(cache, size, task.changes, batches)
        for partitions in task.partitions:
            found.append({"rows": size, **_run(spark, task.operator, folder, partitions)})
            if task.anew and task.operator in WRITTEN:
                found[-1]["anew_seconds"] = _written(spark, task.operator, folder)
            print(found[-1], file=sys.stderr, flush=True)
    answer(spark, {"runs": found})
    spark.stop()


def changing_table(cache: Path, rows: int, changes: int, batches: int) -> Path:
    """Write a history as one file, and each batch of changes as a further file, unless done.

    Half of the changed rows are updated, a quarter deleted and a quarter inserted. An update has
    two images and counts as one change.
    """
    folder = cache / f"growth-{rows}-{changes}-{batches}"
    if (folder / f"{batches:05}.parquet").exists():
        return folder
    if changes * batches > rows:
        raise ValueError(f"{rows} rows are too few for {batches} batches of {changes} changes")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    updated, deleted = changes // 2, changes // 4
    inserted = changes - updated - deleted
    # Changed ids are at random positions of the history, each at most once.
    order = np.random.default_rng(42).permutation(rows)
    _write(folder, 0, [("INSERT", np.arange(rows), 0)], rows)
    for batch in range(1, batches + 1):
        touched = order[(batch - 1) * changes : batch * changes]
        fresh = rows + (batch - 1) * inserted + np.arange(inserted)
        parts = [
            ("UPDATE_BEFORE", touched[:updated], 0),
            ("UPDATE_AFTER", touched[:updated], 1),
            ("DELETE", touched[updated : updated + deleted], 0),
            ("INSERT", fresh, 0),
        ]
        _write(folder, batch, parts, rows)
    return folder


def _write(folder: Path, number: int, parts: list[tuple[str, Any, int]], rows: int) -> None:
    columns: dict[str, Any] = {
        "id": lambda ids, version: ids,
        "k": lambda ids, version: ids % (rows // 10),
        "other": lambda ids, version: ids * 7919 % rows,
        "v": lambda ids, version: (ids * 31 + version * 17) % 100_003,
    }
    arrays = {
        name: pa.array(np.concatenate([column(ids, version) for _, ids, version in parts]))
        for name, column in columns.items()
    }
    kinds = np.concatenate([np.full(len(ids), kind, dtype=object) for kind, ids, _ in parts])
    path = folder / f"{number:05}.parquet"
    pq.write_table(pa.table({**arrays, "op": pa.array(kinds, pa.string())}), path)
    os.utime(path, (1_640_995_200 + number, 1_640_995_200 + number))


def _run(spark: SparkSession, operator: str, folder: Path, partitions: int) -> dict[str, Any]:
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    before, classes = _shuffled(spark), compiled(spark)
    reports, disk = stream(*_query(spark, operator, folder))
    rows = sum(report.numInputRows for report in reports)
    history, later = reports[0], [r for r in reports[1 + SKIPPED :] if r.numInputRows]
    last = reports[-1]
    return {
        "partitions": partitions,
        "history_seconds": history.durationMs["triggerExecution"] / 1000,
        "state_rows": sum(state.numRowsTotal for state in last.stateOperators),
        "state_bytes": sum(state.memoryUsedBytes for state in last.stateOperators),
        "shuffle_bytes_per_row": (_shuffled(spark) - before) / rows,
        "disk_bytes_per_row": disk / rows,
        "classes": compiled(spark) - classes,
        "durations": [dict(report.durationMs) for report in later],
    }


def _written(spark: SparkSession, operator: str, folder: Path) -> float:
    """Return the seconds of batch Spark to write the history's result and state."""
    spark.read.parquet(str(folder / "00000.parquet")).createOrReplaceTempView("t")
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 0)
    start = time.monotonic()
    for sql, key in WRITTEN[operator]:
        if key is None:
            spark.sql(sql).write.format("noop").mode("overwrite").save()
        else:
            rows = spark.sql(sql).repartition(partitions, key).sortWithinPartitions(key)
            with tempfile.TemporaryDirectory(dir=folder.parent) as written:
                rows.write.mode("overwrite").parquet(written)
    return time.monotonic() - start


def _shuffled(spark: SparkSession) -> int:
    """Return the bytes written by shuffles so far."""
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(executors.apply(i).totalShuffleWrite() for i in range(executors.size()))


def _query(spark: SparkSession, operator: str, folder: Path) -> tuple[DataFrame, str]:
    if operator in TIMED:
        return timed_query(spark, operator, folder), "append"
    if operator == STOCK:
        _raw(spark, folder).createOrReplaceTempView("t")
        return spark.sql(OPERATORS["aggregate"]), "update"
    if operator == "normalize":
        raw = _raw(spark, folder).where("op != 'UPDATE_BEFORE'")
        table = changelog.from_changelog(raw, change_type="op", key=["id"], input="upsert")
        table.createOrReplaceTempView("t")
    else:
        read_table(spark, folder, "fail" if operator == "unique" else None)
    return changelog.to_changelog(spark.sql(OPERATORS[operator])), "append"


def read_table(
    spark: SparkSession, folder: Path, duplicates: Literal["fail"] | None = None
) -> None:
    """Define ``t`` as the table, with one file of changes per batch."""
    changelog.from_changelog(
        _raw(spark, folder), change_type="op", key=["id"], duplicates=duplicates
    ).createOrReplaceTempView("t")


def _raw(spark: SparkSession, folder: Path) -> DataFrame:
    path = str(folder)
    schema = spark.read.parquet(path).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(path)


if __name__ == "__main__":
    main()
