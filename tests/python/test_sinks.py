# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Sinks are available in Python by format name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_changelog import from_changelog, to_changelog

BATCHES = [
    """{"op": "+I", "id": 1, "city": "Oslo", "fare": 5}
{"op": "+I", "id": 2, "city": "Rome", "fare": 7}
{"op": "+I", "id": 3, "fare": 1}""",
    """{"op": "-U", "id": 1, "city": "Oslo", "fare": 5}
{"op": "+U", "id": 1, "city": "Rome", "fare": 5}
{"op": "-D", "id": 3, "fare": 1}
{"op": "+I", "id": 4, "fare": 2}""",
]


@pytest.fixture
def rides(spark: SparkSession, feed: Callable[[str], Path]) -> DataFrame:
    """Read two batches of changes as a table."""
    for number, lines in enumerate(BATCHES):
        folder = feed(lines)
        seconds = 1_600_000_000 + number
        os.utime(folder / f"{number:04}.json", (seconds, seconds))
    raw = spark.readStream.schema("op STRING, id INT, city STRING, fare INT")
    changes = raw.option("maxFilesPerTrigger", 1).json(str(folder))
    return from_changelog(changes, change_type="op", key=["id"])


def totals(rides: DataFrame) -> DataFrame:
    return rides.groupBy("city").agg(F.sum("fare").alias("total"))


def write(changes: DataFrame, sink: str, checkpoint: Path, **options: str) -> None:
    writer = changes.writeStream.format(sink).options(**options)
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination()


def test_a_database_table(spark: SparkSession, tmp_path: Path, rides: DataFrame) -> None:
    address = f"jdbc:derby:{tmp_path}/database;create=true"  # Derby is part of Spark
    options = {"url": address, "dbtable": "totals"}
    sink = {**options, "createTable": "true"}
    write(to_changelog(totals(rides)), "changelog-jdbc", tmp_path / "checkpoint", **sink)
    rows = spark.read.format("jdbc").options(**options).load().collect()
    assert {tuple(row) for row in rows} == {("Rome", 12), (None, 2)}


def test_a_view(spark: SparkSession, tmp_path: Path, rides: DataFrame) -> None:
    changes = to_changelog(totals(rides), mode="upsert")
    write(changes, "changelog-memory", tmp_path / "checkpoint", queryName="totals_now")
    rows = spark.sql("SELECT * FROM totals_now ORDER BY total").collect()
    assert [tuple(row) for row in rows] == [(None, 2), ("Rome", 12)]


def test_what_a_sink_cannot_keep(tmp_path: Path, rides: DataFrame) -> None:
    changes = to_changelog(rides.select("city"))
    with pytest.raises(AnalysisException, match="CHANGELOG_SINK_NEEDS_APPEND"):
        write(changes, "changelog-table", tmp_path / "checkpoint", table="t")
