# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The functions `check` and `check_query`."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_changelog._text import columns as names
from spark_changelog.functions import Mode
from spark_changelog.testing._changes import Change
from spark_changelog.testing._feeds import Arrival, Batch, Feed, FeedTable
from spark_changelog.testing._replay import ChangelogError
from spark_changelog.testing._run import BatchAnswers, Query, Run, Subject, Way
from spark_changelog.testing._scenario import Scenario
from spark_changelog.testing._sessions import (
    Prepare,
    arrivals,
    batch_session,
    check_session,
    schema_of,
)

CUTS = "CHANGELOG_TEST_CUTS"
SEED = "CHANGELOG_TEST_SEED"


def check(
    spark: SparkSession,
    scenario: str | Scenario,
    cuts: int | None = None,
    seed: int | None = None,
    prepare: Prepare | None = None,
) -> list[list[Change]]:
    """Check a query against expected changes and batch Spark, with a text as input.

    The query runs over the feeds batch by batch. Each batch must emit exactly the expected
    changes. After each batch, the changes so far are replayed into an empty table. The rows must
    equal the result of the SQL in batch Spark, over the input delivered so far.

    Then the input is divided into batches at random, and the query runs again, with restarts. The
    rows must again equal batch Spark's result after each batch.

    Parameters
    ----------
    spark : SparkSession
        A session made with `configure`, or the fixture ``changelog_session``. Each run of the
        query has a new session with the settings of this session.
    scenario : str or Scenario
        The feeds, the query and the changes. `Scenario` describes the text.
    cuts : int, optional
        The number of runs over random batches, by default the environment variable
        ``CHANGELOG_TEST_CUTS``, or 1.
    seed : int, optional
        The random seed of the first run over random batches. Each later run adds 1. By default
        the environment variable ``CHANGELOG_TEST_SEED``, or a new random seed. A failure prints
        the seed.
    prepare : callable, optional
        A function called with the session of each run, after the feeds are registered as views.
        Use it to register functions, or to create further views.

    Returns
    -------
    list of list of Change
        The changes emitted by each batch.

    Raises
    ------
    ChangelogError
        If a batch is wrong. The message of this `AssertionError` shows the batch and the
        differences.

    See Also
    --------
    check_query : for queries as data frames, and for rows as Python values.

    Examples
    --------
    >>> emitted = check(spark, '''
    ...     feed rides(city STRING, fare INT)
    ...     query SELECT city, sum(fare) AS total FROM rides GROUP BY city
    ...     rides +I Oslo 5
    ...     -> +I Oslo 5
    ...     rides -D Oslo 5
    ...     -> -D Oslo 5
    ... ''')
    """
    __tracebackhide__ = True
    if isinstance(scenario, str):
        scenario = Scenario.parse(scenario)
    batches = [_by_feed(step.changes) for step in scenario.steps]
    subject, ends = _subject(
        spark, scenario.query, scenario.feeds, batches, scenario.mode, scenario.key, prepare
    )
    if scenario.error is not None:
        _check_refused(subject, scenario)
        return []
    expected = [step.expected for step in scenario.steps] if scenario.tells_changes else None
    return _check(subject, Way(ends), expected, cuts, seed)


def _by_feed(changes: Sequence[tuple[str, str]]) -> Batch:
    batch: dict[str, list[str]] = {}
    for name, change in changes:
        batch.setdefault(name, []).append(change)
    return batch


def check_query(
    spark: SparkSession,
    query: Query,
    feeds: Sequence[Feed],
    batches: Sequence[Batch],
    mode: Mode = "retract",
    key: str | Sequence[str] | None = None,
    restart: bool = False,
    cuts: int | None = None,
    seed: int | None = None,
    prepare: Prepare | None = None,
    compare: bool = True,
) -> list[list[Change]]:
    """Check a query against batch Spark after every batch.

    A test needs no expected changes. The checks of each batch are:

    - Each retraction must match an existing row.
    - A batch must not retract and insert the same row.
    - The changes so far, replayed into an empty table, must equal batch Spark's result.

    Parameters
    ----------
    spark : SparkSession
        A session made with `configure`, or the fixture ``changelog_session``.
    query : str or callable
        SQL that reads the feeds by name, or a function from the feeds' tables, as data frames in
        order, to a data frame.
    feeds : sequence of Feed
        The changing tables.
    batches : sequence of mapping
        The changes of each batch, by feed name. A change is a string such as ``"+I Oslo 5"``, or
        a row with the row kind as its first value, such as ``("+I", "Oslo", 5)``.
    mode, key
        As in `to_changelog`.
    restart : bool
        Whether the first run, over the batches as written, restarts from the checkpoint after
        every batch.
    cuts, seed, prepare
        As in `check`.
    compare : bool
        Whether to compare with batch Spark. Pass False for a query whose result depends on the
        arrival time of rows, as batch Spark has no such times.

    Returns
    -------
    list of list of Change
        The changes emitted by each batch.

    Raises
    ------
    ChangelogError
        If a batch is wrong. The message of this `AssertionError` shows the batch and the
        differences.

    Examples
    --------
    >>> def totals(rides):
    ...     return rides.groupBy("city").sum("fare")
    >>> emitted = check_query(
    ...     spark,
    ...     totals,
    ...     [Feed("rides", "city STRING, fare INT")],
    ...     [{"rides": [("+I", "Oslo", 5), ("+I", "Oslo", 2)]}, {"rides": [("-D", "Oslo", 5)]}],
    ... )
    >>> print(*emitted[1], sep=", ")
    -U Oslo 7, +U Oslo 2
    """
    __tracebackhide__ = True
    subject, ends = _subject(
        spark, query, feeds, batches, mode, names(key) or (), prepare, compare
    )
    restarts = frozenset(range(1, len(ends)) if restart else ())
    return _check(subject, Way(ends, restarts), None, cuts, seed)


def _subject(
    spark: SparkSession,
    query: Query,
    feeds: Sequence[Feed],
    batches: Sequence[Batch],
    mode: Mode,
    key: Sequence[str],
    prepare: Prepare | None,
    compares: bool = True,
) -> tuple[Subject, list[int]]:
    """Return the query with its input changes in order, and the end position of each batch."""
    check_session(spark)
    unknown = {name for batch in batches for name in batch} - {feed.name for feed in feeds}
    if unknown:
        raise ValueError(f"there is no feed {', '.join(sorted(unknown))}")
    session = batch_session(spark)
    session.conf.set("spark.sql.ansi.enabled", "true")  # fail for text without a valid value
    read: dict[str, list[Arrival]] = {}
    for feed in feeds:
        given: list[Any] = [change for batch in batches for change in batch.get(feed.name, ())]
        read[feed.name] = arrivals(session, feed, given)
    iterators = {name: iter(changes) for name, changes in read.items()}
    ordered = [
        [next(iterators[name]) for name, changes in batch.items() for _ in changes]
        for batch in batches
    ]
    _check_feeds(feeds, ordered)
    everything = [change for changes in ordered for change in changes]
    subject = Subject(spark, query, feeds, everything, mode, key, prepare, compares)
    return subject, list(accumulate(map(len, ordered)))


def _check_feeds(feeds: Sequence[Feed], batches: Sequence[Sequence[Arrival]]) -> None:
    """Raise ValueError if a feed retracts a missing row or inserts a key twice."""
    tables = {feed.name: FeedTable(feed, schema_of(feed).names) for feed in feeds}
    for batch in batches:
        for change in batch:
            tables[change.feed].add(change)
        for table in tables.values():
            table.check_batch()
    for table in tables.values():
        table.check_all()


def _check(
    subject: Subject,
    written: Way,
    expected: Sequence[Sequence[str]] | None,
    cuts: int | None,
    seed: int | None,
) -> list[list[Change]]:
    __tracebackhide__ = True
    if subject.mode == "upsert" and not subject.key:
        raise ValueError("mode upsert needs a key: name the key columns of the consumer")
    with tempfile.TemporaryDirectory(prefix="changelog-test-batch-") as home:
        answers = BatchAnswers(subject, Path(home))
        emitted = _run(subject, written, answers, expected)
        for way in _ways(len(subject.arrivals), cuts, seed):
            _run(subject, way, answers)
    return emitted


def _run(
    subject: Subject,
    way: Way,
    answers: BatchAnswers,
    expected: Sequence[Sequence[str]] | None = None,
) -> list[list[Change]]:
    __tracebackhide__ = True
    again = f"to run these batches: {SEED}={way.seed} {CUTS}=1, or seed={way.seed}, cuts=1"
    try:
        return Run(subject, way, answers).check(expected)
    except ChangelogError as error:
        query = f"query {subject.query}" if isinstance(subject.query, str) else ""
        lines = [str(error), again if way.seed is not None else "", query]
        raise ChangelogError("\n".join(filter(None, lines))) from None
    except Exception as error:
        if way.seed is None:
            raise
        raise ChangelogError(f"the query failed, run {way}\n{again}\n{error}") from error


def _ways(size: int, cuts: int | None, seed: int | None) -> list[Way]:
    number = int(os.environ.get(CUTS, "1")) if cuts is None else cuts
    if seed is None:
        seed = int(os.environ.get(SEED) or random.randrange(1_000_000))
    return [Way.of(size, seed + index) for index in range(number)] if size else []


def _check_refused(subject: Subject, scenario: Scenario) -> None:
    __tracebackhide__ = True
    with tempfile.TemporaryDirectory(prefix="changelog-test-") as home:
        try:
            subject.start(Path(home), lambda batch, batch_id: None)
        except PySparkException as error:
            condition, parameters = error.getCondition(), error.getMessageParameters() or {}
            wanted = dict(scenario.parameters)
            if condition == scenario.error and wanted.items() <= parameters.items():
                return
            raise ChangelogError(
                f"the query must fail with {scenario.error} {wanted}\n"
                f"but fails with {condition} {parameters}"
            ) from error
    raise ChangelogError(f"the query must fail with {scenario.error}, but runs")
