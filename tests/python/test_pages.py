# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The code on the pages for users runs, with the described results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import spark_changelog as changelog
from pages import Section, sections, transcript, write
from processes import ROOT
from spark_changelog.run import STATUS_COLUMNS
from spark_changelog.testing import ChangelogError, Feed, check, check_query

TUTORIAL = sections("tutorial")
COOKBOOK = sections("cookbook")
RUNBOOKS = sections("runbooks")
TESTING = sections("testing-your-queries")
WAREHOUSE = sections("guides/cdc-to-warehouse")
DEDUPLICATE = sections("guides/deduplicate")
MERGE = sections("guides/from-foreachbatch")
MOVING = sections("moving")

# Pages with statements that run one after the other, in a database of their own.
TRANSCRIPTS = [
    "cookbook",
    "guides/deduplicate",
    "guides/history",
    "guides/patterns",
    "guides/top-n",
    "guides/windows",
    "moving",
    "planning",
    *(f"statements/{path.stem}" for path in sorted((ROOT / "docs/statements").glob("*.md"))),
]


@pytest.fixture
def changes_of(spark: SparkSession, tmp_path: Path) -> Callable[..., DataFrame]:
    """Return a function to read a folder of CSV files as a stream, or with a key as a table."""

    def read(name: str, schema: str, key: str | None = None) -> DataFrame:
        (tmp_path / name).mkdir()
        stream = spark.readStream.option("maxFilesPerTrigger", 1).schema(schema)
        rows = stream.csv(str(tmp_path / name))
        return changelog.from_changelog(rows, change_type="op", key=key) if key else rows

    return read


@pytest.fixture
def keep(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., StreamingQuery]]:
    """Return a function to write a query into a view. The queries stop after the test."""
    started: list[StreamingQuery] = []

    def start(df: DataFrame, name: str) -> StreamingQuery:
        writer = changelog.to_changelog(df).writeStream.format("changelog-memory")
        writer = writer.option("checkpointLocation", str(tmp_path / f"checkpoint-{name}"))
        started.append(writer.queryName(name).start())
        return started[-1]

    yield start
    for query in started:
        query.stop()


def rows(spark: SparkSession, table: str) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in spark.table(table).collect()}


def test_every_section_with_code_is_run_here() -> None:
    source = Path(__file__).read_text()
    pages = {
        "TUTORIAL": TUTORIAL,
        "COOKBOOK": COOKBOOK,
        "RUNBOOKS": RUNBOOKS,
        "TESTING": TESTING,
        "WAREHOUSE": WAREHOUSE,
        "DEDUPLICATE": DEDUPLICATE,
        "MERGE": MERGE,
        "MOVING": MOVING,
    }
    for name, page in pages.items():
        for heading, section in page.items():
            if section.of("python") or name not in ("COOKBOOK", "DEDUPLICATE", "MOVING"):
                assert f'{name}["{heading}"]' in source, f"{heading} of {name} is run by no test"


def test_every_guide_is_run_here() -> None:
    source = Path(__file__).read_text()
    for path in (ROOT / "docs" / "guides").glob("*.md"):
        assert f'"guides/{path.stem}"' in source, f"{path.name} is run by no test"


@pytest.mark.parametrize("page", TRANSCRIPTS)
def test_the_statements_of_a_guide(spark: SparkSession, page: str) -> None:
    spark = spark.newSession()  # without the temporary views of other tests
    spark.sql("CREATE DATABASE guide")
    spark.sql("USE guide")
    try:
        for statements, expected in transcript(page):
            answers = [spark.sql(statement).collect() for statement in statements]
            if expected is not None:
                shown = "\n".join("  ".join(map(str, row)) for row in answers[-1])
                assert shown == expected
        for view in spark.sql("SHOW MATERIALIZED VIEWS").collect():
            try:
                assert changelog.verify(view["name"], spark=spark).count() == 0
            except AnalysisException as error:
                if error.getCondition() != "CHANGELOG_HISTORY_NOT_RECOMPUTABLE":
                    raise
    finally:
        for view in spark.sql("SHOW MATERIALIZED VIEWS").collect():
            spark.sql(f"DROP MATERIALIZED VIEW IF EXISTS {view['name']} CASCADE")
        spark.sql("USE default")
        spark.sql("DROP DATABASE guide CASCADE")


def test_the_statements_of_monitoring(spark: SparkSession) -> None:
    blocks = [statements for statements, _ in transcript("monitoring")]
    (operators,) = (block for block in blocks if "changelog_status()" in block[0])
    (views,) = (block for block in blocks if "views_status" in block[0])
    assert spark.sql(operators[0]).columns[:2] == ["query", "node"]
    columns = ", ".join(f"{name} STRING" for name in STATUS_COLUMNS.split(", "))
    spark.sql(f"CREATE TABLE default.views_status ({columns}) USING parquet")
    assert spark.sql(views[0]).collect() == []
    spark.sql("DROP TABLE default.views_status")


def test_the_sql_quickstart_is_the_example_that_a_suite_runs() -> None:
    example = re.sub(r"(?m)^--.*$", "", (ROOT / "examples" / "views.sql").read_text())
    blocks = transcript("quickstart-sql")
    statements = [statement for block, _ in blocks for statement in block]
    assert statements == [text.strip() for text in example.split(";") if text.strip()]
    suite = ROOT / "tests/scala/org/apache/spark/sql/changelog/views/ExampleViewsSuite.scala"
    for _, expected in blocks:
        for line in (expected or "").splitlines():
            assert f'"{" ".join(line.split())}"' in suite.read_text()


def printed(section: Section) -> list[str]:
    return [block.strip() for block in section.of("text")]


def test_the_tutorial_in_python(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The test session already has the configuration.
    builder = type("Builder", (), {"getOrCreate": lambda self: spark})()
    monkeypatch.setattr(changelog, "configure", lambda _: builder)
    first = TUTORIAL["A query that keeps its result"]
    names = first.run_python()
    tables = re.findall(r"(?:^[+|].*\n?)+", capsys.readouterr().out, re.MULTILINE)
    assert [table.strip() for table in tables] == printed(first)
    names = TUTORIAL["Look at the plan"].run_python(**names)
    assert "unbounded" in names["plan"]
    names = TUTORIAL["Stop, change, start"].run_python(**names)
    assert "[CHANGELOG_QUERY_CHANGED]" in names["reason"][:200]


def test_the_tutorial_in_sql(spark: SparkSession) -> None:
    section = TUTORIAL["The same in SQL"]
    answers = [spark.sql(statement).collect() for statement in section.statements()]
    texts = ["\n".join("  ".join(map(str, row)) for row in answer) for answer in answers]
    assert printed(section) == [texts[5]]
    assert answers[6] == []
    assert (answers[7][0].mode, answers[7][0].rows_read) == ("incremental", 3)
    spark.sql("DROP MATERIALIZED VIEW sales_totals")
    spark.sql("DROP TABLE sales")


def test_from_a_database_to_a_warehouse(spark: SparkSession, tmp_path: Path) -> None:
    def event(op: str, before: str, after: str) -> str:
        return f'{{"op": "{op}", "before": {before}, "after": {after}}}'

    orders, customers = tmp_path / "orders", tmp_path / "customers"
    ada = '{"customer_id": 1, "country": "NO"}'
    order = '{"id": 7, "customer_id": 1, "amount": "12.50"}'
    write(orders, "1", event("c", "null", order), "no event")
    write(customers, "1", event("c", "null", ada))
    url = f"jdbc:derby:{tmp_path}/warehouse;create=true"
    names = WAREHOUSE["The job"].run_python(
        order_events=spark.readStream.text(str(orders)),
        customer_events=spark.readStream.text(str(customers)),
        url=url,
        folder=tmp_path,
    )
    query: StreamingQuery = names["query"]

    def revenue() -> list[tuple[str, ...]]:
        query.processAllAvailable()
        read = spark.read.format("jdbc").option("url", url).option("dbtable", "revenue").load()
        return sorted(tuple(map(str, row)) for row in read.collect())

    assert [row[:1] + row[2:] for row in revenue()] == [("NO", "1")]
    write(customers, "2", event("u", ada, ada.replace("NO", "SE")))
    assert [row[:1] + row[2:] for row in revenue()] == [("SE", "1")]
    write(orders, "2", event("d", order, "null"))
    assert revenue() == []
    query.stop()
    assert [row.record for row in spark.read.json(f"{tmp_path}/unread/*/*").collect()] == [
        "no event"
    ]


def test_the_last_row_of_each_key(
    spark: SparkSession, tmp_path: Path, changes_of: Callable[..., DataFrame], keep: Any
) -> None:
    readings = changes_of("readings", "device STRING, at INT, celsius INT")
    section = DEDUPLICATE["The newest row of each key, over a stream"]
    names = section.run_python(readings=readings, changelog=changelog)
    query = keep(names["warm"], "warm")
    write(tmp_path / "readings", "1", "a,1,40", "b,1,50", "c,5,60")
    write(tmp_path / "readings", "2", "a,2,20", "c,4,10")
    query.processAllAvailable()
    assert rows(spark, "warm") == {("b", 1, 50), ("c", 5, 60)}


def test_a_job_of_foreach_batch_in_its_new_form(
    spark: SparkSession, tmp_path: Path, changes_of: Callable[..., DataFrame], keep: Any
) -> None:
    names = MERGE["After"].run_python(
        order_changes=changes_of(
            "orders", "op STRING, id INT, customer_id INT, amount INT, lsn INT"
        ),
        customer_changes=changes_of(
            "customers", "op STRING, customer_id INT, country STRING, lsn INT"
        ),
        changelog=changelog,
        F=F,
    )
    query = keep(names["revenue"], "moved")
    write(tmp_path / "orders", "1", "c,7,1,30,10", "c,8,2,5,11")
    write(tmp_path / "customers", "1", "c,1,NO,8", "c,2,SE,9")
    query.processAllAvailable()
    assert rows(spark, "moved") == {("NO", 30, 1), ("SE", 5, 1)}
    write(tmp_path / "orders", "2", "d,8,2,5,12", "u,7,1,40,13")
    write(tmp_path / "customers", "2", "u,1,DK,14")
    query.processAllAvailable()
    assert rows(spark, "moved") == {("DK", 40, 1)}


def test_a_job_of_flink(spark: SparkSession, tmp_path: Path) -> None:
    def event(op: str, before: str, after: str) -> str:
        return f'{{"op": "{op}", "before": {before}, "after": {after}}}'

    topic, url = tmp_path / "topic", f"jdbc:derby:{tmp_path}/moved;create=true"
    first = '{"id": 1, "customer": "Ada", "amount": "30.00"}'
    write(topic, "1", event("c", "null", first))
    names = MOVING["From Flink SQL"].run_python(
        topic=spark.readStream.text(str(topic)),
        url=url,
        folder=tmp_path,
        changelog=changelog,
        F=F,
    )
    query: StreamingQuery = names["query"]

    def totals() -> list[tuple[str, ...]]:
        query.processAllAvailable()
        read = spark.read.format("jdbc").option("url", url).option("dbtable", "totals").load()
        return [(row[0], f"{row[1]:.2f}") for row in read.collect()]

    assert totals() == [("Ada", "30.00")]
    write(topic, "2", event("u", first, first.replace("30.00", "50.00")))
    assert totals() == [("Ada", "50.00")]
    write(topic, "3", event("d", first.replace("30.00", "50.00"), "null"))
    assert totals() == []
    query.stop()


def test_a_query_is_tested_in_batch(spark: SparkSession) -> None:
    COOKBOOK["Test a query"].run_python(spark=spark)


def test_a_snapshot_and_a_feed_that_overlap(
    spark: SparkSession, tmp_path: Path, changes_of: Callable[..., DataFrame], keep: Any
) -> None:
    schema = "op STRING, id INT, city STRING, lsn INT"
    names = RUNBOOKS["Backfill"].run_python(
        table=spark.createDataFrame(
            [(1, "Oslo", 10), (2, "Bonn", 10), (3, "Kyiv", 10), (4, "Riga", 10)],
            schema.removeprefix("op STRING, "),
        ),
        feed=changes_of("feed", schema),
        changelog=changelog,
    )
    query = keep(names["orders"].select("id", "city"), "backfilled")
    # Row 1 changed after the snapshot, row 2 before the snapshot, and row 3 is deleted.
    write(tmp_path / "feed", "1", "u,1,Rome,12", "u,2,Bern,8", "d,3,,11")
    query.processAllAvailable()
    assert rows(spark, "backfilled") == {(1, "Rome"), (2, "Bonn"), (4, "Riga")}
    query.stop()


def test_what_the_runbook_says_of_columns(spark: SparkSession, tmp_path: Path, keep: Any) -> None:
    folder = tmp_path / "events"
    write(folder, "1", '{"op": "c", "after": {"id": 1, "city": "Oslo"}}')

    def query(schema: str, *columns: str) -> StreamingQuery:
        events = spark.readStream.text(str(folder))
        table = changelog.from_debezium(events, schema, key="id")
        writer = changelog.to_changelog(table.select("id", *columns)).writeStream
        writer = writer.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
        started: StreamingQuery = writer.start()
        try:
            started.processAllAvailable()
        finally:
            started.stop()
        return started

    query("id INT, city STRING", "city")
    write(folder, "2", '{"op": "c", "after": {"id": 2, "city": "Rome", "size": 3}}')
    query("id INT, city STRING", "city")  # the unknown column is ignored
    for columns in (["city"], ["city", "size"]):
        with pytest.raises(Exception, match="CHANGELOG_QUERY_CHANGED"):
            query("id INT, city STRING, size INT", *columns)


def test_queries_are_tested_as_the_page_says(spark: SparkSession) -> None:
    names = TESTING["In ten lines"].run_python()
    names["test_totals"](partial(check, spark))
    wrong = TESTING["In ten lines"].of("python")[0].replace("+U Oslo 7", "+U Oslo 8")
    exec(wrong, names)
    with pytest.raises(ChangelogError) as raised:
        names["test_totals"](partial(check, spark))
    assert str(raised.value) == printed(TESTING["In ten lines"])[0]
    names = TESTING["Data frames and rows of Python"].run_python(Feed=Feed)
    names["test_totals_of_rows"](partial(check_query, spark))
    TESTING["In a session of your own"].run_python()["test_loud_cities"](spark)


def test_the_scala_of_the_page_is_that_of_a_suite() -> None:
    page = (ROOT / "docs" / "testing-your-queries.md").read_text()
    suite = "tests/scala/io/sparkchangelog/testkit/ChangelogChecksSuite.scala"
    body = page[page.index('  test("a city') : page.index("}\n```\n\n`checkChangelog")]
    assert body in (ROOT / suite).read_text()


def test_the_scala_quickstart_is_a_test_of_a_suite() -> None:
    page = (ROOT / "docs" / "quickstart-scala.md").read_text()
    program = re.search(r"```scala\n(.*?)```", page, re.DOTALL)
    assert program is not None
    suite = "tests/scala/io/sparkchangelog/testkit/ChangelogChecksSuite.scala"
    assert indent(program[1], "    ") in (ROOT / suite).read_text()
