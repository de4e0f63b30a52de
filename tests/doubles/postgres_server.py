"""A real PostgreSQL for tests: loopback only, in a data directory of its own, thrown away afterwards.

Owns the server's process and its databases, asked and changed from outside through `psql`, as an operator
would. The store never sees anything of this but an address.
"""

import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

START_TIMEOUT_S = 30.0
COMMAND_TIMEOUT_S = 30.0
SERVER_USER = "postgres"
PASSWORD = "tell-nobody"


class PostgresServer:
    """One running server; `new_database` gives each test a place of its own."""

    def __init__(self, binaries: Path, data: Path, port: int) -> None:
        self._binaries = binaries
        self._data = data
        self.port = port
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it answers."""
        self._process = subprocess.Popen(
            [
                str(self._binaries / "postgres"),
                *("-D", str(self._data), "-p", str(self.port)),
                *("-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="),
                *("-c", "fsync=off", "-c", "max_connections=200", "-c", "log_min_messages=panic"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **_as_server_user(),
        )
        deadline = time.monotonic() + START_TIMEOUT_S
        while self._run("pg_isready", "-q").returncode:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("PostgreSQL did not start")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop at once, as a machine that loses power would; nothing is said to those connected."""
        if self._process is not None:
            self._process.send_signal(3)  # SIGQUIT: immediate shutdown
            self._process.wait(COMMAND_TIMEOUT_S)
            self._process = None

    def new_database(self) -> str:
        name = f"test_{uuid4().hex}"
        self.sql("postgres", f"CREATE DATABASE {name}")
        return name

    def url(self, database: str) -> str:
        return f"postgresql://{SERVER_USER}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def sql(self, database: str, statement: str) -> str:
        """What a statement answers, as text.

        Raises:
            RuntimeError: It failed.
        """
        done = self._run("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement, database)
        if done.returncode:
            raise RuntimeError(done.stderr.decode())
        return done.stdout.decode()

    def disconnect_all(self, database: str, only: str = "true") -> None:
        """End every connection to a database, and wait until they are gone.

        Args:
            only: A condition on `pg_stat_activity` that picks some of them.
        """
        self.sql(
            "postgres",
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            f" WHERE datname = '{database}' AND {only}",
        )

    def _run(self, program: str, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(
            [
                str(self._binaries / program),
                *("-h", "127.0.0.1", "-p", str(self.port), "-U", SERVER_USER, *arguments),
            ],
            env={**os.environ, "PGPASSWORD": PASSWORD},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )


def found_binaries() -> Path | None:
    """Where the newest PostgreSQL of this machine keeps its programs; None without one."""
    for initdb in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version, reverse=True):
        return initdb.parent
    on_path = shutil.which("initdb")
    return None if on_path is None else Path(on_path).resolve().parent


def why_not() -> str | None:
    """Why no server can be started here, in words; None when one can."""
    if found_binaries() is None:
        return "PostgreSQL is not installed; on Debian: apt-get install postgresql"
    if os.geteuid() == 0:
        try:
            pwd.getpwnam(SERVER_USER)
        except KeyError:
            return f"PostgreSQL does not run as root, and there is no user {SERVER_USER}"
    return None


@contextmanager
def running_server(folder: Path) -> Iterator[PostgresServer]:
    """A server with its data below `folder`, for one block."""
    binaries = found_binaries()
    assert binaries is not None
    data, password = folder / "data", folder / "password"
    password.write_text(PASSWORD)
    for place in (folder, password):
        if os.geteuid() == 0:
            shutil.chown(place, SERVER_USER)
    subprocess.run(
        [
            str(binaries / "initdb"),
            *("-D", str(data), "-U", SERVER_USER, "-A", "scram-sha-256", "--pwfile", str(password)),
            *("-E", "UTF8", "--locale", "C", "--no-sync"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        timeout=COMMAND_TIMEOUT_S,
        check=True,
        **_as_server_user(),
    )
    server = PostgresServer(binaries, data, _free_port())
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _as_server_user() -> dict[str, Any]:
    return {"user": SERVER_USER, "group": SERVER_USER, "cwd": "/"} if os.geteuid() == 0 else {"cwd": "/"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _version(initdb: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in initdb.parent.parent.name.split(".") if part.isdigit())
