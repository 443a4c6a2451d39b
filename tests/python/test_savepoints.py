# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The functions for savepoints and forks run the SQL statements."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import spark_changelog as changelog


def test_views_go_back_and_forth(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE fares (city STRING, fare INT) USING json")
    spark.sql("INSERT INTO fares VALUES ('Oslo', 5)")
    totals = "SELECT city, sum(fare) AS total FROM STREAM fares GROUP BY city"
    spark.sql(f"CREATE MATERIALIZED VIEW fare_totals AS {totals}")
    try:
        changelog.create_savepoint("before", view="fare_totals", spark=spark)
        spark.sql("INSERT INTO fares VALUES ('Rome', 7)")
        changelog.refresh("fare_totals", spark=spark)
        changelog.fork_view("fare_totals", "early", savepoint="before", spark=spark)
        found = changelog.compare("fare_totals", "early", spark=spark).collect()
        assert [tuple(row) for row in found] == [("fare_totals", 1, "Rome", 7)]
        changelog.restore("fare_totals", savepoint="before", spark=spark)
        assert changelog.compare("fare_totals", "early", spark=spark).count() == 0
        changelog.refresh("early", spark=spark)
        changelog.swap("fare_totals", "early", spark=spark)
        assert spark.table("fare_totals").count() == 2
        listed = changelog.savepoints(view="fare_totals", spark=spark).collect()
        assert [(row.savepoint, row.batch) for row in listed] == [("before", 0)]
        changelog.drop_savepoint("before", view="fare_totals", spark=spark)
        assert changelog.savepoints(view="fare_totals", spark=spark).count() == 0
    finally:
        for name in ("fare_totals", "early"):
            spark.sql(f"DROP MATERIALIZED VIEW IF EXISTS {name}")
        spark.sql("DROP TABLE fares")


def test_what_is_not_possible_is_told(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="CHANGELOG_FORK_NOT_POSSIBLE"):
        changelog.fork(str(tmp_path / "none"), str(tmp_path / "new"), spark=spark)
    with pytest.raises(ValueError, match="a batch or a savepoint, not both"):
        changelog.fork("a", "b", batch=1, savepoint="s", spark=spark)
    with pytest.raises(ValueError, match="either a batch or a savepoint"):
        changelog.restore("v", spark=spark)
    with pytest.raises(ValueError, match="either a checkpoint or a view"):
        changelog.create_savepoint("s", spark=spark)
