# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""An Airflow DAG that refreshes the views of a database every 15 minutes, and verifies a view.

For Airflow 2.4 or newer, with Spark's commands on the workers. If the refresh of a view fails,
the unrelated views are still refreshed. The task fails with the names of the failed views.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow import DAG
from airflow.operators.bash import BashOperator

SPARK_SQL = "spark-sql --properties-file /etc/spark/views.conf -S"

with DAG(
    "views",
    schedule="*/15 * * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,  # a refresh reads every change since the last refresh
    max_active_runs=1,  # one process refreshes a view at a time
    default_args={"retries": 2, "retry_delay": timedelta(minutes=1)},
):
    refresh = BashOperator(
        task_id="refresh",
        bash_command=f'{SPARK_SQL} -e "REFRESH MATERIALIZED VIEWS IN shop"',
    )
    verify = BashOperator(
        task_id="verify",
        bash_command=(
            f'test -z "$({SPARK_SQL} -e '
            "'VERIFY MATERIALIZED VIEW shop.totals SAMPLE 10 PERCENT'"
            ')"'
        ),
    )
    refresh >> verify
