# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The checks that tests call."""

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
    """Check a query with the changes it must emit, both written as text.

    The query runs over the feeds batch by batch. After each batch it must have emitted just the
    changes that the text says, and all changes so far, replayed into an empty table, must make
    the rows that batch Spark answers to the same SQL over all that has arrived. Then it runs
    again, over the same changes cut into batches at random and with restarts, and must still
    make those rows.

    Parameters
    ----------
    spark : SparkSession
        A session made with `configure`, or the fixture ``changelog_session``. Queries run in
        sessions of their own, with its settings.
    scenario : str or Scenario
        The feeds, the query and the changes; `Scenario` says how they are written.
    cuts : int, optional
        How often the changelog is cut at random: once, or what the environment variable
        ``CHANGELOG_TEST_CUTS`` says.
    seed : int, optional
        What the first cut is drawn from, and the next ones from the numbers that follow: what
        ``CHANGELOG_TEST_SEED`` says, or another one each time. A failure tells it.
    prepare : callable, optional
        Called with each session that the query runs in, when it has the feeds as views: to
        register functions, or to make further views.

    Returns
    -------
    list of list of Change
        What each batch has emitted.

    Raises
    ------
    ChangelogError
        An `AssertionError` that says which batch is wrong and how.

    See Also
    --------
    check_query : for queries that are data frames, and for rows of Python.

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

    No changes need be written that it must emit. Nothing may be taken back that was not there,
    no batch may say more than has changed, and all changes so far, replayed into an empty table,
    must make the rows that batch Spark answers.

    Parameters
    ----------
    spark : SparkSession
        A session made with `configure`, or the fixture ``changelog_session``.
    query : str or callable
        SQL that reads the feeds by their names, or a function that takes their tables as data
        frames, in order, and returns one.
    feeds : sequence of Feed
        The tables that change.
    batches : sequence of mapping
        What arrives together, by the names of feeds: changes as text, such as ``"+I Oslo 5"``, or
        rows whose first value is the kind, such as ``("+I", "Oslo", 5)``.
    mode, key
        As `to_changelog` takes them.
    restart : bool
        Whether the query is stopped after every batch as they are written, and goes on from its
        checkpoint.
    cuts, seed, prepare
        As `check` takes them.
    compare : bool
        Whether what batch Spark answers is compared. A query whose result depends on when rows
        arrive has no such answer.

    Returns
    -------
    list of list of Change
        What each batch has emitted.

    Raises
    ------
    ChangelogError
        An `AssertionError` that says which batch is wrong and how.

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
    """Return the query with all changes in order, and after how many of them each batch ends."""
    check_session(spark)
    unknown = {name for batch in batches for name in batch} - {feed.name for feed in feeds}
    if unknown:
        raise ValueError(f"there is no feed {', '.join(sorted(unknown))}")
    session = batch_session(spark)
    session.conf.set("spark.sql.ansi.enabled", "true")  # a text that is no value is an error
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
    """Fail where a feed takes back what never comes, or gives a key twice."""
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
        raise ValueError("to check mode upsert, the key is needed that rows are written by")
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
    again = f"to run just this: {SEED}={way.seed} {CUTS}=1, or seed={way.seed}, cuts=1"
    try:
        return Run(subject, way, answers).check(expected)
    except ChangelogError as error:
        query = f"query {subject.query}" if isinstance(subject.query, str) else ""
        lines = [str(error), again if way.seed is not None else "", query]
        raise ChangelogError("\n".join(filter(None, lines))) from None
    except Exception as error:
        if way.seed is None:
            raise
        raise ChangelogError(f"failed when run {way}\n{again}\n{error}") from error


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
                f"expected to be refused with {scenario.error} {wanted}\n"
                f"but it was with {condition} {parameters}"
            ) from error
    raise ChangelogError(f"expected to be refused with {scenario.error}, but the query runs")
