# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""`why` selects rows of views and of data frames by key."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_changelog import why


@pytest.fixture
def owed(spark: SparkSession) -> Iterator[str]:
    spark.sql("CREATE TABLE owing (customer STRING, `a b` INT) USING json")
    spark.sql("INSERT INTO owing VALUES ('Ada', 30), ('it''s', 2), ('Ada', 1), (NULL, 4)")
    spark.sql("""
        CREATE MATERIALIZED VIEW owed USING parquet AS
        SELECT customer, sum(`a b`) AS `t t` FROM STREAM owing GROUP BY customer
    """)
    yield "owed"
    spark.sql("DROP MATERIALIZED VIEW owed")
    spark.sql("DROP TABLE owing")


def sources(rows: DataFrame) -> list[tuple[str | None, str]]:
    deepest = rows.agg({"level": "max"}).collect()[0][0]
    found = rows.where(f"level = {deepest}").collect()
    return sorted(((row.row["customer"], row.row["a b"]) for row in found), key=str)


def test_rows_of_a_view_by_key(spark: SparkSession, owed: str) -> None:
    assert sources(why(owed, {"customer": "Ada"}, spark)) == [("Ada", "1"), ("Ada", "30")]
    assert sources(why(owed, {"customer": "it's", "t t": 2}, spark)) == [("it's", "2")]
    assert sources(why(owed, {"customer": None}, spark)) == [(None, "4")]
    assert len(sources(why(owed, spark=spark))) == 4


def test_rows_of_a_data_frame(spark: SparkSession, owed: str) -> None:
    totals = spark.table("owing").groupBy("customer").count()
    assert sources(why(totals, {"customer": "Ada", "count": 2})) == [("Ada", "1"), ("Ada", "30")]
    assert why(totals).where("level = 0").count() == 3
