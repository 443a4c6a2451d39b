# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Sinks are available in Python by format name."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_changelog
from processes import ROOT
from spark_changelog import Batch, from_changelog, sink, statement_set, to_changelog

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


@pytest.fixture
def function_of_the_page() -> str:
    """Return the code of the page's function, without the query."""
    page = (ROOT / "docs" / "sources-and-sinks.md").read_text()
    code = re.search(r"### A sink of your own.*?```python [^\n]*\n(.*?)\n\n", page, re.DOTALL)
    assert code
    return code[1]


def test_the_function_of_the_page(
    spark: SparkSession, tmp_path: Path, rides: DataFrame, function_of_the_page: str
) -> None:
    database = tmp_path / "totals.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE totals (customer TEXT PRIMARY KEY, total INT)")
        connection.execute("CREATE TABLE written (query TEXT, batch INT)")
    names = {"changelog": spark_changelog, "sqlite3": sqlite3, "database": database}
    exec(function_of_the_page, names)

    def stored(sql: str) -> list[tuple[object, ...]]:
        with sqlite3.connect(database) as connection:
            return connection.execute(sql).fetchall()

    changes = to_changelog(totals(rides.na.fill("?")).withColumnRenamed("city", "customer"))
    write(changes, "changelog-function", tmp_path / "checkpoint", function="totals")
    assert set(stored("SELECT * FROM totals")) == {("Rome", 12), ("?", 2)}
    assert [number for (number,) in stored("SELECT batch FROM written")] == [0, 1]

    # The last batch comes again, as after a failure before its commit.
    with sqlite3.connect(database) as connection:
        connection.execute("DELETE FROM totals")
    (tmp_path / "checkpoint" / "commits" / "1").unlink()
    write(changes, "changelog-function", tmp_path / "checkpoint", function="totals")
    assert stored("SELECT * FROM totals") == []


def test_a_function_gets_counts_of_equal_rows(
    spark: SparkSession, tmp_path: Path, rides: DataFrame
) -> None:
    batches = []

    @sink("cities", accepts="retract", spark=spark)
    def keep(batch: Batch) -> None:
        batches.append({tuple(row) for row in batch.rows.collect()})

    changes = to_changelog(rides.select("city"))
    write(changes, "changelog-function", tmp_path / "checkpoint", function="cities")
    assert batches == [{("Oslo", 1), ("Rome", 1), (None, 1)}, {("Oslo", -1), ("Rome", 1)}]


def test_a_function_with_an_error_stops_the_query(
    spark: SparkSession, tmp_path: Path, rides: DataFrame
) -> None:
    @sink("broken", spark=spark)
    def fail(batch: Batch) -> None:
        raise ValueError(f"no place for batch {batch.batch_id}")

    with pytest.raises(StreamingQueryException, match="no place for batch 0"):
        write(
            to_changelog(rides), "changelog-function", tmp_path / "checkpoint", function="broken"
        )


def test_a_function_gets_only_the_changes_that_it_accepts(
    spark: SparkSession, tmp_path: Path, rides: DataFrame
) -> None:
    sink("inserts", accepts="append", spark=spark)(print)
    with pytest.raises(AnalysisException, match="CHANGELOG_SINK_NEEDS_APPEND"):
        write(
            to_changelog(rides), "changelog-function", tmp_path / "checkpoint", function="inserts"
        )


def test_the_source_of_the_page(spark: SparkSession, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "sources-and-sinks.md").read_text()
    code = re.search(r"## A source of your own.*?```python\n(.*?)```", page, re.DOTALL)
    assert code
    imports = "from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader\n"
    rows = [("c", 1, 5, 1), ("c", 2, 7, 2), ("u", 1, 6, 3), ("d", 2, 7, 4)]
    fetch = f"def fetch(number):\n    return {rows!r}[number:][:3]\n\n\n"
    names: dict[str, Any] = {"spark": spark, "changelog": spark_changelog}
    exec(imports + fetch + code[1], names)
    writer = to_changelog(names["meters"]).writeStream.format("changelog-memory")
    query = writer.queryName("meters").option("checkpointLocation", str(tmp_path)).start()
    query.processAllAvailable()
    query.stop()
    assert {tuple(row) for row in spark.sql("SELECT meter, reading FROM meters").collect()} == {
        (1, 6)
    }


def test_queries_of_a_statement_set_have_their_own_sinks(
    spark: SparkSession, tmp_path: Path, rides: DataFrame
) -> None:
    address = f"jdbc:derby:{tmp_path}/database;create=true"
    queries = {
        "totals": to_changelog(totals(rides), mode="upsert"),
        "fares": to_changelog(rides.select("id", F.col("fare").alias("a fare"))),
        "rides": to_changelog(rides.groupBy().count(), mode="retract"),
    }
    options = {"sinks": "rides, totals, fares"}
    for name in queries:
        options |= {f"{name}.format": "changelog-jdbc", f"{name}.url": address}
        options |= {f"{name}.dbtable": name, f"{name}.createTable": "true"}
    for _ in range(2):  # and again, from the checkpoint
        write(statement_set(queries), "changelog-fanout", tmp_path / "checkpoint", **options)

    def kept(name: str) -> set[tuple[object, ...]]:
        table = spark.read.format("jdbc").option("url", address).option("dbtable", name).load()
        return set(map(tuple, table.collect()))

    assert kept("totals") == {("Rome", 12), (None, 2)}
    assert kept("fares") == {(1, 5), (2, 7), (4, 2)}
    assert kept("rides") == {(3,)}


def test_equal_parts_of_a_statement_set_are_computed_once(
    spark: SparkSession, tmp_path: Path, rides: DataFrame
) -> None:
    most = totals(rides).agg(F.max("total").alias("most"))
    queries = {"totals": to_changelog(totals(rides)), "most": to_changelog(most)}
    options = {"sinks": "totals, most"}
    for name in queries:
        options |= {f"{name}.format": "changelog-memory", f"{name}.queryName": f"shared_{name}"}
    write(statement_set(queries), "changelog-fanout", tmp_path / "checkpoint", **options)
    state = spark.read.format("state-metadata").load(str(tmp_path / "checkpoint"))
    assert state.count() == 2
    assert set(map(tuple, spark.table("shared_totals").collect())) == {("Rome", 12), (None, 2)}
    assert spark.table("shared_most").collect() == [(12,)]


def test_each_query_of_a_statement_set_is_checked_by_its_sink(
    tmp_path: Path, rides: DataFrame
) -> None:
    queries = {
        "totals": to_changelog(totals(rides)),
        "cities": to_changelog(rides.select("city")),
    }
    options = {"sinks": "totals", "totals.format": "changelog-memory", "totals.queryName": "kept"}
    with pytest.raises(AnalysisException, match=r"SINK_OPTION_INVALID.*cities, totals"):
        write(statement_set(queries), "changelog-fanout", tmp_path / "c", **options)
    options |= {"sinks": "cities, totals"}
    address = f"jdbc:derby:{tmp_path}/database;create=true"
    options |= {
        "cities.format": "changelog-jdbc",
        "cities.url": address,
        "cities.dbtable": "cities",
    }
    with pytest.raises(AnalysisException, match=r"SINK_NEEDS_APPEND"):
        write(statement_set(queries), "changelog-fanout", tmp_path / "c", **options)
    with pytest.raises(ValueError, match="_change_type"):
        statement_set({"rides": rides})
    with pytest.raises(ValueError, match="empty"):
        statement_set({})
