# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The schedule of refreshes: pure logic, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 300.0


@dataclass(frozen=True)
class View:
    """A row of ``SHOW MATERIALIZED VIEWS``. Times are in seconds.

    ``sql`` is the quoted name for statements. ``behind``, the age of the view's rows, is None
    before the first refresh. ``lag``, the permitted age, is None for a view without the property
    ``changelog.lag``.
    """

    name: str
    sql: str
    status: str
    behind: float | None
    lag: float | None
    reads: tuple[str, ...]
    failure: str | None = None

    def is_within(self, lag: float) -> bool:
        """Tell whether the view's rows are at most ``lag`` seconds old."""
        return self.behind is not None and self.behind <= lag


@dataclass
class Attempts:
    """The failed refreshes of a view since the last success, and the time of the next attempt.

    ``elsewhere`` is true if another process was writing the view at the last attempt.
    """

    failures: int = 0
    again_at: float = 0.0
    elsewhere: bool = False


class Schedule:
    """The views that are due, and the time until the next view is due."""

    def __init__(self) -> None:
        self._attempts: dict[str, Attempts] = {}
        self.cycles: list[tuple[str, ...]] = []

    def ordered(self, views: Iterable[View]) -> list[tuple[View, float]]:
        """Return the views to refresh with their permitted lags, upstream views first.

        The permitted lag of an upstream view is at most the lag of each downstream view. Views
        that read each other are left out, and kept in ``cycles``.
        """
        by_name = {view.name: view for view in views}
        self.cycles = _cycles(by_name)
        for name in {name for cycle in self.cycles for name in cycle}:
            del by_name[name]
        reads = {name: [n for n in view.reads if n in by_name] for name, view in by_name.items()}
        order = list(TopologicalSorter(reads).static_order())
        lags = {name: view.lag for name, view in by_name.items() if view.lag is not None}
        for reader in reversed(order):
            if reader in lags:
                for name in reads[reader]:
                    lags[name] = min(lags[reader], lags.get(name, lags[reader]))
        return [(by_name[name], lags[name]) for name in order if name in lags]

    def is_due(self, view: View, lag: float, now: float) -> bool:
        """Tell whether half of the lag has passed. The refresh may take the second half."""
        return self.is_free(view, now) and (view.behind is None or view.behind >= lag / 2)

    def is_free(self, view: View, now: float) -> bool:
        """Tell whether a refresh may start: no other refresh runs, and no pause is left."""
        return view.status != "RUNNING" and now >= self.attempts(view.name).again_at

    def due(self, views: Sequence[tuple[View, float]], now: float) -> set[str]:
        """Return the due views and their upstream views, whose age would add to their age.

        ``views`` must list upstream views first. A waiting view is not due, and doesn't make
        its upstream views due.
        """
        waiting = self.waiting(view for view, _ in views)
        found = {
            view.name
            for view, lag in views
            if view.name not in waiting and self.is_due(view, lag, now)
        }
        for view, _ in reversed(views):
            if view.name in found:
                found.update(view.reads)
        return found

    def startable(
        self, views: Sequence[tuple[View, float]], running: set[str]
    ) -> list[tuple[View, float]]:
        """Return the views to refresh that read neither each other nor a view being refreshed."""
        unfinished = running.union(view.name for view, _ in views)
        return [pair for pair in views if unfinished.isdisjoint(pair[0].reads)]

    def waiting(self, views: Iterable[View]) -> set[str]:
        """Return the views downstream of a failed view. ``views`` lists upstream views first."""
        stopped: set[str] = set()
        found = set()
        for view in views:
            if stopped.intersection(view.reads):
                found.add(view.name)
            if view.name in found or self.attempts(view.name).failures:
                stopped.add(view.name)
        return found

    def wait(self, views: Sequence[tuple[View, float]], now: float, longest: float) -> float:
        """Return the seconds until the next view is due: at least 0.1, at most ``longest``."""
        waiting = self.waiting(view for view, _ in views)
        pauses = [longest]
        for view, lag in views:
            if view.status != "RUNNING" and view.name not in waiting:
                due = 0.0 if view.behind is None else lag / 2 - view.behind
                pauses.append(max(due, self.attempts(view.name).again_at - now))
        return max(0.1, min(pauses))

    def attempts(self, name: str) -> Attempts:
        """Return the failures of a view since its last success."""
        return self._attempts.setdefault(name, Attempts())

    def succeeded(self, name: str) -> None:
        """Reset the failures of a view after a successful refresh."""
        self._attempts[name] = Attempts()

    def left(self, name: str, lag: float, now: float) -> None:
        """Leave a view to the process that writes it, and try again after half of the lag."""
        self._attempts[name] = Attempts(again_at=now + lag / 2, elsewhere=True)

    def failed(self, name: str, now: float) -> float:
        """Count a failure and return the pause in seconds, which doubles with each failure."""
        attempts = self.attempts(name)
        pause = min(FIRST_PAUSE * 2.0**attempts.failures, LONGEST_PAUSE)
        attempts.failures += 1
        attempts.elsewhere = False
        attempts.again_at = now + pause
        return pause


def _cycles(views: dict[str, View]) -> list[tuple[str, ...]]:
    """Return groups of views in which each view reads the one before and the first the last."""
    left = dict(views)
    found: list[tuple[str, ...]] = []
    while True:
        sorter = TopologicalSorter(
            {name: [n for n in view.reads if n in left] for name, view in left.items()}
        )
        try:
            sorter.prepare()
            return found
        except CycleError as error:
            found.append(tuple(error.args[1][:-1]))
            for name in found[-1]:
                del left[name]
