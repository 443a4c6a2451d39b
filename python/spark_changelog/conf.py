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
        "What to do with a retraction of a row never inserted. 'ignore' counts the retraction in "
        "the metric numUnmatchedRetractions, 'warn' also logs a warning once per task, and "
        "'fail' stops the query before the batch is committed.",
    )
    aggregate_head_size = Entry(
        "spark.sql.changelog.aggregate.headSize",
        int,
        "The number of best values of a group that min and max store in the group's own record, "
        "over rows that can change. Each other value has a record of its own, read only after "
        "retractions of all these best values.",
    )
    lookup_keys_per_query = Entry(
        "spark.sql.changelog.lookup.keysPerQuery",
        int,
        "The number of rows whose keys a lookup in a database asks for in one query.",
    )
    lookup_queries_per_task = Entry(
        "spark.sql.changelog.lookup.queriesPerTask",
        int,
        "The number of queries that each task of a lookup in a database runs at a time, each on "
        "a connection of its own.",
    )
    lookup_cached_keys = Entry(
        "spark.sql.changelog.lookup.cachedKeys",
        int,
        "The number of keys that each executor caches for a lookup in a database, with their "
        "rows, and keys without a row. 0 switches the cache off: each batch then reads the "
        "current rows.",
    )
    lookup_cache_ttl = Entry(
        "spark.sql.changelog.lookup.cacheTtl",
        str,
        "How long a lookup in a database uses the cached rows of a key.",
    )
    state_partitions = Entry(
        "spark.sql.changelog.state.partitions",
        _number,
        "The number of partitions for the state of a query and for the shuffle of its changes. "
        "The default is the value of spark.sql.shuffle.partitions, if set. Otherwise the default "
        "is the number of cores of the application at the start of the query, if this number is "
        "fixed. A started query keeps its number until it is rescaled.",
        optional=True,
    )
    state_ttl = Entry(
        "spark.sql.changelog.state.ttl",
        str,
        "The time after which a stateful operator forgets unchanged state, such as '36h'. A "
        "later change to forgotten state counts as new: a group starts again, and its old row is "
        "not retracted. The metric numExpiredStateRows counts forgotten entries. 0 keeps "
        "everything. Watermark-bounded state ignores this setting. A started query can change "
        "the length, but not switch between 0 and another value.",
    )
    views_lease = Entry(
        "spark.sql.changelog.views.lease",
        str,
        "The time after which the lease of a process that writes a view expires unless renewed. "
        "Another process may then take the lease, and the first one writes nothing any more. The "
        "lease is renewed six times in that time. Set a time longer than any pause of a process, "
        "such as a garbage collection.",
    )
    views_refresh_threads = Entry(
        "spark.sql.changelog.views.refreshThreads",
        int,
        "The number of views that one statement or one spark-changelog run refreshes side by "
        "side. A view waits for the views that it reads.",
    )
    views_state = Entry(
        "spark.sql.changelog.views.state",
        str,
        "When to compute the state of a materialized view. 'late': CREATE and REFRESH FULL "
        "compute only the rows, at the cost of a batch query. The next incremental refresh "
        "computes the state first. 'early': CREATE and REFRESH FULL compute both. A view always "
        "computes its state early if it cannot be recomputed, or has another refresh policy than "
        "AUTO. A view keeps the value of the session that created it.",
    )
    aggregate_distinct_split = Entry(
        "spark.sql.changelog.aggregate.distinctSplit.enabled",
        _boolean,
        "Whether to spread the distinct values of a group over all partitions, so that no task "
        "has all values of a large group. Costs a second, small shuffle. A query keeps the value "
        "it started with.",
    )
    join_spread = Entry(
        "spark.sql.changelog.join.spread.enabled",
        _boolean,
        "Whether all tasks work on a join without an equality between the sides. The rows of one "
        "side are divided among the partitions, at most spark.sql.changelog.skew.ways of them, "
        "and each of these has a copy of the other side's rows. Not for full joins. A query "
        "keeps the value it started with.",
    )
    key_sample = Entry(
        "spark.sql.changelog.keySample.enabled",
        _boolean,
        "Whether a running query counts the rows of a sample of the keys that sources declare, "
        "and logs a warning if a key has several rows. Up to 10,000 keys per source are counted, "
        "in memory.",
    )
    rank_two_level = Entry(
        "spark.sql.changelog.rank.twoLevel.enabled",
        _boolean,
        "Whether all tasks work on a rank without PARTITION BY, or on a LIMIT, over rows that "
        "can change. Each task finds the first of its rows, and one task the first of the "
        "results. Applies up to the 1000th row, and not with a TTL. A query keeps the value it "
        "started with.",
    )
    skew_ways = Entry(
        "spark.sql.changelog.skew.ways",
        int,
        "The number of parts into which a join divides the rows of each key named by a hint "
        "SKEW. The other side's rows of that key are copied to every part. A query keeps the "
        "value it started with.",
    )
    schema_registry_password = Entry(
        "spark.sql.changelog.schemaRegistry.password",
        str,
        "The user and password for the schema registry of from_debezium, from_upsert_kafka and "
        "changelog-kafka, as 'user:password', or a token without a colon. Not stored in "
        "checkpoints and views.",
        optional=True,
    )
    share_equal_parts = Entry(
        "spark.sql.changelog.shareEqualParts.enabled",
        _boolean,
        "Whether equal parts of a query, such as a common table expression with several readers, "
        "are computed once per batch, with one state. Costs a shuffle of the changes. A started "
        "query must keep this value.",
    )
    join_rows_at_once = Entry(
        "spark.sql.changelog.join.rowsAtOnce",
        int,
        "The number of changed rows per side and join key that a join holds in memory. A batch "
        "with more changed rows of a key is joined in parts, and each part reads the stored rows "
        "of the key again.",
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
