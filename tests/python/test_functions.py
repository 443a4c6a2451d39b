# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""`from_changelog` and `to_changelog` in Python and in SQL, over each kind of source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from spark_changelog import from_changelog, to_changelog

CHANGES = """
{"op": "+I", "id": 1, "city": "Oslo", "fare": 5}
{"op": "+I", "id": 2, "city": "Rome", "fare": 7}
{"op": "-U", "id": 1, "city": "Oslo", "fare": 5}
{"op": "+U", "id": 1, "city": "Bern", "fare": 6}
"""
SCHEMA = "op STRING, id INT, city STRING, fare INT"


@pytest.fixture
def inbox(feed: Callable[[str], Path]) -> str:
    return str(feed(CHANGES))


@pytest.fixture
def changes(spark: SparkSession, inbox: str) -> DataFrame:
    return spark.read.schema(SCHEMA).json(inbox)


@pytest.fixture
def streamed(spark: SparkSession, inbox: str) -> DataFrame:
    return spark.readStream.schema(SCHEMA).json(inbox)


def rows(df: DataFrame) -> set[tuple[object, ...]]:
    return set(map(tuple, df.collect()))


def run(df: DataFrame, folder: Path) -> set[tuple[object, ...]]:
    """Run a changelog over the available input, and return the emitted changes."""
    emitted: list[tuple[object, ...]] = []
    query = (
        df.writeStream.foreachBatch(lambda batch, _: emitted.extend(map(tuple, batch.collect())))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return set(emitted)


def test_a_batch_of_changes_is_netted(changes: DataFrame) -> None:
    table = from_changelog(changes, change_type="op", key="id")
    assert table.columns == ["id", "city", "fare"]
    assert rows(table) == {(1, "Bern", 6), (2, "Rome", 7)}


def test_without_a_change_type_every_row_is_an_insert(changes: DataFrame) -> None:
    assert from_changelog(changes).count() == 4


def test_upsert_input_keeps_the_last_row_of_a_key(changes: DataFrame) -> None:
    upserts = changes.where("op <> '-U'")
    table = from_changelog(
        upserts, change_type="op", key=["id"], input="upsert", sequence_by="fare"
    )
    assert rows(table) == {(1, "Bern", 6), (2, "Rome", 7)}


def test_own_words_for_change_types(changes: DataFrame) -> None:
    words = F.create_map(*map(F.lit, ["+I", "new", "-U", "before", "+U", "after"]))
    table = from_changelog(
        changes.withColumn("op", words[F.col("op")]),
        change_type="op",
        change_types={"new": "+I", "before": "-U", "after": "+U"},
    )
    assert rows(table) == {(1, "Bern", 6), (2, "Rome", 7)}


def test_an_unknown_change_type_is_dropped_when_asked(changes: DataFrame) -> None:
    odd = changes.withColumn("op", F.regexp_replace("op", "-U", "?"))
    table = from_changelog(odd, change_type="op", on_error="drop")
    assert rows(table) == {(1, "Oslo", 5), (1, "Bern", 6), (2, "Rome", 7)}
    with pytest.raises(Exception, match=r"(?s)\?.*op|op.*\?"):
        from_changelog(odd, change_type="op").collect()


@pytest.mark.parametrize("streaming", [False, True])
def test_a_second_row_of_a_key_is_refused_when_asked(
    changes: DataFrame, streamed: DataFrame, tmp_path: Path, streaming: bool
) -> None:
    source = streamed if streaming else changes
    trusted = from_changelog(source.where("op <> '-U'"), change_type="op", key="id")
    checked = from_changelog(
        source.where("op <> '-U'"), change_type="op", key="id", duplicates="fail"
    )
    fine = from_changelog(source, change_type="op", key="id", duplicates="fail")
    expected = {(1, "Bern", 6), (2, "Rome", 7)}
    if streaming:
        inserts = {(*row, "insert") for row in expected}
        assert run(to_changelog(fine), tmp_path / "fine") == inserts
        with pytest.raises(Exception, match="CHANGELOG_KEY_DUPLICATE"):
            run(to_changelog(checked), tmp_path / "checked")
    else:
        assert rows(fine) == expected
        assert rows(trusted) == expected | {(1, "Oslo", 5)}
        with pytest.raises(Exception, match="CHANGELOG_KEY_DUPLICATE"):
            checked.collect()


def test_columns_may_have_any_name(spark: SparkSession) -> None:
    odd = spark.createDataFrame(
        [("+I", 1, 2)], "`it's {one}` STRING, `a.b` INT, _change_type INT"
    )
    table = from_changelog(odd, change_type="`it's {one}`", key="`a.b`")
    assert rows(table) == {(1, 2)}


def test_a_batch_result_is_all_inserts(spark: SparkSession) -> None:
    result = spark.createDataFrame([(1, "a")], "id INT, name STRING")
    expected = spark.createDataFrame(
        [(1, "a", "insert")], "id INT, name STRING, _change_type STRING"
    )
    assertDataFrameEqual(to_changelog(result), expected)


def test_equal_rows_are_counted(spark: SparkSession) -> None:
    result = spark.createDataFrame([(1,), (2,), (1,)], "id INT")
    counted = to_changelog(result, mode="upsert", count_rows="copies")
    assert rows(counted) == {(1, 2, "insert"), (2, 1, "insert")}
    with pytest.raises(Exception, match=r"CHANGELOG_ARGUMENT_INVALID.*count_rows"):
        to_changelog(result, count_rows="ID")


def test_rows_of_an_equal_key_fail(spark: SparkSession) -> None:
    result = spark.createDataFrame([(1, "a"), (2, "b")], "id INT, name STRING")
    changes = to_changelog(result, mode="upsert", key="name", duplicates="fail")
    assert rows(changes) == {(1, "a", "insert"), (2, "b", "insert")}
    doubled = to_changelog(
        result.selectExpr("id", "'a' AS name"), mode="upsert", key="name", duplicates="fail"
    )
    with pytest.raises(Exception, match=r"CHANGELOG_OUTPUT_KEY_DUPLICATE.*\(name\)"):
        doubled.collect()
    with pytest.raises(Exception, match=r"CHANGELOG_ARGUMENT_INVALID.*duplicates"):
        to_changelog(result, duplicates="fail")


def test_changes_are_emitted_at_an_interval(streamed: DataFrame, tmp_path: Path) -> None:
    totals = streamed.groupBy().count()
    assert run(to_changelog(totals, emit="every 1 hour"), tmp_path / "held")
    with pytest.raises(Exception, match=r"CHANGELOG_ARGUMENT_INVALID.*'on close'"):
        to_changelog(totals, emit="soon")


def test_an_aggregate_over_a_stream_of_changes(streamed: DataFrame, tmp_path: Path) -> None:
    table = from_changelog(streamed, change_type="op", key="id")
    totals = table.groupBy("city").agg(F.sum("fare").alias("total"))
    assert run(to_changelog(totals), tmp_path) == {("Bern", 6, "insert"), ("Rome", 7, "insert")}


@pytest.mark.parametrize("mode", ["retract", "upsert"])
def test_a_cascade_written_as_data_frames(streamed: DataFrame, tmp_path: Path, mode: str) -> None:
    table = from_changelog(streamed, change_type="op")
    cascade = table.groupBy("city").count().groupBy("count").agg(F.count("*").alias("cities"))
    assert run(to_changelog(cascade, mode=mode), tmp_path) == {(1, 2, "insert")}  # type: ignore[arg-type]


def test_changes_of_two_queries_in_one_stream(
    spark: SparkSession, streamed: DataFrame, inbox: str, tmp_path: Path
) -> None:
    table = from_changelog(streamed, change_type="op", key="id")

    def one(aggregate: Column, name: str) -> DataFrame:
        groups = table.groupBy("city").agg(aggregate.cast("long").alias("n"))
        return to_changelog(groups.select(F.lit(name).alias("of"), "city", "n"))

    both = one(F.sum("fare"), "total").union(one(F.max("fare"), "highest"))
    names = ["total", "highest"]
    first = {(of, city, n, "insert") for of in names for city, n in [("Bern", 6), ("Rome", 7)]}
    assert run(both, tmp_path) == first
    (Path(inbox) / "more.json").write_text(
        '{"op": "-D", "id": 2, "city": "Rome", "fare": 7}\n'
        '{"op": "+I", "id": 3, "city": "Bern", "fare": 1}\n'
    )
    assert run(both, tmp_path) == {
        ("total", "Rome", 7, "delete"),
        ("total", "Bern", 6, "update_preimage"),
        ("total", "Bern", 7, "update_postimage"),
        ("highest", "Rome", 7, "delete"),
    }


def test_append_mode_refuses_a_query_that_updates(streamed: DataFrame, tmp_path: Path) -> None:
    counts = to_changelog(streamed.groupBy("city").count(), mode="append")
    with pytest.raises(Exception, match="Aggregate"):
        run(counts, tmp_path)


SQL_FORMS = {
    "positional": "from_changelog(TABLE(feed), 'op', array('id'))",
    "named": "from_changelog(TABLE(feed), change_type => 'op', key => array('id'))",
    "one key": "from_changelog(TABLE(feed), key => 'id', change_type => 'op')",
    "subquery": "from_changelog(TABLE(SELECT * FROM feed), 'op')",
}


@pytest.mark.parametrize("form", SQL_FORMS)
@pytest.mark.parametrize("streaming", [False, True])
def test_sql(
    spark: SparkSession,
    changes: DataFrame,
    streamed: DataFrame,
    tmp_path: Path,
    form: str,
    streaming: bool,
) -> None:
    (streamed if streaming else changes).createOrReplaceTempView("feed")
    result = spark.sql(f"""
        WITH rides AS (SELECT * FROM {SQL_FORMS[form]})
        SELECT * FROM to_changelog(TABLE(SELECT city, sum(fare) FROM rides GROUP BY city))
    """)
    emitted = run(result, tmp_path) if streaming else rows(result)
    assert emitted == {("Bern", 6, "insert"), ("Rome", 7, "insert")}


@pytest.mark.parametrize(
    "call",
    [
        "from_changelog(TABLE(feed), 'no_such_column')",
        "from_changelog(TABLE(feed), 'op', array('no_such_column'))",
        "from_changelog(TABLE(feed), 'op', input => 'upsert')",
        "from_changelog(TABLE(feed), 'op', input => 'sideways')",
        "from_changelog(TABLE(feed), 'op', on_error => 'shrug')",
        "to_changelog(TABLE(feed), 'sideways')",
    ],
)
def test_a_wrong_argument_is_an_analysis_error(
    spark: SparkSession, changes: DataFrame, call: str
) -> None:
    changes.createOrReplaceTempView("feed")
    with pytest.raises(AnalysisException) as caught:
        spark.sql(f"SELECT * FROM {call}").collect()
    assert not (caught.value.getCondition() or "").startswith("INTERNAL")
