# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The pictures of `explain`, opened in a browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_changelog import explain, from_changelog, to_changelog

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

Look = Callable[..., dict[str, Any]]

LOOK = Path(__file__).with_name("look_at_pictures.js").read_text()


@pytest.fixture(scope="module")
def browser() -> str:
    for name in BROWSERS:
        path = shutil.which(name)
        if path is not None:
            return path
    pytest.skip(f"no browser is installed: none of {', '.join(BROWSERS)}")


@pytest.fixture
def look(browser: str, tmp_path: Path) -> Look:
    """Return a function to open a page in a browser, light or dark, and find its errors."""

    def look(page: str, width: int = 1200, dark: bool = False) -> dict[str, Any]:
        path = tmp_path / "page.html"
        path.write_text(page.replace("</body>", f"<script>{LOOK}</script></body>"))
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        options += ["--disable-background-networking", "--disable-component-update"]
        options += ["--disable-sync", f"--user-data-dir={tmp_path / 'profile'}"]
        options += [
            f"--window-size={width},900",
            f"--blink-settings=preferredColorScheme={1 - dark}",
        ]
        done = subprocess.run(
            [browser, *options, "--dump-dom", path.as_uri()],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        text = re.search(r'<pre id="found">(.*?)</pre>', done.stdout)
        assert text is not None, done.stderr
        found: dict[str, Any] = json.loads(html.unescape(text.group(1)))
        return found

    return look


@pytest.fixture
def totals(spark: SparkSession, feed: Callable[[str], Path]) -> DataFrame:
    schema = "op STRING, id INT, city STRING, fare INT, other INT, at TIMESTAMP"
    raw = spark.readStream.schema(schema).json(str(feed("")))
    from_changelog(raw, change_type="op", key="id").createOrReplaceTempView("rides")
    return spark.sql("SELECT city, sum(fare) AS total FROM rides GROUP BY city")


@pytest.fixture
def large(spark: SparkSession, totals: DataFrame) -> DataFrame:
    return spark.sql("""
        SELECT a.city AS `這個城市的名字`, count(*) AS c, max(b.fare) AS m,
          sum(CASE WHEN a.fare > 10 AND b.fare < 20 THEN a.fare * b.fare ELSE a.fare - 1 END) AS s
        FROM rides a JOIN rides b ON a.other = b.id LEFT JOIN rides d ON b.fare > d.fare
        WHERE a.city NOT IN (SELECT city FROM rides WHERE fare < 0) AND a.city <> '<&">'
        GROUP BY a.city
        UNION ALL
        SELECT city, n, total, 0 FROM (
          SELECT city, 1 AS n, fare AS total,
            row_number() OVER (PARTITION BY city ORDER BY fare DESC) AS r FROM rides)
        WHERE r <= 3""")


def test_nothing_overlaps_and_nothing_is_cut(
    look: Look, totals: DataFrame, large: DataFrame
) -> None:
    for df in totals, large:
        page = explain(df, format="html")
        found = look(page)
        assert found["wrong"] == []
        assert found["loaded"] == 0
        assert found["boxes"] > 5
        assert found["lines"] > found["boxes"]
    # errors on purpose, to test the search for errors
    small = page.replace('class="box', 'transform="scale(0.9)" class="box')
    assert any("sticks out" in wrong for wrong in look(small)["wrong"])
    pale = page.replace("--changelog-quiet: #475569", "--changelog-quiet: #cbd5e1")
    assert any("hard to read" in wrong for wrong in look(pale)["wrong"])


def test_pages_can_be_dark_and_narrow(
    look: Look, large: DataFrame, query: StreamingQuery
) -> None:
    for shown in large, query:
        page = explain(shown, format="html")
        for width in 1200, 480:
            for dark in False, True:
                found = look(page, width, dark)
                assert found["wrong"] == [], f"{width} wide, dark: {dark}"
                assert (found["paper"] == "rgb(255, 255, 255)") != dark
    # Notebooks and Spark's UI set an attribute for light or dark.
    for said, dark in ("data-bs-theme='light'", False), ("data-bs-theme='dark'", True):
        themed = explain(large, format="html").replace("<html", f"<html {said}", 1)
        found = look(themed, dark=not dark)
        assert found["wrong"] == []
        assert (found["paper"] == "rgb(255, 255, 255)") != dark


@pytest.fixture
def query(totals: DataFrame, feed: Callable[[str], Path]) -> Iterator[StreamingQuery]:
    writer = to_changelog(totals).writeStream.queryName("totals")
    query = writer.foreachBatch(lambda batch, _: print(batch.collect())).start()
    feed('{"op": "+I", "id": 1, "city": "Oslo", "fare": 3}\n')
    query.processAllAvailable()
    while query.status["isTriggerActive"]:
        time.sleep(0.01)  # the progress report comes after the end of the batch
    yield query
    query.stop()


def test_a_query_that_runs_is_drawn_with_its_numbers(look: Look, query: StreamingQuery) -> None:
    page = explain(query, format="html")
    assert "<h1>Query totals</h1>" in page
    assert "in 1, out +I 1 (churn 1.00)" in page
    assert look(page)["wrong"] == []


def test_a_notebook_shows_the_picture(
    totals: DataFrame, query: StreamingQuery, capsys: pytest.CaptureFixture[str]
) -> None:
    for shown in totals, query:
        text = explain(shown)
        assert capsys.readouterr().out.strip() == text.strip()
        assert "ChangelogAggregate" in text
        picture = text._repr_html_()
        assert "<svg" in picture
        assert "</svg>" in picture
        assert "ChangelogAggregate" in picture
    assert "out +I 1" in picture


def test_a_running_query_as_a_tree(query: StreamingQuery) -> None:
    tree = explain(query, format="json")
    assert tree["query"]["name"] == "totals"
    aggregate = tree["children"][0]
    assert aggregate["numbers"]["inserts"] == 1
    assert aggregate["numbers"]["churn"] == 1.0
    assert aggregate["numbers"]["stateRows"] == 1
