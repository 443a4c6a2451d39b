# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The queries on the pages about operators, concepts and changes run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import spark_changelog as changelog
from pages import sections, transcript, write
from processes import ROOT
from test_pages import TRANSCRIPTS

# Pages with queries that a test starts over the tables below.
QUERIES = [
    "architecture",
    "concepts",
    "sources-and-sinks",
    *(f"operators/{path.stem}" for path in sorted((ROOT / "docs/operators").glob("*.md"))),
]

# Pages with code that other tests run.
ELSEWHERE = {
    "changing-a-query",
    "contributing/phases",
    "cluster",
    "dbt",
    "explain",
    "guides/cdc-to-warehouse",
    "guides/from-foreachbatch",
    "monitoring",
    "quickstart-sql",
    "runbooks",
    "testing-your-queries",
    "tutorial",
    "views",
}

TABLES = {
    "auctions": "id INT, category STRING",
    "bids": "op STRING, id INT, auction INT, bidder INT, price INT",
    "discounts": "percent INT, least INT, most INT",
    "feed": "op STRING, id INT, name STRING, lsn INT, ts INT",
    "items": "supplier INT, price INT",
    "orders": "op STRING, id INT, uid INT, customer INT, currency STRING, amount INT, "
    "at TIMESTAMP",
    "rates": "op STRING, currency STRING, rate INT, valid_from TIMESTAMP, changed_at TIMESTAMP",
    "raw": "op STRING, id INT, customer INT, amount INT",
    "rides": "op STRING, city STRING, fare INT, at TIMESTAMP",
    "staff": "id INT, boss INT",
    "topic": "value STRING",
    "users": "op STRING, uid INT, name STRING",
    "views": "page STRING, at TIMESTAMP",
    "words": "word STRING",
}
VALUES = {"INT": "1", "STRING": "x", "TIMESTAMP": "2026-11-01T08:00:00Z"}
SPECIAL = {"op": "+I", "boss": "2"}
EVENTS = {
    "from_debezium": '{"op": "c", "before": null, "after": {"id": 1, "name": "x"}}',
    "from_canal": '{"type": "INSERT", "es": 1, "database": "shop", "table": "orders", '
    '"data": [{"id": "1", "name": "x"}]}',
    "from_maxwell": '{"type": "insert", "ts": 1, "database": "shop", "table": "orders", '
    '"data": {"id": 1, "name": "x"}}',
    "from_goldengate": '{"table": "SHOP.ORDERS", "op_type": "I", "pos": "00000000000000000001", '
    '"after": {"ID": 1, "NAME": "x"}}',
}


@pytest.fixture
def streams(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Create the temporary views of streams, each with a row."""
    for name, schema in TABLES.items():
        columns = [column.split(" ") for column in schema.split(", ")]
        values = [SPECIAL.get(column) or VALUES[kind] for column, kind in columns]
        write(tmp_path / name, "1", ",".join(values))
        stream = spark.readStream.schema(schema).csv(str(tmp_path / name))
        if name == "views":
            stream = stream.withWatermark("at", "1 minute")
        stream.createOrReplaceTempView(name)
    dump = spark.sql("SELECT 2 AS id, 'y' AS name, 0 AS lsn, 0 AS ts")
    dump.createOrReplaceTempView("orders_dump")
    yield tmp_path
    for name in [*TABLES, "orders_dump"]:
        spark.catalog.dropTempView(name)


def queries(page: str) -> list[str]:
    """Return the statements of a page, without comments."""
    statements = [statement for block, _ in transcript(page) for statement in block]
    return [text for sql in statements if (text := re.sub(r"--[^\n]*", "", sql).strip())]


def test_every_page_with_code_is_run() -> None:
    run = {*QUERIES, *TRANSCRIPTS, *ELSEWHERE}
    for path in (ROOT / "docs").rglob("*.md"):
        page = path.relative_to(ROOT / "docs").with_suffix("").as_posix()
        code = re.search(r"^```(sql|python)\n", path.read_text(), re.MULTILINE)
        assert code is None or page in run, f"no test runs the code of {page}"


@pytest.mark.parametrize("page", [page for page in QUERIES if queries(page)])
def test_the_queries_of_a_page_run(spark: SparkSession, streams: Path, page: str) -> None:
    for number, sql in enumerate(queries(page)):
        for function, event in EVENTS.items():
            if function in sql:
                (streams / "topic" / "1").write_text(event + "\n")
                spark.readStream.text(str(streams / "topic")).createOrReplaceTempView("topic")
        if "from_upsert_kafka" in sql:
            write(streams / "kafka", "1", r'{"key": "1", "value": "{\"id\": 1}"}')
            records = spark.readStream.schema("key STRING, value STRING").json(
                str(streams / "kafka")
            )
            records.createOrReplaceTempView("topic")
        text = sql if "to_changelog" in sql else f"SELECT * FROM to_changelog(TABLE({sql}))"
        writer = spark.sql(text).writeStream.format("noop").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(streams / f"checkpoint-{number}")).start()
        query.awaitTermination()
        assert sum(batch.numInputRows for batch in query.recentProgress) > 0, sql


def test_the_python_of_sources_and_sinks(spark: SparkSession, streams: Path) -> None:
    page = sections("sources-and-sinks")
    rides = spark.createDataFrame([(1, "Oslo", 5)], "id INT, city STRING, fare INT")
    rides.createOrReplaceTempView("rides_over_jdbc")
    page["Tables without a change feed"].run_python(spark=spark, changelog=changelog)
    orders = changelog.from_changelog(spark.table("raw"), change_type="op", key="id")
    totals = orders.groupBy("customer").agg({"amount": "sum"})
    totals = totals.withColumnRenamed("sum(amount)", "total")
    page["Sinks"].run_python(spark=spark, changelog=changelog, totals=totals)
    for query in spark.streams.active:
        query.processAllAvailable()
        query.stop()
    spark.catalog.dropTempView("rides_over_jdbc")
    spark.catalog.dropTempView("totals")


def test_the_code_of_explain(
    spark: SparkSession, streams: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(streams)
    reader = spark.readStream.schema("op STRING, id INT, city STRING, fare INT")
    feed = reader.csv(str(streams / "rides"))
    rides = changelog.from_changelog(feed, change_type="op", key="id")
    rides.createOrReplaceTempView("rides")
    spark.table("users").selectExpr("uid AS id", "name AS city").createOrReplaceTempView(
        "customers"
    )
    dry_run, picture, status = queries("explain")
    (told,) = spark.sql(dry_run).collect()
    assert "> 2: -U Oslo 5, +U Oslo 12" in told[0]
    assert spark.sql(f"EXPLAIN CHANGELOG {picture}").collect()
    sections("explain")["As a picture"].run_python(changelog=changelog, df=spark.sql(picture))
    assert "<svg" in (streams / "plan.html").read_text()
    spark.sql(status).collect()
    spark.catalog.dropTempView("customers")


def test_the_statements_of_changing_a_query(spark: SparkSession, streams: Path) -> None:
    spark.sql("CREATE DATABASE changing")
    spark.sql("USE changing")
    spark.catalog.dropTempView("orders")
    spark.sql("CREATE TABLE orders (id INT, customer INT, amount INT) USING parquet")
    spark.sql("CREATE TABLE customers (customer INT, country STRING) USING parquet")
    spark.sql("INSERT INTO orders VALUES (1, 1, 500), (2, 2, 5)")
    spark.sql("INSERT INTO customers VALUES (1, 'NO'), (2, 'SE')")
    spark.sql(
        "CREATE MATERIALIZED VIEW revenue USING parquet AS SELECT country, sum(amount) AS total "
        "FROM orders JOIN customers USING (customer) GROUP BY country"
    )
    spark.sql("CREATE TABLE totals USING parquet AS SELECT 'x' AS city, 1L AS total, 1L AS rides")
    old = "SELECT city, sum(fare) AS total FROM rides GROUP BY city"
    writer = changelog.to_changelog(spark.sql(old)).writeStream.format("noop")
    place = writer.option("checkpointLocation", str(streams / "totals"))
    place.trigger(availableNow=True).start().awaitTermination()
    for statement in queries("changing-a-query"):
        folder = str(streams)
        if statement.startswith("RESCALE"):  # The page creates this checkpoint twice.
            (streams / "totals-2").rename(streams / "evolved")
        spark.sql(statement.replace("/checkpoints", folder)).collect()
    assert [tuple(row) for row in spark.table("revenue").collect()] == [("NO", 500)]
    spark.sql("DROP MATERIALIZED VIEW revenue")
    spark.sql("USE default")
    spark.sql("DROP DATABASE changing CASCADE")


def test_the_statements_of_views(spark: SparkSession) -> None:
    spark.sql("CREATE DATABASE page")
    spark.sql("USE page")
    spark.sql("CREATE TABLE rides (id INT, city STRING, fare INT, customer STRING) USING parquet")
    spark.sql("INSERT INTO rides VALUES (1, 'Oslo', 5, 'Ada')")
    grouped = "FROM rides GROUP BY"
    for name, query in {
        "fares": f"SELECT city, sum(fare) AS fare {grouped} city",
        "totals": f"SELECT customer, sum(fare) AS total {grouped} customer",
    }.items():
        spark.sql(f"CREATE MATERIALIZED VIEW {name} USING parquet AS {query}")
    spark.sql("REFRESH MATERIALIZED VIEWS IN page")
    for statement in queries("views"):
        df = spark.sql(statement)
        if not df.isStreaming:
            df.collect()
    for name in "fares", "fares_next", "totals":
        spark.sql(f"DROP MATERIALIZED VIEW {name}")
    spark.sql("USE default")
    spark.sql("DROP DATABASE page CASCADE")
