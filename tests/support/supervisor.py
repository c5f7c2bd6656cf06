"""A broodd to test against, whose end is checked as strictly as its work."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Mapping, Sequence

from . import processes
from .client import Client

SANITIZED = os.environ.get("BROOD_SANITIZED") == "1"
STOP_WAIT_S = 120.0


def bin_dir() -> Path:
    """Where broodd, brood and brood-zygote lie: BROOD_BIN, or the release build."""
    default = Path(__file__).resolve().parents[2] / "build" / "release" / "bin"
    return Path(os.environ.get("BROOD_BIN") or default)


def program(name: str) -> str:
    path = bin_dir() / name
    if not path.exists():
        sys.exit(f"{path} is missing; build first, or set BROOD_BIN to the directory of the programs")
    return str(path)


class Supervisor:
    """broodd with a socket and a configuration file in a directory of its own."""

    def __init__(self, config: str = "", *, args: Sequence[str] = (), env: Mapping[str, str] | None = None,
                 stdio: bool = False) -> None:
        self.dir = tempfile.mkdtemp(prefix="brood-test-")
        self.socket = os.path.join(self.dir, "socket")
        self.config_path = os.path.join(self.dir, "brood.conf")
        self.log_path = os.path.join(self.dir, "log")
        self.args, self.env, self.stdio = list(args), env, stdio
        self.process: subprocess.Popen[bytes] | None = None
        self.before: set[int] = set()
        self.last_log = ""
        self.configure(config)

    def configure(self, text: str) -> None:
        Path(self.config_path).write_text(text, encoding="utf-8")

    def __enter__(self) -> Supervisor:
        try:
            self.start()
        except BaseException:
            self.clean_up()
            raise
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if kind is None:
                self.stop()
        finally:
            self.clean_up()

    # --- start ---

    def start(self) -> None:
        """Starts it and waits until it answers a hello."""
        processes.adopt_orphans()
        self.before = set(processes.descendants(os.getpid()))
        where = ["--stdio"] if self.stdio else ["--socket", self.socket]
        pipe = subprocess.PIPE if self.stdio else subprocess.DEVNULL
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [program("broodd"), *where, "--config", self.config_path, *self.args],
                stdin=pipe, stdout=pipe if self.stdio else log, stderr=log, env=self.env, start_new_session=True)
        if not self.stdio:
            with processes.poll(self._try_connect, "broodd answers on its socket") as client:
                client.hello()

    def _try_connect(self) -> Client | None:
        assert self.process
        if self.process.poll() is not None:
            raise AssertionError(f"broodd ended with {self.process.returncode} at its start:\n{self.log()}")
        try:
            return Client.connect(self.socket)
        except (FileNotFoundError, ConnectionRefusedError):
            return None

    def connect(self) -> Client:
        """A new client; with stdio, the only one there can be."""
        assert self.process
        if not self.stdio:
            return Client.connect(self.socket)
        assert self.process.stdin and self.process.stdout
        return Client(os.dup(self.process.stdout.fileno()), os.dup(self.process.stdin.fileno()))

    # --- watching ---

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    def log(self) -> str:
        return Path(self.log_path).read_text(encoding="utf-8", errors="replace")

    def wait_parked(self, count: int, profile: str = "default") -> Any:
        """Waits until the pool of a profile holds `count` parked workers; returns the profile's status."""
        with self.connect() as client:
            def full() -> Any:
                status = client.status()["profiles"][profile]
                return status if status["parked"] >= count else None
            return processes.poll(full, f"{count} workers of profile {profile} are parked")

    def wait_idle(self) -> Any:
        """Waits until no call is open and nothing is being forked; returns the status."""
        with self.connect() as client:
            def idle() -> Any:
                status = client.status()
                busy = status["calls"]["open"] or any(p["starting"] or p["running"] for p in status["profiles"].values())
                return None if busy else status
            return processes.poll(idle, "no call is open and no worker is being made")

    def zygotes(self) -> list[int]:
        """Pids of the zygotes: those processes named so whose parent is not."""
        below = processes.descendants(self.pid)
        return [pid for pid in below if below[pid].startswith("brood-zygote") and self._is_zygote(pid, below)]

    def _is_zygote(self, pid: int, below: dict[int, str]) -> bool:
        fields = processes.stat_fields(pid)
        return bool(fields) and not below.get(int(fields[1]), "").startswith("brood-zygote")

    def signal(self, number: int) -> None:
        assert self.process
        self.process.send_signal(number)

    # --- end ---

    def leftovers(self) -> dict[int, str]:
        """Processes below this test that were not there before the start, broodd itself excepted."""
        now = processes.descendants(os.getpid())
        return {pid: name for pid, name in now.items() if pid not in self.before and pid != self.pid}

    def stop(self) -> None:
        """Ends it by SIGTERM and checks that it leaves nothing: no process, no zombie, no socket file."""
        assert self.process
        if self.process.poll() is None:
            processes.poll(lambda: not processes.zombies(self.pid), f"no zombie below broodd: {processes.zombies(self.pid)}")
            self.signal(signal.SIGTERM)
        self.check_ended()

    def check_ended(self) -> None:
        """Waits for its end, however that was brought about, and checks what it left."""
        assert self.process
        try:
            code = self.process.wait(STOP_WAIT_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"broodd did not end within {STOP_WAIT_S:g} s of SIGTERM:\n{self.log()}") from None
        left = self.leftovers()
        if code != 0:
            raise AssertionError(f"broodd ended with status {code}:\n{self.log()}")
        if left:
            raise AssertionError(f"broodd left processes behind: {left}")
        if os.path.exists(self.socket):
            raise AssertionError("broodd left its socket file behind")
        if "Sanitizer" in self.log() or "runtime error" in self.log():
            raise AssertionError(f"a sanitizer complained:\n{self.log()}")

    def clean_up(self) -> None:
        """Whatever happened before: no process and no file stays. The log is kept in last_log."""
        if os.path.exists(self.log_path):
            self.last_log = self.log()
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout) if self.process else ():
            if stream:
                stream.close()
        shutil.rmtree(self.dir, ignore_errors=True)
