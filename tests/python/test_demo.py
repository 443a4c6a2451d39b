# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The demo runs, finds correct views, and reports wrong views."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from rich.console import Console

from flights import report, timetable
from flights.__main__ import main, parse
from flights.current_table import CurrentTable
from flights.maintain import Run
from flights.picture import Day, follow
from flights.verify import Verdict, compare, count_rows, replay
from processes import ROOT, run


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "out"
    lines = run([ROOT / "dev" / "demo", "--days", "1", "--out", out], ROOT).splitlines()
    assert any(line.startswith("ToChangelog retract") for line in lines)
    assert "VERIFY MATERIALIZED VIEW airlines: 0 rows differ" in lines
    verdicts = [line for line in lines if line.endswith(" equal")]
    names = ["carriers", "carriers, current", "routes", "days"]
    assert [line.split("  ")[0] for line in verdicts] == names
    assert (out / "delays.png").read_bytes().startswith(b"\x89PNG")


def test_it_empties_only_its_own_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("the only copy")
    assert main(["--out", str(tmp_path)]) == 2
    assert "has files" in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").exists()


def test_the_whole_year_is_365_days() -> None:
    assert parse(["--whole-year"]).days == 365


@pytest.mark.parametrize("days", ["0", "366"])
def test_the_year_has_its_limits(days: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--days", days])
    assert "--days takes 1 to 365" in capsys.readouterr().err


def test_the_changes_lead_to_the_final_table(spark: SparkSession, tmp_path: Path) -> None:
    flights = timetable.read_flights(spark, tmp_path, 2)
    days = timetable.write_changes(flights, tmp_path / "changes")
    assert days == [date(2012, 12, 31), *(date(2013, 1, day) for day in (1, 2, 3))]
    signs = "CASE WHEN op LIKE '+%' THEN 1 ELSE -1 END"
    left = spark.sql(
        f"SELECT * EXCEPT (op), sum({signs}) AS times FROM {{changes}} GROUP BY ALL "
        "HAVING times <> 0",
        changes=spark.read.parquet(str(tmp_path / "changes")),
    )
    assert left.where("times <> 1").isEmpty()
    final = timetable.final_table(flights)
    assert Counter(left.select(*final.columns).collect()) == Counter(final.collect())


def test_every_evening_s_retractions_fit(spark: SparkSession, tmp_path: Path) -> None:
    flights = timetable.read_flights(spark, tmp_path, 1)
    present: Counter[Row] = Counter()
    for day in timetable.write_changes(flights, tmp_path / "changes"):
        changes = spark.read.parquet(str(tmp_path / "changes" / f"{day}.parquet"))
        came = Counter(changes.where("op LIKE '+%'").drop("op").collect())
        went = Counter(changes.where("op LIKE '-%'").drop("op").collect())
        assert not went - (present + came)
        present = present + came - went


def test_a_repeated_batch_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = CurrentTable(tmp_path / "table.json", key="carrier")
    schema = "carrier STRING, flights INT, _change_type STRING"
    first = spark.createDataFrame([("UA", 1, "insert"), ("AA", 2, "insert")], schema)
    second = spark.createDataFrame([("UA", 3, "update_postimage"), ("AA", 2, "delete")], schema)
    table.merge(first, 0)
    table.merge(second, 1)
    assert table.rows() == [{"carrier": "UA", "flights": 3}]
    for batch_id, batch in enumerate([first, second]):
        CurrentTable(table.path, table.key).merge(batch, batch_id)
    assert table.rows() == [{"carrier": "UA", "flights": 3}]


def test_a_wrong_row_is_seen(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    expected = spark.createDataFrame([("UA", 3)], "carrier STRING, flights INT")
    right = compare(count_rows([{"flights": 3, "carrier": "UA"}], expected.columns), expected)
    assert right.equal
    wrong = compare(replay([Row(carrier="UA", flights=2, _change_type="insert")]), expected)
    assert wrong == Verdict(1, Counter([("UA", 2)]), Counter([("UA", 3)]))
    assert not compare(replay([]), expected).equal
    assert not compare(
        replay([Row(carrier="UA", flights=3, _change_type="delete")]), expected
    ).equal
    report.verdicts(Console(), {"carriers": Run(1, 1, 1.0)}, {"carriers": wrong})
    assert "carriers: only in the view: ('UA', 2)" in capsys.readouterr().out


def test_the_picture_shows_what_was_known_when() -> None:
    first, second = date(2013, 1, 1), date(2013, 1, 2)
    columns = Row("day", "flights", "arrival_delay", "_change_type")
    days = follow(
        {
            date(2012, 12, 31): [columns(first, 10, None, "insert")],
            first: [
                columns(first, 10, None, "update_preimage"),
                columns(first, 8, 5.0, "update_postimage"),
            ],
            second: [columns(first, 8, 7.5, "update_postimage")],
        }
    )
    assert days == [Day(first, planned=10, that_evening=5.0, finally_=7.5, flown=8)]
    assert days[0].cancelled == 2
