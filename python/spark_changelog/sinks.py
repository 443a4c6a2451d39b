# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Sinks in Python: functions that write the net rows of each batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spark_changelog._active import given_or_active
from spark_changelog._arguments import checked

DELETED = "_changelog_deleted"
COUNT = "_changelog_count"
_SINK = "_changelog_sink"
_CHANGE_TYPE = "_change_type"


@dataclass(frozen=True)
class Batch:
    """The net rows of a batch.

    Attributes
    ----------
    query_id : str
        The query's id, constant over the life of its checkpoint.
    batch_id : int
        The number of the batch. After a failure the same batch may arrive again: record
        `query_id` and `batch_id` with the rows, or write rows by key.
    key : list of str
        The columns that identify a row, for a sink that accepts ``"upsert"``. Empty for
        insert-only output, and for a query with at most one row.
    rows : DataFrame
        For ``"append"``, the inserted rows. For ``"upsert"``, one row per changed key: the
        current row, or the deleted row with true in the column ``_changelog_deleted``. For
        ``"retract"``, each distinct row with the number of inserted copies in the column
        ``_changelog_count``, negative for deleted copies.
    """

    query_id: str
    batch_id: int
    key: list[str]
    rows: DataFrame

    @property
    def upserts(self) -> DataFrame:
        """The inserted and replaced rows, for a sink that accepts ``"upsert"``."""
        return self.rows.where(~F.col(DELETED)).drop(DELETED)

    @property
    def deletes(self) -> DataFrame:
        """The deleted rows, for a sink that accepts ``"upsert"``."""
        return self.rows.where(F.col(DELETED)).drop(DELETED)


Write = Callable[[Batch], Any]


@checked
def sink(
    name: str,
    accepts: Literal["append", "upsert", "retract"] = "upsert",
    spark: SparkSession | None = None,
) -> Callable[[Write], Write]:
    """Make a function a sink of streaming queries, by ``format("changelog-function")``.

    The function is called once per batch, on the driver. A query whose changes the sink does not
    accept is rejected at its start.

    Parameters
    ----------
    name : str
        The name of the sink in this process, for the option ``function``. A former function of
        the name is replaced.
    accepts : {'append', 'upsert', 'retract'}, optional
        The accepted changes: inserts; rows of a key, one per changed key; or rows without a key,
        as counts of equal rows. See `Batch.rows`.
    spark : SparkSession, optional
        A session of the process. The active session by default.

    Returns
    -------
    callable
        A decorator, which returns the function unchanged.

    Notes
    -----
    The option ``key`` of the sink names the key, as for the other sinks. The default is the
    query's key.

    Examples
    --------
    >>> import tempfile
    >>> written = {}
    >>> @sink("totals")
    ... def write(batch):
    ...     for row in batch.deletes.collect():
    ...         written.pop(row.city, None)
    ...     for row in batch.upserts.collect():
    ...         written[row.city] = row.total
    >>> from spark_changelog import to_changelog
    >>> rides = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).load()
    >>> totals = rides.selectExpr("'Oslo' AS city").groupBy("city").count()
    >>> changes = to_changelog(totals.withColumnRenamed("count", "total"))
    >>> writer = changes.writeStream.format("changelog-function").option("function", "totals")
    >>> writer = writer.option("checkpointLocation", tempfile.mkdtemp())
    >>> writer.trigger(availableNow=True).start().awaitTermination()
    >>> sorted(written)
    ['Oslo']
    """

    def register(write: Write) -> Write:
        session = given_or_active(spark)
        gateway = session._sc._gateway
        assert gateway is not None
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        package = gateway.jvm.org.apache.spark.sql.changelog.sinks.function
        package.FunctionSink.register(name, _Function(session, accepts, write))
        return write

    return register


@checked
def statement_set(queries: Mapping[str, DataFrame]) -> DataFrame:
    """Combine queries with different sinks into one streaming query.

    The queries advance together: each batch of the streaming query has the changes of every
    query, and reads the same version of the inputs. `changelog-fanout` writes the changes of each
    query to the sink of the query's name.

    Parameters
    ----------
    queries : mapping of str to DataFrame
        The results of `to_changelog`, with the change type in ``_change_type``, by the names of
        their sinks. A query is checked by its own sink.

    Returns
    -------
    DataFrame
        Columns: ``_changelog_sink``, a struct per query with the query's row, and
        ``_change_type``.

    Raises
    ------
    ValueError
        If there is no query, or a query has no column ``_change_type``.

    Examples
    --------
    >>> import tempfile
    >>> from spark_changelog import to_changelog
    >>> rides = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).load()
    >>> both = statement_set(
    ...     {
    ...         "numbers": to_changelog(rides.select("value")),
    ...         "total": to_changelog(rides.groupBy().count()),
    ...     }
    ... )
    >>> writer = both.writeStream.format("changelog-fanout").option("sinks", "numbers, total")
    >>> for name in ["numbers", "total"]:
    ...     writer = writer.option(f"{name}.format", "changelog-memory")
    ...     writer = writer.option(f"{name}.queryName", f"kept_{name}")
    >>> writer = writer.option("checkpointLocation", tempfile.mkdtemp())
    >>> writer.trigger(availableNow=True).start().awaitTermination()
    >>> spark.table("kept_numbers").count() == spark.table("kept_total").first()[0]
    True
    """
    if not queries:
        raise ValueError("queries is empty; at least one query with a name is expected")

    def part(own: str) -> DataFrame:
        query = queries[own]
        if _CHANGE_TYPE not in query.columns:
            raise ValueError(
                f"query {own} has the columns {query.columns}, but {_CHANGE_TYPE} is expected; "
                "call to_changelog without change_type"
            )
        row = F.struct(*[query[f"`{name}`"] for name in query.columns if name != _CHANGE_TYPE])
        columns = [
            (row if name == own else F.lit(None).cast(_row_type(other))).alias(name)
            for name, other in queries.items()
        ]
        return query.select(F.lit(own).alias(_SINK), *columns, _CHANGE_TYPE)

    return reduce(DataFrame.unionByName, map(part, queries))


def _row_type(query: DataFrame) -> StructType:
    return StructType([field for field in query.schema if field.name != _CHANGE_TYPE])


class _Function:
    """Implements the JVM's interface by a Python function."""

    def __init__(self, session: SparkSession, accepts: str, function: Write) -> None:
        self.session, self.accepted, self.function = session, accepts, function
        self.error: Exception | None = None

    def accepts(self) -> str:
        return self.accepted

    def write(self, query_id: str, batch_id: int, key: Any, rows: Any) -> None:
        try:
            session = SparkSession(self.session.sparkContext, rows.sparkSession())
            self.function(Batch(query_id, batch_id, list(key), DataFrame(rows, session)))
        except Exception as error:
            self.error = error  # PySpark's errors of a query include this traceback
            raise

    class Java:
        implements = ("org.apache.spark.sql.changelog.sinks.function.BatchFunction",)
