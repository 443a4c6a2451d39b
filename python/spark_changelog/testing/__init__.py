# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Tests queries over changes: what they emit, and that it is what batch Spark answers.

After each batch the changes that a query has emitted so far, replayed into an empty table, must
make the rows that batch Spark answers to the same query over everything that has arrived. `check`
takes a query, its inputs and the changes that it must emit as text; `check_query` takes a query
as SQL or as a function of data frames, and compares without any changes being written. Both run
it as it is written, and then cut into other batches at random, with restarts.

pytest finds the fixtures ``changelog_session``, a session to test in, and ``changelog_check``
and ``changelog_check_query``, which check in it.

Examples
--------
>>> emitted = check(spark, '''
...     feed rides(city STRING, fare INT)
...     query SELECT city, max(fare) AS highest FROM rides GROUP BY city
...     rides +I Oslo 5
...     -> +I Oslo 5
...     rides +I Oslo 3
...     rides -D Oslo 5
...     -> -U Oslo 5
...     -> +U Oslo 3
... ''')
"""

from __future__ import annotations

from spark_changelog.testing._changes import Change
from spark_changelog.testing._checks import check, check_query
from spark_changelog.testing._feeds import Batch, Feed
from spark_changelog.testing._replay import ChangelogError
from spark_changelog.testing._scenario import Scenario, Step

__all__ = [
    "Batch",
    "Change",
    "ChangelogError",
    "Feed",
    "Scenario",
    "Step",
    "check",
    "check_query",
]
