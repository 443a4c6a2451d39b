# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Tables that changes keep: the test kit's own, simple reading of them."""

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
"""What arrives together, by the names of feeds."""


@dataclass(frozen=True)
class Feed:
    """A table kept by changes, which a query reads by its name.

    Attributes
    ----------
    name : str
        What the query calls it.
    columns : str or StructType
        Its columns, as DDL.
    key : str or sequence of str, optional
        Columns that are unique in the table; without them rows may occur several times.
    input : {"retract", "upsert"}
        Whether changes come with the full row before them, or only the newest row of a key.
    sequence_by : str or sequence of str, optional
        Columns that order the changes of one key of an ``"upsert"`` feed.
    insert_only : bool
        Whether rows only come, and have no kind of change.

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
    """One change of a feed, as it was given and as the source reads it."""

    feed: str
    kind: str
    values: Values
    json: str
    given: object

    def __str__(self) -> str:
        text = self.given if isinstance(self.given, str) else repr(self.given)
        return f"{self.feed} {text}"


class FeedTable:
    """The rows that the changes of a feed have left, each as the line of JSON that was read."""

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
        """The rows that are there."""
        if self._feed.input == "upsert":
            return [new.json for new in self._newest.values() if new.kind in ("+I", "+U")]
        return [line for lines in self._rows.values() for line in lines]

    def add(self, change: Arrival) -> None:
        """Apply a change. A row that is taken back before it comes never comes."""
        if self._feed.insert_only and change.kind != "+I":
            raise ValueError(f"'{change}': rows of {self._feed.name} only come")
        if self._feed.input == "upsert":
            self._upsert(change)
        else:
            self._retract(change, comparable(change.values))

    def check_all(self) -> None:
        """Fail where a row was taken back that never came: a wrong input proves nothing."""
        for changes in filter(None, self._awaited.values()):
            raise ValueError(f"'{changes[0]}' takes back a row that never comes")

    def check_batch(self) -> None:
        """Fail where a key that is unique has several rows when all of a batch has come."""
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
        """Of equal sequences the later counts, and an update's old row is the older."""
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
