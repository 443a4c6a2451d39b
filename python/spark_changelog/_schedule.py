# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""When which view is refreshed, as far as that can be told without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 300.0


@dataclass(frozen=True)
class View:
    """What ``SHOW MATERIALIZED VIEWS`` tells of a view; times are in seconds.

    ``sql`` is its name as statements have it.
    ``behind`` is ``None`` if it was never refreshed, ``lag`` if nobody says how old it may get.
    """

    name: str
    sql: str
    status: str
    behind: float | None
    lag: float | None
    reads: tuple[str, ...]
    failure: str | None = None

    def is_within(self, lag: float) -> bool:
        """Whether its rows are no older than that."""
        return self.behind is not None and self.behind <= lag


@dataclass
class Attempts:
    """How often a view has failed since it last succeeded, and when it is tried again.

    ``elsewhere`` if another process kept it when it was last tried.
    """

    failures: int = 0
    again_at: float = 0.0
    elsewhere: bool = False


class Schedule:
    """Says which views are due, and when to look again."""

    def __init__(self) -> None:
        self._attempts: dict[str, Attempts] = {}

    def ordered(self, views: Iterable[View]) -> list[tuple[View, float]]:
        """Return the views to keep and the lag of each, each after those that it reads.

        A view that others read may be no older than they may.
        """
        by_name = {view.name: view for view in views}
        reads = {name: [n for n in view.reads if n in by_name] for name, view in by_name.items()}
        order = list(TopologicalSorter(reads).static_order())
        lags = {name: view.lag for name, view in by_name.items() if view.lag is not None}
        for reader in reversed(order):
            if reader in lags:
                for name in reads[reader]:
                    lags[name] = min(lags[reader], lags.get(name, lags[reader]))
        return [(by_name[name], lags[name]) for name in order if name in lags]

    def is_due(self, view: View, lag: float, now: float) -> bool:
        """Whether half of its lag has passed, so that a refresh may take the other half."""
        return self.is_free(view, now) and (view.behind is None or view.behind >= lag / 2)

    def is_free(self, view: View, now: float) -> bool:
        """Whether it may be refreshed: nobody keeps it, and it has not failed a moment ago."""
        return view.status != "RUNNING" and now >= self.attempts(view.name).again_at

    def due(self, views: Sequence[tuple[View, float]], now: float) -> set[str]:
        """Return the views that are due, and those that they read, whose age would add to theirs.

        Each comes after those that it reads. One that waits is not due, nor is what it reads.
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

    def waiting(self, views: Iterable[View]) -> set[str]:
        """Return the views that wait for one that fails; they come after those that they read."""
        stopped: set[str] = set()
        found = set()
        for view in views:
            if stopped.intersection(view.reads):
                found.add(view.name)
            if view.name in found or self.attempts(view.name).failures:
                stopped.add(view.name)
        return found

    def wait(self, views: Sequence[tuple[View, float]], now: float, longest: float) -> float:
        """Return how long nothing will be due."""
        waiting = self.waiting(view for view, _ in views)
        pauses = [longest]
        for view, lag in views:
            if view.status != "RUNNING" and view.name not in waiting:
                due = 0.0 if view.behind is None else lag / 2 - view.behind
                pauses.append(max(due, self.attempts(view.name).again_at - now))
        return max(0.1, min(pauses))

    def attempts(self, name: str) -> Attempts:
        """Return what is known of a view's failures."""
        return self._attempts.setdefault(name, Attempts())

    def succeeded(self, name: str) -> None:
        """Forget that it failed."""
        self._attempts[name] = Attempts()

    def left(self, name: str, lag: float, now: float) -> None:
        """Leave it to another process that keeps it, and look again when it would be due."""
        self._attempts[name] = Attempts(again_at=now + lag / 2, elsewhere=True)

    def failed(self, name: str, now: float) -> float:
        """Return after how many seconds it is tried again: twice as many each time."""
        attempts = self.attempts(name)
        pause = min(FIRST_PAUSE * 2.0**attempts.failures, LONGEST_PAUSE)
        attempts.failures += 1
        attempts.elsewhere = False
        attempts.again_at = now + pause
        return pause
