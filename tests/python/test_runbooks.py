# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Each runbook of ``docs/runbooks.md`` solves its problem."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_changelog as changelog
from pages import write
from processes import ROOT

SCHEMA = "id INT, city STRING, fare INT"


def event(op: str, before: tuple[Any, ...] | None, after: tuple[Any, ...] | None) -> str:
    """Return a change in Debezium's format."""
    names = ("id", "city", "fare")
    rows = [dict(zip(names, row, strict=True)) if row else None for row in (before, after)]
    return json.dumps({"op": op, "before": rows[0], "after": rows[1]})


def come(*row: Any) -> str:
    return event("c", None, row)


class Job:
    """Queries from folders of change events to tables of a database."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.url = f"jdbc:derby:{folder}/database;create=true"

    def arrive(self, name: str, *events: str, topic: str = "events") -> None:
        write(self.folder / topic, name, *events)

    def rides(self, schema: str = SCHEMA, topic: str = "events", **arguments: Any) -> DataFrame:
        reader = self.spark.readStream.option("maxFilesPerTrigger", 1)
        events = reader.text(str(self.folder / topic))
        return changelog.from_debezium(events, schema, key="id", **arguments)

    def totals(self, **arguments: Any) -> DataFrame:
        return self.rides(**arguments).groupBy("city").agg(F.sum("fare").alias("total"))

    def checkpoint(self, name: str) -> str:
        return str(self.folder / name)

    def run(self, query: DataFrame, checkpoint: str, table: str = "totals") -> int:
        """Run a query over the available input, and return the number of batches."""
        writer = changelog.to_changelog(query).writeStream.format("changelog-jdbc")
        writer = writer.options(url=self.url, dbtable=table, createTable="true")
        writer = writer.option("checkpointLocation", self.checkpoint(checkpoint))
        started = writer.trigger(availableNow=True).start()
        started.awaitTermination()
        return len({progress.batchId for progress in started.recentProgress})

    def table(self, name: str = "totals") -> DataFrame:
        options = {"url": self.url, "dbtable": name}
        return self.spark.read.format("jdbc").options(**options).load()

    def rows(self, name: str = "totals") -> set[tuple[Any, ...]]:
        return {tuple(row) for row in self.table(name).collect()}

    def execute(self, statement: str) -> None:
        """Run a statement in the database, outside of every query."""
        jvm = self.spark._jvm
        assert jvm is not None
        connection = jvm.java.sql.DriverManager.getConnection(self.url)
        try:
            connection.createStatement().execute(statement)
        finally:
            connection.close()


@pytest.fixture
def job(spark: SparkSession, tmp_path: Path) -> Job:
    return Job(spark, tmp_path)


@pytest.fixture
def view(spark: SparkSession) -> Iterator[str]:
    """Create a view of totals over a table."""
    spark.sql("CREATE TABLE run_rides (city STRING, fare INT) USING json")
    spark.sql("INSERT INTO run_rides VALUES ('Oslo', 5), ('Rome', 7)")
    spark.sql(
        "CREATE MATERIALIZED VIEW run_totals USING parquet AS "
        "SELECT city, sum(fare) AS total FROM STREAM run_rides GROUP BY city"
    )
    yield "run_totals"
    spark.sql("DROP MATERIALIZED VIEW run_totals")
    spark.sql("DROP TABLE run_rides")


def held(spark: SparkSession, view: str) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in spark.table(view).collect()}


def test_every_runbook_is_gone_through_here() -> None:
    page = (ROOT / "docs" / "runbooks.md").read_text()
    source = Path(__file__).read_text()
    for heading in re.findall(r"^## (.*)$", page, re.MULTILINE):
        assert f"\n# {heading}\n" in source, f"no test goes through '{heading}'"


# A table was truncated


def test_a_truncated_table_is_snapshot_anew(job: Job) -> None:
    job.arrive("1", come(1, "Oslo", 5), come(2, "Rome", 7))
    job.run(job.totals(), "first")
    job.arrive("2", event("t", None, None), come(3, "Bern", 2))
    for _ in range(2):
        with pytest.raises(StreamingQueryException, match="CHANGELOG_RECORD_TRUNCATES"):
            job.run(job.totals(), "first")
    assert job.rows() == {("Oslo", 5), ("Rome", 7)}
    # Neither option skips a truncation.
    for arguments in {"on_error": "drop"}, {"dead_letter": str(job.folder / "letters")}:
        with pytest.raises(PySparkException, match="CHANGELOG_RECORD_TRUNCATES"):
            job.run(job.totals(**arguments), f"none-{len(arguments)}", table="nothing")

    job.arrive("1", event("r", None, (3, "Bern", 2)), topic="again")
    job.execute("DELETE FROM totals")
    job.run(job.totals(topic="again"), "second")
    assert job.rows() == {("Bern", 2)}
    job.arrive("2", event("u", (3, "Bern", 2), (3, "Bern", 4)), topic="again")
    job.run(job.totals(topic="again"), "second")
    assert job.rows() == {("Bern", 4)}


def test_rows_that_were_truncated_stay_in_an_archive(job: Job) -> None:
    job.arrive("1", come(1, "Oslo", 5))
    job.run(job.totals(), "first")
    job.arrive("2", event("t", None, None), come(3, "Bern", 2))
    with pytest.raises(StreamingQueryException, match="CHANGELOG_RECORD_TRUNCATES"):
        job.run(job.totals(), "first")
    kept = job.totals(on_truncate="ignore")
    with pytest.raises(PySparkException, match="CHANGELOG_QUERY_CHANGED"):
        job.run(kept, "first")
    # into a new table besides the old table
    job.run(kept, "second", table="totals_2")
    assert job.rows("totals_2") == {("Oslo", 5), ("Bern", 2)}
    # into the old table
    changelog.fork(job.checkpoint("first"), job.checkpoint("forked"), spark=job.spark)
    changes = changelog.to_changelog(kept)
    changelog.evolve(changes, job.checkpoint("forked"), job.checkpoint("third"), job.table())
    job.run(kept, "third")
    assert job.rows() == {("Oslo", 5), ("Bern", 2)}


# A column is added or dropped


def test_a_column_comes_or_goes(job: Job) -> None:
    job.arrive("1", come(1, "Oslo", 5), come(2, "Rome", 7))
    job.run(job.rides(), "first", table="rides")
    job.arrive("2", '{"op": "c", "after": {"id": 3, "city": "Bern", "fare": 1, "size": 3}}')
    job.run(job.rides(), "first", table="rides")
    assert job.rows("rides") == {(1, "Oslo", 5), (2, "Rome", 7), (3, "Bern", 1)}
    with pytest.raises(Exception, match="CHANGELOG_QUERY_CHANGED"):
        job.run(job.rides(f"{SCHEMA}, size INT"), "first", table="rides")
    # The source has dropped a column.
    job.arrive("3", '{"op": "u", "before": null, "after": {"id": 1, "city": "Oslo"}}')
    job.run(job.rides(), "first", table="rides")
    assert job.rows("rides") == {(1, "Oslo", None), (2, "Rome", 7), (3, "Bern", 1)}
    with pytest.raises(StreamingQueryException, match="CHANGELOG_RECORD_MALFORMED"):
        job.run(job.rides(f"{SCHEMA} NOT NULL"), "strict", table="strict_rides")
    # The type of a column has changed.
    job.arrive("4", '{"op": "c", "after": {"id": 4, "city": "Kyiv", "fare": "much"}}')
    with pytest.raises(StreamingQueryException, match="CHANGELOG_RECORD_MALFORMED"):
        job.run(job.rides(), "first", table="rides")
    letters = str(job.folder / "letters")
    job.run(job.rides(dead_letter=letters), "apart", table="apart")
    assert {row[0] for row in job.rows("apart")} == {1, 2, 3}
    assert "Kyiv" in job.spark.read.json(f"{letters}/*/*").collect()[0].record


def test_a_view_gets_other_columns(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE wide_rides (id INT, city STRING) USING parquet")
    spark.sql("INSERT INTO wide_rides VALUES (1, 'Oslo')")
    query = "MATERIALIZED VIEW wide USING parquet AS SELECT * FROM wide_rides"
    spark.sql(f"CREATE {query}")
    try:
        spark.sql("ALTER TABLE wide_rides ADD COLUMN fare INT")
        spark.sql("INSERT INTO wide_rides VALUES (2, 'Rome', 7)")
        spark.sql(f"CREATE OR REPLACE {query}")
        assert held(spark, "wide") == {(1, "Oslo", None), (2, "Rome", 7)}
        spark.sql("INSERT INTO wide_rides VALUES (3, 'Bern', 1)")
        changelog.refresh("wide", spark=spark)
        assert spark.table("wide").count() == 3
    finally:
        spark.sql("DROP MATERIALIZED VIEW wide")
        spark.sql("DROP TABLE wide_rides")


# The query has to change


def test_a_changed_query_takes_over(spark: SparkSession, job: Job) -> None:
    job.arrive("1", come(1, "Oslo", 5), come(2, "Rome", 7), come(3, "Rome", 1))
    job.run(job.totals(), "first")
    changed = job.totals().where("total > 6")
    with pytest.raises(Exception, match="CHANGELOG_QUERY_CHANGED"):
        job.run(changed, "first")
    changes = changelog.to_changelog(changed)
    changelog.evolve(changes, job.checkpoint("first"), job.checkpoint("second"))
    job.run(changed, "second", table="totals_2")
    assert job.rows("totals_2") == {("Rome", 8)}
    # Both queries run until readers use the new table.
    for table in "totals", "totals_2":
        options = f"url '{job.url}', dbtable '{table}'"
        spark.sql(f"CREATE TABLE run_{table} USING jdbc OPTIONS ({options})")
        spark.sql(f"CREATE OR REPLACE VIEW run_shown AS SELECT * FROM run_{table}")
    job.arrive("2", event("u", (1, "Oslo", 5), (1, "Oslo", 9)))
    job.run(job.totals(), "first")
    job.run(changed, "second", table="totals_2")
    assert job.rows() == {("Oslo", 9), ("Rome", 8)}
    assert held(spark, "run_shown") == {("Oslo", 9), ("Rome", 8)}
    shutil.rmtree(job.checkpoint("first"))
    job.execute("DROP TABLE totals")
    job.arrive("3", event("d", (3, "Rome", 1), None))
    job.run(changed, "second", table="totals_2")
    assert held(spark, "run_shown") == {("Oslo", 9), ("Rome", 7)}
    spark.sql("DROP VIEW run_shown")
    for table in "totals", "totals_2":
        spark.sql(f"DROP TABLE run_{table}")


def test_a_changed_view_is_looked_at_first(spark: SparkSession, view: str) -> None:
    changed = "SELECT city, sum(fare) + 1 AS total FROM STREAM run_rides GROUP BY city"
    changelog.fork_view(view, "run_next", spark=spark)
    spark.sql(f"ALTER MATERIALIZED VIEW run_next AS {changed}")
    assert changelog.compare(view, "run_next", spark=spark).count() == 4
    changelog.swap(view, "run_next", spark=spark)
    assert held(spark, view) == {("Oslo", 6), ("Rome", 8)}
    spark.sql("DROP MATERIALIZED VIEW run_next")
    spark.sql("INSERT INTO run_rides VALUES ('Oslo', 1)")
    changelog.refresh(view, spark=spark)
    assert held(spark, view) == {("Oslo", 7), ("Rome", 8)}


# Backfill


def test_a_long_history_comes_in_batches(job: Job) -> None:
    for number in range(1, 5):
        job.arrive(str(number), come(number, "Oslo", number))
    assert job.run(job.totals(), "first") >= 4
    assert job.rows() == {("Oslo", 10)}


# Rows of a sink are wrong, or gone


def test_a_view_that_somebody_has_changed(spark: SparkSession, view: str) -> None:
    folders = {str(Path(urlparse(file).path).parent) for file in spark.table(view).inputFiles()}
    spoiled = spark.createDataFrame([("Oslo", 500)], spark.table(view).schema)
    spoiled.coalesce(1).write.mode("overwrite").parquet(folders.pop())
    spark.catalog.refreshTable(view)
    found = changelog.verify(view, spark=spark).collect()
    assert {(row._difference, row.city) for row in found} == {
        ("missing", "Oslo"),
        ("missing", "Rome"),
        ("unexpected", "Oslo"),
    }
    changelog.refresh(view, full=True, spark=spark)
    assert held(spark, view) == {("Oslo", 5), ("Rome", 7)}
    assert changelog.verify(view, spark=spark).count() == 0


def test_a_table_that_somebody_has_changed(job: Job) -> None:
    job.arrive("1", come(1, "Oslo", 5), come(2, "Rome", 7))
    job.run(job.totals(), "first")
    job.execute("DELETE FROM totals WHERE \"city\" = 'Rome'")
    job.arrive("2", come(3, "Bern", 2))
    job.run(job.totals(), "first")
    events = job.spark.read.text(str(job.folder / "events"))
    batch = changelog.from_debezium(events, SCHEMA, key="id").groupBy("city").agg(F.sum("fare"))
    right = {tuple(row) for row in batch.collect()}
    assert right - job.rows() == {("Rome", 7)}
    job.execute("DELETE FROM totals")
    job.run(job.totals(), "second")
    assert job.rows() == right
    job.arrive("3", event("d", (3, "Bern", 2), None))
    job.run(job.totals(), "second")
    assert job.rows() == right - {("Bern", 2)}


# The checkpoint is lost or damaged


def test_a_checkpoint_is_copied_back(job: Job) -> None:
    job.arrive("1", come(1, "Oslo", 5))
    job.run(job.totals(), "first")
    shutil.copytree(job.checkpoint("first"), job.checkpoint("copy"))
    shutil.rmtree(job.checkpoint("first"))
    shutil.copytree(job.checkpoint("copy"), job.checkpoint("first"))
    job.arrive("2", event("u", (1, "Oslo", 5), (1, "Rome", 5)))
    job.run(job.totals(), "first")
    assert job.rows() == {("Rome", 5)}


def test_an_older_copy_of_a_checkpoint_is_forked(job: Job) -> None:
    job.arrive("1", come(1, "Oslo", 5), come(2, "Rome", 7))
    job.run(job.totals(), "first")
    shutil.copytree(job.checkpoint("first"), job.checkpoint("copy"))
    job.arrive("2", event("u", (1, "Oslo", 5), (1, "Rome", 5)))
    job.run(job.totals(), "first")
    shutil.rmtree(job.checkpoint("first"))
    job.arrive("3", come(3, "Bern", 2))

    changelog.fork(job.checkpoint("copy"), job.checkpoint("forked"), spark=job.spark)
    changes = changelog.to_changelog(job.totals())
    changelog.evolve(changes, job.checkpoint("forked"), job.checkpoint("new"), job.table())
    job.run(job.totals(), "new")
    assert job.rows() == {("Rome", 12), ("Bern", 2)}


def test_no_copy_of_a_checkpoint_is_left(job: Job) -> None:
    job.arrive("1", come(1, "Oslo", 5))
    job.run(job.totals(), "first")
    shutil.rmtree(job.checkpoint("first"))
    job.execute("DELETE FROM totals")
    job.run(job.totals(), "second")
    assert job.rows() == {("Oslo", 5)}


def test_a_view_whose_checkpoint_is_lost(spark: SparkSession, view: str) -> None:
    home = urlparse(str(spark.conf.get("spark.sql.warehouse.dir"))).path
    (checkpoint,) = Path(home).glob("**/run_totals/**/checkpoint")
    shutil.rmtree(checkpoint)
    spark.sql("INSERT INTO run_rides VALUES ('Oslo', 1)")
    changelog.refresh(view, spark=spark)
    assert held(spark, view) == {("Oslo", 6), ("Rome", 7)}
    last = spark.sql(f"SHOW REFRESHES OF {view}").collect()[0]
    assert last.mode == "full"
    assert "the view has no state" in last.reason
    assert changelog.verify(view, spark=spark).count() == 0


# Upgrade


def test_there_is_a_way_back_from_an_upgrade(job: Job) -> None:
    job.arrive("1", come(1, "Oslo", 5), come(2, "Rome", 7))
    job.run(job.totals(), "first")
    first = job.checkpoint("first")
    changelog.create_savepoint("before_upgrade", checkpoint=first, spark=job.spark)
    # This change, made after the upgrade, is to be undone.
    job.arrive("2", event("u", (1, "Oslo", 5), (1, "Rome", 5)))
    job.run(job.totals(), "first")
    forked = job.checkpoint("forked")
    assert changelog.fork(first, forked, savepoint="before_upgrade", spark=job.spark) == 0
    changes = changelog.to_changelog(job.totals())
    changelog.evolve(changes, forked, job.checkpoint("back"), job.table())
    job.arrive("3", come(3, "Bern", 2))
    job.run(job.totals(), "back")
    assert job.rows() == {("Rome", 12), ("Bern", 2)}


def test_a_view_goes_back_after_an_upgrade(spark: SparkSession, view: str) -> None:
    changelog.create_savepoint("before_upgrade", view=view, spark=spark)
    spark.sql("INSERT INTO run_rides VALUES ('Oslo', 1)")
    changelog.refresh(view, spark=spark)
    assert changelog.verify(view, spark=spark).count() == 0
    spark.sql(f"RESTORE MATERIALIZED VIEW {view} TO SAVEPOINT before_upgrade")
    assert held(spark, view) == {("Oslo", 5), ("Rome", 7)}
    changelog.refresh(view, spark=spark)
    assert held(spark, view) == {("Oslo", 6), ("Rome", 7)}
