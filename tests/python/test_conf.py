# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""`ChangelogConf` has every setting below spark.sql.changelog, with the right type."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_changelog import ChangelogConf
from spark_changelog.conf import Entry

PREFIX = "spark.sql.changelog."


@pytest.fixture
def conf(spark: SparkSession) -> ChangelogConf:
    return ChangelogConf(spark.newSession())


def test_every_setting_is_an_attribute(spark: SparkSession) -> None:
    listed = {
        row["key"] for row in spark.sql("SET -v").collect() if row["key"].startswith(PREFIX)
    }
    assert {entry.key for entry in ChangelogConf.entries().values()} == {
        key for key in listed if key.startswith(PREFIX)
    }


def test_the_documentation_is_the_same(spark: SparkSession) -> None:
    listed = {row["key"]: row["meaning"] for row in spark.sql("SET -v").collect()}
    for entry in ChangelogConf.entries().values():
        assert entry.__doc__ == listed[entry.key]


@pytest.mark.parametrize("name", ChangelogConf.entries())
def test_every_setting_reads_back_what_it_was_given(conf: ChangelogConf, name: str) -> None:
    default = getattr(conf, name)
    setattr(conf, name, default)
    assert getattr(conf, name) == default
    is_set = conf.spark.conf.get(ChangelogConf.entries()[name].key) is not None
    assert is_set == (default is not None)


def test_switches_are_booleans(conf: ChangelogConf) -> None:
    conf.share_equal_parts = False
    assert conf.share_equal_parts is False
    assert conf.spark.conf.get(f"{PREFIX}shareEqualParts.enabled") == "false"
    conf.reset("share_equal_parts")
    assert conf.share_equal_parts is True


def test_a_value_that_is_not_allowed_is_refused(conf: ChangelogConf) -> None:
    with pytest.raises(PySparkException):
        conf.unmatched_retraction = "shrug"


def test_the_class_gives_the_entry_itself() -> None:
    assert isinstance(ChangelogConf.share_equal_parts, Entry)
    assert ChangelogConf.share_equal_parts.__doc__


def test_the_number_of_partitions_may_be_set_and_taken_back(conf: ChangelogConf) -> None:
    assert conf.state_partitions is None
    conf.state_partitions = 3
    assert conf.state_partitions == 3
    conf.state_partitions = None
    assert conf.state_partitions is None
