# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""`refresh` and `verify` work on views, `verify` also on a sample of the keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlparse

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from spark_changelog import refresh, verify

CUSTOMERS = 40


@pytest.fixture
def view(spark: SparkSession) -> Iterator[str]:
    """Create a view of the debts of forty customers."""
    spark.sql("CREATE TABLE viewed_orders (customer STRING, amount INT) USING json")
    spark.range(CUSTOMERS).selectExpr(
        "concat('c', id) AS customer", "INT(id) AS amount"
    ).write.insertInto("viewed_orders")
    spark.sql("""
        CREATE MATERIALIZED VIEW owed USING parquet AS
        SELECT customer, sum(amount) AS total FROM STREAM viewed_orders GROUP BY customer
    """)
    yield "owed"
    spark.sql("DROP MATERIALIZED VIEW owed")
    spark.sql("DROP TABLE viewed_orders")


def differences(spark: SparkSession, view: str, sample: float | None = None) -> set[str]:
    rows = verify(view, sample, spark).collect()
    return {f"{row._difference} {row.customer} {row.total}" for row in rows}


def last_verification(spark: SparkSession, view: str) -> str:
    facts = {
        row.name: row.value for row in spark.sql(f"DESCRIBE STREAMING TABLE {view}").collect()
    }
    return str(facts["Last verification"])


def tamper(spark: SparkSession, view: str) -> None:
    """Delete, change and add a row in the files of the view."""
    folders = {str(Path(urlparse(file).path).parent) for file in spark.table(view).inputFiles()}
    rows = {row.customer: row.total for row in spark.table(view).collect()}
    del rows["c1"]
    spoiled = spark.createDataFrame(
        [*(rows | {"c2": 200, "Zoe": 7}).items()], spark.table(view).schema
    )
    spoiled.coalesce(1).write.mode("overwrite").parquet(folders.pop())


def test_a_view_equals_its_query_after_each_refresh(spark: SparkSession, view: str) -> None:
    assert differences(spark, view) == set()
    assert last_verification(spark, view).endswith(f"equal, {CUSTOMERS} rows compared")
    spark.sql("INSERT INTO viewed_orders VALUES ('c1', 5)")
    refresh(view, spark=spark)
    assert differences(spark, view, sample=100) == set()
    refresh(view, full=True, spark=spark)
    assert differences(spark, view) == set()
    assert spark.table(view).where("customer = 'c1' AND total = 6").count() == 1


def test_samples_name_the_rows_that_differ_in_them(spark: SparkSession, view: str) -> None:
    tamper(spark, view)
    everything = {"missing c1 1", "missing c2 2", "unexpected c2 200", "unexpected Zoe 7"}
    assert differences(spark, view) == everything
    assert last_verification(spark, view).endswith(f"4 differing rows, {CUSTOMERS} rows compared")
    found: set[str] = set()
    for _ in range(60):
        some = differences(spark, view, sample=60.5)
        assert some <= everything
        words = last_verification(spark, view).split()
        assert 0 < int(words[words.index("compared,") - 2]) < CUSTOMERS
        assert words[-5:] == ["a", "sample", "of", "60.5", "percent"]
        found |= some
        if found == everything:
            break
    assert found == everything


def test_a_sample_must_be_a_part(spark: SparkSession) -> None:
    for size in (0, 101):
        with pytest.raises(AnalysisException, match="CHANGELOG_VIEW_PROPERTY_INVALID"):
            verify("owed", sample=size, spark=spark)
