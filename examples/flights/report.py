# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Prints changes, tables and verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import Row
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from flights.maintain import Run
from flights.verify import BATCH, CHANGE_TYPE, Verdict

KINDS = {
    "insert": ("+I", "green"),
    "update_preimage": ("-U", "dim yellow"),
    "update_postimage": ("+U", "bold yellow"),
    "delete": ("-D", "red"),
}
MOST_DIFFERENCES = 10


def progress(console: Console) -> Progress:
    """Return one bar per query, counting days."""
    return Progress(
        TextColumn("{task.description:<20}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("days"),
        TimeElapsedColumn(),
        console=console,
    )


def changes(console: Console, title: str, changes: Iterable[Row]) -> None:
    """Print changes, colored by row kind, with the images of an update together."""
    kinds = list(KINDS)
    rows = [change.asDict() for change in changes]
    columns = [name for name in (rows[0] if rows else ()) if name not in (CHANGE_TYPE, BATCH)]
    table = _table(["", *columns])
    for row in sorted(rows, key=lambda row: (row[columns[0]], kinds.index(row[CHANGE_TYPE]))):
        kind, style = KINDS[row[CHANGE_TYPE]]
        table.add_row(kind, *(written(row[name]) for name in columns), style=style)
    _print(console, title, table)


def rows(console: Console, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the rows of a table."""
    columns = list(rows[0]) if rows else []
    table = _table(columns)
    for row in rows:
        table.add_row(*(written(row[name]) for name in columns))
    _print(console, title, table)


def verdicts(console: Console, runs: Mapping[str, Run], verdicts: Mapping[str, Verdict]) -> None:
    """Print the speed of each query, and the comparison with batch Spark."""
    columns = ["", "days", "changes", "seconds", "changes/s", "rows", "batch Spark says"]
    table = _table(columns)
    for name, run in runs.items():
        verdict = verdicts[name]
        numbers = [run.batches, run.changes, run.seconds, round(run.changes_per_second)]
        said = "[green]equal[/]" if verdict.equal else "[bold red]different[/]"
        table.add_row(name, *map(written, [*numbers, verdict.rows]), said)
    _print(console, "Speed, and verdict", table)
    for name, verdict in verdicts.items():
        for text, rows in (
            ("only in the view", verdict.surplus),
            ("only in batch Spark", verdict.missing),
        ):
            for row in sorted(map(str, rows.elements()))[:MOST_DIFFERENCES]:
                console.print(f"{name}: {text}: {row}", highlight=False)


def written(value: Any) -> str:
    """Format a value for a table.

    Examples
    --------
    >>> written(None), written(12345), written(7.25), written("JFK")
    ('', '12,345', '7.2', 'JFK')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _table(columns: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for position, name in enumerate(columns):
        table.add_column(name.replace("_", " "), justify="left" if position == 0 else "right")
    return table


def _print(console: Console, title: str, table: Table) -> None:
    console.print(f"\n[bold]{title}[/]")
    console.print(table)
