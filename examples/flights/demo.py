# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The steps of the demo."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from pyspark.sql import Row, SparkSession
from rich.console import Console

import spark_changelog as changelog
from flights import picture, report, tables, timetable
from flights.current_table import CurrentTable
from flights.maintain import Run, folder_per_batch, maintain, stream_flights
from flights.verify import BATCH, CHANGE_TYPE, compare, count_rows, replay
from flights.views import CARRIERS, DAYS, ROUTES, view

Batches = Sequence[Sequence[Row]]


class Demo:
    """One run of the demo, with its files and the results of its queries."""

    def __init__(self, spark: SparkSession, folder: Path, days: int, console: Console) -> None:
        self.spark = spark
        self.folder = folder
        self.console = console
        self.current = CurrentTable(folder / "carriers.json", key="carrier")
        with console.status("Writing the changes of each day"):
            self.flights = timetable.read_flights(spark, folder, days)
            self.days = timetable.write_changes(self.flights, folder / "changes")
        self.stream = stream_flights(spark, folder / "changes")
        self.runs: dict[str, Run] = {}

    def run(self) -> bool:
        """Maintain and show the views, and return whether every view is correct."""
        self.console.print(
            f"The flights from New York, {self.days[1]} to {self.days[-2]}: scheduled the day "
            "before, updated when they depart and land, deleted when they are cancelled.\n"
        )
        self.explain()
        self.maintain()
        routes, days = self._batches("routes"), self._batches("days")
        self.show(routes)
        self.draw(days)
        return self.refresh() and self.verify(routes, days)

    def explain(self) -> None:
        """Print the plan of the view of routes."""
        self.console.print("[bold]The plan of routes[/]")
        changelog.explain(view(ROUTES, self.stream))

    def maintain(self) -> None:
        """Run every query over the whole stream, one batch per day."""
        carriers = view(CARRIERS, self.stream)
        changes = {
            "carriers": changelog.to_changelog(carriers),
            "carriers, current": changelog.to_changelog(carriers, mode="upsert"),
            "routes": changelog.to_changelog(view(ROUTES, self.stream)),
            "days": changelog.to_changelog(view(DAYS, self.stream)),
        }
        writers = {name: df.writeStream for name, df in changes.items()}
        writers["carriers"].format("parquet").option("path", str(self.folder / "carriers"))
        writers["carriers, current"].foreachBatch(self.current.merge)
        for name in ("routes", "days"):
            writers[name].foreachBatch(folder_per_batch(self.folder / name))
        with report.progress(self.console) as progress:
            for name, writer in writers.items():
                checkpoint = self.folder / "checkpoints" / name
                self.runs[name] = maintain(name, writer, checkpoint, len(self.days), progress)

    def show(self, routes: Batches) -> None:
        """Print the changes of one day, and the current table of carriers."""
        number = max(range(len(routes)), key=lambda number: (_kinds(routes[number]), number))
        title = f"Changes to routes on {self.days[number]}"
        report.changes(self.console, title, routes[number])
        names = timetable.airlines()
        rows = [{"airline": names[row["carrier"]], **row} for row in self.current.rows()]
        report.rows(self.console, "Carriers now, delays in minutes", rows)

    def draw(self, days: Batches) -> None:
        """Draw the delay of each day."""
        path = self.folder / "delays.png"
        picture.draw(picture.follow(dict(zip(self.days, days, strict=True))), path)
        self.console.print(f"\nThe delay of each day, that evening and at the end: {path}")

    def refresh(self) -> bool:
        """Refresh a view over a plain table with SQL, and return the success of VERIFY."""
        tables.keep(self.flights, timetable.final_table(self.flights))
        self.console.print("\n[bold]A view over a plain table[/]")
        for statement in tables.STATEMENTS:
            self.console.print(f"{statement};", highlight=False)
        told = [row.asDict() for row in tables.refreshes(self.flights)]
        report.rows(self.console, "SHOW REFRESHES OF airlines", told)
        differing = tables.differences(self.flights)
        self.console.print(f"VERIFY MATERIALIZED VIEW airlines: {differing} rows differ")
        return differing == 0

    def verify(self, routes: Batches, days: Batches) -> bool:
        """Compare every view with batch Spark over the final flights."""
        final = timetable.final_table(self.flights)
        carriers = view(CARRIERS, final)
        written = self.spark.read.parquet(str(self.folder / "carriers")).collect()
        kept = count_rows(self.current.rows(), carriers.columns)
        verdicts = {
            "carriers": compare(replay(written), carriers),
            "carriers, current": compare(kept, carriers),
            "routes": compare(replay(chain(*routes)), view(ROUTES, final)),
            "days": compare(replay(chain(*days)), view(DAYS, final)),
        }
        report.verdicts(self.console, self.runs, verdicts)
        return all(verdict.equal for verdict in verdicts.values())

    def _batches(self, name: str) -> Batches:
        """Return the changes emitted by a query, by batch."""
        batches: list[list[Row]] = [[] for _ in self.days]
        for change in self.spark.read.parquet(str(self.folder / name)).collect():
            batches[change[BATCH]].append(change)
        return batches


def _kinds(changes: Sequence[Row]) -> int:
    return len({change[CHANGE_TYPE] for change in changes})
