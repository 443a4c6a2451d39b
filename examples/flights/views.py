# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The views that are maintained, as SQL over the table ``flights``."""

from __future__ import annotations

from pyspark.sql import DataFrame

# How each airline does. Flights that have not landed yet count, but have no delay.
CARRIERS = """
    SELECT carrier, count(*) AS flights, count(arr_delay) AS landed,
           avg(arr_delay) AS average, min(arr_delay) AS earliest, max(arr_delay) AS latest
    FROM {flights} GROUP BY carrier
"""

# How many routes have how many flights, in steps of powers of two: one aggregate over another.
ROUTES = """
    SELECT at_least, count(*) AS routes, sum(flights) AS flights
    FROM (SELECT shiftleft(1, CAST(floor(log2(flights)) AS INT)) AS at_least, flights
          FROM (SELECT origin, dest, count(*) AS flights FROM {flights} GROUP BY origin, dest))
    GROUP BY at_least
"""

# How each day went: the source of the picture.
DAYS = """
    SELECT date(scheduled) AS day, count(*) AS flights, count(arr_delay) AS landed,
           avg(dep_delay) AS departure_delay, avg(arr_delay) AS arrival_delay
    FROM {flights} GROUP BY 1
"""


def view(sql: str, flights: DataFrame) -> DataFrame:
    """Run one of the views over a table of flights, streaming or not."""
    return flights.sparkSession.sql(sql, flights=flights)
