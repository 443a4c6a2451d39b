# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Compares what was maintained with what batch Spark computes from the final table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row

ACCUMULATE = {"insert", "update_postimage"}
CHANGE_TYPE = "_change_type"
BATCH = "batch"  # in which batch a change was emitted
Values = tuple[Any, ...]


@dataclass(frozen=True)
class Verdict:
    """What one view has but should not, and the other way round."""

    rows: int
    surplus: Counter[Values]
    missing: Counter[Values]

    @property
    def equal(self) -> bool:
        """Whether the rows are the same."""
        return not self.surplus and not self.missing


def replay(changes: Iterable[Row]) -> Counter[Values]:
    """Count the rows that ``changes`` leave in a table that was empty before.

    Examples
    --------
    >>> replay([Row(n=1, _change_type="insert"), Row(n=1, _change_type="delete")])
    Counter()
    """
    rows: Counter[Values] = Counter()
    for change in changes:
        rows[values(change)] += 1 if change[CHANGE_TYPE] in ACCUMULATE else -1
    return Counter({row: count for row, count in rows.items() if count != 0})


def values(change: Row) -> Values:
    """Return the row that a change is about."""
    columns = change.asDict().items()
    return tuple(value for name, value in columns if name not in (CHANGE_TYPE, BATCH))


def compare(maintained: Counter[Values], view: DataFrame) -> Verdict:
    """Compare rows with those of a batch query, exactly: averages too, for delays are whole."""
    expected = Counter(map(tuple, view.collect()))
    return Verdict(sum(expected.values()), maintained - expected, expected - maintained)


def count_rows(table: Sequence[dict[str, Any]], columns: Sequence[str]) -> Counter[Values]:
    """Count the rows of a table that is kept as dictionaries."""
    return Counter(tuple(row[column] for column in columns) for row in table)
