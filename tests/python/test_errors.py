# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Errors of the engine are PySpark exceptions in Python, with condition and SQLSTATE."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, SparkRuntimeException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_changelog import from_changelog, to_changelog


@pytest.fixture
def start(
    spark: SparkSession, feed: Callable[[str], Path], tmp_path: Path
) -> Callable[[str], StreamingQuery]:
    inbox = feed("")
    (inbox / "1.csv").write_text("+I,1,5\n")

    def start(aggregate: str) -> StreamingQuery:
        raw = spark.readStream.schema("op STRING, id INT, fare INT").csv(str(inbox))
        rides = from_changelog(raw, change_type="op", key="id")
        result: DataFrame = to_changelog(rides.groupBy("id").agg({"fare": aggregate}))
        writer = result.writeStream.format("noop").option(
            "checkpointLocation", str(tmp_path / "c")
        )
        return writer.trigger(availableNow=True).start()

    return start


def test_a_start_with_the_checkpoint_of_another_query(
    start: Callable[[str], StreamingQuery],
) -> None:
    start("sum").awaitTermination()
    with pytest.raises(SparkRuntimeException) as error:
        start("max")
    assert error.value.getCondition() == "CHANGELOG_QUERY_CHANGED"
    assert error.value.getSqlState() == "55000"
    assert "checkpoint" in (error.value.getMessageParameters() or {})
    assert str(error.value).startswith("[CHANGELOG_QUERY_CHANGED]")


def test_a_row_that_cannot_be_read(
    start: Callable[[str], StreamingQuery], feed: Callable[[str], Path]
) -> None:
    (feed("") / "2.csv").write_text("?,1,5\n")
    query = start("sum")
    with pytest.raises(StreamingQueryException) as error:
        query.awaitTermination()
    cause: BaseException | None = error.value
    while cause is not None and not isinstance(cause, SparkRuntimeException):
        cause = cause.__cause__ or getattr(cause, "_cause", None)
    assert isinstance(cause, SparkRuntimeException)
    assert cause.getCondition() == "CHANGELOG_CHANGE_TYPE_UNKNOWN"


def test_a_mistake_in_a_query(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException) as error:
        from_changelog(spark.range(1), change_type="op")
    assert error.value.getCondition() == "CHANGELOG_COLUMN_NOT_FOUND"
    assert error.value.getSqlState() == "42703"
    assert "SQLSTATE: 42703" in str(error.value)
