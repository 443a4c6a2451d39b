# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The dbt package keeps models up to date, run by dbt itself: ``dev/dbt`` runs this."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
PROJECT = Path(__file__).parent / "project"


class Shop:
    """A dbt project in a folder of its own."""

    def __init__(self, folder: Path, jar: Path) -> None:
        self.project = folder / "project"
        shutil.copytree(PROJECT, self.project)
        settings = {
            "spark.master": "local[2]",
            "spark.jars": str(jar),
            "spark.sql.extensions": "io.sparkchangelog.ChangelogExtensions",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.hadoop.javax.jdo.option.ConnectionURL": (
                f"jdbc:derby:;databaseName={folder}/metastore;create=true"
            ),
            "spark.ui.enabled": "false",
        }
        output = {"type": "spark", "method": "session", "host": "NA", "schema": "shop"}
        output = {**output, "threads": 4, "server_side_parameters": settings}
        profiles = {"shop": {"target": "dev", "outputs": {"dev": output}}}
        (self.project / "profiles.yml").write_text(json.dumps(profiles))
        packages = {"packages": [{"local": str(ROOT / "dbt")}]}
        (self.project / "packages.yml").write_text(json.dumps(packages))
        self.settings = settings

    @cached_property
    def spark(self) -> SparkSession:
        """The session in which dbt runs its statements in this process."""
        builder = SparkSession.builder.enableHiveSupport()
        for name, value in self.settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        return session

    @property
    def options(self) -> list[str]:
        """Where dbt finds everything."""
        folder = str(self.project)
        return ["--project-dir", folder, "--profiles-dir", folder, "--no-use-colors"]

    def dbt(self, *command: str, succeeds: bool = True) -> dict[str, Any]:
        """Run dbt in this process, and return the result of each node by its name."""
        result = dbtRunner().invoke([*command, *self.options])
        assert result.success == succeeds, result.exception or result.result
        nodes = getattr(result.result, "results", None) or []
        return {node.node.name: node for node in nodes}

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return what a query gives, in order."""
        return sorted(tuple(row) for row in self.spark.sql(query).collect())

    def modes(self, view: str) -> list[str]:
        """Return how a view was refreshed, the newest first."""
        return [row.mode for row in self.spark.sql(f"SHOW REFRESHES OF shop.{view}").collect()]

    def replace(self, model: str, old: str, new: str) -> None:
        """Write something else into a model."""
        path = self.project / "models" / f"{model}.sql"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Make the project, and build a table of three rides and its views, in another process."""
    jars = list((ROOT / "target" / "scala-2.13").glob("spark-changelog_2.13-*[0-9T].jar"))
    assert len(jars) == 1, jars
    shop = Shop(tmp_path_factory.mktemp("shop"), jars[0])
    for command in "deps", "build":
        dbt = str(Path(sys.executable).with_name("dbt"))
        done = subprocess.run([dbt, command, *shop.options], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
    assert "PASS=7 " in done.stdout, done.stdout  # a seed, three models, three tests
    yield shop
    shop.spark.stop()


def test_the_first_run_makes_the_views(shop: Shop) -> None:
    assert shop.rows("SELECT * FROM shop.totals") == [("Oslo", 2, 7), ("Rome", 1, 1)]
    assert shop.rows("SELECT * FROM shop.sizes") == [(1, 1), (2, 1)]
    assert shop.rows("SELECT * FROM shop.dear") == [("Oslo", 5)]
    described = {
        name: text for name, text, _ in shop.spark.sql("DESCRIBE EXTENDED shop.totals").collect()
    }
    assert described["Comment"] == "What each city's rides bring"


def test_the_next_run_reads_what_has_changed(shop: Shop) -> None:
    shop.spark.sql("INSERT INTO shop.rides VALUES ('Rome', 9), ('Bern', 3)")
    ran = shop.dbt("run")
    assert shop.rows("SELECT * FROM shop.totals") == [
        ("Bern", 1, 3),
        ("Oslo", 2, 7),
        ("Rome", 2, 10),
    ]
    assert shop.rows("SELECT * FROM shop.sizes") == [(1, 1), (2, 2)]
    assert shop.rows("SELECT * FROM shop.dear") == [("Oslo", 5), ("Rome", 9)]
    assert {shop.modes(view)[0] for view in ("totals", "sizes", "dear")} == {"incremental"}
    # The models that do not read each other are refreshed side by side.
    times = {name: node.timing[-1] for name, node in ran.items()}
    assert times["dear"].started_at < times["totals"].completed_at
    assert times["totals"].started_at < times["dear"].completed_at
    assert times["sizes"].started_at > times["totals"].completed_at
    assert [node.status for node in shop.dbt("test").values()] == ["pass"] * 3


def test_the_test_finds_a_row_that_should_not_be_there(shop: Shop) -> None:
    file = shop.rows("SELECT DISTINCT input_file_name() FROM shop.totals")[0][0]
    folder = file.rpartition("/")[0]
    extra = shop.spark.sql("SELECT 'Kyiv' AS city, 1L AS rides, 4L AS total")
    extra.write.mode("append").parquet(folder)
    shop.spark.catalog.refreshByPath(folder)
    failed = shop.dbt("test", "--select", "totals", succeeds=False)
    assert [node.failures for node in failed.values()] == [1]
    shop.dbt("run", "--full-refresh", "--select", "totals")
    assert shop.modes("totals")[0] == "full"
    shop.dbt("test", "--select", "totals")


def test_other_properties_are_set_and_taken_away(shop: Shop) -> None:
    shop.replace("totals", "'5 minutes'", "'10 minutes', 'team': 'rides'")
    before = shop.modes("totals")
    shop.dbt("run", "--select", "totals")
    properties = dict(shop.rows("SHOW TBLPROPERTIES shop.totals"))
    assert (properties["changelog.lag"], properties["team"]) == ("10 minutes", "rides")
    assert shop.modes("totals") == ["incremental", *before]
    shop.replace("totals", ", 'team': 'rides'", "")
    shop.dbt("run", "--select", "totals")
    assert "team" not in dict(shop.rows("SHOW TBLPROPERTIES shop.totals"))


@pytest.mark.parametrize(("policy", "succeeds"), [("fail", False), ("continue", True)])
def test_another_query_can_be_held_up(shop: Shop, policy: str, succeeds: bool) -> None:
    path = shop.project / "models" / "sizes.sql"
    text = path.read_text()
    shop.replace("sizes", "file_format=", f"on_configuration_change='{policy}', file_format=")
    shop.replace("sizes", "AS cities", "AS towns")
    shop.dbt("run", "--select", "sizes", succeeds=succeeds)
    assert shop.spark.table("shop.sizes").columns == ["rides", "cities"]
    path.write_text(text)


def test_another_query_replaces_the_view(shop: Shop) -> None:
    shop.replace("sizes", "AS cities", "AS towns")
    shop.dbt("run", "--select", "sizes")
    assert shop.spark.table("shop.sizes").columns == ["rides", "towns"]
    shop.dbt("test", "--select", "sizes")


def test_an_incremental_model_becomes_a_view(shop: Shop) -> None:
    path = shop.project / "models" / "plain.sql"
    query = "SELECT max(fare) AS most FROM {{ ref('rides') }}"
    path.write_text(
        "{{ config(materialized='incremental', incremental_strategy='append', "
        "file_format='parquet') }}\n"
        f"{query}\n"
        "{% if is_incremental() %} WHERE fare > (SELECT max(most) FROM {{ this }}) {% endif %}"
    )
    shop.dbt("run", "--select", "plain")
    views = shop.spark.sql("SHOW MATERIALIZED VIEWS IN shop").collect()
    assert "plain" not in {row.name for row in views}
    path.write_text(
        f"{{{{ config(materialized='materialized_view', file_format='parquet') }}}}\n{query}"
    )
    shop.dbt("run", "--select", "plain")
    assert shop.rows("SELECT * FROM shop.plain") == shop.rows("SELECT max(fare) FROM shop.rides")
    shop.spark.sql("INSERT INTO shop.rides VALUES ('Oslo', 100)")
    shop.dbt("run", "--select", "plain")
    assert shop.rows("SELECT * FROM shop.plain") == [(100,)]
    assert shop.modes("plain")[0] == "incremental"
