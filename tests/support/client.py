"""A small client of the protocol, with access to the raw bytes: tests send what no honest client would."""

from __future__ import annotations

import os
import select
import socket
import time
from typing import Any, Callable

import msgpack

from .values import from_ext, to_wire

# Not a pass mark: only keeps a broken server from hanging the test.
WAIT_S = 120.0


class RpcError(Exception):
    """A response that carries an error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Closed(Exception):
    """The server closed the connection."""


class Record(dict[str, Any]):
    """The answer to a `run`, with its fields as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the record has no field {name}") from None

    def cut(self, what: str) -> dict[str, Any] | None:
        """What `truncated` says about one thing, None when it was not cut."""
        found = [entry for entry in self["truncated"] if entry["what"] == what]
        if len(found) > 1:
            raise AssertionError(f"{what} is in `truncated` {len(found)} times")
        return found[0] if found else None


def pack(message: Any) -> bytes:
    return msgpack.packb(message)


def request(call_id: int, method: str, *params: Any) -> bytes:
    return pack([0, call_id, method, list(params)])


class Client:
    """One connection. Answers that come for other ids than the one waited for are kept until they are asked for."""

    def __init__(self, read_fd: int, write_fd: int, sock: socket.socket | None = None) -> None:
        self.read_fd, self.write_fd, self.sock = read_fd, write_fd, sock
        self.unpacker = msgpack.Unpacker(ext_hook=from_ext, strict_map_key=False, max_buffer_size=1 << 30)
        self.answers: dict[int | None, list[tuple[Any, Any]]] = {}
        self.outputs: dict[tuple[int, str], bytes] = {}
        self.output_order: list[tuple[int, str, bytes]] = []
        self.next_id = 1

    @classmethod
    def connect(cls, path: str) -> Client:
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect(path)
        except OSError:
            sock.close()
            raise
        return cls(sock.fileno(), sock.fileno(), sock)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.sock:
            self.sock.close()
        elif self.read_fd >= 0:
            os.close(self.read_fd)
            os.close(self.write_fd)
        self.sock, self.read_fd, self.write_fd = None, -1, -1

    # --- sending ---

    def send_raw(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.write_fd, view) :]

    def finish_sending(self) -> None:
        """Half-close: no more requests, answers still come."""
        assert self.sock
        self.sock.shutdown(socket.SHUT_WR)

    def request(self, method: str, *params: Any) -> int:
        call_id = self.next_id
        self.next_id += 1
        self.send_raw(request(call_id, method, *params))
        return call_id

    def notify(self, method: str, *params: Any) -> None:
        self.send_raw(pack([2, method, list(params)]))

    def start(self, code: str | bytes, **fields: Any) -> int:
        """Sends a `run` and returns its id. `inputs` are given as Python values."""
        if "inputs" in fields:
            fields["inputs"] = to_wire(fields["inputs"])
        return self.request("run", {"code": code, **fields})

    # --- receiving ---

    def receive(self, wait_s: float = WAIT_S) -> Any:
        """The next message, whatever it is. Closed at the end of the connection, TimeoutError when nothing comes."""
        deadline = time.monotonic() + wait_s
        while True:
            for message in self.unpacker:
                return message
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.read_fd], [], [], left)[0]:
                raise TimeoutError(f"no message from broodd within {wait_s:g} s")
            try:
                data = os.read(self.read_fd, 1 << 16)
            except ConnectionResetError:
                data = b""
            if not data:
                raise Closed("broodd closed the connection")
            self.unpacker.feed(data)

    def take(self) -> None:
        """Receives one message and puts it where it belongs."""
        message = self.receive()
        if message[0] == 2:
            kind, method, (call_id, stream, data) = message
            if method != "output":
                raise AssertionError(f"an unknown notification: {message!r}")
            key = (call_id, stream)
            self.outputs[key] = self.outputs.get(key, b"") + data
            self.output_order.append((call_id, stream, data))
        else:
            kind, call_id, error, result = message
            if kind != 1:
                raise AssertionError(f"neither response nor notification: {message!r}")
            self.answers.setdefault(call_id, []).append((error, result))

    def until(self, condition: Callable[[], Any]) -> Any:
        """Receives until the condition holds, and returns what it gave."""
        while not (value := condition()):
            self.take()
        return value

    def result(self, call_id: int | None) -> Any:
        """Waits for the answer to a request: its result, or an RpcError raised."""
        error, result = self.until(lambda: self.answers.get(call_id)).pop(0)
        if not self.answers[call_id]:
            del self.answers[call_id]
        if error is not None:
            raise RpcError(error["code"], error["message"])
        return result

    def record(self, call_id: int) -> Record:
        return Record(self.result(call_id))

    def wait_output(self, call_id: int, text: bytes, stream: str = "stdout") -> None:
        """Waits until the streamed output of a running call contains `text`."""
        def seen() -> bool:
            if call_id in self.answers:
                raise AssertionError(f"the call ended before it wrote {text!r}: {self.answers[call_id]}")
            return text in self.outputs.get((call_id, stream), b"")
        self.until(seen)

    def at_end(self) -> bool:
        """Waits for the end of the connection. False if a message comes instead."""
        try:
            self.take()
        except Closed:
            return True
        return False

    # --- whole calls ---

    def call(self, method: str, *params: Any) -> Any:
        return self.result(self.request(method, *params))

    def run(self, code: str | bytes, **fields: Any) -> Record:
        return self.record(self.start(code, **fields))

    def running(self, code: str, **fields: Any) -> int:
        """Starts code that prints a line "started" once it runs, and waits for that line."""
        call_id = self.start("print('started', flush=True)\n" + code, stream=True, **fields)
        self.wait_output(call_id, b"started\n")
        return call_id

    def hello(self) -> Any:
        return self.call("hello", {"version": 1, "client": "test"})

    def status(self) -> Any:
        return self.call("status")
