"""A broodd that says what it is told to say, over a socket or, as the private one, over standard input and output.

As a program: client_fake.py SCENARIO LOG ARGUMENTS... writes its arguments to LOG and plays the scenario on descriptor 0.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any, Callable

import msgpack

RECORD: dict[str, Any] = {
    "status": "ok", "message": "", "value": None, "repr": None, "stdout": "", "stderr": "", "error": None,
    "exit_code": None, "signal": None, "usage": {"wall_us": 1}, "receipt": {"layers": []}, "truncated": [],
}


def record(**fields: Any) -> dict[str, Any]:
    return {**RECORD, **fields}


def result(value: Any, call_id: Any = 1) -> bytes:
    return msgpack.packb([1, call_id, None, value])


def error(code: str, message: str, call_id: Any = 1) -> bytes:
    return msgpack.packb([1, call_id, {"code": code, "message": message}, None])


def output(data: bytes, stream: str = "stdout", call_id: int = 1) -> bytes:
    return msgpack.packb([2, "output", [call_id, stream, data]])


class Peer:
    """One connection as the server sees it."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.unpacker = msgpack.Unpacker(strict_map_key=False, max_buffer_size=1 << 30,
                                         ext_hook=lambda code, data: (code, data))

    def receive(self) -> Any:
        """The next message, or None at the end."""
        while True:
            for message in self.unpacker:
                return message
            try:
                data = self.sock.recv(1 << 16)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self.unpacker.feed(data)

    def send(self, data: bytes) -> None:
        """The client may be gone; that is its own affair."""
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def send_slowly(self, data: bytes) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        for i in range(len(data)):
            self.send(data[i : i + 1])


def private_ok(peer: Peer) -> None:
    peer.receive()
    peer.send(result(record(repr="'private'")))
    peer.receive()  # the end of file that ends it


def private_fails(_: Peer) -> None:
    print("broodd: python = /none: no such interpreter", file=sys.stderr, flush=True)
    sys.exit(1)


def private_killed(_: Peer) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def private_stays(peer: Peer) -> None:
    """Answers, and then does not end when it should."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    peer.receive()
    peer.send(result(record(repr="'stays'")))
    while True:
        signal.pause()


SCENARIOS: dict[str, Callable[[Peer], None]] = {
    "ok": private_ok, "fails": private_fails, "killed": private_killed, "stays": private_stays,
}


def main() -> None:
    scenario, log, *arguments = sys.argv[1:]
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    facts = {"pid": os.getpid(), "session": os.getsid(0), "arguments": arguments, "blocked": len(blocked),
             "fds": sorted(int(fd) for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}"))}
    Path(log).write_text(json.dumps(facts), encoding="utf-8")
    SCENARIOS[scenario](Peer(socket.socket(fileno=0)))


if __name__ == "__main__":
    main()
