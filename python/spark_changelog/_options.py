# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Spark options set by the user: in the defaults file, submit arguments or the builder."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home


def append_option(current: str | None, value: str) -> str:
    """Add ``value`` to a comma-separated option and keep the user's entries.

    Examples
    --------
    >>> append_option(None, "b")
    'b'
    >>> append_option("a", "b")
    'a,b'
    >>> append_option("a,b", "b")
    'a,b'
    """
    entries = [entry.strip() for entry in (current or "").split(",") if entry.strip()]
    return ",".join(entries if value in entries else [*entries, value])


def default_setting(name: str) -> str | None:
    """Return the value of ``name`` in ``spark-defaults.conf``; builder settings override it."""
    folder = os.environ.get("SPARK_CONF_DIR") or Path(_find_spark_home()) / "conf"
    path = Path(folder) / "spark-defaults.conf"
    if not path.is_file():
        return None
    return parse_properties(path.read_text()).get(name)


def parse_properties(text: str) -> dict[str, str]:
    r"""Read the lines of a ``spark-defaults.conf``.

    Examples
    --------
    >>> parse_properties("# ours\nspark.jars  a.jar,b.jar\nspark.x=1\n")
    {'spark.jars': 'a.jar,b.jar', 'spark.x': '1'}
    """
    settings = {}
    for line in map(str.strip, text.splitlines()):
        if line and line[0] not in "#!":
            key, _, value = line.replace("=", " ", 1).partition(" ")
            settings[key] = value.strip()
    return settings


def add_submit_option(arguments: str, name: str, value: str) -> str:
    """Add the option ``name``, not set in ``arguments`` so far.

    Examples
    --------
    >>> add_submit_option("--name 'my app' pyspark-shell", "spark.x", "1")
    "--name 'my app' --conf spark.x=1 pyspark-shell"
    """
    words = shlex.split(arguments)
    return shlex.join([*words[:-1], "--conf", f"{name}={value}", *words[-1:]])


def sets_option(arguments: str, name: str) -> bool:
    """Tell whether ``arguments`` set the option ``name``.

    Examples
    --------
    >>> sets_option("--conf spark.x=1 pyspark-shell", "spark.x")
    True
    >>> sets_option("--jars a.jar pyspark-shell", "spark.jars")
    True
    >>> sets_option("--conf spark.x=1 pyspark-shell", "spark.jars")
    False
    """
    words = shlex.split(arguments)
    is_named = any(word.startswith(f"{name}=") for word in words)
    return is_named or (name == "spark.jars" and "--jars" in words)


def extend_submit_args(arguments: str, name: str, value: str) -> str:
    """Append ``value`` to the option ``name`` if ``arguments`` set the option.

    Examples
    --------
    >>> extend_submit_args("--jars a.jar pyspark-shell", "spark.jars", "b.jar")
    '--jars a.jar,b.jar pyspark-shell'
    >>> extend_submit_args("--conf spark.jars=a.jar pyspark-shell", "spark.jars", "b.jar")
    '--conf spark.jars=a.jar,b.jar pyspark-shell'
    >>> extend_submit_args("--name 'my app' pyspark-shell", "spark.jars", "b.jar")
    "--name 'my app' pyspark-shell"
    """
    words = shlex.split(arguments)
    for position, flag in enumerate(words[:-1]):
        following = words[position + 1]
        if flag == "--jars" and name == "spark.jars":
            words[position + 1] = append_option(following, value)
        elif flag in ("--conf", "-c") and following.startswith(f"{name}="):
            current = following.removeprefix(f"{name}=")
            words[position + 1] = f"{name}={append_option(current, value)}"
    return shlex.join(words)
