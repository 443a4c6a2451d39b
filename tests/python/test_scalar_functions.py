# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Scalar functions and table functions in Python, over changing rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf, udtf
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.udtf import UserDefinedTableFunction

from spark_changelog.testing import Batch, Feed, check_query

RIDES = Feed("rides", "id INT, city STRING, fare INT", key=("id",))
NAMES = Feed("names", "city STRING, name STRING")

BATCHES: list[Batch] = [
    {"rides": ["+I 1 Oslo 5", "+I 2 Oslo 7", "+I 3 Rome NULL", "+I 4 NULL 1"]},
    {"rides": ["-U 1 Oslo 5", "+U 1 Rome 6"], "names": ["+I OSLO NO", "+I ROME IT"]},
    {"rides": ["-D 2 Oslo 7", "-D 4 NULL 1", "+I 5 Oslo 9"], "names": ["-D ROME IT"]},
    {"rides": ["-D 1 Rome 6", "-D 3 Rome NULL"], "names": ["+I ROME RM"]},
]


@pytest.fixture(scope="module")
def functions(spark: SparkSession) -> Mapping[str, Any]:
    """Return the functions by name."""

    # Nested functions are sent to Python workers by value. Workers can't import this module.
    def shout(city: str | None) -> str | None:
        return None if city is None else city.upper()

    def doubled(fares: pd.Series) -> pd.Series:
        return fares * 2

    class Copies:
        def eval(self, fare: int | None) -> Iterator[tuple[int]]:
            for number in range((fare or 0) % 4):
                yield (number,)

    return {
        "shout": udf(shout, "string"),
        "doubled": pandas_udf(doubled, "double"),  # type: ignore[call-overload]
        "copies": UserDefinedTableFunction(Copies, "number INT", deterministic=True),
    }


QUERIES = {
    "a projection": "SELECT id, shout(city) AS c, doubled(fare) AS f FROM rides",
    "a filter": "SELECT id FROM rides WHERE shout(city) = 'OSLO' OR doubled(fare) < 5",
    "groups": "SELECT shout(city) AS c, sum(doubled(fare)) AS s FROM rides GROUP BY shout(city)",
    "an argument": """
        SELECT id % 2 AS o, sum(doubled(fare)) AS s, max(shout(city)) AS c FROM rides GROUP BY 1
    """,
    "above groups": "SELECT shout(city) AS c, doubled(sum(fare)) AS s FROM rides GROUP BY city",
    "a join": "SELECT id, name FROM rides LEFT JOIN names ON shout(rides.city) = names.city",
    "a window": """
        SELECT id, rank() OVER (PARTITION BY shout(city) ORDER BY doubled(fare) DESC) AS r
        FROM rides
    """,
    "a table function": "SELECT id, number FROM rides, LATERAL copies(fare)",
    "subqueries": """
        SELECT id, (SELECT max(doubled(fare)) FROM rides) AS most FROM rides
        WHERE shout(city) NOT IN (SELECT shout(lower(city)) FROM names WHERE shout(name) <> 'RM')
    """,
}


def registering(functions: Mapping[str, Any]) -> Callable[[SparkSession], None]:
    """Return a function to register the functions in every session of a query."""

    def register(session: SparkSession) -> None:
        for name, function in functions.items():
            if isinstance(function, UserDefinedTableFunction):
                session.udtf.register(name, function)
            else:
                session.udf.register(name, function)

    return register


@pytest.mark.parametrize("name", QUERIES)
def test_changing_rows(spark: SparkSession, functions: Mapping[str, Any], name: str) -> None:
    prepare = registering(functions)
    check_query(spark, QUERIES[name], [RIDES, NAMES], BATCHES, prepare=prepare)


def test_a_table_function_must_be_declared_deterministic(spark: SparkSession) -> None:
    class Once:
        def eval(self, fare: int | None) -> Iterator[tuple[int | None]]:
            yield (fare,)

    prepare = registering({"once": udtf(Once, returnType="fare INT")})
    query = "SELECT id, o.fare FROM rides, LATERAL once(fare) o"
    with pytest.raises(Exception, match=r"(?s)CHANGELOG_NONDETERMINISTIC_EXPRESSION.*once"):
        check_query(spark, query, [RIDES, NAMES], BATCHES, prepare=prepare)


def test_a_function_declared_non_deterministic_is_refused(spark: SparkSession) -> None:
    def guess(city: str | None) -> str | None:
        return city

    prepare = registering({"guess": udf(guess, "string").asNondeterministic()})
    query = "SELECT guess(city) AS g FROM rides"
    with pytest.raises(Exception, match=r"(?s)CHANGELOG_NONDETERMINISTIC_EXPRESSION.*guess"):
        check_query(spark, query, [RIDES, NAMES], BATCHES, prepare=prepare)
