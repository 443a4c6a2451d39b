# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Server processes that end with their parent process."""

from __future__ import annotations

import ctypes
import functools
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
START_SECONDS = 90
PORTS = range(12000, 30000)


@dataclass
class Server:
    """A server, with the condition for readiness and the signal for its end."""

    name: str
    command: Sequence[str]
    user: str | None
    stop: signal.Signals
    ready: Callable[[], bool]
    process: subprocess.Popen[bytes] | None = None


class Group:
    """The services of one run, with a common directory and their processes."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="spark-changelog-services-"))
        self.folder.chmod(0o755)
        self.servers: list[Server] = []

    def directory(self, name: str, user: str | None) -> Path:
        """Create a directory for a server, owned by the server's user."""
        path = self.folder / name
        path.mkdir()
        if user:
            shutil.chown(path, user)
        return path

    def spawn(
        self,
        name: str,
        command: Sequence[str],
        user: str | None,
        stop: signal.Signals,
        ready: Callable[[], bool],
    ) -> None:
        """Start a server that dies with this process, even if this process is killed."""
        self.servers.append(Server(name, command, user, stop, ready))
        self.start(self.servers[-1])

    def start(self, server: Server) -> None:
        """Start a server, and wait until the server is ready."""
        with (self.folder / f"{server.name}.log").open("ab") as log:
            process = subprocess.Popen(
                server.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                preexec_fn=lambda: die_with_parent(server.user),
                start_new_session=True,
            )
        server.process = process
        deadline = time.monotonic() + START_SECONDS
        while not server.ready():
            if process.poll() is not None or time.monotonic() > deadline:
                text = (self.folder / f"{server.name}.log").read_text(errors="replace")[-3000:]
                raise SystemExit(f"{server.name} did not start\n{text}")
            time.sleep(0.1)

    def crash(self) -> None:
        """Kill the servers. Their files stay for another start."""
        for server in self.servers:
            if server.process:
                server.process.kill()
                server.process.wait()

    def restart(self) -> None:
        """Start the crashed servers at their addresses, with their files."""
        for server in self.servers:
            self.start(server)

    def close(self) -> None:
        """End the servers, and delete their files."""
        running = [server for server in self.servers if server.process]
        for server in running:
            if server.process.poll() is None:
                server.process.send_signal(server.stop)
        for server in running:
            try:
                server.process.wait(10)
            except subprocess.TimeoutExpired:
                server.process.kill()
                server.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def die_with_parent(user: str | None) -> None:
    """Give up root, and ask the kernel for SIGKILL at the parent's end. Runs in the child."""
    if user:
        entry = pwd.getpwnam(user)
        os.setgroups([])
        os.setgid(entry.pw_gid)
        os.setuid(entry.pw_uid)
    set_parent_death_signal = 1
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def free_port() -> int:
    """Return a port without a listener.

    The port is below the range for outgoing connections. A connection could take a port of this
    range during the seconds before the server listens.
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
    """Tell whether a port has a listener."""
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def quiet(command: Sequence[str | Path], user: str | None = None) -> None:
    """Run a command to its end. A failure prints the command's output."""
    give_up_root = functools.partial(die_with_parent, user)
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=give_up_root)
    if done.returncode != 0:
        raise SystemExit(f"failed: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
