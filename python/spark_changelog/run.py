# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""A loop that refreshes views in time for their permitted lag."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import datetime, timezone
from threading import Event

from pyspark import inheritable_thread_target
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_changelog._active import given_or_active
from spark_changelog._arguments import checked
from spark_changelog._schedule import Schedule, View
from spark_changelog.conf import ChangelogConf
from spark_changelog.session import check_extension

MOST_ROUNDS_THAT_FAIL = 8
RUNNING_ELSEWHERE = "CHANGELOG_VIEW_IS_RUNNING_ELSEWHERE"
STATUS_COLUMNS = "view, state, behind_seconds, lag_seconds, failures, failure, updated_at"


@checked
def run(
    spark: SparkSession | None = None,
    *,
    databases: Sequence[str] | None = None,
    status: str | None = None,
    poll: float = 10.0,
    stop: Event | None = None,
    report: Callable[[str], None] | None = None,
) -> None:
    """Refresh every view with a property ``changelog.lag`` in time, until ``stop`` is set.

    The property is the permitted age of the view's rows. After half of the lag, the view is
    refreshed, directly after its upstream views. The permitted age of an upstream view is at most
    the age permitted to its downstream views. Views that do not read each other are refreshed
    side by side, at most ``ChangelogConf(spark).views_refresh_threads`` at a time.

    After a failure the refresh is repeated after 1, 2, 4, … seconds, at most 5 minutes. Until
    then the downstream views wait. Unrelated views continue. Views under ``START``, in this
    process or another process, are skipped.

    Parameters
    ----------
    spark : SparkSession, optional
        The active session by default.
    databases : sequence of str, optional
        The databases with the views to refresh, by default every database.
    status : str, optional
        The name of a Spark view to replace after each round, for monitoring. The view has a row
        per refreshed view, with these columns:

        - ``view``: the name;
        - ``state``: ``WITHIN LAG``, ``BEHIND``, ``FAILED``, ``WAITING`` (for a failed upstream
          view) or ``RUNNING``;
        - ``behind_seconds``, ``lag_seconds``: the age of the rows, and the permitted age;
        - ``failures``, ``failure``: the failures since the last success, and the last error;
        - ``updated_at``: the time of the round.
    poll : float
        The seconds between two searches for new views and properties.
    stop : threading.Event, optional
        An event to end the loop, after the running refreshes.
    report : callable, optional
        A function for log lines, one line per refresh. By default lines are printed.
    """
    session = given_or_active(spark)
    check_extension(session)
    _Runner(
        session,
        databases,
        status,
        Event() if stop is None else stop,
        _print if report is None else report,
    ).run(poll)


class _Runner:
    def __init__(
        self,
        spark: SparkSession,
        databases: Sequence[str] | None,
        status: str | None,
        stop: Event,
        report: Callable[[str], None],
    ) -> None:
        self._spark = spark
        self._databases = databases
        self._status = status
        self._stop = stop
        self._report = report
        self._schedule = Schedule()
        self._known: set[str] = set()
        self._cycles: list[tuple[str, ...]] = []
        self._unreadable: set[str] = set()

    def run(self, poll: float) -> None:
        self._report("started: refreshing views within their permitted lag")
        rounds_that_failed = 0
        while not self._stop.is_set():
            try:
                views = self._round()
                rounds_that_failed = 0
                pause = self._schedule.wait(views, time.monotonic(), poll)
            except Exception as error:
                # The catalog may come back after a pause. A lost driver never does.
                rounds_that_failed += 1
                if rounds_that_failed > MOST_ROUNDS_THAT_FAIL:
                    raise
                pause = min(2.0**rounds_that_failed, 60.0)
                self._report(f"views can't be listed, again in {pause:g} s: {_line(error)}")
            self._stop.wait(pause)
        self._report("stopped")

    def _round(self) -> list[tuple[View, float]]:
        """Refresh the due views, and return the views with their state afterwards."""
        self._refresh_due(self._listed())
        views = self._listed()
        if self._status is not None:
            self._tell(self._status, views)
        return views

    def _listed(self) -> list[tuple[View, float]]:
        """Return the views to refresh, and report the views that can no longer be refreshed."""
        views = self._views()
        ordered = self._schedule.ordered(views)
        for cycle in self._schedule.cycles:
            if cycle not in self._cycles:
                path = " reads ".join([*reversed(cycle), cycle[-1]])
                self._report(f"{path}: not refreshed until the query of one of them is changed")
        self._cycles = self._schedule.cycles
        unreadable = {view.name: view.failure for view in views if view.status == "UNREADABLE"}
        for name in sorted(unreadable.keys() - self._unreadable):
            reason = unreadable[name]
            self._report(f"{name}: not refreshed, because the view can't be read: {reason}")
            self._schedule.succeeded(name)
        self._unreadable = set(unreadable)
        for name in sorted(self._known - {view.name for view in views}):
            self._report(f"{name}: no longer refreshed, because it was dropped")
            self._schedule.succeeded(name)
        self._known = {view.name for view, _ in ordered}
        return ordered

    def _refresh_due(self, views: list[tuple[View, float]]) -> None:
        """Refresh the due views, each after the due views that it reads."""
        due = self._schedule.due(views, time.monotonic())
        left = [(view, lag) for view, lag in views if view.name in due]
        running: dict[Future[str], str] = {}
        number = ChangelogConf(self._spark).views_refresh_threads
        with ThreadPoolExecutor(number, "refresh-views") as threads:
            while running or (left and not self._stop.is_set()):
                waiting = self._schedule.waiting(view for view, _ in views)
                for view, lag in self._schedule.startable(left, set(running.values())):
                    if self._stop.is_set() or len(running) == number:
                        break
                    left.remove((view, lag))
                    if view.name not in waiting and self._schedule.is_free(
                        view, time.monotonic()
                    ):
                        inherit = inheritable_thread_target(self._spark)
                        refresh = threads.submit(inherit(self._refresh), view, lag)
                        running[refresh] = view.name
                for ended in wait(running, return_when=FIRST_COMPLETED).done:
                    del running[ended]
                    self._report(ended.result())

    def _refresh(self, view: View, lag: float) -> str:
        """Refresh a view, and return the line to report."""
        name = view.name
        try:
            self._spark.sql(f"REFRESH MATERIALIZED VIEW {view.sql}").collect()
        except Exception as error:
            if _condition(error) == RUNNING_ELSEWHERE:
                self._schedule.left(name, lag, time.monotonic())
                return f"{name}: refreshed by another process"
            pause = self._schedule.failed(name, time.monotonic())
            count = self._schedule.attempts(name).failures
            return f"{name}: failed ({count}), again in {pause:g} s: {_line(error)}"
        self._schedule.succeeded(name)
        try:
            last = self._spark.sql(f"SHOW REFRESHES OF {view.sql}").head()
        except Exception as error:
            return f"{name}: refreshed, but the history can't be read: {_line(error)}"
        if last is None:
            return f"{name}: refreshed, lag {lag:g} s"
        counts = [
            f"{rows} rows {what}"
            for what, rows in [
                ("read", last.rows_read),
                ("written", last.rows_written),
                ("retracted", last.rows_retracted),
            ]
            if rows is not None
        ]
        what = ", ".join([last.mode, *counts])
        return f"{name}: {what} in {last.seconds:.1f} s, lag {lag:g} s"

    def _views(self) -> list[View]:
        databases = self._databases
        if databases is None:
            databases = [row[0] for row in self._spark.sql("SHOW DATABASES").collect()]
        return [
            View(
                name=f"{row.namespace}.{row.name}",
                sql=f"{_quoted(row.namespace)}.{_quoted(row.name)}",
                status=row.status,
                behind=row.behind_seconds,
                lag=row.lag_seconds,
                reads=tuple(row.reads),
                failure=row.failure,
            )
            for database in databases
            for row in self._spark.sql(
                f"SHOW MATERIALIZED VIEWS IN {_quoted(database)}"
            ).collect()
        ]

    def _tell(self, status: str, views: list[tuple[View, float]]) -> None:
        """Replace the status view, in one step of the catalog."""
        waiting = self._schedule.waiting(view for view, _ in views)
        rows = [self._row(view, lag, waiting) for view, lag in views]
        values = ", ".join(rows) or f"({', '.join(['NULL'] * 7)})"
        some = "" if rows else " WHERE false"
        columns = (
            "STRING(view) AS view, STRING(state) AS state, "
            "DOUBLE(behind_seconds) AS behind_seconds, DOUBLE(lag_seconds) AS lag_seconds, "
            "INT(failures) AS failures, STRING(failure) AS failure, "
            "TIMESTAMP(updated_at) AS updated_at"
        )
        self._spark.sql(
            f"CREATE OR REPLACE VIEW {status} AS SELECT {columns} "
            f"FROM VALUES {values} AS t({STATUS_COLUMNS}){some}"
        )

    def _row(self, view: View, lag: float, waiting: set[str]) -> str:
        attempts = self._schedule.attempts(view.name)
        failures = attempts.failures
        if view.status == "RUNNING" or attempts.elsewhere:
            state = "RUNNING"
        elif failures:
            state = "FAILED"
        elif view.name in waiting:
            state = "WAITING"
        else:
            state = "WITHIN LAG" if view.is_within(lag) else "BEHIND"
        now = datetime.now(timezone.utc).isoformat()
        return (
            f"({_text(view.name)}, {_text(state)}, {_number(view.behind)}, {lag}, {failures}, "
            f"{_text(view.failure)}, {_text(now)})"
        )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: str | None) -> str:
    if value is None:
        return "NULL"
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _number(value: float | None) -> str:
    return "NULL" if value is None else repr(value)


def _condition(error: Exception) -> str | None:
    return error.getCondition() if isinstance(error, PySparkException) else None


def _line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _print(line: str) -> None:
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    print(f"{now} {line}", flush=True)
