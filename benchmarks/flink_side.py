# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The Flink side of the comparison: downloads Flink and writes the scripts.

The jars come from PyFlink's package. A small Java program runs the SQL in the measured process.
Flink and Spark read the same Parquet files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pyspark

from workloads import KEYS, Workload, hashed

VERSION = "2.3.0"
SOURCES = Path(__file__).parent / "flink"

_SCHEMAS = {
    "word": "word STRING",
    "bid": (
        "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, id BIGINT, ts BIGINT, "
        "`day` INT, rowtime AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR rowtime AS rowtime"
    ),
    "auction": (
        "id BIGINT, seller BIGINT, category BIGINT, reserve BIGINT, ts BIGINT, expires_ts BIGINT"
    ),
    "orders": "order_id BIGINT, customer BIGINT, amount BIGINT",
    "payments": "payment_order BIGINT, paid BIGINT",
}

_COMMON = {
    "parallelism.default": "2",
    "taskmanager.numberOfTaskSlots": "2",
    "pipeline.object-reuse": "true",
    "table.local-time-zone": "UTC",
    "table.optimizer.agg-phase-strategy": "TWO_PHASE",
}
_HEAP = {"state.backend.type": "hashmap"}
_MINI_BATCH = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "1 s",
    "table.exec.mini-batch.size": "20000",
    "table.optimizer.distinct-agg.split.enabled": "true",
}
_MULTI_JOIN = {"table.optimizer.multi-join.enabled": "true"}
# The job writes checkpoints as it runs, and none at the end of its input.
_ROCKSDB = {
    "state.backend.type": "rocksdb",
    "taskmanager.memory.managed.size": "1g",
    "execution.checkpointing.interval": "2 s",
    "execution.checkpointing.incremental": "true",
    "execution.checkpointing.checkpoints-after-tasks-finish": "false",
}
CONFIGURATIONS = {
    "flink-heap": _COMMON | _HEAP,
    "flink-heap-mini": _COMMON | _HEAP | _MINI_BATCH,
    "flink-heap-multi": _COMMON | _HEAP | _MULTI_JOIN,
    "flink-rocksdb": _COMMON | _ROCKSDB,
    "flink-rocksdb-mini": _COMMON | _ROCKSDB | _MINI_BATCH,
}


def prepare(cache: Path) -> str:
    """Download Flink and compile the program, unless done. Return the class path."""
    home = cache / f"flink-{VERSION}"
    python = home / "venv" / "bin" / "python"
    stamp = home / "fetched"
    if not stamp.exists():
        print(f"downloading Flink {VERSION}", file=sys.stderr)
        shutil.rmtree(home, ignore_errors=True)
        venv.create(home / "venv", with_pip=True)
        package = ["apache-flink-libraries==" + VERSION]
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-deps", *package], check=True)
        _fetch_parquet(home / "jars")
        stamp.touch()
    (flink,) = (home / "venv").glob("lib/*/site-packages/pyflink/lib")
    spark_jars = Path(pyspark.__file__).parent / "jars"
    jars = [
        *sorted(flink.glob("*.jar")),
        home / "jars" / f"flink-sql-parquet-{VERSION}.jar",
        *sorted(spark_jars.glob("hadoop-client-*.jar")),
        *sorted(spark_jars.glob("commons-logging-*.jar")),
    ]
    classes = home / "classes"
    class_path = os.pathsep.join(map(str, [classes, *jars]))
    sources = sorted(SOURCES.glob("*.java"))
    services = classes / "META-INF" / "services"
    services.mkdir(parents=True, exist_ok=True)
    factory = services / "org.apache.flink.table.factories.Factory"
    factory.write_text("CheckSink$Factory\nChangelogFiles$Factory\n")
    (classes / "log4j2.properties").write_text(
        "rootLogger.level = ERROR\nrootLogger.appenderRef.e.ref = E\n"
        "appender.e.name = E\nappender.e.type = CONSOLE\nappender.e.target = SYSTEM_ERR\n"
        "appender.e.layout.type = PatternLayout\nappender.e.layout.pattern = %p %c %m%n%ex\n"
    )
    compiler = [_java("javac"), "-d", str(classes), "-cp", class_path, *map(str, sources)]
    subprocess.run(compiler, check=True)
    return class_path


def _java(tool: str) -> str:
    """Return the path of a tool of the common Java installation."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / tool) if home else tool


def _fetch_parquet(target: Path) -> None:
    """Download Flink's Parquet format with the copy of Ivy in PySpark."""
    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    command = [_java("java"), "-cp", str(ivy), "org.apache.ivy.Main", "-warn", "-notransitive"]
    command += ["-dependency", "org.apache.flink", "flink-sql-parquet", VERSION]
    command += ["-types", "jar", "-retrieve", f"{target}/[artifact]-[revision].[ext]"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def script(workload: Workload, folder: Path, settings: dict[str, str], scratch: Path) -> str:
    """Write Flink's script, a statement per line."""
    lines = [f"SET {key}={value}" for key, value in settings.items()]
    checkpoints = (scratch.resolve() / "checkpoints").as_uri()
    lines.append(f"SET execution.checkpointing.dir={checkpoints}")
    lines.append(f"SET io.tmp.dirs={scratch.resolve() / 'temporary'}")
    for name in workload.tables:
        changes = name in KEYS
        path = (folder / (f"{name}_lanes" if changes else name)).resolve().as_uri()
        columns, options = _SCHEMAS[name], "'connector' = 'filesystem', 'format' = 'parquet'"
        if changes:
            columns += f", PRIMARY KEY ({KEYS[name]}) NOT ENFORCED"
            options = "'connector' = 'changelog-files'"
        lines.append(
            f"CREATE TEMPORARY TABLE {name} ({columns}) WITH ({options}, 'path' = '{path}')"
        )
    lines.append("CREATE TEMPORARY TABLE checked (h BIGINT) WITH ('connector' = 'check')")
    sql = f"SELECT h FROM ({hashed(workload.flink or workload.sql, workload.check)}) AS c"
    lines.append(f"INSERT INTO checked {sql}")
    return "\n".join(" ".join(line.split()) for line in lines) + "\n"


def command(class_path: str, memory: str, scripts: list[Path]) -> list[str]:
    """Return the command to run scripts in one process."""
    opens = ["java.lang", "java.util", "java.net", "java.nio", "java.time"]
    flags = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in opens]
    return [
        _java("java"),
        f"-Xmx{memory}",
        "-XX:+UseG1GC",
        *flags,
        "-cp",
        class_path,
        "FlinkSide",
        *map(str, scripts),
    ]
