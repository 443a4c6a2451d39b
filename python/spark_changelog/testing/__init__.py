# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""A test kit for queries over changing tables.

After each batch, the test replays the emitted changes into an empty table. The rows must equal
the result of the query in batch Spark, over the changes delivered so far.

- `check` takes a text with the query, the input changes and the expected changes.
- `check_query` takes a query as SQL or as a function of data frames, and compares with batch
  Spark only.

Both functions run the query over the batches as written. Then they divide the same changes into
batches at random and run the query again, with restarts.

pytest finds three fixtures: ``changelog_session``, a session for tests, and ``changelog_check``
and ``changelog_check_query``, the two functions in this session.

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
