# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The replay of emitted changes into a table."""

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
    """A query emitted a wrong change or a wrong result."""


@dataclass
class Replay:
    """A table built by replaying changes batch by batch, with checks.

    Each retraction must match an existing row, and a batch must not retract and insert the same
    row.
    """

    mode: Mode = "retract"
    key: Sequence[int] = ()
    rows: Counter[Values] = field(default_factory=Counter)

    def apply(self, changes: Sequence[Change]) -> None:
        """Apply one batch."""
        self._check_kinds(changes)
        self._check_minimal(changes)
        # The order of rows within a batch has no meaning: apply retractions first.
        for change in sorted(changes, key=lambda change: change.accumulates):
            if self.mode == "upsert":
                self._upsert(change)
            elif change.accumulates:
                self.rows[change.values] += 1
            else:
                self._take(change)

    def _take(self, change: Change) -> None:
        if self.rows[change.values] <= 0:
            raise ChangelogError(f"'{change}' retracts a missing row")
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
            raise ChangelogError(f"'{change}' deletes a missing key")

    def _key_of(self, row: Values) -> Values:
        return tuple(row[position] for position in self.key)

    def _check_kinds(self, changes: Sequence[Change]) -> None:
        kinds = Counter(change.kind for change in changes)
        if not kinds.keys() <= ALLOWED[self.mode]:
            raise ChangelogError(f"mode {self.mode} does not allow these kinds: {dict(kinds)}")
        if self.mode == "retract" and kinds["-U"] != kinds["+U"]:
            raise ChangelogError(f"-U and +U differ in number: {dict(kinds)}")

    def _check_minimal(self, changes: Sequence[Change]) -> None:
        came = {change.values for change in changes if change.accumulates}
        both = [change for change in changes if not change.accumulates and change.values in came]
        if both:
            raise ChangelogError(f"'{both[0]}' retracts a row inserted in the same batch")
        if self.mode == "upsert":
            keys = Counter(self._key_of(change.values) for change in changes)
            twice = [key for key, count in keys.items() if count > 1]
            if twice:
                raise ChangelogError(f"the key {twice[0]} changes more than once in one batch")
