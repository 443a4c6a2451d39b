# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""`run` refreshes views within their permitted lag, until a signal or an event ends the loop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from threading import Barrier, Event, Thread

import pytest
from pyspark.sql import SparkSession

import share
from processes import SOURCE, WITH_JAR
from spark_changelog import run
from spark_changelog._schedule import Schedule, View
from spark_changelog.run import _Runner


def view(
    name: str, lag: float | None, behind: float | None = 0, reads: tuple[str, ...] = ()
) -> View:
    return View(name, name, "IDLE", behind, lag, reads)


def test_views_come_after_those_they_read_and_lend_them_their_lag() -> None:
    views = [
        view("a", 60, reads=("b", "elsewhere")),
        view("b", None, reads=("c",)),
        view("c", 300),
        view("d", None),
    ]
    kept = [(view.name, lag) for view, lag in Schedule().ordered(views)]
    assert kept == [("c", 60), ("b", 60), ("a", 60)]


def test_views_that_read_each_other_are_left_out_and_others_stay() -> None:
    schedule = Schedule()
    views = [
        view("a", 60, reads=("b",)),
        view("b", None, reads=("a",)),
        view("self", 60, reads=("self",)),
        view("reader", 60, reads=("a", "other")),
        view("other", 300),
    ]
    kept = [(view.name, lag) for view, lag in schedule.ordered(views)]
    assert kept == [("other", 60), ("reader", 60)]
    assert sorted(sorted(cycle) for cycle in schedule.cycles) == [["a", "b"], ["self"]]
    schedule.ordered(views[3:])
    assert schedule.cycles == []


def test_cycles_and_views_that_are_gone_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    runner = _Runner(None, None, None, Event(), told.append)  # type: ignore[arg-type]
    views = [view("a", 60, reads=("b",)), view("b", 60, reads=("a",)), view("v", 60)]
    monkeypatch.setattr(runner, "_views", lambda: views)
    for _ in range(2):
        assert [view.name for view, _ in runner._listed()] == ["v"]
    assert len(told) == 1
    assert "a reads b" in told[0]
    assert "b reads a" in told[0]
    views = [view("other", 60)]
    for _ in range(2):
        assert [view.name for view, _ in runner._listed()] == ["other"]
    assert told[1:] == ["v: no longer refreshed, because it was dropped"]


def test_views_that_cannot_be_read_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    runner = _Runner(None, None, None, Event(), told.append)  # type: ignore[arg-type]
    lost = replace(view("lost", None), status="UNREADABLE", failure="its log is missing")
    views = [lost, view("v", 60)]
    monkeypatch.setattr(runner, "_views", lambda: views)
    for _ in range(2):
        assert [view.name for view, _ in runner._listed()] == ["v"]
    assert told == ["lost: not refreshed, because the view can't be read: its log is missing"]
    views = [view("lost", 60), replace(lost, name="v")]
    assert [view.name for view, _ in runner._listed()] == ["lost"]
    assert told[1:] == ["v: not refreshed, because the view can't be read: its log is missing"]


def test_a_view_is_due_when_half_its_lag_has_passed() -> None:
    schedule = Schedule()
    assert schedule.is_due(view("v", 10, behind=None), 10, now=0)
    assert schedule.is_due(view("v", 10, behind=5), 10, now=0)
    assert not schedule.is_due(view("v", 10, behind=4), 10, now=0)
    assert schedule.wait([(view("v", 10, behind=4), 10)], now=0, longest=30) == 1


def test_pauses_double_until_a_refresh_succeeds() -> None:
    schedule = Schedule()
    late = view("v", 10, behind=100)
    pauses = [schedule.failed("v", now=0) for _ in range(10)]
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    assert not schedule.is_due(late, 10, now=299)
    assert schedule.is_due(late, 10, now=300)
    assert schedule.wait([(late, 10)], now=290, longest=30) == 10
    schedule.succeeded("v")
    assert schedule.failed("v", now=0) == 1


def test_a_view_that_another_process_keeps_is_left_to_it() -> None:
    schedule = Schedule()
    late = view("v", 10, behind=100)
    schedule.left("v", 10, now=0)
    assert schedule.attempts("v").elsewhere
    assert schedule.attempts("v").failures == 0
    assert not schedule.is_due(late, 10, now=4)
    assert schedule.is_due(late, 10, now=5)
    assert schedule.wait([(late, 10)], now=0, longest=30) == 5
    schedule.succeeded("v")
    assert not schedule.attempts("v").elsewhere


def test_nothing_is_done_for_a_view_that_waits_for_another_one() -> None:
    schedule = Schedule()
    late = [
        (view("a", 10, behind=100), 10.0),
        (view("b", 10, behind=100, reads=("a",)), 10.0),
        (view("c", 10, behind=100, reads=("b",)), 10.0),
    ]
    assert schedule.waiting(view for view, _ in late) == set()
    for _ in range(6):
        schedule.failed("a", now=0)
    assert schedule.waiting(view for view, _ in late) == {"b", "c"}
    assert schedule.wait(late, now=0, longest=30) == 30
    assert schedule.wait(late, now=20, longest=30) == 12
    schedule.succeeded("a")
    assert schedule.waiting(view for view, _ in late) == set()


def test_what_a_view_reads_beside_one_that_fails_is_refreshed_no_more_often() -> None:
    schedule = Schedule()
    views = [
        (view("a", 10, behind=1), 10.0),
        (view("b", 10, behind=9), 10.0),
        (view("c", 10, behind=9, reads=("a", "b")), 10.0),
    ]
    assert schedule.due(views, now=0) == {"a", "b", "c"}
    schedule.failed("b", now=0)
    assert schedule.due(views, now=0) == set()
    assert schedule.due(views, now=1) == {"b"}


def test_what_a_view_reads_is_due_just_before_it() -> None:
    schedule = Schedule()
    views = [
        (view("a", 10, behind=1), 10.0),
        (view("b", 10, behind=1, reads=("a",)), 10.0),
        (view("c", 10, behind=5, reads=("b",)), 10.0),
        (view("d", 10, behind=1, reads=("a",)), 10.0),
    ]
    assert schedule.due(views, now=0) == {"a", "b", "c"}
    schedule.failed("c", now=0)
    assert schedule.due(views, now=0) == set()


def test_views_that_read_no_unfinished_view_may_start() -> None:
    views = [
        (view("a", 10), 10.0),
        (view("b", 10, reads=("a",)), 10.0),
        (view("c", 10, reads=("x",)), 10.0),
        (view("d", 10, reads=("b", "c")), 10.0),
    ]

    def startable(left: str, *running: str) -> str:
        pairs = [pair for pair in views if pair[0].name in left]
        return "".join(view.name for view, _ in Schedule().startable(pairs, set(running)))

    assert startable("abcd") == "ac"
    assert startable("bcd", "a") == "c"
    assert startable("bd", "c") == "b"
    assert startable("d", "c") == ""
    assert startable("d") == "d"


@pytest.fixture
def views(spark: SparkSession) -> Iterator[None]:
    """Create a view, a downstream view, and a view with a failing query."""
    spark.sql("CREATE TABLE kept_orders (customer STRING, amount INT) USING json")
    spark.sql("CREATE TABLE kept_changes (op STRING, id INT) USING json")
    spark.sql("""
        CREATE MATERIALIZED VIEW owed_first USING parquet AS
        SELECT customer, sum(amount) AS total FROM STREAM kept_orders GROUP BY customer
    """)
    spark.sql("""
        CREATE MATERIALIZED VIEW all_owed USING parquet
        TBLPROPERTIES ('changelog.lag' = '1 second') AS SELECT sum(total) AS total FROM owed_first
    """)
    spark.sql("""
        CREATE MATERIALIZED VIEW wrong USING parquet TBLPROPERTIES ('changelog.lag' = '1 second')
        AS SELECT id FROM from_changelog(TABLE(SELECT * FROM STREAM kept_changes), 'op')
    """)
    yield
    for name in ("all_owed", "owed_first", "wrong"):
        spark.sql(f"DROP MATERIALIZED VIEW {name}")
    for name in ("kept_orders", "kept_changes"):
        spark.sql(f"DROP TABLE {name}")
    spark.sql("DROP VIEW IF EXISTS kept_status")


@pytest.mark.usefixtures("views")
def test_views_are_kept_and_one_that_fails_is_told_and_tried_again(spark: SparkSession) -> None:
    spark.sql("INSERT INTO kept_orders VALUES ('Ada', 3), ('Ben', 4)")
    spark.sql("INSERT INTO kept_changes VALUES ('?', 1)")
    stop = Event()
    lines: list[str] = []

    def report(line: str) -> None:
        lines.append(line)
        if any("all_owed: incremental" in told for told in lines) and any(
            "wrong: failed (2)" in told for told in lines
        ):
            stop.set()

    run(spark, databases=["default"], status="kept_status", poll=0.5, stop=stop, report=report)
    assert spark.sql("SELECT total FROM all_owed").collect() == [(7,)]
    order = [line.split(":")[0] for line in lines]
    assert order.index("default.owed_first") < order.index("default.all_owed")
    assert any("CHANGELOG_CHANGE_TYPE_UNKNOWN" in line for line in lines)
    states = {row.view: row for row in spark.table("kept_status").collect()}
    assert set(states) == {"default.owed_first", "default.all_owed", "default.wrong"}
    wrong = states["default.wrong"]
    assert wrong.state == "FAILED"
    assert wrong.failures == 2
    assert "CHANGELOG_CHANGE_TYPE_UNKNOWN" in wrong.failure
    assert states["default.all_owed"].lag_seconds == 1


def test_a_view_heals_once_its_rows_are_mended(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE kept_orders (customer STRING, amount INT) USING parquet")
    spark.sql("""
        CREATE MATERIALIZED VIEW shares USING parquet TBLPROPERTIES ('changelog.lag' = '1 second')
        AS SELECT sum(10 / amount) AS share FROM kept_orders
    """)
    spark.sql("INSERT INTO kept_orders VALUES ('Ada', 5), ('Ben', 0)")
    stop = Event()
    lines: list[str] = []

    def report(line: str) -> None:
        lines.append(line)
        if "shares: failed (2)" in line:
            spark.sql("INSERT OVERWRITE kept_orders VALUES ('Ada', 5), ('Ben', 2)")
        elif "shares: " in line and "shares: failed" not in line:
            stop.set()

    try:
        run(spark, databases=["default"], poll=0.5, stop=stop, report=report)
        assert spark.sql("SELECT * FROM shares").collect() == [(7.0,)]
    finally:
        spark.sql("DROP MATERIALIZED VIEW shares")
        spark.sql("DROP TABLE kept_orders")
    assert any("shares: failed" in line and "DIVIDE_BY_ZERO" in line for line in lines)


def test_views_that_do_not_read_each_other_are_refreshed_side_by_side(
    spark: SparkSession,
) -> None:
    names = ["one", "two", "three", "both"]
    spark.sql("CREATE TABLE kept_orders (customer STRING, amount INT) USING json")
    lag = "USING parquet TBLPROPERTIES ('changelog.lag' = '1 second') AS"
    for name in names[:3]:
        spark.sql(
            f"CREATE MATERIALIZED VIEW {name} {lag} "
            f"SELECT amount AS {name} FROM STREAM kept_orders"
        )
    spark.sql(
        f"CREATE MATERIALIZED VIEW both {lag} SELECT one, two FROM one JOIN two ON one = two"
    )
    spark.sql("INSERT INTO kept_orders VALUES ('Ada', 3), ('Ben', 4)")
    spark.conf.set("spark.sql.changelog.views.refreshThreads", 2)
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", "nightly")
    running: set[str] = set()
    seen: list[frozenset[str]] = []
    meeting = Barrier(2, timeout=60)

    class Watched(_Runner):
        def _refresh(self, view: View, lag: float) -> str:
            running.add(view.name)
            if view.name != "default.both" and len(seen) < 2:
                meeting.wait()
            seen.append(frozenset(running))
            assert spark.sparkContext.getLocalProperty("spark.scheduler.pool") == "nightly"
            line = super()._refresh(view, lag)
            running.remove(view.name)
            return line

    stop = Event()
    lines: list[str] = []

    def report(line: str) -> None:
        lines.append(line)
        if "default.both: " in line:
            stop.set()

    try:
        Watched(spark, ["default"], None, stop, report).run(0.5)
        assert spark.sql("SELECT * FROM both ORDER BY one").collect() == [(3, 3), (4, 4)]
    finally:
        spark.conf.unset("spark.sql.changelog.views.refreshThreads")
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]
        for name in reversed(names):
            spark.sql(f"DROP MATERIALIZED VIEW {name}")
        spark.sql("DROP TABLE kept_orders")
    assert max(len(names) for names in seen) == 2
    assert not any({"default.both", "default.one"} <= names for names in seen)
    assert not any({"default.both", "default.two"} <= names for names in seen)
    assert not any("failed" in line for line in lines)


@contextmanager
def kept_elsewhere(spark: SparkSession, name: str) -> Iterator[None]:
    """Mark a view as written by a query of another process."""
    rows = spark.sql(f"DESCRIBE EXTENDED MATERIALIZED VIEW {name}").collect()
    facts: dict[str, str] = {row[0]: row[1] for row in rows}
    home = Path(facts["Checkpoint"].removeprefix("file:")).parents[1]
    file = home / "lease" / "1000"
    ended = Event()

    def renew() -> None:
        holder = {"owner": "another", "process": "1@elsewhere", "since": "today", "isKept": True}
        holder |= {"hasEnded": False, "leaseMillis": 60000}
        for beats in count():
            beside = file.with_name(".beat")
            beside.write_text(json.dumps({**holder, "renewals": beats}))
            beside.replace(file)
            if ended.wait(0.2):
                return

    renewing = Thread(target=renew)
    renewing.start()
    try:
        yield
    finally:
        ended.set()
        renewing.join()
        file.unlink()


@pytest.mark.usefixtures("views")
def test_a_view_that_another_process_keeps_is_no_failure(spark: SparkSession) -> None:
    spark.sql("INSERT INTO kept_orders VALUES ('Ada', 3)")
    spark.sql("ALTER MATERIALIZED VIEW wrong UNSET TBLPROPERTIES ('changelog.lag')")
    stop = Event()
    lines: list[str] = []

    def report(line: str) -> None:
        lines.append(line)
        if "all_owed: " in line:
            stop.set()

    with kept_elsewhere(spark, "owed_first"):
        run(
            spark, databases=["default"], status="kept_status", poll=0.5, stop=stop, report=report
        )
    assert "default.owed_first: refreshed by another process" in lines
    assert not any("failed" in line for line in lines)
    states = {row.view: row for row in spark.table("kept_status").collect()}
    assert states["default.owed_first"].state == "RUNNING"
    assert states["default.owed_first"].failures == 0
    # The downstream view is still refreshed.
    assert states["default.all_owed"].state in {"WITHIN LAG", "BEHIND"}


COMMAND = (
    WITH_JAR
    + """
from spark_changelog.__main__ import main
raise SystemExit(main(sys.argv[2:]))
"""
)


@pytest.mark.parametrize("number", share.of([signal.SIGTERM, signal.SIGINT], 2, "signals"))
def test_the_command_keeps_views_until_it_is_told_to_stop(
    jar: Path, tmp_path: Path, number: signal.Signals
) -> None:
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
    }
    make = """
from pyspark.sql import SparkSession
builder = SparkSession.builder
for setting in sys.argv[3:]:
    builder = builder.config(*setting.split("=", 1))
spark = changelog.configure(builder).getOrCreate()
for statement in sys.argv[2].split(";"):
    print(spark.sql(statement).collect())
"""
    confs = [f"{name}={value}" for name, value in settings.items()]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYSPARK_PYTHON": sys.executable}

    def execute(statements: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", WITH_JAR + make, str(jar), statements, *confs],
            cwd=tmp_path,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    execute("""
        CREATE TABLE o (a INT) USING json; INSERT INTO o VALUES (1);
        CREATE MATERIALIZED VIEW v USING parquet TBLPROPERTIES ('changelog.lag' = '2 seconds')
        AS SELECT sum(a) AS s FROM STREAM o; INSERT INTO o VALUES (2)
    """)
    options = [word for conf in confs for word in ("--conf", conf)]
    command: list[str | Path] = [
        sys.executable,
        "-c",
        COMMAND,
        jar,
        "run",
        "--status-table",
        "st",
        *options,
    ]
    with (
        (tmp_path / "errors").open("w") as errors,
        subprocess.Popen(
            [*command, "--poll", "1"],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        refreshed = next((line for line in process.stdout if "default.v:" in line), None)
        assert refreshed is not None, (tmp_path / "errors").read_text()
        assert "incremental, 1 rows read" in refreshed
        # The status view is replaced at the end of a round.
        next(line for line in process.stdout if "default.v:" in line)
        process.send_signal(number)
        rest = process.stdout.read()
        assert process.wait(timeout=60) == 0, (tmp_path / "errors").read_text()
    assert rest.rstrip().endswith("stopped")
    told = execute("SELECT s FROM v; SELECT view, state FROM st")
    assert "Row(s=3)" in told
    assert "view='default.v', state=" in told
