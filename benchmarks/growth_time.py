# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Queries with state bounded by a watermark, over a table of events.

The table ``t`` has a row for every millisecond. The delay of the watermark is the length of the
history. The state is therefore the history, and each later batch adds and expires equally many
rows.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

import spark_changelog as changelog

_BEGIN = 1_640_995_200_000  # in ms since 1970
_JOIN = """SELECT a.id, a.v, b.v AS other FROM t a {kind} JOIN t b ON a.pair = b.id
  AND b.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts + INTERVAL 1 SECOND"""

TIMED = {
    "window": """SELECT window(ts, '1 second') AS time, id, count(*) AS n, sum(v) AS total FROM t
GROUP BY window(ts, '1 second'), id""",
    "inner join": _JOIN.format(kind="INNER"),
    "outer join": _JOIN.format(kind="LEFT"),
    "temporal join": """SELECT a.id, a.v, b.id AS version FROM t a LEFT JOIN LATERAL (
  SELECT * FROM t v WHERE v.k = a.k AND v.ts <= a.ts ORDER BY v.ts DESC LIMIT 1) b""",
    "session": """SELECT session_window(ts, '1 second') AS time, id, count(*) AS n FROM t
GROUP BY session_window(ts, '1 second'), id""",
    "windowed rank": """SELECT id, v FROM (
  SELECT *, row_number() OVER (PARTITION BY time, id ORDER BY v) AS place
  FROM (SELECT *, window(ts, '1 second') AS time FROM t)) WHERE place <= 3""",
    "earliest": """SELECT id, v FROM (
  SELECT *, row_number() OVER (PARTITION BY id ORDER BY ts) AS place FROM t) WHERE place = 1""",
}
# Emit on close needs the event time in the result.
TIMED["rank at close"] = TIMED["windowed rank"].replace("id, v", "time, id, v", 1)


def timed_table(cache: Path, rows: int, changes: int, batches: int) -> Path:
    """Write a history as one file, and each later batch as a further file, unless done."""
    folder = cache / f"growth-time-{rows}-{changes}-{batches}"
    if (folder / f"{batches:05}.parquet").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for batch in range(batches + 1):
        first = 0 if batch == 0 else rows + (batch - 1) * changes
        ids = np.arange(first, first + (rows if batch == 0 else changes))
        columns = {
            "id": ids,
            # groups of ten rows on average, independent of time
            "k": ids * 2_654_435_761 // 128 % (rows // 10),
            "pair": ids ^ 1,
            "v": ids * 31 % 100_003,
            "ts": (ids + _BEGIN).astype("datetime64[ms]"),
            "op": np.full(len(ids), "INSERT", dtype=object),
        }
        path = folder / f"{batch:05}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (_BEGIN // 1000 + batch, _BEGIN // 1000 + batch))
    return folder


def timed_query(spark: SparkSession, operator: str, folder: Path) -> DataFrame:
    """Return a query over a table from `timed_table`."""
    path = str(folder)
    history = pq.read_metadata(folder / "00000.parquet").num_rows
    raw = (
        spark.readStream.schema(spark.read.parquet(path).schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(path)
        .withColumn("ts", col("ts").cast("timestamp"))
        .withWatermark("ts", f"{history} milliseconds")
    )
    if operator == "earliest":
        changelog.from_changelog(raw.drop("op")).createOrReplaceTempView("t")
        return changelog.to_changelog(spark.sql(TIMED[operator]), mode="append")
    changelog.from_changelog(raw, change_type="op", key=["id"]).createOrReplaceTempView("t")
    at_close = operator == "rank at close"
    query = spark.sql(TIMED[operator])
    return changelog.to_changelog(query, mode="append" if at_close else "retract")
