# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Typed access to the settings below ``spark.sql.changelog``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_changelog.session import check_extension

T = TypeVar("T")


def _boolean(text: str) -> bool:
    return text == "true"


def _number(text: str) -> int | None:
    return int(text) if text else None


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Entry(Generic[T]):
    """One setting: an attribute of `ChangelogConf` that reads and writes the session.

    An `optional` setting may be unset. `parse` then gets the empty string.
    """

    def __init__(
        self, key: str, parse: Callable[[str], T], doc: str, *, optional: bool = False
    ) -> None:
        self.key = key
        self.parse = parse
        self.optional = optional
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        """Store the name of the attribute."""
        self.name = name

    @overload
    def __get__(self, conf: None, owner: type) -> Entry[T]: ...

    @overload
    def __get__(self, conf: ChangelogConf, owner: type) -> T: ...

    def __get__(self, conf: ChangelogConf | None, owner: type) -> Entry[T] | T:
        """Return the setting's value, or the entry for an access through the class."""
        if conf is None:
            return self
        try:
            value = conf.spark.conf.get(self.key)
        except PySparkException:
            check_extension(conf.spark)
            raise
        if value is None and not self.optional:
            check_extension(conf.spark)
            raise LookupError(f"{self.key} has no value in this session")
        return self.parse(value or "")

    def __set__(self, conf: ChangelogConf, value: T) -> None:
        """Write the setting for the session."""
        if value is None:
            conf.spark.conf.unset(self.key)
        else:
            conf.spark.conf.set(self.key, _written(value))


class ChangelogConf:
    """The settings of changelog queries in one session, as attributes with types.

    A running query keeps the values from its start.

    Parameters
    ----------
    spark : SparkSession
        The session to read and write.

    Examples
    --------
    >>> conf = ChangelogConf(spark)
    >>> conf.share_equal_parts
    True
    >>> conf.aggregate_head_size = 32
    >>> spark.conf.get("spark.sql.changelog.aggregate.headSize")
    '32'
    >>> conf.reset("aggregate_head_size")
    """

    unmatched_retraction = Entry(
        "spark.sql.changelog.unmatchedRetraction",
        str,
        "What to do when a change takes back a row that was never given: 'ignore' counts it in "
        "the metric numUnmatchedRetractions, 'warn' also logs it once per task, 'fail' stops the "
        "query before the batch is committed.",
    )
    aggregate_head_size = Entry(
        "spark.sql.changelog.aggregate.headSize",
        int,
        "How many of a group's best values min and max keep in the group's own record when "
        "values can be taken back. Other values are kept one record each and read only when the "
        "best ones are used up.",
    )
    state_partitions = Entry(
        "spark.sql.changelog.state.partitions",
        _number,
        "In how many partitions a query keeps its state, and by how many it shuffles changes. "
        "Where this is not set, spark.sql.shuffle.partitions says it; where that isn't either, "
        "there are as many as the application has cores when the query starts, if their number "
        "is fixed. A query that has started keeps its number until its state is spread over "
        "another.",
        optional=True,
    )
    state_ttl = Entry(
        "spark.sql.changelog.state.ttl",
        str,
        "How long a stateful operator remembers what nothing has changed, such as '36h'. What is "
        "older is forgotten as if it had never been given, counted in the metric "
        "numExpiredStateRows: a group that changes afterwards starts anew, and its old row is "
        "not taken back. 0 keeps everything. State that a watermark bounds is not concerned. "
        "A query can change the length, but not between 0 and another value, after it started.",
    )
    views_lease = Entry(
        "spark.sql.changelog.views.lease",
        str,
        "How long a process that writes a view may be held up until another one may take it for "
        "killed, and write the view in its place. It says six times in that time that it still "
        "writes. Longer than any pause of a process, as for garbage collection.",
    )
    views_state = Entry(
        "spark.sql.changelog.views.state",
        str,
        "When to compute the state of a materialized view. 'late': CREATE and REFRESH FULL "
        "compute only the rows, at the cost of a batch query. The next incremental refresh "
        "computes the state first. 'early': CREATE and REFRESH FULL compute both. A view that "
        "can't be recomputed, or has another refresh policy than AUTO, always computes its "
        "state early. A view keeps the setting of the session that created it.",
    )
    aggregate_distinct_split = Entry(
        "spark.sql.changelog.aggregate.distinctSplit.enabled",
        _boolean,
        "Whether the distinct values of a group are spread over all partitions, so that a group "
        "with very many of them is not the work of one task. Costs a second, small shuffle. A "
        "query that has started keeps the setting it started with.",
    )
    join_spread = Entry(
        "spark.sql.changelog.join.spread.enabled",
        _boolean,
        "Whether a join without an equality of its sides is the work of all tasks: the rows of "
        "one side are divided among as many as there are partitions, up to "
        "spark.sql.changelog.skew.ways, and each of them keeps a copy of the other side's rows. "
        "Not in a full join. A query that has started keeps the setting it started with.",
    )
    rank_two_level = Entry(
        "spark.sql.changelog.rank.twoLevel.enabled",
        _boolean,
        "Whether a rank without PARTITION BY, or a LIMIT, over rows that change or go is the "
        "work of all tasks: each finds the first rows of some, and one task the first of those. "
        "Up to the 1000th row, and not where rows are forgotten for their age. A query that has "
        "started keeps the setting it started with.",
    )
    skew_ways = Entry(
        "spark.sql.changelog.skew.ways",
        int,
        "In how many parts a join divides the rows of each key that a hint SKEW names; of the "
        "other side's rows with that key there is a copy for each. A query that has started "
        "keeps the setting it started with.",
    )
    share_equal_parts = Entry(
        "spark.sql.changelog.shareEqualParts.enabled",
        _boolean,
        "Whether parts of a query that are equal, such as a common table expression that is read "
        "several times, are computed once per batch and kept once, if they keep state. Costs a "
        "shuffle of their changes. A query that has started must keep the setting it started "
        "with.",
    )
    join_rows_at_once = Entry(
        "spark.sql.changelog.join.rowsAtOnce",
        int,
        "How many changed rows of one join key a join holds in memory, of each side. Where a "
        "batch changes more of them, they are joined some at a time; each time the stored rows "
        "of the key are read once more.",
    )

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    @classmethod
    def entries(cls) -> dict[str, Entry[Any]]:
        """Return every setting by attribute name.

        Examples
        --------
        >>> ChangelogConf.entries()["share_equal_parts"].key
        'spark.sql.changelog.shareEqualParts.enabled'
        """
        return {name: entry for name, entry in vars(cls).items() if isinstance(entry, Entry)}

    def reset(self, name: str) -> None:
        """Reset the attribute ``name`` to the default."""
        self.spark.conf.unset(self.entries()[name].key)
