# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Starts the servers of `dev/services`, each as a child that ends with its parent."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import glob
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parents[1]
CACHE = HOME / ".cache"
HOST = "127.0.0.1"
START_SECONDS = 90
PORTS = range(12000, 30000)

KAFKA = ("org.apache.kafka", "kafka_2.13", "3.9.1")
KAFKA_LOGGING = ("org.slf4j", "slf4j-reload4j", "1.7.36")

Address = dict[str, Any]


class Missing(Exception):
    """A service can't be had on this machine."""


class Group:
    """The services of one run: their directory and their processes."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="spark-changelog-services-"))
        self.folder.chmod(0o755)
        self.processes: list[tuple[subprocess.Popen[bytes], signal.Signals]] = []

    def directory(self, name: str, user: str | None) -> Path:
        """Make a directory of a server, owned by the user that runs it."""
        path = self.folder / name
        path.mkdir()
        if user:
            shutil.chown(path, user)
        return path

    def spawn(
        self, name: str, command: Sequence[str], user: str | None, stop: signal.Signals
    ) -> subprocess.Popen[bytes]:
        """Start a server that dies when this process does, even if it is killed."""
        with (self.folder / f"{name}.log").open("wb") as log:
            server = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                preexec_fn=lambda: die_with_parent(user),
                start_new_session=True,
            )
        self.processes.append((server, stop))
        return server

    def await_ready(self, name: str, ready: Callable[[], bool]) -> None:
        """Wait until a server can be used."""
        server = self.processes[-1][0]
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            if server.poll() is not None or time.monotonic() > deadline:
                log = (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]
                raise SystemExit(f"{name} did not start\n{log}")
            time.sleep(0.1)

    def close(self) -> None:
        """End all servers, and leave nothing."""
        for server, stop in self.processes:
            if server.poll() is None:
                server.send_signal(stop)
        for server, _ in self.processes:
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def die_with_parent(user: str | None) -> None:
    """Run in the child: give up root, and ask the kernel for SIGKILL when the parent is gone."""
    if user:
        entry = pwd.getpwnam(user)
        os.setgroups([])
        os.setgid(entry.pw_gid)
        os.setuid(entry.pw_uid)
    set_parent_death_signal = 1
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def free_port() -> int:
    """
    Find a port that nothing listens on.

    It is below those that systems give to connections: one of them could have it before the
    server, which may need seconds to come.
    """
    while True:
        port = secrets.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port


def listens(port: int) -> bool:
    """Tell whether something listens on a port."""
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def quiet(command: Sequence[str | Path], user: str | None = None) -> None:
    """Run a command to its end; failing shows what it said."""
    give_up_root = functools.partial(die_with_parent, user)
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=give_up_root)
    if done.returncode != 0:
        raise SystemExit(f"failed: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def find_program(name: str, *folders: str) -> Path | None:
    """Find a program in the newest of ``folders``, which may be patterns, or on the PATH."""
    found = [path for folder in folders for path in glob.glob(f"{folder}/{name}")]
    on_path = shutil.which(name)
    found = sorted(found, key=lambda path: [int(n) for n in path.split("/") if n.isdigit()])
    return Path(found[-1]) if found else Path(on_path) if on_path else None


@contextlib.contextmanager
def alone(name: str) -> Iterator[None]:
    """Do something while no other process of this tree does it."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def installed(package: str, program: str, *folders: str) -> Path:
    """Find a program, after installing the Debian package that has it if that is possible."""
    with alone("install"):
        return find_or_install(package, program, *folders)


def find_or_install(package: str, program: str, *folders: str) -> Path:
    """Find a program, or install it, while nobody else does."""
    path = find_program(program, *folders)
    if path is None and os.geteuid() == 0 and shutil.which("apt-get"):
        os.environ["DEBIAN_FRONTEND"] = "noninteractive"
        install = ["apt-get", "install", "--yes", "--no-install-recommends", package]
        for command in (["apt-get", "update"], install):
            subprocess.run(command, capture_output=True, check=False)
        path = find_program(program, *folders)
    if path is None:
        raise Missing(f"no {program} on this machine; install the package {package}")
    return path


def server_user(name: str) -> str | None:
    """Who runs a server that refuses to be run by root."""
    return name if os.geteuid() == 0 else None


def database(url: str, port: int, password: str) -> Address:
    """Tell how to connect to a database."""
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
        "fsync": "off",  # the machine may lose it: a test has it again
    }
    command = [str(binaries / "postgres"), "-D", str(data)]
    command += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    group.spawn("postgres", command, user, signal.SIGINT)
    probe = f"{binaries}/pg_isready -q -h {HOST} -p {port}".split()
    group.await_ready("postgres", lambda: subprocess.run(probe, check=False).returncode == 0)
    return database(f"jdbc:postgresql://{HOST}:{port}/postgres", port, password)


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
    accounts = group.folder / "mariadb.sql"
    accounts.write_text(
        # a statement is a line
        "CREATE DATABASE test;\n"
        f"CREATE USER tester@'%' IDENTIFIED BY '{password}';\n"
        "GRANT ALL ON *.* TO tester@'%' WITH GRANT OPTION;\n"
    )
    group.spawn(
        "mariadb",
        f"{server} --no-defaults --datadir={data} --port={port} --bind-address={HOST} "
        f"--socket={data}/server.sock --init-file={accounts} --skip-name-resolve "
        "--log-bin=binlog --binlog-format=ROW --server-id=1 "
        "--innodb-flush-log-at-trx-commit=0 --sync-binlog=0".split(),
        user,
        signal.SIGTERM,
    )
    # the port opens after the accounts are made
    group.await_ready("mariadb", lambda: listens(port))
    return database(f"jdbc:mariadb://{HOST}:{port}/test", port, password)


def java() -> str:
    """Name the Java to run."""
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else "java"


def fetch(artifact: tuple[str, str, str], folder: Path) -> None:
    """Put an artifact and what it needs into a folder, with the Ivy of PySpark's wheel."""
    pattern = str(HOME / ".venv/lib/python*/site-packages/pyspark/jars/ivy-*.jar")
    ivy = next(iter(glob.glob(pattern)), None)
    if ivy is None:
        raise Missing("no .venv; run dev/build first")
    target = f"{folder}/[artifact]-[revision].[ext]"
    command = [java(), "-cp", ivy, "org.apache.ivy.Main", "-dependency", *artifact, "-warn"]
    done = subprocess.run(
        [*command, "-types", "jar", "bundle", "-retrieve", target],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise Missing(f"{':'.join(artifact)} could not be fetched")


def kafka_jars() -> Path:
    """Return the folder of the broker's jars, after fetching them once."""
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
    """Start a broker that is its own controller."""
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
    group.spawn("kafka", [*command, "kafka.Kafka", str(settings)], None, signal.SIGTERM)
    group.await_ready("kafka", lambda: listens(port))
    return {"host": HOST, "port": port, "bootstrap": f"{HOST}:{port}"}


SERVICES = {"postgres": start_postgres, "mariadb": start_mariadb, "kafka": start_kafka}
