# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Compares the maintained views with batch Spark's results over the final table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row

ACCUMULATE = {"insert", "update_postimage"}
CHANGE_TYPE = "_change_type"
BATCH = "batch"  # the column with the batch number of a change
Values = tuple[Any, ...]


@dataclass(frozen=True)
class Verdict:
    """The rows of a view without a match in batch Spark's result, and the reverse."""

    rows: int
    surplus: Counter[Values]
    missing: Counter[Values]

    @property
    def equal(self) -> bool:
        """Whether the view equals batch Spark's result."""
        return not self.surplus and not self.missing


def replay(changes: Iterable[Row]) -> Counter[Values]:
    """Replay ``changes`` into an empty table, and count its rows.

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
    """Return the row of a change."""
    columns = change.asDict().items()
    return tuple(value for name, value in columns if name not in (CHANGE_TYPE, BATCH))


def compare(maintained: Counter[Values], view: DataFrame) -> Verdict:
    """Compare rows with a batch query's rows, exactly. Averages are exact for whole delays."""
    expected = Counter(map(tuple, view.collect()))
    return Verdict(sum(expected.values()), maintained - expected, expected - maintained)


def count_rows(table: Sequence[dict[str, Any]], columns: Sequence[str]) -> Counter[Values]:
    """Count the rows of a table of dictionaries."""
    return Counter(tuple(row[column] for column in columns) for row in table)
