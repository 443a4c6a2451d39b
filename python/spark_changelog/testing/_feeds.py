# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Changing tables, with a simple implementation independent of the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import StructType

from spark_changelog._text import columns as names
from spark_changelog.functions import Input
from spark_changelog.testing._changes import Values, comparable

Batch = Mapping[str, Sequence["str | Sequence[Any]"]]
"""The changes of one batch, by feed name."""


@dataclass(frozen=True)
class Feed:
    """A changing table as an input of a query.

    Attributes
    ----------
    name : str
        The name of the table in the query.
    columns : str or StructType
        The columns, as DDL or as a schema.
    key : str or sequence of str, optional
        Columns that are unique in the table. Without a key, equal rows may occur several times.
    input : {"retract", "upsert"}
        ``"retract"`` for changes with before images, ``"upsert"`` for the newest row of each key.
    sequence_by : str or sequence of str, optional
        Columns that order the changes of one key of an ``"upsert"`` feed.
    insert_only : bool
        Whether the feed is append-only, with rows without a row kind.

    Examples
    --------
    >>> rides = Feed("rides", "id INT, city STRING, fare INT", key="id")
    """

    name: str
    columns: str | StructType
    key: str | Sequence[str] | None = None
    input: Input = "retract"
    sequence_by: str | Sequence[str] | None = None
    insert_only: bool = False


@dataclass(frozen=True)
class Arrival:
    """One change of a feed, as given by the test and as JSON for the source."""

    feed: str
    kind: str
    values: Values
    json: str
    given: object

    def __str__(self) -> str:
        text = self.given if isinstance(self.given, str) else repr(self.given)
        return f"{self.feed} {text}"


class FeedTable:
    """The current rows of a feed's table, each as a line of JSON."""

    def __init__(self, feed: Feed, fields: Sequence[str]) -> None:
        self._feed = feed
        self._key = self._positions(fields, feed.key)
        self._sequence = self._positions(fields, feed.sequence_by)
        self._rows: dict[Values, list[str]] = {}
        self._awaited: dict[Values, list[Arrival]] = {}
        self._keys: Counter[Values] = Counter()
        self._newest: dict[Values, Arrival] = {}

    @property
    def rows(self) -> list[str]:
        """The current rows."""
        if self._feed.input == "upsert":
            return [new.json for new in self._newest.values() if new.kind in ("+I", "+U")]
        return [line for lines in self._rows.values() for line in lines]

    def add(self, change: Arrival) -> None:
        """Apply a change. A retraction before the insert of its row cancels the insert."""
        if self._feed.insert_only and change.kind != "+I":
            raise ValueError(f"'{change}': {self._feed.name} is INSERT ONLY")
        if self._feed.input == "upsert":
            self._upsert(change)
        else:
            self._retract(change, comparable(change.values))

    def check_all(self) -> None:
        """Raise ValueError for a retraction without an insert: the test's input is wrong."""
        for changes in filter(None, self._awaited.values()):
            raise ValueError(f"'{changes[0]}' retracts a row never inserted")

    def check_batch(self) -> None:
        """Raise ValueError if a key has several rows at the end of a batch."""
        if self._key and self._feed.input == "retract":
            twice = [key for key, count in self._keys.items() if count > 1]
            if twice:
                raise ValueError(f"{self._feed.name} has several rows with the key {twice[0]}")

    def _retract(self, change: Arrival, row: Values) -> None:
        comes = change.kind in ("+I", "+U")
        if comes and self._awaited.get(row):
            self._awaited[row].pop()
        elif comes:
            self._rows.setdefault(row, []).append(change.json)
            self._keys[self._key_of(change)] += 1
        elif self._rows.get(row):
            self._rows[row].pop()
            self._keys[self._key_of(change)] -= 1
        else:
            self._awaited.setdefault(row, []).append(change)

    def _upsert(self, change: Arrival) -> None:
        known = self._newest.get(self._key_of(change))
        if known is None or self._is_newer(change, known):
            self._newest[self._key_of(change)] = change

    def _is_newer(self, change: Arrival, known: Arrival) -> bool:
        """Compare by sequence. For equal sequences the later change is newer, except ``-U``."""
        new, old = self._order(change), self._order(known)
        return new > old or (new == old and not (self._sequence and change.kind == "-U"))

    def _order(self, change: Arrival) -> list[tuple[bool, Any]]:
        values = [change.values[position] for position in self._sequence]
        return [(value is not None, 0 if value is None else value) for value in values]

    def _key_of(self, change: Arrival) -> Values:
        return comparable([change.values[position] for position in self._key])

    @staticmethod
    def _positions(fields: Sequence[str], wanted: str | Sequence[str] | None) -> list[int]:
        return [fields.index(name) for name in names(wanted) or ()]
