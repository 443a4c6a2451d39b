# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Starts the servers of `dev/services`, each as a child that ends with the parent."""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from server_group import HOST, Group, free_port, listens, quiet
from server_programs import CACHE, HOME, Missing, alone, fetch, installed, java

KAFKA = ("org.apache.kafka", "kafka_2.13", "3.9.1")
KAFKA_LOGGING = ("org.slf4j", "slf4j-reload4j", "1.7.36")

Address = dict[str, Any]


def server_user(name: str) -> str | None:
    """Return the user for a server that refuses to run as root, None for the current user."""
    return name if os.geteuid() == 0 else None


def database(url: str, port: int, password: str) -> Address:
    """Return the connection settings of a database."""
    account = {"user": "tester", "password": password, "database": url.rpartition("/")[2]}
    return {"host": HOST, "port": port, "url": url} | account


def start_postgres(group: Group) -> Address:
    """Start PostgreSQL, ready for logical replication."""
    binaries = installed("postgresql", "initdb", "/usr/lib/postgresql/*/bin").parent
    user, port, password = server_user("postgres"), free_port(), secrets.token_hex(12)
    data = group.directory("postgres", user)
    password_file = group.folder / "postgres.password"
    password_file.write_text(password)
    quiet(
        f"{binaries}/initdb --pgdata={data} --username=tester --encoding=UTF8 --locale=C "
        f"--auth=scram-sha-256 --pwfile={password_file} --no-sync".split(),
        user,
    )
    settings = {
        "listen_addresses": HOST,
        "port": port,
        "unix_socket_directories": "",
        "wal_level": "logical",
        "fsync": "off",  # tests can lose their data at a crash
    }
    command = [str(binaries / "postgres"), "-D", str(data)]
    command += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    probe = f"{binaries}/pg_isready -q -h {HOST} -p {port}".split()
    group.spawn(
        "postgres",
        command,
        user,
        signal.SIGINT,
        lambda: subprocess.run(probe, check=False).returncode == 0,
    )
    return database(f"jdbc:postgresql://{HOST}:{port}/postgres", port, password)


def accounts_file(group: Group, name: str, password: str) -> Path:
    """Write the statements that create a database and a user, one statement per line."""
    accounts = group.folder / f"{name}.sql"
    accounts.write_text(
        "CREATE DATABASE test;\n"
        f"CREATE USER tester@'%' IDENTIFIED BY '{password}';\n"
        "GRANT ALL ON *.* TO tester@'%' WITH GRANT OPTION;\n"
    )
    return accounts


def start_mariadb(group: Group) -> Address:
    """Start MariaDB, writing a row-based binary log."""
    server = installed("mariadb-server", "mariadbd", "/usr/sbin")
    installer = installed("mariadb-server", "mariadb-install-db")
    user, port, password = server_user("mysql"), free_port(), secrets.token_hex(12)
    data = group.directory("mariadb", user)
    quiet(
        f"{installer} --no-defaults --datadir={data} --skip-test-db "
        "--auth-root-authentication-method=normal".split(),
        user,
    )
    group.spawn(
        "mariadb",
        f"{server} --no-defaults --datadir={data} --port={port} --bind-address={HOST} "
        f"--socket={data}/server.sock --init-file={accounts_file(group, 'mariadb', password)} "
        "--skip-name-resolve --log-bin=binlog --binlog-format=ROW --server-id=1 "
        "--innodb-flush-log-at-trx-commit=0 --sync-binlog=0".split(),
        user,
        signal.SIGTERM,
        # The port opens after the init file has run.
        lambda: listens(port),
    )
    return database(f"jdbc:mariadb://{HOST}:{port}/test", port, password)


def start_mysql(group: Group) -> Address:
    """Start MySQL. Debian has no package of it, so `MYSQLD` may give the program."""
    server = os.environ.get("MYSQLD") or shutil.which("mysqld") or "false"
    version = subprocess.run([server, "--version"], capture_output=True, text=True, check=False)
    if version.returncode != 0 or "MariaDB" in version.stdout:
        raise Missing("mysqld of MySQL is not installed: set MYSQLD to the program")
    port, password = free_port(), secrets.token_hex(12)
    data = group.directory("mysql", None)
    command = f"{server} --no-defaults --user={getpass.getuser()} --datadir={data} "
    command += "--secure-file-priv=NULL"
    quiet(f"{command} --initialize-insecure".split(), None)
    group.spawn(
        "mysql",
        f"{command} --port={port} --bind-address={HOST} --socket={data}/server.sock --mysqlx=OFF "
        f"--init-file={accounts_file(group, 'mysql', password)} --skip-name-resolve "
        "--disable-log-bin --innodb-flush-log-at-trx-commit=0".split(),
        None,
        signal.SIGTERM,
        lambda: listens(port),
    )
    return database(f"jdbc:mysql://{HOST}:{port}/test", port, password)


def kafka_jars() -> Path:
    """Return the folder of the broker's jars, downloaded once."""
    folder = CACHE / f"kafka-{KAFKA[2]}"
    with alone("kafka"):
        if not folder.exists():
            unfinished = Path(tempfile.mkdtemp(prefix="kafka-", dir=CACHE))
            try:
                for artifact in (KAFKA, KAFKA_LOGGING):
                    fetch(artifact, unfinished)
                unfinished.rename(folder)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    return folder


KAFKA_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs={data}
num.partitions=2
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
"""
KAFKA_LOG = """\
log4j.rootLogger=WARN, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.SimpleLayout
"""


def start_kafka(group: Group) -> Address:
    """Start a Kafka broker with its controller in the same process."""
    jars, port, controller = kafka_jars(), free_port(), free_port()
    data = group.directory("kafka", None)
    settings, log = group.folder / "kafka.properties", group.folder / "kafka-log4j.properties"
    settings.write_text(
        KAFKA_SETTINGS.format(host=HOST, port=port, controller=controller, data=data)
    )
    log.write_text(KAFKA_LOG)
    command = [java(), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += [f"-Dlog4j.configuration=file:{log}", "-cp", f"{jars}/*"]
    cluster = "c3BhcmstY2hhbmdlbG9nLQ"
    quiet([*command, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", settings])
    server = [*command, "kafka.Kafka", str(settings)]
    group.spawn("kafka", server, None, signal.SIGTERM, lambda: listens(port))
    return {"host": HOST, "port": port, "bootstrap": f"{HOST}:{port}"}


def start_s3(group: Group) -> Address:
    """Start an S3 server with a bucket."""
    install = ["bash", "-c", "source dev/common.sh && prepare_tools s3"]
    done = subprocess.run(install, cwd=HOME, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Missing(f"could not install the S3 server: {done.stderr[-500:]}")
    port, bucket = free_port(), "bucket"
    command = [f"{done.stdout.strip()}/moto_server", "-H", HOST, "-p", f"{port}"]
    group.spawn("s3", command, None, signal.SIGTERM, lambda: listens(port))
    url = f"http://{HOST}:{port}"
    urllib.request.urlopen(urllib.request.Request(f"{url}/{bucket}", method="PUT")).close()
    return {"host": HOST, "port": port, "endpoint": url, "bucket": bucket}


SERVICES = {
    "postgres": start_postgres,
    "mariadb": start_mariadb,
    "mysql": start_mysql,
    "kafka": start_kafka,
    "s3": start_s3,
}
