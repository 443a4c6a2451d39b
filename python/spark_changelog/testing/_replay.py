# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The table that emitted changes keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from spark_changelog.functions import Mode
from spark_changelog.testing._changes import Change, Values

ALLOWED: dict[Mode, set[str]] = {
    "retract": {"+I", "-U", "+U", "-D"},
    "upsert": {"+I", "+U", "-D"},
    "append": {"+I"},
}


class ChangelogError(AssertionError):
    """An emitted change doesn't fit what was emitted before it."""


@dataclass
class Replay:
    """Replays changes batch by batch, and checks that they fit.

    Nothing is taken back that is not there, and nothing is said that did not change.
    """

    mode: Mode = "retract"
    key: Sequence[int] = ()
    rows: Counter[Values] = field(default_factory=Counter)

    def apply(self, changes: Sequence[Change]) -> None:
        """Apply one batch."""
        self._check_kinds(changes)
        self._check_minimal(changes)
        # Inside a batch the order of rows means nothing: retractions first.
        for change in sorted(changes, key=lambda change: change.accumulates):
            if self.mode == "upsert":
                self._upsert(change)
            elif change.accumulates:
                self.rows[change.values] += 1
            else:
                self._take(change)

    def _take(self, change: Change) -> None:
        if self.rows[change.values] <= 0:
            raise ChangelogError(f"'{change}' takes back a row that is not there")
        self.rows[change.values] -= 1
        if not self.rows[change.values]:
            del self.rows[change.values]

    def _upsert(self, change: Change) -> None:
        present = [row for row in self.rows if self._key_of(row) == self._key_of(change.values)]
        for row in present:
            del self.rows[row]
        if change.accumulates:
            self.rows[change.values] += 1
        elif not present:
            raise ChangelogError(f"'{change}' deletes a key that is not there")

    def _key_of(self, row: Values) -> Values:
        return tuple(row[position] for position in self.key)

    def _check_kinds(self, changes: Sequence[Change]) -> None:
        kinds = Counter(change.kind for change in changes)
        if not kinds.keys() <= ALLOWED[self.mode]:
            raise ChangelogError(f"mode {self.mode} does not allow all of {dict(kinds)}")
        if self.mode == "retract" and kinds["-U"] != kinds["+U"]:
            raise ChangelogError(f"an update has only one half: {dict(kinds)}")

    def _check_minimal(self, changes: Sequence[Change]) -> None:
        came = {change.values for change in changes if change.accumulates}
        both = [change for change in changes if not change.accumulates and change.values in came]
        if both:
            raise ChangelogError(f"'{both[0]}' and the same row given again in one batch")
        if self.mode == "upsert":
            keys = Counter(self._key_of(change.values) for change in changes)
            twice = [key for key, count in keys.items() if count > 1]
            if twice:
                raise ChangelogError(f"the key {twice[0]} changes more than once in one batch")
