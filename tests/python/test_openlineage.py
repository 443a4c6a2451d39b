# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""OpenLineage reports the tables of a refresh, as ``docs/monitoring.md`` says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pages import sections
from processes import ROOT, run_script
from spark_changelog.session import MAIN_LINE, spark_line

PAGE = sections("monitoring")["Lineage with OpenLineage"]
BUILD = (ROOT / "project" / "Dependencies.scala").read_text()
DELTA = re.findall(r'delta-spark_.+_2\.13" % "([^"]+)"', BUILD)[0]

SCRIPT = """
import json
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[2]")
for name, value in json.loads(pathlib.Path("settings.json").read_text()).items():
    builder = builder.config(name, value)
spark = changelog.configure(builder).getOrCreate()
events = pathlib.Path("lineage.json")
for number, statement in enumerate(json.loads(pathlib.Path("statements.json").read_text())):
    before = len(events.read_text().splitlines()) if events.exists() else 0
    spark.sql(statement).collect()
    spark._jsc.sc().listenerBus().waitUntilEmpty()
    lines = events.read_text().splitlines() if events.exists() else []
    pathlib.Path(f"events-{number}.json").write_text("\\n".join(lines[before:]))
spark.stop()
"""


class Lineage:
    """The datasets of the events of one statement."""

    def __init__(self, folder: Path, events: list[dict[str, Any]]) -> None:
        def name(dataset: dict[str, Any]) -> str:
            return str(Path(dataset["name"]).relative_to(folder / "warehouse"))

        writing = [event for event in events if event["outputs"]]
        self.inputs = {name(dataset) for event in events for dataset in event["inputs"]}
        self.outputs = {name(dataset) for event in writing for dataset in event["outputs"]}
        self.columns = {
            (column, name(source), source["field"])
            for event in writing
            for dataset in event["outputs"]
            for column, lineage in dataset["facets"]
            .get("columnLineage", {"fields": {}})["fields"]
            .items()
            for source in lineage["inputFields"]
        }


def lineage_of(folder: Path, jar: Path, provider: str) -> list[Lineage]:
    """Run the page's statements in a session with the page's settings."""
    settings = dict(line.split(maxsplit=1) for line in PAGE.of("properties")[0].splitlines())
    settings["spark.openlineage.transport.location"] = str(folder / "lineage.json")
    settings["spark.sql.warehouse.dir"] = str(folder / "warehouse")
    settings["spark.ui.enabled"] = "false"
    settings["spark.sql.shuffle.partitions"] = "1"
    if provider == "delta":
        settings["spark.jars.packages"] += f",io.delta:delta-spark_{MAIN_LINE}_2.13:{DELTA}"
        settings["spark.sql.extensions"] = "io.delta.sql.DeltaSparkSessionExtension"
        catalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        settings["spark.sql.catalog.spark_catalog"] = catalog
    statements = [text.replace("USING delta", f"USING {provider}") for text in PAGE.statements()]
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "statements.json").write_text(json.dumps(statements))
    run_script(SCRIPT, jar, folder)
    found = []
    for number in range(len(statements)):
        lines = (folder / f"events-{number}.json").read_text().splitlines()
        found.append(Lineage(folder, [json.loads(line) for line in lines]))
    return found


@pytest.mark.skipif(spark_line() != MAIN_LINE, reason="the page is for the main line")
@pytest.mark.parametrize("provider", ["delta", "parquet"])
def test_a_refresh_is_reported_with_its_inputs_outputs_and_columns(
    jar: Path, tmp_path: Path, provider: str
) -> None:
    _, create, _, first, _, second, full = lineage_of(tmp_path, jar, provider)
    columns = {("customer", "orders", "customer"), ("total", "orders", "amount")}
    for lineage in create, full:
        assert "orders" in lineage.inputs
        assert columns <= lineage.columns
        written = {name.split("/")[0] for name in lineage.outputs}
        assert written == {"totals"}
    if provider == "delta":
        assert create.outputs == full.outputs == {"totals"}
    for lineage in first, second:
        assert "orders" in lineage.inputs
        # OpenLineage does not know the sinks of views, only Spark's own writes below the sink.
        snapshots = [name for name in lineage.outputs if re.fullmatch("totals/.+/rows/.+", name)]
        assert len(lineage.outputs) == len(snapshots) == (0 if provider == "delta" else 1)
