# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Compares a query that is kept up to date with the same query run as a batch.

Tables and their changes are written as text, the query as SQL::

    rides = Table("rides", "city STRING, fare INT", key=("city",))
    Oracle(spark, tmp_path, [rides]).check(
        "SELECT fare, count(*) AS n FROM rides GROUP BY fare",
        batches=[{"rides": ["+I Oslo 5"]}, {"rides": ["-U Oslo 5", "+U Oslo 7"]}],
    )

After every batch the changes emitted so far, replayed into an empty table, must give what Spark
gives over all that the sources have delivered. On the way each change must fit: no row is
retracted that is not there, and nothing is emitted that did not change.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.udtf import UserDefinedTableFunction

from spark_changelog import from_changelog, to_changelog
from spark_changelog.functions import Input, Mode

Values = tuple[Any, ...]
Batch = Mapping[str, Sequence[str]]

ACCUMULATE = {"+I", "+U", "insert", "update_postimage"}
CHANGE_TYPE = "change"


class ChangelogError(AssertionError):
    """An emitted change doesn't fit what was emitted before it."""


@dataclass(frozen=True)
class Change:
    """One row with its kind: ``+I``, ``-U``, ``+U`` or ``-D``, or one of Spark's words."""

    kind: str
    values: Values

    @property
    def accumulates(self) -> bool:
        """Whether the row is there after the change."""
        return self.kind in ACCUMULATE


@dataclass(frozen=True)
class Table:
    """A table kept by changes: rows unique by ``key``, or a multiset when there is none."""

    name: str
    ddl: str
    key: tuple[str, ...] | None = None
    input: Input = "retract"

    @property
    def columns(self) -> dict[str, str]:
        """The types of the columns by their names."""
        columns = [column.split(maxsplit=1) for column in re.split(r",(?![^(]*\))", self.ddl)]
        return {name: data_type.upper() for name, data_type in columns}

    def parse(self, text: str) -> Change:
        """Read ``+I Oslo 5``. Values are quoted like in a shell; ``NULL`` is a null."""
        kind, *words = shlex.split(text)
        if len(words) != len(self.columns):
            raise ValueError(f"{text!r} does not have the columns of {self.name}: {self.ddl}")
        return Change(kind, tuple(map(parse_value, words, self.columns.values())))

    def json(self, change: Change) -> str:
        """Write the change as the line of JSON that the source reads."""
        row = dict(zip(self.columns, change.values, strict=True))
        return json.dumps({**row, CHANGE_TYPE: change.kind}, default=str)

    def apply(self, rows: Counter[Values], changes: Iterable[Change]) -> None:
        """Apply input changes to the table's rows."""
        for change in (Change(given.kind, comparable(given.values)) for given in changes):
            if self.input == "upsert":
                for row in [row for row in rows if self._same_key(row, change.values)]:
                    del rows[row]
            if change.accumulates:
                rows[change.values] += 1
            elif self.input == "retract":
                take(rows, change.values)

    def _same_key(self, left: Values, right: Values) -> bool:
        positions = [list(self.columns).index(name) for name in self.key or ()]
        return all(left[position] == right[position] for position in positions)


PARSERS: dict[str, Callable[[str], Any]] = {
    "INT": int,
    "BIGINT": int,
    "FLOAT": float,
    "DOUBLE": float,
    "BOOLEAN": "true".__eq__,
    "DECIMAL": Decimal,
    "STRING": str,
    "DATE": str,  # dates and timestamps go to JSON as they are written
    "TIMESTAMP": str,
}


def parse_value(word: str, data_type: str) -> Any:
    """Read a value of a column."""
    return None if word == "NULL" else PARSERS[data_type.partition("(")[0]](word)


def take(rows: Counter[Values], row: Values) -> None:
    """Take one ``row`` out."""
    if rows[row] <= 0:
        raise ChangelogError(f"{row} is retracted but is not there: {dict(rows)}")
    rows[row] -= 1
    if rows[row] == 0:
        del rows[row]


def comparable(row: Sequence[Any]) -> Values:
    """Make rows equal when Spark holds them equal: NaN is NaN, and -0.0 is 0.0."""
    return tuple(_comparable(value) for value in row)


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return comparable(value) if isinstance(value, (list, tuple)) else value


def rounded(rows: Counter[Values]) -> Counter[Values]:
    """Forget the last digits of floating point: sums differ there with the order of addition."""
    result: Counter[Values] = Counter()
    for row, count in rows.items():
        result[tuple(float(f"{v:.9g}") if isinstance(v, float) else v for v in row)] += count
    return result


@dataclass
class Replay:
    """The table that emitted changes keep."""

    mode: Mode = "retract"
    key: tuple[int, ...] = ()
    rows: Counter[Values] = field(default_factory=Counter)

    def apply(self, changes: Sequence[Change]) -> None:
        """Apply one batch, and check that it fits."""
        self._check_minimal(changes)
        # Inside a batch the order of rows means nothing: retractions first.
        for change in sorted(changes, key=lambda change: change.accumulates):
            if self.mode == "upsert":
                self._upsert(change)
            elif change.accumulates:
                self.rows[change.values] += 1
            else:
                take(self.rows, change.values)

    def _upsert(self, change: Change) -> None:
        present = [row for row in self.rows if self._key(row) == self._key(change.values)]
        for row in present:
            del self.rows[row]
        if change.accumulates:
            self.rows[change.values] += 1
        elif not present:
            raise ChangelogError(f"{change.values} is deleted but its key is not there")

    def _key(self, row: Values) -> Values:
        return tuple(row[position] for position in self.key)

    def _check_minimal(self, changes: Sequence[Change]) -> None:
        came = Counter(change.values for change in changes if change.accumulates)
        went = Counter(change.values for change in changes if not change.accumulates)
        if came & went:
            raise ChangelogError(f"emitted but not changed: {dict(came & went)}")
        kinds = Counter(change.kind for change in changes)
        allowed = {
            "retract": {"insert", "update_preimage", "update_postimage", "delete"},
            "upsert": {"insert", "update_postimage", "delete"},
            "append": {"insert"},
        }
        if not kinds.keys() <= allowed[self.mode]:
            raise ChangelogError(f"{self.mode} mode emitted {dict(kinds)}")
        if self.mode == "retract" and kinds["update_preimage"] != kinds["update_postimage"]:
            raise ChangelogError(f"an update without its other half: {dict(kinds)}")
        if self.mode == "upsert":
            keys = Counter(self._key(change.values) for change in changes)
            twice = [key for key, count in keys.items() if count > 1]
            if twice:
                raise ChangelogError(f"more than one change of a key in a batch: {twice}")


class Oracle:
    """Runs queries over tables, incrementally and as a batch, and compares."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        tables: Sequence[Table],
        functions: Mapping[str, Any] | None = None,
        views: Mapping[str, Callable[[SparkSession], DataFrame]] | None = None,
    ) -> None:
        self.spark = spark
        self.folder = folder
        self.tables = tables
        self.functions = functions or {}
        self.views = views or {}
        self.emitted: dict[int, list[Change]] = {}
        self.runs = 0

    def check(
        self,
        sql: str,
        batches: Sequence[Batch],
        mode: Mode = "retract",
        key: Sequence[str] = (),
        restart: bool = False,
    ) -> list[list[Change]]:
        """Run ``sql`` over ``batches``, compare after each, and return what each one emitted.

        With ``restart`` the query is stopped after every batch and started from its checkpoint.
        """
        self.emitted = {}
        self.runs += 1
        self.home = self.folder / f"run-{self.runs}"
        for table in self.tables:
            (self.home / table.name).mkdir(parents=True)
        if not restart:
            for number, batch in enumerate(batches):
                self._deliver(number, batch)
            self._run(sql, mode, key)
        replay: Replay | None = None
        rows: dict[str, Counter[Values]] = {table.name: Counter() for table in self.tables}
        for number, batch in enumerate(batches):
            if restart:
                self._deliver(number, batch)
                self._run(sql, mode, key)
            for table in self.tables:
                table.apply(rows[table.name], map(table.parse, batch.get(table.name, ())))
            expected, names = self._batch(sql, rows)
            replay = replay or Replay(mode, tuple(names.index(name) for name in key))
            replay.apply(self.emitted.get(number, []))
            if rounded(replay.rows) != rounded(expected):
                raise AssertionError(
                    f"after batch {number}\nreplayed: {sorted(map(str, replay.rows.items()))}"
                    f"\nbatch:    {sorted(map(str, expected.items()))}"
                )
        return [self.emitted.get(number, []) for number in range(len(batches))]

    def _deliver(self, number: int, batch: Batch) -> None:
        """Put one file per table: the files of a number make one micro-batch."""
        for table in self.tables:
            lines = [table.json(table.parse(text)) for text in batch.get(table.name, ())]
            path = self.home / table.name / f"{number:04}.json"
            path.write_text("".join(line + "\n" for line in lines))
            os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))

    def _run(self, sql: str, mode: Mode, key: Sequence[str]) -> None:
        session = self._session()
        for table in self.tables:
            self._stream(session, table).createOrReplaceTempView(table.name)
        self._create_views(session)
        changes = to_changelog(session.sql(sql), mode=mode, key=list(key) or None)
        query = (
            changes.writeStream.foreachBatch(self._collect)
            .option("checkpointLocation", str(self.home / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def _session(self) -> SparkSession:
        """Start a session that knows the functions queries call."""
        session = self.spark.newSession()
        for name, function in self.functions.items():
            if isinstance(function, UserDefinedTableFunction):
                session.udtf.register(name, function)
            else:
                session.udf.register(name, function)
        return session

    def _create_views(self, session: SparkSession) -> None:
        """Let queries name what SQL has no words for: queries over the tables."""
        for name, query in self.views.items():
            query(session).createOrReplaceTempView(name)

    def _stream(self, session: SparkSession, table: Table) -> DataFrame:
        raw = (
            session.readStream.schema(f"{table.ddl}, {CHANGE_TYPE} STRING")
            .option("maxFilesPerTrigger", 1)
            .json(str(self.home / table.name))
        )
        return from_changelog(raw, change_type=CHANGE_TYPE, key=table.key, input=table.input)

    def _collect(self, batch: DataFrame, batch_id: int) -> None:
        names = [name for name in batch.columns if name != "_change_type"]
        self.emitted[batch_id] = [
            Change(row["_change_type"], comparable([row[name] for name in names]))
            for row in batch.collect()
        ]

    def _batch(
        self, sql: str, rows: Mapping[str, Counter[Values]]
    ) -> tuple[Counter[Values], list[str]]:
        session = self._session()
        for table in self.tables:
            lines = [
                table.json(Change("+I", row))
                for row, count in rows[table.name].items()
                for _ in range(count)
            ]
            folder = self.home / "expected" / table.name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "rows.json").write_text("".join(line + "\n" for line in lines))
            read = session.read.schema(table.ddl).json(str(folder))
            read.createOrReplaceTempView(table.name)
        self._create_views(session)
        result = session.sql(sql)
        return Counter(comparable(_values(row)) for row in result.collect()), result.columns


def _values(row: Row) -> Sequence[Any]:
    return list(row)
