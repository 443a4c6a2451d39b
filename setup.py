# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Builds the wheel: the Python package, with a jar for each line of Spark as package data.

``dev/build`` copies the jars and runs this script.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
JARS = ROOT / "python" / "spark_changelog" / "jars"
HOME = os.environ.get("PROJECT_URL", "")


def read_version() -> str:
    """Return the version of version.sbt, with ``.dev0`` in place of ``-SNAPSHOT``."""
    text = (ROOT / "version.sbt").read_text()
    found = re.search(r'version := "([^"]+)"', text)
    if found is None:
        raise ValueError("version.sbt has no version")
    return found[1].replace("-SNAPSHOT", ".dev0")


def read_readme(version: str) -> str:
    """Return the README, with links to the repository if ``PROJECT_URL`` is set."""
    text = (ROOT / "README.md").read_text()
    if not HOME:
        return text
    text = re.sub(r"(!\[[^]]*])\((?!http)", rf"\1({HOME}/raw/v{version}/", text)
    return re.sub(r"]\((?!http|#)", f"]({HOME}/blob/v{version}/", text)


def lines_of_spark() -> list[str]:
    """Return the lines of Spark with a jar, the lowest first."""
    session = (ROOT / "python" / "spark_changelog" / "session.py").read_text()
    main = re.search(r'MAIN_LINE = "([^"]+)"', session)
    if main is None:
        raise ValueError("session.py has no MAIN_LINE")
    jars = " ".join(jar.name for jar in JARS.glob("*.jar"))
    lines = re.findall(r"spark-changelog(?:_([\d.]+))?_2\.13-", jars)
    known = {line or main[1] for line in lines} or {main[1]}
    return sorted(known, key=lambda line: [int(number) for number in line.split(".")])


def pyspark(extra: str = "") -> str:
    """Return the requirement of PySpark, from the lines of the jars."""
    lines = lines_of_spark()
    major, minor = lines[-1].split(".")
    return f"pyspark{extra}>={lines[0]},<{major}.{int(minor) + 1}"


class BuildWithJars(build_py):
    """A build that fails unless the package has one jar for each line of Spark."""

    def run(self) -> None:
        """Check, then build."""
        jars = sorted(jar.name for jar in JARS.glob("*.jar"))
        if len(jars) != len(lines_of_spark()):
            found = jars or "none"
            raise SystemExit(f"expected one jar per line in {JARS}, found {found}: run dev/build")
        super().run()


setup(
    name="spark-changelog",
    version=read_version(),
    url=HOME or None,
    description="Keep the result of any Spark query current while its inputs change.",
    long_description=read_readme(read_version()),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.10",
    package_dir={"": "python"},
    packages=find_packages("python"),
    package_data={"spark_changelog": ["py.typed", "jars/*.jar"]},
    install_requires=[pyspark()],
    extras_require={"connect": [pyspark("[connect]")]},
    entry_points={
        "console_scripts": ["spark-changelog = spark_changelog.__main__:main"],
        "pytest11": ["spark_changelog = spark_changelog.testing.plugin"],
    },
    cmdclass={"build_py": BuildWithJars},
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Developers",
        "Programming Language :: Python :: 3",
        "Programming Language :: Scala",
        "Topic :: Database",
        "Typing :: Typed",
    ],
)
