# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The commands of ``docs/cluster.md`` run queries and views on a cluster that loses processes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from pages import sections, write

PAGE = sections("cluster")["A standalone cluster on one machine"]
START, SUBMIT, SQL = PAGE.of("sh")
VIEWS = sections("cluster")["Views on the standalone cluster"]
METASTORE, VIEW_JOBS = VIEWS.of("sh")
BATCHES = 12


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


class Shell:
    """Runs the page's commands in a folder, with a free port and this environment's Python."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = {"7077": free_port(), "9083": free_port()}
        inherited = {name: os.environ[name] for name in os.environ if name != "PYTHONPATH"}
        self.environment = {
            **inherited,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def start(self, commands: str) -> subprocess.Popen[str]:
        prelude = "\n".join(START.splitlines()[:2])
        return subprocess.Popen(
            ["bash", "-c", self.here(f"{prelude}\n{commands}")],
            cwd=self.folder,
            env=self.environment,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=(self.folder / "errors").open("a"),
            text=True,
        )

    def here(self, text: str) -> str:
        """Put this shell's folder and ports in place of the page's."""
        for name, port in self.ports.items():
            text = text.replace(name, port)
        return text.replace("/shared/folder", str(self.folder))

    def run(self, commands: str) -> str:
        return self.end(self.start(commands))

    def end(self, process: subprocess.Popen[str]) -> str:
        printed = process.communicate(timeout=300)[0]
        assert process.returncode == 0, (self.folder / "errors").read_text()[-5000:]
        return printed


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """Start the page's master and workers."""
    shell = Shell(tmp_path)
    cluster = shell.start(f"{START}\nwait")
    shell.environment["CLUSTER"] = str(cluster.pid)
    yield shell
    os.killpg(cluster.pid, signal.SIGKILL)
    cluster.communicate()


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)


def executors(group: int) -> list[int]:
    """Return the executors among the processes of a group."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        pid = int(path.parent.name)
        try:
            if os.getpgid(pid) == group and b"CoarseGrainedExecutorBackend" in path.read_bytes():
                found.append(pid)
        except (ProcessLookupError, FileNotFoundError):
            pass  # ended meanwhile
    return found


def deliver(folder: Path, random: Random) -> set[tuple[str, int, int, int]]:
    """Write files of changes, and return the best customers after all of them."""
    cities = {customer: random.choice(["Oslo", "Rome"]) for customer in range(12)}
    orders: dict[int, tuple[int, int]] = {}
    for batch in range(BATCHES):
        changes = []
        for number in range(20):
            order = random.randrange(100)
            if order in orders:
                customer, amount = orders.pop(order)
                change = "-D", order, customer, amount
            else:
                orders[order] = random.randrange(12), number
                change = "+I", order, *orders[order]
            values = '"op": "{}", "id": {}, "customer": {}, "amount": {}'.format(*change)
            changes.append(f"{{{values}}}")
        name = f"{batch:02}.json"
        write(folder / "orders", name, *changes)
        os.utime(folder / "orders" / name, (batch, batch))  # Spark reads the oldest file first
    known = [f'{{"op": "+I", "id": {id}, "city": "{city}"}}' for id, city in cities.items()]
    write(folder / "customers", "0.json", *known)
    totals = Counter[int]()
    for customer, amount in orders.values():
        totals[customer] += amount
    best = set()
    for city in set(cities.values()):
        of_city = [customer for customer, _ in orders.values() if cities[customer] == city]
        ordered = sorted(set(of_city), key=lambda customer: (-totals[customer], customer))
        best |= {
            (city, customer, totals[customer], place)
            for place, customer in enumerate(ordered[:3], start=1)
        }
    return best


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
def test_a_job_goes_on_when_an_executor_and_then_the_driver_are_killed(shell: Shell) -> None:
    expected = deliver(shell.folder, Random(1))
    (shell.folder / "job.py").write_text(PAGE.of("python")[0])
    commits = shell.folder / "checkpoint" / "commits"

    def are_committed(batches: int) -> bool:
        names = os.listdir(commits) if commits.exists() else []
        return sum(name.isdigit() for name in names) >= batches

    driver = shell.start(SUBMIT)
    cluster = int(shell.environment["CLUSTER"])
    wait_until(lambda: are_committed(2))
    os.kill(executors(cluster)[0], signal.SIGKILL)
    wait_until(lambda: are_committed(4))
    os.killpg(driver.pid, signal.SIGKILL)
    driver.communicate()
    assert not are_committed(BATCHES)
    shell.run(SUBMIT)
    assert are_committed(BATCHES)
    lines = [line.split("\t") for line in shell.run(SQL).splitlines() if line.count("\t") == 3]
    assert {(city, int(a), int(b), int(c)) for city, a, b, c in lines} == expected
    assert len(lines) == len(expected)


@pytest.fixture
def metastore(shell: Shell) -> Iterator[None]:
    """Start the page's metastore, and write the page's files."""
    languages = {"views.py": "python", "views.conf": "properties"}
    for name, language in languages.items():
        (shell.folder / name).write_text(shell.here(VIEWS.of(language)[0]))
    process = shell.start(f"{METASTORE}\nwait")

    def listens() -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", int(shell.ports["9083"]))) == 0

    wait_until(listens)
    yield
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
@pytest.mark.usefixtures("metastore")
def test_jobs_refresh_a_view_in_turn_when_an_executor_and_a_driver_are_killed(
    shell: Shell,
) -> None:
    refresh = "REFRESH MATERIALIZED VIEW totals"
    insert = "INSERT INTO orders SELECT INT(id % 50), INT(id) FROM range(1000)"
    query = "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"
    rows = "SELECT count(*), sum(total) FROM totals"
    checks = f"SELECT * FROM totals EXCEPT ALL {query}", "VERIFY MATERIALIZED VIEW totals", rows

    def start(*statements: str) -> subprocess.Popen[str]:
        words = " ".join(f'"{statement}"' for statement in statements)
        return shell.start(f"{VIEW_JOBS.splitlines()[0]}\n$submit {words}")

    def is_begun() -> bool:
        """Tell whether a batch of the view has begun and is not committed."""
        batches = {
            kind: {
                (path.parents[1], path.name)
                for path in shell.folder.glob(f"warehouse/**/{kind}/*")
                if path.name.isdigit()
            }
            for kind in ("offsets", "commits")
        }
        return not batches["offsets"] <= batches["commits"]

    assert sorted(shell.run(VIEW_JOBS).splitlines()) == ["1\t9", "2\t7"]
    cluster = int(shell.environment["CLUSTER"])
    shell.end(start(insert))
    jobs = [start(refresh), start(refresh)]
    wait_until(is_begun)
    for executor in executors(cluster):
        os.kill(executor, signal.SIGKILL)
    for job in jobs:
        shell.end(job)
    assert shell.end(start(*checks, insert)).split() == ["50", str(9 + 7 + sum(range(1000)))]
    driver = start(refresh)
    wait_until(is_begun)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.communicate()
    assert is_begun()
    jobs = [start(refresh), start(refresh)]
    for job in jobs:
        shell.end(job)
    assert not is_begun()
    assert shell.end(start(*checks)).split() == ["50", str(9 + 7 + 2 * sum(range(1000)))]
