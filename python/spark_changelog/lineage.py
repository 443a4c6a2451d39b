# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The lineage of rows: the source rows behind a row of a result."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import TimestampType

from spark_changelog._active import given_or_active, sql
from spark_changelog._arguments import checked
from spark_changelog._text import quoted


@checked
def why(
    result: str | DataFrame,
    key: Mapping[str, Any] | None = None,
    spark: SparkSession | None = None,
) -> DataFrame:
    """Find the lineage of rows of a materialized view or query, down to the source rows.

    The lineage is recomputed from the result down: every row of a group, both rows of a join,
    every row of a rank's partition. The lineage of a view is as of the view's last batch. The
    lineage of a query uses the current rows of the tables.

    Parameters
    ----------
    result : str or DataFrame
        The name of a materialized view, as in SQL, or a query over tables.
    key : mapping, optional
        Columns and values to select rows of the result. By default all rows are selected.
    spark : SparkSession, optional
        The session of a view. The active session by default.

    Returns
    -------
    DataFrame
        The first 100 lineage rows of each node, with these columns:

        - ``level``: the depth of the node below the result;
        - ``node``: the node of the plan;
        - ``rows``: the number of lineage rows of the node;
        - ``row``: a lineage row, as a map of strings;
        - ``note``: a remark, such as a reason against tracing the node.

    See Also
    --------
    verify : compares a view with the result of its query.

    Examples
    --------
    >>> rides = spark.createDataFrame([("Oslo", 5), ("Rome", 7), ("Oslo", 2)], ["city", "fare"])
    >>> totals = rides.groupBy("city").sum("fare")
    >>> rows = why(totals, key={"city": "Oslo"})
    >>> for row in rows.where("level > 2").collect():
    ...     print(row.node, row.rows, row.row)
    LogicalRDD [city, fare] 2 {'city': 'Oslo', 'fare': '5'}
    LogicalRDD [city, fare] 2 {'city': 'Oslo', 'fare': '2'}
    """
    if isinstance(result, DataFrame):
        condition = _condition(key or {}, result)
        wanted = result.where(condition) if condition else result
        return sql(result.sparkSession, "WHY SELECT * FROM {wanted}", wanted=wanted)
    session = given_or_active(spark)
    condition = _condition(key, session.table(result)) if key else ""
    where = f" WHERE {condition}" if condition else ""
    return sql(session, f"WHY MATERIALIZED VIEW {result}{where}")


def _condition(key: Mapping[str, Any], rows: DataFrame) -> str:
    types = {field.name.lower(): field.dataType for field in rows.schema} if key else {}

    def zoned(name: str, value: Any) -> Any:
        # Rows have timestamps in the time zone of this process, SQL in the session's time zone.
        is_instant = isinstance(types.get(name.lower()), TimestampType)
        is_time = isinstance(value, datetime.datetime)
        return value.astimezone() if is_instant and is_time else value

    return " AND ".join(
        f"{_quoted(name)} <=> {_value(zoned(name, value))}" for name, value in key.items()
    )


def _value(value: Any) -> str:
    """Write a key's value as a SQL literal.

    Examples
    --------
    >>> _value(5), _value(True), _value(None), _value("a")
    ('5', 'true', 'NULL', "'a'")
    >>> _value(Decimal("1.50")), _value(1.5), _value(datetime.date(2026, 1, 2))
    ('1.50BD', "DOUBLE('1.5')", "DATE '2026-01-02'")
    """
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"DOUBLE('{value}')"
    if isinstance(value, Decimal):
        return f"{value:f}BD"
    if isinstance(value, datetime.datetime):
        return f"TIMESTAMP '{value}'"
    if isinstance(value, datetime.date):
        return f"DATE '{value}'"
    raise TypeError(f"{value!r} of type {type(value).__name__} can't be a value of a key")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
