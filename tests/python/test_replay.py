# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Aggregate functions in Python are computed again for changed groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import pandas_udf

from share import runs_of
from spark_changelog.testing import Batch, Feed, check_query
from test_scalar_functions import registering

RIDES = Feed("rides", "id INT, city STRING, fare DOUBLE", key=("id",))

BATCHES: list[Batch] = [
    {"rides": ["+I 1 Oslo 5", "+I 2 Oslo 7", "+I 3 Rome NULL", "+I 4 NULL 1"]},
    {"rides": ["-U 1 Oslo 5", "+U 1 Rome 5"]},
    {},
    {"rides": ["-D 2 Oslo 7", "-D 4 NULL 1", "+I 5 Oslo 9", "-D 5 Oslo 9"]},
    {"rides": ["-D 1 Rome 5", "-D 3 Rome NULL"]},
    {"rides": ["+I 6 Oslo 1"]},
]


@pytest.fixture(scope="module")
def functions(spark: SparkSession) -> Mapping[str, Any]:
    """Return the functions by name."""

    # A nested function is sent to Python workers by value. Workers can't import this module.
    def spread(fares: pd.Series) -> float:
        return float(fares.max() - fares.min())

    return {"spread": pandas_udf(spread, "double")}  # type: ignore[call-overload]


QUERIES = {
    "groups": "SELECT city, spread(fare) AS s FROM rides GROUP BY city",
    "no groups": "SELECT spread(fare) AS s FROM rides",
    "an expression": "SELECT id % 2 AS odd, 1 + spread(fare) AS s FROM rides GROUP BY id % 2",
    "a window": "SELECT id, city, spread(fare) OVER (PARTITION BY city) AS s FROM rides",
    "above an aggregate": """
        SELECT n, spread(total) AS s
        FROM (SELECT city, count(*) AS n, sum(fare) AS total FROM rides GROUP BY city) GROUP BY n
    """,
}


@pytest.mark.parametrize(("name", "restart"), runs_of(QUERIES))
def test_changing_rows(
    spark: SparkSession, functions: Mapping[str, Any], name: str, restart: bool
) -> None:
    prepare = registering(functions)
    check_query(spark, QUERIES[name], [RIDES], BATCHES, restart=restart, prepare=prepare)


def test_over_no_rows_there_is_no_row_as_in_batch(
    spark: SparkSession, functions: Mapping[str, Any]
) -> None:
    prepare = registering(functions)
    emitted = check_query(spark, QUERIES["no groups"], [RIDES], BATCHES, prepare=prepare)
    kinds = [[change.kind for change in changes] for changes in emitted]
    assert kinds[0] == ["+I"]
    assert kinds[4:] == [["-D"], ["+I"]]
