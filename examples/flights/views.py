# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The views, as SQL over the table ``flights``."""

from __future__ import annotations

from pyspark.sql import DataFrame

# The delays of each airline. Flights before their landing count, but have no delay.
CARRIERS = """
    SELECT carrier, count(*) AS flights, count(arr_delay) AS landed,
           avg(arr_delay) AS average, min(arr_delay) AS earliest, max(arr_delay) AS latest
    FROM {flights} GROUP BY carrier
"""

# The routes by number of flights, in powers of two: an aggregate over an aggregate.
ROUTES = """
    SELECT at_least, count(*) AS routes, sum(flights) AS flights
    FROM (SELECT shiftleft(1, CAST(floor(log2(flights)) AS INT)) AS at_least, flights
          FROM (SELECT origin, dest, count(*) AS flights FROM {flights} GROUP BY origin, dest))
    GROUP BY at_least
"""

# The delays of each day, drawn in the picture.
DAYS = """
    SELECT date(scheduled) AS day, count(*) AS flights, count(arr_delay) AS landed,
           avg(dep_delay) AS departure_delay, avg(arr_delay) AS arrival_delay
    FROM {flights} GROUP BY 1
"""


def view(sql: str, flights: DataFrame) -> DataFrame:
    """Run one of the views over a table of flights, streaming or not."""
    return flights.sparkSession.sql(sql, flights=flights)
