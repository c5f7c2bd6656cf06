"""Bad input, each with one clear error and no harm: another client's calls go on all the while."""

from __future__ import annotations

import os
import struct
import unittest
from typing import Any

import msgpack

from tests.support import processes
from tests.support.case import SupervisorCase
from tests.support.client import Client, Closed, pack, request

BIG_NEST = 100_000


class ProtocolCase(SupervisorCase):
    """Every test ends with a proof that a client which was connected all along still gets its answers."""

    CONFIG = "[broodd]\nclients = 64\n[profile default]\nparked = 2\n[profile small]\nwall = 2s\nmemory = 64m\noutput = 1k\n"

    def setUp(self) -> None:
        super().setUp()
        self.bystander = self.connect()
        self.waiting = self.bystander.running("import time; time.sleep(3600)", limits={"wall_ms": 5000})

    def tearDown(self) -> None:
        self.assertEqual(self.bystander.run("6 * 7").value, 42)
        self.bystander.notify("cancel", self.waiting)
        self.assertEqual(self.bystander.record(self.waiting).status, "cancelled")

    def error_then_closed(self, client: Client) -> str:
        """`malformed`, without an id, and the end of the connection."""
        error = self.refused("malformed", client=client)
        self.assertTrue(client.at_end(), "the connection is open after `malformed`")
        return error.message

    @staticmethod
    def send_as_far_as_it_goes(client: Client, data: bytes) -> None:
        """The server may close before it has read all; its last word is still there to be read."""
        try:
            client.send_raw(data)
        except (BrokenPipeError, ConnectionResetError):
            pass


class MalformedTest(ProtocolCase):
    def test_not_messagepack(self) -> None:
        for data in (b"\xc1", b"GET / HTTP/1.1\r\n\r\n", b"\x94\x00\x01\xc1", b"{}\n", b"\xff" * 100, os.urandom(0) + b"\xc1" * 4096):
            with self.subTest(data=data[:20]), self.connect() as client:
                client.send_raw(data)
                self.error_then_closed(client)

    def test_not_a_message(self) -> None:
        for message in (None, 1, "run", {}, [], [0], [3, 1, "run", []], [0, 1, "run"], [0, 1, "run", [], 5], [1, 1, None, None],
                        [0, -1, "run", []], [0, 2**32, "run", []], [0, "1", "run", []], [0, 1.0, "run", []], [0, None, "run", []],
                        [0, 1, 5, []], [0, 1, b"run", []], [0, 1, "run", {}], [0, 1, "run", None], [0, 1, "x" * 65, []],
                        [2, "cancel"], [2, "cancel", [], 1], [2, 1, []], [True, 1, "run", []], [-1, 1, "run", []]):
            with self.subTest(message=message), self.connect() as client:
                client.send_raw(pack(message))
                self.error_then_closed(client)

    def test_declared_length_of_four_gigabytes(self) -> None:
        start = request(1, "run", {"code": ""})[:-1]
        for name, head in {"str": b"\xdb", "bin": b"\xc6", "ext": b"\xc9", "array": b"\xdd", "map": b"\xdf"}.items():
            with self.subTest(name), self.connect() as client:
                before = self.memory()
                client.send_raw(start + head + struct.pack(">I", 0xFFFFFFFF) + b"\x05" * (name == "ext"))
                # Lengths are refused by their head. Counts of elements may wait for bytes, but must not take memory for them.
                if name in ("array", "map"):
                    client.finish_sending()
                self.error_then_closed(client)
                self.assertLess(self.memory() - before, 16 << 20)

    def memory(self) -> int:
        with open(f"/proc/{self.supervisor.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")

    def test_nesting(self) -> None:
        for name, level in {"array": b"\x91", "map of nil": b"\x81\xc0", "array 16": b"\xdc\0\x01"}.items():
            with self.subTest(name), self.connect() as client:
                self.send_as_far_as_it_goes(client, level * BIG_NEST)
                self.error_then_closed(client)

    def test_nesting_by_extensions(self) -> None:
        value: Any = None
        for _ in range(100):
            value = msgpack.ExtType(3, pack([value]))
        with self.connect() as client:
            client.send_raw(request(1, "run", {"code": "", "inputs": {"x": value}}))
            self.error_then_closed(client)

    def test_nesting_at_the_limit(self) -> None:
        value: Any = 0
        for _ in range(64):
            value = [value]
        depth = "d = 0\nwhile isinstance(x, list): x, d = x[0], d + 1\nd"
        self.assertEqual(self.value(depth, inputs={"x": value}), 64)
        with self.connect() as client:
            client.start(depth, inputs={"x": [value]})
            self.error_then_closed(client)

    def test_truncated(self) -> None:
        whole = request(1, "run", {"code": "print(1)", "inputs": {"x": [1, "two", b"three", 4.0, {"five": 6}]}})
        for length in range(1, len(whole)):
            with self.connect() as client:
                client.send_raw(whole[:length])
                client.finish_sending()
                self.error_then_closed(client)

    def test_text_that_is_not_utf8(self) -> None:
        for field, bad in {"code": b"\xa1\xff", "name": b"\xa3\xed\xa0\x80", "profile": b"\xa1\x80"}.items():
            with self.subTest(field), self.connect() as client:
                good = {"code": "1", field: "@"}
                client.send_raw(request(1, "run", good).replace(b"\xa1@", bad))
                self.error_then_closed(client)

    def test_request_too_large(self) -> None:
        with self.connect() as client:
            self.send_as_far_as_it_goes(client, request(1, "run", {"code": "#" * (17 << 20)}))
            self.error_then_closed(client)

    def test_request_of_many_pieces(self) -> None:
        """Too large only in sum: no single length gives it away."""
        with self.connect() as client:
            self.send_as_far_as_it_goes(client, request(1, "run", {"code": "1", "inputs": {"x": ["y" * 1000] * 17_000}}))
            self.error_then_closed(client)

    def test_large_request_that_is_allowed(self) -> None:
        data = b"x" * (15 << 20)
        self.assertEqual(self.value("len(x)", inputs={"x": data}), len(data))

    def test_answers_before_the_bad_bytes_still_come(self) -> None:
        with self.connect() as client:
            client.send_raw(request(1, "hello", {}) + b"\xc1")
            self.assertEqual(client.result(1)["version"], 1)
            self.error_then_closed(client)

    def test_calls_of_a_client_that_turns_bad_are_ended(self) -> None:
        running = self.bystander.status()["calls"]["running"]
        with self.connect() as client:
            client.running("while True: pass", limits={"wall_ms": 5000})
            client.send_raw(b"\xc1")
            self.error_then_closed(client)
        processes.poll(lambda: self.bystander.status()["calls"]["running"] == running, "its call is ended")


class FormTest(ProtocolCase):
    """Messages that are well formed, but wrong: the connection goes on."""

    def test_unknown_methods(self) -> None:
        for method in ("", "Run", "run ", "shutdown", "é", "x" * 64):
            with self.subTest(method=method):
                self.refused("unknown-method", call_id=self.client.request(method))
        self.assertEqual(self.value("1"), 1)

    def test_wrong_types_of_every_field(self) -> None:
        wrong: dict[str, list[Any]] = {
            "code": [None, 1, 1.5, True, [], {}],
            "name": [None, 1, b"bytes", [], "x" * 1025],
            "inputs": [None, 1, "x", [], [["x", 1]], {1: 1}, {b"x": 1}, {None: 1}, {"x" * 1025: 1}],
            "profile": [None, 1, b"default", []],
            "limits": [None, 1, [], {1: 1}, {"wall": 1}, {"wall_ms": "1"}, {"wall_ms": -1}, {"wall_ms": 1.5}, {"wall_ms": None},
                       {"wall_ms": True}, {"cpu_ms": []}, {"memory_bytes": "1m"}, {"output_bytes": b"1"}, {"value_bytes": {}}],
            "stream": [None, 0, 1, "yes", []],
            "no_such_field": [1],
            "Code": ["1"],
        }
        for field, values in wrong.items():
            for value in values:
                with self.subTest(field=field, value=value):
                    call = self.client.request("run", {"code": "1", **{field: value}})
                    error = self.refused("bad-params", call_id=call)
                    if field not in ("inputs", "limits"):
                        self.assertIn(field, error.message)
        self.assertEqual(self.value("1"), 1)

    def test_params_of_wrong_shape(self) -> None:
        for method, params in (
            ("run", []), ("run", [1]), ("run", [{}]), ("run", [{"code": "1"}, {}]), ("run", [{1: "x"}]), ("run", ["1"]), ("run", [None]),
            ("hello", []), ("hello", [1]), ("hello", [{"version": "1"}]), ("hello", [{"client": 1}]), ("hello", [{"x": 1}]),
            ("hello", [{"client": "x" * 129}]), ("cancel", []), ("cancel", ["1"]), ("cancel", [-1]), ("cancel", [2**32]),
            ("cancel", [1, 2]), ("status", [1]), ("status", [{}]),
        ):
            with self.subTest(method=method, params=params):
                self.refused("bad-params", call_id=self.client.request(method, *params))

    def test_a_field_given_twice(self) -> None:
        twice = b"\x94\x00\x01\xa3run\x91\x82\xa4code\xa11\xa4code\xa12"
        self.client.send_raw(twice)
        self.refused("bad-params", call_id=1)

    def test_limits_beyond_the_profile(self) -> None:
        above = {"wall_ms": 2001, "memory_bytes": (64 << 20) + 1, "output_bytes": 1025, "cpu_ms": 5001, "value_bytes": (1 << 20) + 1}
        for field, value in above.items():
            for beyond in (value, 2**63, 2**64 - 1):
                with self.subTest(field=field, value=beyond):
                    call = self.client.start("1", profile="small", limits={field: beyond})
                    error = self.refused("bad-params", call_id=call)
                    self.assertIn(field, error.message)
                    self.assertIn("small", error.message)
            self.assertEqual(self.client.run("1", profile="small", limits={field: value - 1}).status, "ok")
        for field, value in {"wall_ms": 0, "cpu_ms": 0, "memory_bytes": 1, "value_bytes": 1}.items():
            with self.subTest(field=field, value=value):
                self.refused("bad-params", call_id=self.client.start("1", limits={field: value}))

    def test_unknown_profile(self) -> None:
        for name in ("none", "", "Default", "default ", "x" * 1000):
            with self.subTest(name=name):
                error = self.refused("unknown-profile", call_id=self.client.start("1", profile=name))
                self.assertIn(name[:60], error.message)

    def test_duplicate_id(self) -> None:
        call = self.client.running("import time; time.sleep(3600)")
        self.client.send_raw(request(call, "run", {"code": "print('second')"}))
        self.assertIn(str(call), self.refused("duplicate-id").message)
        self.client.notify("cancel", call)
        self.assertEqual(self.client.record(call).status, "cancelled")
        self.client.send_raw(request(call, "run", {"code": "'again'"}))
        self.assertEqual(self.client.record(call).value, "again")

    def test_hello(self) -> None:
        hello = self.client.hello()
        self.assertEqual((hello["version"], hello["pid"]), (1, self.supervisor.pid))
        self.assertRegex(hello["server"], r"^broodd \d+\.\d+\.\d+$")
        self.assertEqual(sorted(hello["profiles"]), ["default", "small"])
        self.assertEqual(hello["limits"], {"request_bytes": 16 << 20, "nesting": 64, "open_calls": 256})
        self.assertEqual(self.client.call("hello", {})["version"], 1)
        self.refused("unsupported-version", call_id=self.client.request("hello", {"version": 2}))
        self.refused("unsupported-version", call_id=self.client.request("hello", {"version": 0}))

    def test_notifications_get_no_answer(self) -> None:
        for message in ([2, "no-such-method", []], [2, "hello", [{}]], [2, "status", []], [2, "cancel", [77]], [2, "cancel", ["x"]],
                        [2, "run", [{"code": "1"}]], [2, "run", []]):
            self.client.send_raw(pack(message))
        self.client.hello()
        self.assertFalse(self.client.answers)

    def test_status(self) -> None:
        status = self.client.status()
        self.assertLessEqual({"version", "pid", "uptime_ms", "clients", "calls", "profiles"}, set(status))
        self.assertLessEqual({"open", "queued", "running", "total", "ok", "error", "timeout", "cpu", "memory", "output", "denied",
                              "crashed", "cancelled", "busy", "lost"}, set(status["calls"]))
        self.assertEqual(set(status["profiles"]), {"default", "small"})
        self.assertEqual(status["calls"]["running"], 1)
        self.assertIn("3.", status["profiles"]["default"]["python"])


class TransportTest(ProtocolCase):
    """Odd ways to send, and clients that vanish."""

    def test_byte_at_a_time(self) -> None:
        for byte in request(1, "run", {"code": "x + 1", "inputs": {"x": 41}}):
            self.client.send_raw(bytes([byte]))
        self.assertEqual(self.client.record(1).value, 42)

    def test_many_requests_in_one_write(self) -> None:
        self.client.send_raw(b"".join(request(n, "run", {"code": f"{n} * 2"}) for n in range(1, 101)))
        for n in range(1, 101):
            self.assertEqual(self.client.record(n).value, 2 * n)

    def test_a_request_and_a_half(self) -> None:
        data = request(1, "run", {"code": "1"}) + request(2, "run", {"code": "2"})
        for cut in (1, 5, len(data) // 2 + 1, len(data) - 1):
            with self.subTest(cut=cut), self.connect() as client:
                client.send_raw(data[:cut])
                self.bystander.hello()
                client.send_raw(data[cut:])
                self.assertEqual([client.record(1).value, client.record(2).value], [1, 2])

    def test_every_way_to_write_a_number_and_a_text(self) -> None:
        """MessagePack has several forms for one value; all are taken."""
        for number in (b"\x07", b"\xcc\x07", b"\xcd\0\x07", b"\xce\0\0\0\x07", b"\xcf\0\0\0\0\0\0\0\x07", b"\xd0\x07", b"\xd3\0\0\0\0\0\0\0\x07"):
            for text in (b"\xa4code", b"\xd9\x04code", b"\xda\0\x04code", b"\xdb\0\0\0\x04code"):
                self.client.send_raw(b"\x94\x00" + number + b"\xd9\x03run\xdc\0\x01\xde\0\x01" + text + b"\xc4\x05'yes'")
                self.assertEqual(self.client.record(7).value, "yes")

    def test_half_close(self) -> None:
        """Done with sending, not with reading: answers still come, then the end."""
        with self.connect() as client:
            calls = [client.start(f"import time; time.sleep(0.05); {n}") for n in range(4)]
            client.finish_sending()
            self.assertEqual([client.record(call).value for call in calls], [0, 1, 2, 3])
            self.assertTrue(client.at_end())

    def test_vanishing_while_calls_run(self) -> None:
        before = self.bystander.status()["calls"]["running"]
        client = self.connect()
        for _ in range(3):
            client.running("while True: pass", limits={"wall_ms": 5000})
        self.assertEqual(self.bystander.status()["calls"]["running"], before + 3)
        client.close()
        self.gone(before)

    def test_vanishing_while_calls_wait(self) -> None:
        before = self.bystander.status()["calls"]["running"]
        client = self.connect()
        for _ in range(200):
            client.start("while True: pass", limits={"wall_ms": 5000})
        client.hello()
        client.close()
        self.gone(before)

    def test_vanishing_with_a_reset(self) -> None:
        """Closed with an answer unread, so that the next write to it fails."""
        before = self.bystander.status()["calls"]["running"]
        for _ in range(20):
            client = self.connect()
            for _ in range(5):
                client.start("'x' * 100_000")
            client.close()
        self.gone(before)

    def test_vanishing_inside_a_request(self) -> None:
        whole = request(1, "run", {"code": "1"})
        for length in range(0, len(whole)):
            client = self.connect()
            client.send_raw(whole[:length])
            client.close()
        self.gone(self.bystander.status()["calls"]["running"])

    def gone(self, running: int) -> None:
        def ended() -> bool:
            status = self.bystander.status()
            return status["calls"]["running"] == running and status["calls"]["queued"] == 0 and status["clients"] <= 2
        processes.poll(ended, "the calls of a client that is gone are ended")

    def test_a_reader_that_does_not_read(self) -> None:
        """Its answers pile up to a bound; others are served meanwhile; once it reads, all of them come."""
        with self.connect() as client:
            calls = [client.start("'x' * 900_000") for _ in range(50)]
            for _ in range(20):
                self.assertEqual(self.bystander.run("1").value, 1)
            for call in calls:
                self.assertEqual(len(client.record(call).value), 900_000)

    def test_a_streaming_reader_that_does_not_read(self) -> None:
        """The stream stands still, the deadline does not."""
        with self.connect() as client:
            call = client.start("while True: print('x' * 1000)", stream=True, profile="default", limits={"wall_ms": 1500})
            self.assertEqual(self.bystander.run("1").value, 1)
            self.assertIn(client.record(call).status, ("timeout", "output"))
            self.assertLessEqual(len(client.outputs[call, "stdout"]), 1 << 20)

    def test_too_many_open_calls(self) -> None:
        calls = [self.client.start("import time; time.sleep(0.001)") for _ in range(300)]
        statuses = [self.client.record(call).status for call in calls]
        self.assertEqual(set(statuses), {"ok", "busy"})
        self.assertGreaterEqual(statuses.count("ok"), 256)

    def test_too_many_connections(self) -> None:
        clients = [self.connect() for _ in range(100)]
        taken = 0
        for client in clients:
            try:
                client.hello()
                taken += 1
            except (BrokenPipeError, ConnectionResetError, Closed):
                pass
            except TimeoutError:
                self.fail("a connection that was not taken is open")
        self.assertLessEqual(taken, 64)
        self.assertGreater(taken, 50)
        for client in clients:
            client.close()


if __name__ == "__main__":
    unittest.main()
