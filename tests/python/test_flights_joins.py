# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Joins over the changes of a day of real flights: scheduled, departed, arrived, cancelled."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from flights import timetable
from flights.maintain import stream_flights
from spark_changelog import to_changelog

QUERIES = {
    "flights with the delays of their airline, where a plane was very late": """
        SELECT f.scheduled, f.carrier, f.flight, f.status, c.late
        FROM {flights} f
        LEFT JOIN (SELECT carrier, count(*) AS late FROM {flights} WHERE arr_delay > 60
                   GROUP BY carrier) c ON f.carrier = c.carrier
        WHERE f.dest IN (SELECT dest FROM {flights} WHERE arr_delay > 120)
          AND NOT EXISTS (SELECT * FROM {flights} o WHERE o.status = 'scheduled'
                          AND o.dest = f.dest AND o.origin = f.origin)
    """,
    "the flight before on the same route": """
        SELECT f.scheduled, f.carrier, f.flight, p.carrier AS other, p.dep_delay
        FROM {flights} f LEFT JOIN LATERAL (
            SELECT * FROM {flights} o
            WHERE o.origin = f.origin AND o.dest = f.dest AND o.scheduled < f.scheduled
            ORDER BY o.scheduled DESC, o.carrier, o.flight LIMIT 1) p
    """,
}


@pytest.mark.parametrize("name", QUERIES)
def test_joins_of_flights(spark: SparkSession, tmp_path: Path, name: str) -> None:
    flights = timetable.read_flights(spark, tmp_path, 1)
    timetable.write_changes(flights, tmp_path / "changes")
    rows: Counter[tuple[Any, ...]] = Counter()

    def replay(batch: DataFrame, _: int) -> None:
        for *values, kind in batch.collect():
            rows[tuple(values)] += 1 if kind in {"insert", "update_postimage"} else -1
        assert min(rows.values(), default=0) >= 0

    table = stream_flights(spark, tmp_path / "changes")
    query = (
        to_changelog(spark.sql(QUERIES[name], flights=table))
        .writeStream.foreachBatch(replay)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    final = timetable.final_table(flights)
    assert +rows == Counter(map(tuple, spark.sql(QUERIES[name], flights=final).collect()))
    assert rows
