# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Maintains one query of TPC-H or Nexmark, and recomputes it, in a separate process.

The first batch has nearly every row of TPC-H's tables. Each later batch inserts a thousandth of
the orders with their lines, and deletes as many. In the further large tables each later batch
updates a thousandth of the rows.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryProgress

import spark_changelog as changelog
from data import FILES, SIGN
from measuring import ROOT
from sessions import answer, checked, compiled, measured, row_hash, session, stream

MOST_BATCHES = 100  # batches of TPC-H's changes, each with a different thousandth of the rows
TPCH_KEYS = {
    "region": ["r_regionkey"],
    "nation": ["n_nationkey"],
    "supplier": ["s_suppkey"],
    "part": ["p_partkey"],
    "partsupp": ["ps_partkey", "ps_suppkey"],
    "customer": ["c_custkey"],
    "orders": ["o_orderkey"],
    "lineitem": ["l_orderkey", "l_linenumber"],
}
# The updated tables, with the expression for each changed column.
_UPDATES = {
    "supplier": {"s_acctbal": "s_acctbal + 1"},
    "part": {"p_size": "p_size % 50 + 1"},
    "partsupp": {"ps_supplycost": "ps_supplycost + 1", "ps_availqty": "ps_availqty + 1"},
    "customer": {"c_acctbal": "c_acctbal + 1"},
    "lineitem": {"l_quantity": "l_quantity + 1"},
}
_NEXMARK_COLUMNS = {
    "person": "*",
    "auction": "* EXCEPT (ts, expires_ts)",
    "bid": "* EXCEPT (id, ts, day)",
}
NEXMARK_BATCHES = 10


@dataclass(frozen=True)
class Task:
    """The task of one process."""

    suite: str
    query: str
    folder: str
    warm_folder: str
    anew: int
    settings: dict[str, str]
    memory: str
    jar: str


def main() -> None:
    """Run the task of the first argument."""
    task = Task(**json.loads(sys.argv[1]))
    spark = session(task.settings, task.memory, jar=task.jar)
    sql = (ROOT / "tests" / "sql" / task.suite / f"{task.query}.sql").read_text()
    for _ in range(2):
        _keep(spark, task.suite, Path(task.warm_folder), sql)

    folder = Path(task.folder)
    _read_tables(spark, task.suite, folder, sql, stream=False)
    recompute = [_recompute(spark, sql) for _ in range(task.anew)]
    before = compiled(spark)
    found = measured(_keep(spark, task.suite, folder, sql))
    found["classes"] = compiled(spark) - before
    found["table_bytes"] = sum(
        file.stat().st_size
        for name in used_tables(task.suite, sql)
        for file in _path(task.suite, folder, name).rglob("*.parquet")
    )
    expected = recompute[-1]
    found["right"] = (found["count"], found["sum"]) == (expected["count"], expected["sum"] or 0)
    found["recompute_seconds"] = [one["seconds"] for one in recompute]
    answer(spark, found)
    spark.stop()


def _keep(
    spark: SparkSession, suite: str, folder: Path, sql: str
) -> Sequence[StreamingQueryProgress]:
    """Maintain a query to the end of its tables, and return the progress reports."""
    _read_tables(spark, suite, folder, sql, stream=True)
    reports, _ = stream(checked(changelog.to_changelog(spark.sql(sql))), "append")
    return reports


def _read_tables(spark: SparkSession, suite: str, folder: Path, sql: str, stream: bool) -> None:
    for name in used_tables(suite, sql):
        _table(spark, suite, folder, name, stream).createOrReplaceTempView(name)


def code_of(sql: str) -> str:
    """Return a query without comments."""
    return "\n".join(line for line in sql.splitlines() if not line.startswith("--"))


def used_tables(suite: str, sql: str) -> list[str]:
    """Return the names of the query's tables."""
    code = code_of(sql)
    return [name for name in tables(suite) if re.search(rf"\b(?i:{name})\b", code)]


def tables(suite: str) -> list[str]:
    """Return the names of a suite's tables."""
    return list(TPCH_KEYS if suite == "tpch" else _NEXMARK_COLUMNS)


def _recompute(spark: SparkSession, sql: str) -> dict[str, Any]:
    observation = Observation()
    frame = spark.sql(sql)
    started = time.perf_counter()
    observed = frame.observe(
        observation, F.count("*").alias("count"), F.sum(row_hash(frame)).alias("sum")
    )
    observed.write.format("noop").mode("overwrite").save()
    return {"seconds": time.perf_counter() - started, **observation.get}


def _table(spark: SparkSession, suite: str, folder: Path, name: str, stream: bool) -> DataFrame:
    """Read a table: its final rows, or as a stream its changes."""
    if suite == "nexmark":
        path, per_batch = _path(suite, folder, name), FILES // NEXMARK_BATCHES
        columns = _NEXMARK_COLUMNS[name]
        frame = _read(spark, path, per_batch) if stream else spark.read.parquet(str(path))
        frame.createOrReplaceTempView(f"all_{name}")
        return spark.sql(f"SELECT {columns} FROM all_{name}")
    if not stream:
        return spark.read.parquet(str(_path(suite, folder, name)))
    raw = _read(spark, folder / name, 1)
    return changelog.from_changelog(raw, change_type="op", key=TPCH_KEYS[name])


def _path(suite: str, folder: Path, name: str) -> Path:
    """Return the path of a table's final rows."""
    return folder / (name if suite == "nexmark" else f"{name}_now")


def _read(spark: SparkSession, path: Path, per_batch: int) -> DataFrame:
    schema = spark.read.parquet(str(path)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", per_batch)
    return reader.parquet(str(path))


def generate_tpch(spark: SparkSession, folder: Path, scale: float, batches: int) -> None:
    """Write TPC-H's tables as changes, one file per batch, and as final rows."""
    if (folder / "done").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    raw = folder / "raw"
    generate_raw_tpch(raw, scale)
    for name, key in TPCH_KEYS.items():
        rows = spark.read.parquet(str(raw / f"{name}.parquet"))
        _write_changes(_changes(rows, name, key, batches), folder, name, batches)
    shutil.rmtree(raw)
    (folder / "done").touch()


def generate_raw_tpch(folder: Path, scale: float) -> None:
    """Write TPC-H's tables as Parquet."""
    generator = Path(sys.executable).with_name("tpchgen-cli")
    command = [str(generator), "parquet", f"--scale-factor={scale}", f"--output-dir={folder}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _changes(rows: DataFrame, name: str, key: list[str], batches: int) -> DataFrame:
    moving = name in ("orders", "lineitem")
    # An order and its lines get the same number below 1000. Each batch changes one number.
    place = f"CAST(pmod(xxhash64({key[0]}), 1000) AS INT)"
    placed = rows.withColumn("place", F.expr(place))
    come = f"place BETWEEN 1 AND {batches}" if moving else "false"
    go = f"place BETWEEN 101 AND {100 + batches}" if moving else "false"
    updated = f"place BETWEEN 201 AND {200 + batches}" if name in _UPDATES else "false"
    columns = _UPDATES.get(name, {})
    new = placed.withColumns(
        {c: F.expr(e).cast(rows.schema[c].dataType) for c, e in columns.items()}
    )
    parts = [
        (placed, "INSERT", f"if({come}, place, 0)", "true"),
        (placed, "DELETE", "place - 100", go),
        (placed, "UPDATE_BEFORE", "place - 200", updated),
        (new, "UPDATE_AFTER", "place - 200", updated),
    ]
    frames = [
        frame.where(condition)
        .withColumns({"op": F.lit(kind), "batch": F.expr(batch).cast("int")})
        .drop("place")
        for frame, kind, batch, condition in parts
    ]
    union = frames[0]
    for frame in frames[1:]:
        union = union.unionAll(frame)
    return union


def _write_changes(changes: DataFrame, folder: Path, name: str, batches: int) -> None:
    changes = changes.persist()
    target = folder / name
    changes.repartition(batches + 1, "batch").write.partitionBy("batch").parquet(str(target))
    for part in target.glob("batch=*"):
        number = int(part.name.removeprefix("batch="))
        (written,) = part.glob("*.parquet")
        path = target / f"{number:05}.parquet"
        written.rename(path)
        shutil.rmtree(part)
        os.utime(path, (1_640_995_200 + number, 1_640_995_200 + number))
    columns = [column for column in changes.columns if column not in ("op", "batch")]
    now = changes.groupBy(*columns).agg(F.expr(f"sum({SIGN})").alias("there"))
    now.where("there > 0").drop("there").coalesce(2).write.parquet(str(folder / f"{name}_now"))
    changes.unpersist()


if __name__ == "__main__":
    main()
