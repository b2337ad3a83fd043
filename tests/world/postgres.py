"""A real PostgreSQL server of one's own: in a temporary directory, on a Unix socket, gone with the test."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

START_SECONDS_MAX = 60.0
USER = "fairtrial"


def programs() -> Path:
    """Debian's directory of the newest server's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    beside = shutil.which("initdb")
    assert found or beside, "no PostgreSQL server is installed: run `make setup`"
    return found[-1].parent if found else Path(beside or "").parent


class PostgresServer:
    """One server and its databases. `user` is the owner of what ledgers make; it is no superuser."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._data = directory / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._names = 0
        if os.geteuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(directory, owner.pw_uid, owner.pw_gid)
        self._run("initdb", "-D", str(self._data), "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8")
        (self._data / "pg_hba.conf").write_text(
            f"local all locked scram-sha-256\nlocal all postgres trust\nlocal all {USER} trust\n"
        )

    def _as_owner(self) -> list[str]:
        # The server refuses to run as root.
        return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []

    def _command(self, program: str, *arguments: str) -> list[str]:
        return [*self._as_owner(), str(programs() / program), *arguments]

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            self._command(program, *arguments), check=True, cwd=self.directory, stdout=subprocess.DEVNULL, timeout=120
        )

    def start(self, **settings: str) -> None:
        """Start (again), with settings of the server; returns once it answers."""
        given = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.directory),
            "shared_buffers": "16MB",
            "autovacuum": "off",
            "logging_collector": "off",
        } | settings
        arguments = [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
        with (self.directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command("postgres", "-D", str(self._data), *arguments), cwd=self.directory, stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                self.execute("SELECT 1")
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None, (self.directory / "server.log").read_text()[-2000:]
                assert time.monotonic() < deadline, "the server did not start"
                time.sleep(0.02)

    def stop(self, number: int = signal.SIGQUIT) -> None:
        """End the server: SIGQUIT is a crash of everything at once, SIGINT an orderly end."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(timeout=60)
            self._process = None

    def limit_files(self, bytes_max: int) -> None:
        """Let the sessions of `user` write no byte past this offset of any file, as a full disk would."""
        for (pid,) in self.execute(f"SELECT pid FROM pg_stat_activity WHERE usename = '{USER}'"):
            limit = ["prlimit", f"--pid={pid}", f"--fsize={bytes_max}:{bytes_max}"]
            subprocess.run([*self._as_owner(), *limit], check=True)

    def url(self, database: str = "postgres", user: str = USER) -> str:
        """The URL of a database as a role sees it, without a password."""
        return f"postgresql://{user}@/{database}?host={self.directory}"

    def execute(self, query: str, *, database: str = "postgres", user: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement; the rows it gives, if any."""
        with psycopg.connect(self.url(database, user), autocommit=True, connect_timeout=10) as connection:
            cursor = connection.execute(query.encode())
            return cursor.fetchall() if cursor.description else []

    def schema(self) -> str:
        """The name of a schema that nobody has used."""
        self._names += 1
        return f"round_{self._names}"

    def database(self) -> str:
        """A new, empty database that belongs to `user`."""
        self._names += 1
        name = f"ledger{self._names}"
        self.execute(f"CREATE DATABASE {name} OWNER {USER}")
        return name


@contextlib.contextmanager
def postgres_server(**settings: str) -> Iterator[PostgresServer]:
    """A running server in a directory whose name leaves room for a socket path."""
    directory = Path(tempfile.mkdtemp(prefix="ft-pg-"))
    server = None
    try:
        server = PostgresServer(directory)
        server.start(**settings)
        server.execute(f"CREATE ROLE {USER} LOGIN")
        server.execute(f"GRANT CREATE ON DATABASE postgres TO {USER}")
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(directory, ignore_errors=True)
