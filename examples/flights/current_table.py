# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""A small table in one JSON file, written by upserts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame


class CurrentTable:
    """Rows by key, with the number of the last batch.

    A batch replaces the file as a whole. A batch repeated by a restarted query has no effect, and
    a reader never sees half a batch.
    """

    def __init__(self, path: Path, key: str) -> None:
        self.path = path
        self.key = key

    def merge(self, batch: DataFrame, batch_id: int) -> None:
        """Apply a batch of upserts, unless already applied."""
        last_batch, rows = self._load()
        if batch_id <= last_batch:
            return
        for row in map(_as_dict, batch.collect()):
            if row.pop("_change_type") == "delete":
                del rows[row[self.key]]
            else:
                rows[row[self.key]] = row
        following = self.path.with_suffix(".new")
        following.write_text(json.dumps({"batch": batch_id, "rows": rows}, indent=1))
        os.replace(following, self.path)

    def rows(self) -> list[dict[str, Any]]:
        """Return the current rows, ordered by key."""
        return [row for _, row in sorted(self._load()[1].items())]

    def _load(self) -> tuple[int, dict[str, dict[str, Any]]]:
        if not self.path.exists():
            return -1, {}
        state = json.loads(self.path.read_text())
        return state["batch"], state["rows"]


def _as_dict(row: Any) -> dict[str, Any]:
    values: dict[str, Any] = row.asDict()
    return values
