# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Keep the result of any Spark query current while its inputs change.

Examples
--------
>>> import spark_changelog as changelog
>>> [name for name in changelog.__all__ if name.startswith("from_c")]
['from_canal', 'from_changelog']
"""

from __future__ import annotations

from importlib.metadata import version

from spark_changelog.conf import ChangelogConf
from spark_changelog.doctor import doctor
from spark_changelog.dry_run import dry_run
from spark_changelog.evolution import evolve, rescale
from spark_changelog.explain import explain
from spark_changelog.forks import (
    compare,
    create_savepoint,
    drop_savepoint,
    fork,
    fork_view,
    restore,
    savepoints,
    swap,
)
from spark_changelog.functions import from_changelog, lookup, to_changelog
from spark_changelog.lineage import why
from spark_changelog.records import (
    from_canal,
    from_debezium,
    from_goldengate,
    from_maxwell,
    from_upsert_kafka,
)
from spark_changelog.run import run
from spark_changelog.session import configure
from spark_changelog.sinks import Batch, sink, statement_set
from spark_changelog.views import auto_cdc, refresh, verify

__version__: str = version("spark-changelog")
"""The version of the package and of the jar inside the package."""

__all__ = [
    "Batch",
    "ChangelogConf",
    "auto_cdc",
    "compare",
    "configure",
    "create_savepoint",
    "doctor",
    "drop_savepoint",
    "dry_run",
    "evolve",
    "explain",
    "fork",
    "fork_view",
    "from_canal",
    "from_changelog",
    "from_debezium",
    "from_goldengate",
    "from_maxwell",
    "from_upsert_kafka",
    "lookup",
    "refresh",
    "rescale",
    "restore",
    "run",
    "savepoints",
    "sink",
    "statement_set",
    "swap",
    "to_changelog",
    "verify",
    "why",
]
