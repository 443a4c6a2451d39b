# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The oracle finds what it is there to find, with no Spark session."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pytest

from oracle import Change, ChangelogError, Replay, Table, Values, comparable, rounded

RIDES = Table("rides", "city STRING, fare INT", key=("city",))


def test_changes_are_written_as_text() -> None:
    assert RIDES.parse("+I Oslo 5") == Change("+I", ("Oslo", 5))
    assert RIDES.parse("-D 'New York' NULL") == Change("-D", ("New York", None))
    money = Table("money", "amount DECIMAL(10,2), ratio DOUBLE, paid BOOLEAN")
    assert money.parse("+I 1.50 0.5 true") == Change("+I", (Decimal("1.50"), 0.5, True))


def test_a_change_needs_all_columns() -> None:
    with pytest.raises(ValueError, match="does not have the columns of rides"):
        RIDES.parse("+I Oslo")


def test_an_upsert_table_keeps_the_last_row_of_a_key() -> None:
    rows: Counter[Values] = Counter()
    upserted = Table("rides", RIDES.ddl, key=("city",), input="upsert")
    upserted.apply(rows, map(upserted.parse, ["+I Oslo 5", "+U Oslo 7", "+I Rome 1"]))
    upserted.apply(rows, [upserted.parse("-D Rome NULL")])
    assert rows == {("Oslo", 7): 1}


def test_a_replayed_changelog_gives_the_table() -> None:
    replay = Replay()
    replay.apply([Change("insert", ("a", 1)), Change("insert", ("b", 1))])
    replay.apply([Change("update_postimage", ("a", 2)), Change("update_preimage", ("a", 1))])
    replay.apply([Change("delete", ("b", 1))])
    assert replay.rows == {("a", 2): 1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([Change("delete", ("a", 1))], "is not there"),
        (
            [Change("update_preimage", ("a", 1)), Change("update_postimage", ("a", 1))],
            "not changed",
        ),
        ([Change("update_postimage", ("a", 1))], "without its other half"),
    ],
)
def test_a_changelog_that_does_not_fit_is_found(changes: list[Change], message: str) -> None:
    with pytest.raises(ChangelogError, match=message):
        Replay().apply(changes)


def test_upsert_mode_writes_by_key() -> None:
    replay = Replay("upsert", key=(0,))
    replay.apply([Change("insert", ("a", 1)), Change("insert", ("b", 1))])
    replay.apply([Change("update_postimage", ("a", 2)), Change("delete", ("b", 9))])
    assert replay.rows == {("a", 2): 1}
    with pytest.raises(ChangelogError, match="upsert mode emitted"):
        replay.apply([Change("update_preimage", ("a", 2))])
    with pytest.raises(ChangelogError, match="more than one change of a key"):
        replay.apply([Change("insert", ("c", 1)), Change("update_postimage", ("c", 2))])


def test_floating_point_is_compared_as_spark_does() -> None:
    assert comparable([float("nan"), -0.0]) == ("NaN", 0.0)
    assert rounded(Counter({(0.1 + 0.2,): 1})) == rounded(Counter({(0.3,): 1}))
