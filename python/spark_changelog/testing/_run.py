# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""One run of a query under test, compared with batch Spark after every batch."""

from __future__ import annotations

import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_changelog.functions import Mode, from_changelog, to_changelog
from spark_changelog.testing._changes import Change, Values, ordered
from spark_changelog.testing._feeds import Arrival, Feed, FeedTable
from spark_changelog.testing._replay import ChangelogError, Replay
from spark_changelog.testing._sessions import (
    KIND,
    Prepare,
    batch_session,
    canonical,
    collect,
    new_session,
    raw_schema,
    schema_of,
)

Query = str | Callable[..., DataFrame]

MOST_BATCHES = 8
"""The maximum number of batches in a run over random batches."""


@dataclass(frozen=True)
class Way:
    """A division of the input changes into batches, with restarts in between.

    Examples
    --------
    >>> print(Way.of(5, seed=7))
    in batches of 2, 2, 1, restarted after batch 2 (seed 7)
    """

    ends: Sequence[int]
    restarts: frozenset[int] = frozenset()
    seed: int | None = None

    @classmethod
    def of(cls, size: int, seed: int) -> Way:
        """Divide ``size`` changes into batches at random."""
        chance = random.Random(seed)
        number = chance.randint(1, min(size, MOST_BATCHES)) if size else 0
        cuts = sorted(chance.sample(range(1, size), number - 1)) if number else []
        restarts = {index for index in range(1, number) if chance.random() < 0.5}
        return cls([*cuts, size] if number else [], frozenset(restarts), seed)

    def __str__(self) -> str:
        sizes = [end - start for start, end in zip([0, *self.ends], self.ends, strict=False)]
        text = f"in batches of {', '.join(map(str, sizes))}"
        if self.restarts:
            text += f", restarted after batch {', '.join(map(str, sorted(self.restarts)))}"
        return text if self.seed is None else f"{text} (seed {self.seed})"


@dataclass(frozen=True)
class Subject:
    """A query under test, with its feeds, input changes and mode."""

    spark: SparkSession
    query: Query
    feeds: Sequence[Feed]
    arrivals: Sequence[Arrival]
    mode: Mode = "retract"
    key: Sequence[str] = ()
    prepare: Prepare | None = None
    compares: bool = True

    def result(self, session: SparkSession, tables: Sequence[DataFrame]) -> DataFrame:
        """Return the query's result over ``tables``, one table per feed."""
        for feed, table in zip(self.feeds, tables, strict=True):
            table.createOrReplaceTempView(feed.name)
        if self.prepare is not None:
            self.prepare(session)
        return session.sql(self.query) if isinstance(self.query, str) else self.query(*tables)

    def start(self, folder: Path, collector: Callable[[DataFrame, int], None]) -> None:
        """Run the query in a new session until every available file is read."""
        session = new_session(self.spark)
        changes = to_changelog(
            self.result(session, [_stream(session, feed, folder) for feed in self.feeds]),
            mode=self.mode,
            key=list(self.key) or None,
        )
        query = (
            changes.writeStream.foreachBatch(collector)
            .option("checkpointLocation", str(folder / "_checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        finally:
            query.stop()


def _stream(session: SparkSession, feed: Feed, folder: Path) -> DataFrame:
    (folder / feed.name).mkdir(exist_ok=True)
    stream = session.readStream.schema(raw_schema(feed)).option("maxFilesPerTrigger", 1)
    return from_changelog(
        stream.json(str(folder / feed.name)),
        change_type=None if feed.insert_only else KIND,
        key=feed.key,
        input=feed.input if feed.input == "upsert" else None,
        sequence_by=feed.sequence_by,
    )


class BatchAnswers:
    """The results of the query in batch Spark, cached by the number of input changes."""

    def __init__(self, subject: Subject, folder: Path) -> None:
        self._subject = subject
        self._folder = folder
        self._session = batch_session(subject.spark)
        self._known: dict[int, list[Change]] = {}

    def after(self, size: int) -> list[Change]:
        """Return the result over the first ``size`` changes, each row as an insert."""
        if size not in self._known:
            self._known[size] = self._ask(size)
        return self._known[size]

    def _ask(self, size: int) -> list[Change]:
        subject = self._subject
        rows = {feed.name: FeedTable(feed, schema_of(feed).names) for feed in subject.feeds}
        for change in subject.arrivals[:size]:
            rows[change.feed].add(change)
        tables = []
        for feed in subject.feeds:
            folder = self._folder / feed.name
            folder.mkdir(parents=True, exist_ok=True)
            _write(folder / "rows.json", rows[feed.name].rows)
            tables.append(self._session.read.schema(schema_of(feed)).json(str(folder)))
        return collect(subject.result(self._session, tables))


class Run:
    """A run of a query over batches, with its emitted changes and the replayed result."""

    def __init__(self, subject: Subject, way: Way, answers: BatchAnswers) -> None:
        self._subject = subject
        self._way = way
        self._answers = answers
        self._emitted: dict[int, list[Change]] = {}
        self._columns: StructType | None = None
        self._replay: Replay | None = None

    def check(self, expected: Sequence[Sequence[str]] | None = None) -> list[list[Change]]:
        """Run the query and return each batch's changes. Raise at the first wrong batch."""
        __tracebackhide__ = True
        batches: list[list[Change]] = []
        with tempfile.TemporaryDirectory(prefix="changelog-test-") as home:
            for numbers in self._lives():
                for number in numbers:
                    self._deliver(Path(home), number)
                self._emitted = {}
                self._subject.start(Path(home), self._collect)
                for number, changes in zip(numbers, self._by_batch(len(numbers)), strict=True):
                    batches.append(changes)
                    self._check_batch(number, changes, expected)
        return batches

    def _lives(self) -> list[list[int]]:
        """Return the batch numbers, grouped by start of the query."""
        lives: list[list[int]] = [[]]
        for number in range(len(self._way.ends)):
            if number in self._way.restarts:
                lives.append([])
            lives[-1].append(number)
        return lives

    def _bounds(self, number: int) -> tuple[int, int]:
        return (self._way.ends[number - 1] if number else 0), self._way.ends[number]

    def _deliver(self, home: Path, number: int) -> None:
        """Write one file per feed. The files with the same number are one batch."""
        start, end = self._bounds(number)
        for feed in self._subject.feeds:
            folder = home / feed.name
            folder.mkdir(exist_ok=True)
            changes = [c for c in self._subject.arrivals[start:end] if c.feed == feed.name]
            path = folder / f"{number:05}.json"
            _write(path, [change.json for change in changes])
            os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))

    def _collect(self, batch: DataFrame, batch_id: int) -> None:
        self._columns = StructType(batch.schema.fields[:-1])
        self._emitted[batch_id] = collect(batch)

    def _by_batch(self, number: int) -> list[list[Change]]:
        """Return the changes of each batch. Batches without input count to the last batch."""
        given = [self._emitted[batch_id] for batch_id in sorted(self._emitted)]
        given += [[] for _ in range(number - len(given))]
        last = [change for changes in given[number - 1 :] for change in changes]
        return [*given[: number - 1], last] if number else []

    def _check_batch(
        self, number: int, changes: list[Change], expected: Sequence[Sequence[str]] | None
    ) -> None:
        __tracebackhide__ = True
        columns = self._columns or StructType()
        if self._replay is None:
            key = [columns.names.index(name) for name in self._subject.key]
            self._replay = Replay(self._subject.mode, key)
        try:
            self._replay.apply(changes)
        except ChangelogError as error:
            raise self._failure(number, changes, str(error)) from None
        if self._subject.compares:
            self._compare(number, changes, self._replay)
        if expected is not None:
            self._expect(number, changes, expected[number], columns)

    def _compare(self, number: int, changes: list[Change], replay: Replay) -> None:
        __tracebackhide__ = True
        answer = self._answers.after(self._bounds(number)[1])
        wanted, has = (
            rounded(Counter(change.values for change in answer)),
            rounded(replay.rows),
        )
        if wanted != has:
            raise self._failure(
                number,
                changes,
                "the changes so far do not give batch Spark's rows:",
                *[f"  missing    {_row(row)}" for row in (wanted - has).elements()],
                *[f"  unexpected {_row(row)}" for row in (has - wanted).elements()],
            )

    def _expect(
        self, number: int, changes: list[Change], expected: Sequence[str], columns: StructType
    ) -> None:
        __tracebackhide__ = True
        session = self._subject.spark
        wanted = Counter(canonical(session, columns, expected))
        if wanted != Counter((change.kind, change.words) for change in changes):
            lines = [f"  -> {Change(kind, (), words)}" for kind, words in wanted.elements()]
            raise self._failure(number, changes, "expected:", *(lines or ["  nothing"]))

    def _failure(self, number: int, changes: list[Change], *lines: str) -> ChangelogError:
        start, end = self._bounds(number)
        came = [f"  {change}" for change in self._subject.arrivals[start:end]]
        emitted = [f"  -> {change}" for change in ordered(changes)]
        text = [
            f"batch {number + 1} of {len(self._way.ends)}, which brought:",
            *(came or ["  nothing"]),
            *lines,
            "emitted in this batch:",
            *(emitted or ["  nothing"]),
            f"run {self._way}",
        ]
        return ChangelogError("\n".join(text))


def rounded(rows: Counter[Values]) -> Counter[Values]:
    """Round floats to nine digits, since sums depend on the order of addition."""
    result: Counter[Values] = Counter()
    for row, count in rows.items():
        result[tuple(float(f"{v:.9g}") if isinstance(v, float) else v for v in row)] += count
    return result


def _row(row: Values) -> str:
    return " ".join("NULL" if value is None else str(value) for value in row)


def _write(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
