"""The brood command against a scripted broodd: what it prints, and what it exits with.

    client_test.py PATH_OF_BROOD
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any, Callable

import msgpack
from client_fake import Peer, error, output, record, result

BROOD = ""
# Not a pass mark: only keeps a broken command from hanging the test.
WAIT_S = 120.0
HERE = Path(__file__).resolve().parent

Script = Callable[[Peer], None]


class Ended:
    """How one run of the command went."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code, self.out, self.err = code, out, err.decode("utf-8", "replace")


class Case(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(prefix="brood-client-")
        self.addCleanup(directory.cleanup)
        self.dir = Path(directory.name)
        self.path = str(self.dir / "socket")
        self.requests: list[Any] = []
        # What the fake server met with; a failed script must fail the test.
        self.trouble: list[BaseException] = []
        self.fds = os.listdir("/proc/self/fd")

    def tearDown(self) -> None:
        self.assertEqual(self.trouble, [])
        self.assertEqual(len(os.listdir("/proc/self/fd")), len(self.fds))
        with self.assertRaises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)

    def env(self, **more: str) -> dict[str, str]:
        env = {k: v for k, v in os.environ.items() if k not in ("BROOD_SOCKET", "BROOD_BROODD")}
        return {**env, **more}

    def listen(self, script: Script) -> tuple[socket.socket, threading.Thread]:
        """A server for one connection: takes the request, then plays the script."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        listener.listen(1)

        def serve() -> None:
            try:
                sock, _ = listener.accept()
                with sock:
                    peer = Peer(sock)
                    self.requests.append(peer.receive())
                    script(peer)
            except BaseException as trouble:  # pylint: disable=broad-except
                self.trouble.append(trouble)

        # Not waited for at the end, so that a command that does not start fails the test and does not hang it.
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        return listener, thread

    def start(self, *args: str, **popen: Any) -> subprocess.Popen[bytes]:
        popen = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": self.env(), **popen}
        return subprocess.Popen([BROOD, *args], **popen)

    def finish(self, process: subprocess.Popen[bytes], stdin: bytes | None = None) -> Ended:
        out, err = process.communicate(stdin, timeout=WAIT_S)
        return Ended(process.returncode, out or b"", err or b"")

    def plain(self, *args: str, stdin: bytes | None = None, **env: str) -> Ended:
        """A run without a fake server."""
        pipe = subprocess.DEVNULL if stdin is None else subprocess.PIPE
        return self.finish(self.start(*args, stdin=pipe, env=self.env(**env)), stdin)

    def brood(self, script: Script, *args: str, stdin: bytes | None = None) -> Ended:
        """A run against the script."""
        listener, thread = self.listen(script)
        with listener:
            command = args or ("run", "-c", "1")
            ended = self.plain(command[0], "--socket", self.path, *command[1:], stdin=stdin)
            thread.join(WAIT_S)
        os.unlink(self.path)
        return ended

    def says(self, answer: bytes, *args: str) -> Ended:
        return self.brood(lambda peer: peer.send(answer), *args)

    def check(self, ended: Ended, code: int, out: bytes = b"", err: str = "") -> None:
        self.assertEqual((ended.code, ended.out, ended.err), (code, out, err))

    def params(self) -> dict[str, Any]:
        """Of the only request so far."""
        [[kind, call_id, method, [params]]] = self.requests
        self.assertEqual((kind, call_id, method), (0, 1, "run"))
        return params


class Requests(Case):
    """What is sent."""

    def sent(self, *args: str, stdin: bytes | None = None) -> dict[str, Any]:
        self.requests.clear()
        ended = self.brood(lambda peer: peer.send(result(record())), "run", *args, stdin=stdin)
        self.check(ended, 0)
        return self.params()

    def test_code(self) -> None:
        self.assertEqual(self.sent("-c", "1+1"), {"code": "1+1", "name": "<string>", "stream": True})
        self.assertEqual(self.sent("-c", ""), {"code": "", "name": "<string>", "stream": True})

    def test_code_that_is_not_utf8(self) -> None:
        self.assertEqual(self.sent("-c", os.fsdecode(b"'\xff'"))["code"], b"'\xff'")

    def test_file(self) -> None:
        file = self.dir / "prog.py"
        file.write_bytes(b"# coding: latin-1\n'\xe9'\0")
        self.assertEqual(self.sent(str(file)), {"code": file.read_bytes(), "name": str(file), "stream": True})
        file.write_bytes(b"")
        self.assertEqual(self.sent(str(file))["code"], b"")

    def test_standard_input(self) -> None:
        code = b"x = 1\n" * 100_000
        self.assertEqual(self.sent("-", stdin=code), {"code": code, "name": "<stdin>", "stream": True})

    def test_everything(self) -> None:
        params = self.sent("-c", "n", "--input", "n=[1, 2.5]", "--input", 's="\\u00e9"', "--profile", "p", "--wall", "1.5s",
                           "--cpu", "2s", "--memory", "64m", "--output", "2k", "--value", "1k")
        self.assertEqual(params, {
            "code": "n", "name": "<string>", "stream": True, "inputs": {"n": [1, 2.5], "s": "é"}, "profile": "p",
            "limits": {"wall_ms": 1500, "cpu_ms": 2000, "memory_bytes": 64 << 20, "output_bytes": 2048, "value_bytes": 1024}})

    def test_a_request_larger_than_a_socket_buffer(self) -> None:
        """The request is larger than any socket buffer, so sending and waiting must go together."""
        code = b"#" * (8 << 20)
        ended = self.brood(lambda peer: peer.send(result(record())), "run", "-", stdin=code)
        self.check(ended, 0)
        self.assertEqual(len(self.params()["code"]), len(code))

    def test_the_environment_names_the_socket(self) -> None:
        listener, thread = self.listen(lambda peer: peer.send(result(record(repr="7"))))
        with listener:
            self.check(self.plain("run", "-c", "7", BROOD_SOCKET=self.path), 0, b"7\n")
            thread.join(WAIT_S)


class Text(Case):
    """What people see."""

    def test_value(self) -> None:
        self.check(self.says(result(record(repr="'é\\n'"))), 0, "'é\\n'\n".encode())
        self.check(self.says(result(record())), 0)

    def test_output_is_passed_on(self) -> None:
        parts = output(b"one\n") + output(b"\xff\0", "stderr") + output(b"two") + output(b"")
        ended = self.says(parts + result(record(repr="3")))
        self.assertEqual((ended.code, ended.out, ended.err), (0, b"one\ntwo3\n", "\ufffd\0"))

    def test_output_comes_at_once(self) -> None:
        go_on = threading.Event()

        def script(peer: Peer) -> None:
            peer.send(output(b"early\n"))
            self.assertTrue(go_on.wait(WAIT_S))
            peer.send(result(record()))
        listener, thread = self.listen(script)
        with listener:
            process = self.start("run", "--socket", self.path, "-c", "1")
            assert process.stdout
            self.assertEqual(process.stdout.readline(), b"early\n")
            go_on.set()
            self.check(self.finish(process), 0)
            thread.join(WAIT_S)

    def test_much_output(self) -> None:
        data = bytes(range(256)) * 4096
        ended = self.brood(lambda peer: peer.send(output(data) * 8 + result(record())))
        self.assertEqual((ended.code, len(ended.out), ended.err), (0, 8 << 20, ""))
        self.assertEqual(ended.out, data * 8)

    def test_exception(self) -> None:
        trace = 'Traceback (most recent call last):\n  File "<string>", line 1\nValueError: é\n'
        failed = record(status="error", message="ValueError: é", error={"type": "ValueError", "traceback": trace})
        self.check(self.says(result(failed)), 1, err=trace)

    def test_ended_itself(self) -> None:
        self.check(self.says(result(record(exit_code=3))), 1)
        self.check(self.says(result(record(exit_code=-(2**40)))), 1)
        self.check(self.says(result(record(exit_code=0))), 0)

    def test_each_status(self) -> None:
        codes = {"error": 1, "timeout": 124, "cpu": 137, "memory": 137, "output": 137, "denied": 126, "crashed": 137,
                 "cancelled": 125, "busy": 75, "lost": 125}
        for status, code in codes.items():
            with self.subTest(status):
                self.check(self.says(result(record(status=status, message=f"why {status}"))), code, err=f"brood: why {status}\n")

    def test_messages_are_one_line(self) -> None:
        ended = self.says(result(record(status="crashed", message="a\n\x1b[31mb")))
        self.check(ended, 137, err="brood: a  [31mb\n")

    def test_traceback_and_reason(self) -> None:
        denied = record(status="denied", message="refused: socket", error={"traceback": "PermissionError"})
        self.check(self.says(result(denied)), 126, err="PermissionError\nbrood: refused: socket\n")

    def test_what_was_cut(self) -> None:
        cuts = [{"what": "stdout", "kept_bytes": 1048576, "cut_bytes": 52428800, "reason": "limit"},
                {"what": "repr", "kept_bytes": 5, "cut_bytes": 0, "reason": "beyond value_bytes"},
                {"what": "value", "kept_bytes": 0, "cut_bytes": 9, "reason": "beyond value_bytes"}]
        self.check(self.says(result(record(truncated=cuts, repr="12345"))), 0, b"12345\n",
                   "brood: stdout cut after 1048576 bytes (52428800 more were thrown away)\n"
                   "brood: repr cut after 5 bytes: beyond value_bytes\n")

    def test_errors_of_the_protocol(self) -> None:
        self.check(self.says(error("bad-params", "limits: too much")), 2, err="brood: limits: too much (bad-params)\n")
        self.check(self.says(error("unknown-profile", "no p")), 2, err="brood: no p (unknown-profile)\n")
        self.check(self.says(error("unavailable", "no python")), 125, err="brood: no python (unavailable)\n")
        self.check(self.says(error("forbidden", "not you", None)), 125, err="brood: not you (forbidden)\n")

    def test_unknown_notifications_are_passed_over(self) -> None:
        self.check(self.says(msgpack.packb([2, "news", [1, {}]]) + result(record(repr="1"))), 0, b"1\n")

    def test_byte_by_byte(self) -> None:
        answer = output(b"slow\n") + result(record(repr="'done'"))
        self.check(self.brood(lambda peer: peer.send_slowly(answer)), 0, b"slow\n'done'\n")


class Json(Case):
    """What programs see."""

    def test_record(self) -> None:
        answer = result(record(value=[2**60, b"\xff"], stdout=b"a\xff", repr="x"))
        ended = self.says(answer, "run", "--json", "-c", "1")
        self.assertEqual((ended.code, ended.err, ended.out.count(b"\n")), (0, "", 1))
        self.assertEqual(json.loads(ended.out), record(
            value=[{"$int": str(2**60)}, {"$bytes": "/w=="}], stdout="a\\xff", repr="x"))
        self.assertIs(self.params()["stream"], False)

    def test_exit_status_is_the_same(self) -> None:
        ended = self.says(result(record(status="timeout", message="m")), "run", "--json", "-c", "1")
        self.assertEqual((ended.code, ended.err, json.loads(ended.out)["status"]), (124, "", "timeout"))

    def test_nothing_else_on_standard_output(self) -> None:
        ended = self.says(output(b"noise") + result(record()), "run", "--json", "-c", "1")
        self.assertEqual((ended.code, json.loads(ended.out)), (0, record()))

    def test_error(self) -> None:
        for code, exit_code in (("bad-params", 2), ("unavailable", 125)):
            ended = self.says(error(code, 'a "b"'), "run", "--json", "-c", "1")
            self.assertEqual((ended.code, ended.err), (exit_code, ""))
            self.assertEqual(json.loads(ended.out), {"error": {"code": code, "message": 'a "b"'}})

    def test_large(self) -> None:
        ended = self.says(result(record(value="x" * (20 << 20))), "run", "--json", "-c", "1")
        self.assertEqual((ended.code, len(json.loads(ended.out)["value"])), (0, 20 << 20))


class Hostile(Case):
    """A server that is broken, or is none."""

    def fails(self, answer: bytes, phrase: str) -> None:
        for args in ("run", "-c", "1"), ("run", "--json", "-c", "1"):
            ended = self.says(answer, *args)
            self.assertEqual((ended.code, ended.out), (125, b""), ended.err)
            self.assertRegex(ended.err, f"\\Abrood: [^\n]*{phrase}[^\n]*\n\\Z")

    def test_nothing(self) -> None:
        self.fails(b"", "closed the connection before answering")

    def test_half_an_answer(self) -> None:
        answer = result(record())
        for length in (1, 2, len(answer) // 2, len(answer) - 1):
            self.fails(answer[:length], "in the middle of its answer")

    def test_garbage(self) -> None:
        for garbage in (b"\xc1", b"\x94\x01\x01\xc0\xa2\xff\xff", b"\x94\xc1"):
            self.fails(garbage, "no message of the protocol")
        for garbage in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x00" * 100):
            self.fails(garbage, "does not belong to this request")

    def test_wrong_id(self) -> None:
        self.fails(result(record(), 2), "does not belong")
        self.fails(result(record(), None), "does not belong")
        self.fails(error("bad-params", "m", 2), "does not belong")
        self.fails(output(b"x", call_id=2), "does not belong")

    def test_wrong_forms(self) -> None:
        for message in ([0, 1, "run", []], [1, 1, None], [1, 1, "e", None], [2, "output", [1, "stdin", b""]], {}):
            self.fails(msgpack.packb(message), "does not belong")

    def test_giant_lengths(self) -> None:
        for head in (b"\xc6", b"\xdb", b"\xdd", b"\xdf", b"\xc9"):
            self.fails(b"\x94\x01\x01\xc0" + head + struct.pack(">I", 2**32 - 1) + b"\x01", "no message of the protocol")

    def test_deep(self) -> None:
        self.fails(b"\x94\x01\x01\xc0" + b"\x91" * 100_000, "no message of the protocol")

    def test_records_that_are_none(self) -> None:
        for value in (None, 5, [], {}, {"status": "happy"}, {"status": 1}, record(repr=5), record(truncated=[1])):
            ended = self.says(result(value))
            self.assertEqual(ended.code, 125)
            self.assertIn("brood: broodd sent an answer that is not of the protocol\n", ended.err)

    def test_nobody_listens(self) -> None:
        ended = self.plain("run", "--socket", self.path, "-c", "1")
        self.check(ended, 125, err=f"brood: cannot connect to {self.path}: No such file or directory; is broodd running there?\n")
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(self.path)
        ended = self.plain("run", "--socket", self.path, "-c", "1")
        self.check(ended, 125, err=f"brood: cannot connect to {self.path}: Connection refused; is broodd running there?\n")


class Cancelling(Case):
    """Signals, and readers that go away."""

    def cancelled(self, peer: Peer, status: str = "cancelled") -> None:
        """The server's part: one line, then the answer to a cancellation."""
        peer.send(output(b"started\n"))
        self.assertEqual(peer.receive(), [2, "cancel", [1]])
        peer.send(output(b"late\n") + result(record(status=status, message="cancelled by its client")))

    def interrupt(self, number: int, status: str) -> None:
        listener, thread = self.listen(lambda peer: self.cancelled(peer, status))
        with listener:
            process = self.start("run", "--socket", self.path, "-c", "1")
            assert process.stdout
            self.assertEqual(process.stdout.readline(), b"started\n")
            process.send_signal(number)
            self.check(self.finish(process), 125, err="brood: cancelled\n")
            thread.join(WAIT_S)
        os.unlink(self.path)

    def test_signals(self) -> None:
        self.interrupt(signal.SIGINT, "cancelled")
        self.interrupt(signal.SIGTERM, "cancelled")

    def test_a_call_that_ended_meanwhile(self) -> None:
        self.interrupt(signal.SIGINT, "ok")

    def test_json(self) -> None:
        asked = threading.Event()

        def script(peer: Peer) -> None:
            asked.set()
            self.assertEqual(peer.receive(), [2, "cancel", [1]])
            peer.send(result(record(status="cancelled", message="m")))
        listener, thread = self.listen(script)
        with listener:
            process = self.start("run", "--json", "--socket", self.path, "-c", "1")
            self.assertTrue(asked.wait(WAIT_S))
            process.send_signal(signal.SIGINT)
            ended = self.finish(process)
            thread.join(WAIT_S)
        self.assertEqual((ended.code, ended.err, json.loads(ended.out)["status"]), (125, "brood: cancelled\n", "cancelled"))

    def test_a_second_signal_ends_it_at_once(self) -> None:
        cancel_came, ended_already = threading.Event(), threading.Event()

        def script(peer: Peer) -> None:
            peer.send(output(b"started\n"))
            self.assertEqual(peer.receive(), [2, "cancel", [1]])
            cancel_came.set()
            self.assertTrue(ended_already.wait(WAIT_S))
            self.assertIsNone(peer.receive())
        listener, thread = self.listen(script)
        with listener:
            process = self.start("run", "--socket", self.path, "-c", "1")
            assert process.stdout
            self.assertEqual(process.stdout.readline(), b"started\n")
            process.send_signal(signal.SIGINT)
            self.assertTrue(cancel_came.wait(WAIT_S))
            process.send_signal(signal.SIGINT)
            self.check(self.finish(process), 125, err="brood: cancelled\n")
            ended_already.set()
            thread.join(WAIT_S)

    def test_a_server_that_does_not_answer_a_cancellation(self) -> None:
        listener, thread = self.listen(lambda peer: [peer.send(output(b"x\n")), peer.receive(), peer.receive()] and None)
        with listener:
            process = self.start("run", "--socket", self.path, "-c", "1")
            assert process.stdout
            self.assertEqual(process.stdout.readline(), b"x\n")
            process.send_signal(signal.SIGTERM)
            self.check(self.finish(process), 125, err="brood: cancelled\n")
            thread.join(WAIT_S)

    def test_a_blocked_reader_does_not_keep_a_signal(self) -> None:
        """Standard output is a full pipe that nobody reads."""
        def script(peer: Peer) -> None:
            peer.send(output(b"x" * (1 << 20)))
            self.assertEqual(peer.receive(), [2, "cancel", [1]])
            peer.send(result(record(status="cancelled", message="m")))
        listener, thread = self.listen(script)
        with listener:
            process = self.start("run", "--socket", self.path, "-c", "1")
            assert process.stdout
            self.assertEqual(process.stdout.read(1), b"x")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(WAIT_S), 125)
            self.finish(process)
            thread.join(WAIT_S)

    def test_a_reader_that_goes_away(self) -> None:
        def script(peer: Peer) -> None:
            while (message := peer_next(peer)) is None:
                peer.send(output(b"y\n" * 10_000))
            self.assertEqual(message, [2, "cancel", [1]])
            peer.send(result(record(status="cancelled", message="m")))
        listener, thread = self.listen(script)
        with listener:
            process = self.start("run", "--socket", self.path, "-c", "1")
            assert process.stdout and process.stderr
            self.assertEqual(process.stdout.read(2), b"y\n")
            process.stdout.close()
            self.assertEqual(process.stderr.read(), b"")
            process.stderr.close()
            self.assertEqual(process.wait(WAIT_S), 141)
            thread.join(WAIT_S)

    def test_a_full_disk(self) -> None:
        with open("/dev/full", "wb") as full:
            for answer in (output(b"x"), b""):
                listener, thread = self.listen(lambda peer, answer=answer: peer.send(answer + result(record(repr="1"))))
                with listener:
                    process = self.start("run", "--socket", self.path, "-c", "1", stdout=full)
                    ended = self.finish(process)
                    thread.join(WAIT_S)
                os.unlink(self.path)
                self.check(ended, 125, err="brood: cannot write to standard output: No space left on device\n")

    def test_ignored_signals_stay_ignored(self) -> None:
        asked, go_on = threading.Event(), threading.Event()

        def script(peer: Peer) -> None:
            asked.set()
            self.assertTrue(go_on.wait(WAIT_S))
            peer.send(result(record(repr="1")))
        listener, thread = self.listen(script)
        with listener:
            process = self.start("run", "--socket", self.path, "-c", "1",
                                 preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
            self.assertTrue(asked.wait(WAIT_S))
            process.send_signal(signal.SIGINT)
            go_on.set()
            self.check(self.finish(process), 0, b"1\n")
            thread.join(WAIT_S)


def peer_next(peer: Peer) -> Any:
    """A message of the client if one is there, else None."""
    peer.sock.setblocking(False)
    try:
        return peer.receive()
    except BlockingIOError:
        return None
    finally:
        peer.sock.setblocking(True)


class Private(Case):
    """The broodd that the command starts itself."""

    def private(self, scenario: str, *args: str) -> tuple[Ended, dict[str, Any]]:
        log, program = self.dir / "log", self.dir / "broodd"
        program.write_text(f"#!/bin/sh\nexec {sys.executable} {HERE}/client_fake.py {scenario} {log} \"$@\"\n")
        program.chmod(0o755)
        ended = self.plain("run", *args, BROOD_BROODD=str(program))
        facts = json.loads(log.read_text())
        self.assertFalse(os.path.exists(f"/proc/{facts['pid']}"), "the private broodd is still there")
        return ended, facts

    def test_start(self) -> None:
        ended, facts = self.private("ok", "-c", "1")
        self.check(ended, 0, b"'private'\n")
        self.assertEqual(facts["arguments"], ["--stdio", "--log-level", "warning", "-o", "default:parked=1"])
        self.assertEqual((facts["session"], facts["blocked"]), (facts["pid"], 0))
        self.assertEqual([fd for fd in facts["fds"] if fd > 2], [])

    def test_limits_become_the_profile_s(self) -> None:
        _, facts = self.private("ok", "-c", "1", "--wall", "60s", "--memory", "1g", "--config", "/c")
        self.assertEqual(facts["arguments"], ["--stdio", "--log-level", "warning", "--config", "/c", "-o", "default:parked=1",
                                              "-o", "default:wall=60000ms", "-o", "default:memory=1073741824"])

    def test_other_profile(self) -> None:
        _, facts = self.private("ok", "-c", "1", "--profile", "p")
        self.assertEqual(facts["arguments"], ["--stdio", "--log-level", "warning"])
        _, facts = self.private("ok", "-c", "1", "--profile", "p", "--cpu", "1m")
        self.assertEqual(facts["arguments"][-2:], ["-o", "p:cpu=60000ms"])

    def test_large_request(self) -> None:
        file = self.dir / "large.py"
        file.write_bytes(b"#" * (17 << 20))
        ended, facts = self.private("ok", str(file))
        self.assertEqual(ended.code, 0)
        self.assertEqual(facts["arguments"][-2:], ["-o", f"broodd:request={256 << 20}"])

    def test_it_fails(self) -> None:
        ended, _ = self.private("fails", "-c", "1")
        self.check(ended, 125, err="broodd: python = /none: no such interpreter\n"
                                   "brood: broodd ended before answering (exit status 1)\n")

    def test_it_is_killed(self) -> None:
        ended, _ = self.private("killed", "-c", "1")
        self.check(ended, 125, err="brood: broodd ended before answering (signal 9)\n")

    def test_it_does_not_end(self) -> None:
        ended, _ = self.private("stays", "-c", "1")
        self.check(ended, 0, b"'stays'\n")

    def test_it_cannot_be_started(self) -> None:
        ended = self.plain("run", "-c", "1", BROOD_BROODD="/none/broodd")
        self.check(ended, 125, err="brood: cannot start /none/broodd, which BROOD_BROODD names: No such file or directory\n")


class Usage(Case):
    def refused(self, *args: str) -> str:
        ended = self.plain(*args)
        self.assertEqual((ended.code, ended.out), (2, b""), args)
        self.assertRegex(ended.err, r"\Abrood: [^\n]+\nTry 'brood[ a-z]* --help'\.\n\Z")
        return ended.err

    def test_messages(self) -> None:
        self.assertIn("from 16m to 64g", self.refused("run", "-c", "1", "--memory", "1m"))
        self.assertIn("from 1ms to 1h", self.refused("run", "-c", "1", "--wall", "2h"))
        self.assertIn("not JSON", self.refused("run", "-c", "1", "--input", "x=hello"))
        self.assertIn("--input x", self.refused("run", "-c", "1", "--input", "x=1", "--input", "x=1"))
        self.assertIn("'--nothing'", self.refused("run", "-c", "1", "--nothing"))
        self.assertIn("'-z'", self.refused("run", "-z"))
        self.assertIn("'-c' needs", self.refused("run", "-c"))
        self.assertIn("'--wall' needs", self.refused("run", "-c", "1", "--wall"))
        self.assertIn("nothing to run", self.refused("run"))
        self.assertIn("private broodd", self.refused("run", "-c", "1", "--socket", "s", "--config", "c"))
        self.assertIn("BROOD_SOCKET", self.refused("status"))
        self.assertIn("'frobnicate'", self.refused("frobnicate"))
        self.assertIn("'frobnicate'", self.refused("help", "frobnicate"))

    def test_files(self) -> None:
        self.assertIn("/none: No such file", self.refused("run", "/none"))
        self.assertIn("is a directory", self.refused("run", str(self.dir)))
        large = self.dir / "large"
        with open(large, "wb") as file:
            file.truncate((256 << 20) + 1)
        self.assertIn("too large", self.refused("run", str(large)))
        with open(large, "wb") as file:
            file.truncate(256 << 20)
        self.assertIn("too large", self.refused("run", str(large)))  # with what surrounds it
        self.assertIn("too large", self.refused("run", "/dev/zero"))

    def test_help(self) -> None:
        for args in (("help",), ("--help",), ("run", "--help"), ("help", "run"), ("status", "-h"), ("help", "status")):
            ended = self.plain(*args)
            self.assertEqual((ended.code, ended.err), (0, ""))
            self.assertTrue(ended.out.startswith(b"Usage: brood "), args)
        self.assertEqual(self.plain("run", "--help").out, self.plain("help", "run").out)

    def test_version(self) -> None:
        self.assertRegex(self.plain("--version").out, rb"\Abrood \d+\.\d+\.\d+\n\Z")
        with open("/dev/full", "wb") as full:
            self.assertEqual(self.finish(self.start("--version", stdout=full)).code, 125)

    def test_nothing_given(self) -> None:
        ended = self.plain()
        self.assertEqual((ended.code, ended.out), (2, b""))
        self.assertIn("Usage: brood ", ended.err)


class Status(Case):
    ANSWER = {"version": "1", "calls": {"open": 0}, "profiles": {"p": {"layers": ["a", "b"], "message": "x\ny"}}}

    def test_text(self) -> None:
        ended = self.says(result(self.ANSWER), "status")
        self.check(ended, 0, b"version: 1\ncalls:\n  open: 0\nprofiles:\n  p:\n    layers: a, b\n    message: x y\n")
        self.assertEqual(self.requests, [[0, 1, "status", []]])

    def test_json(self) -> None:
        ended = self.says(result(self.ANSWER), "status", "--json")
        self.assertEqual((ended.code, ended.err, json.loads(ended.out)), (0, "", self.ANSWER))

    def test_not_a_status(self) -> None:
        self.assertEqual(self.says(result(5), "status").code, 125)
        deep: Any = {}
        for _ in range(20):
            deep = {"a": deep}
        self.assertEqual(self.says(result(deep), "status").code, 125)


if __name__ == "__main__":
    BROOD = sys.argv.pop(1)
    unittest.main()
