# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Changes: as text, as values, and in a form for comparison."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.types import VariantVal

Values = tuple[Any, ...]

KINDS = {"insert": "+I", "update_preimage": "-U", "update_postimage": "+U", "delete": "-D"}

_WORD = re.compile(r"'((?:[^']|'')*)'(?=\s|$)|(\S+)")


@dataclass(frozen=True)
class Change:
    """One row with a row kind: ``+I``, ``-U``, ``+U`` or ``-D``.

    Attributes
    ----------
    kind : str
        The row kind.
    values : tuple
        The values of the columns.
    words : tuple of str or None
        The values as Spark casts them to strings, ``None`` for NULL.

    Examples
    --------
    >>> str(Change("+I", ("New York", 5, None), ("New York", "5", None)))
    "+I 'New York' 5 NULL"
    """

    kind: str
    values: Values
    words: tuple[str | None, ...] = field(default=(), compare=False)

    @property
    def accumulates(self) -> bool:
        """Whether the change adds its row, as ``+I`` and ``+U`` do."""
        return self.kind in ("+I", "+U")

    def __str__(self) -> str:
        return " ".join([self.kind, *map(written, self.words)])


def split(text: str) -> tuple[str, list[str | None]]:
    """Split the text of a change into the row kind and the values, with None for ``NULL``.

    Examples
    --------
    >>> split("+I Oslo 'New York' '' NULL it's")
    ('+I', ['Oslo', 'New York', '', None, "it's"])
    """
    kind, _, rest = text.strip().partition(" ")
    return checked_kind(kind, text), [_value(match) for match in _WORD.finditer(rest)]


def checked_kind(kind: str, change: object) -> str:
    """Return the symbol of a row kind, given as a symbol or as Spark's word."""
    symbol = KINDS.get(kind, kind)
    if symbol not in KINDS.values():
        raise ValueError(f"{change!r} does not begin with one of +I, -U, +U, -D")
    return symbol


def _value(match: re.Match[str]) -> str | None:
    quoted, plain = match.groups()
    if quoted is not None:
        return str(quoted).replace("''", "'")
    return None if plain == "NULL" else str(plain)


def written(word: str | None) -> str:
    """Write a value in the form read by `split`.

    Examples
    --------
    >>> written("New York"), written(None), written(""), written("5")
    ("'New York'", 'NULL', "''", '5')
    """
    if word is None:
        return "NULL"
    if word == "NULL" or not word or re.search(r"\s|^'", word):
        return "'" + word.replace("'", "''") + "'"
    return word


def ordered(changes: Iterable[Change]) -> list[Change]:
    """Sort changes: retractions first. The order of rows within a batch has no meaning."""
    return sorted(changes, key=lambda change: (change.accumulates, str(change)))


def comparable(row: Sequence[Any]) -> Values:
    """Return a row in a form that compares as in Spark: NaN equals NaN, and -0.0 equals 0.0.

    Examples
    --------
    >>> comparable([float("nan"), -0.0, [1, None], bytearray(b"ab"), {"a": 1.0}])
    ('NaN', 0.0, (1, None), b'ab', frozenset({('a', 1.0)}))
    """
    return tuple(map(_comparable, row))


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, VariantVal):
        return value.toJson()
    if isinstance(value, dict):
        return frozenset((_comparable(key), _comparable(item)) for key, item in value.items())
    return comparable(value) if isinstance(value, (list, tuple)) else value
