"""Test cases that share one supervisor, and skips that say why."""

from __future__ import annotations

import sys
import unittest
from typing import Any, NoReturn

from .client import Client, Record, RpcError
from .supervisor import SANITIZED, Supervisor


def skip(reason: str) -> NoReturn:
    """Skips the running test. The reason stands on a line of its own, where the test runner looks for it."""
    print(f"\nSKIP: {reason}", flush=True)
    raise unittest.SkipTest(reason)


def needs_filter() -> None:
    if SANITIZED:
        skip("the seccomp filters are off in sanitizer builds")


class SupervisorCase(unittest.TestCase):
    """One broodd for all tests of the class; each test has a client of its own in self.client."""

    CONFIG = ""
    ENV: dict[str, str] | None = None
    supervisor: Supervisor

    @classmethod
    def setUpClass(cls) -> None:
        cls.supervisor = Supervisor(cls.CONFIG, env=cls.ENV)
        cls.addClassCleanup(cls.supervisor.clean_up)
        cls.supervisor.start()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.supervisor.stop()

    def setUp(self) -> None:
        self.client = self.connect()

    def run(self, result: unittest.TestResult | None = None) -> unittest.TestResult | None:
        """As inherited, and shows what broodd said when the test fails."""
        bad = self._bad(result)
        returned = super().run(result)
        if self._bad(result) > bad:
            print(f"\n--- end of broodd's log, {self.id()}:\n{self.supervisor.log()[-4000:]}---", file=sys.stderr, flush=True)
        return returned

    @staticmethod
    def _bad(result: unittest.TestResult | None) -> int:
        return len(result.failures) + len(result.errors) if result else 0

    def connect(self) -> Client:
        client = self.supervisor.connect()
        self.addCleanup(client.close)
        return client

    # --- assertions ---

    def ends(self, status: str, code: str | bytes, **fields: Any) -> Record:
        """Runs code and checks how it ends."""
        record = self.client.run(code, **fields)
        self.check_shape(record)
        self.assertEqual(record.status, status, dict(record))
        return record

    def value(self, code: str | bytes, **fields: Any) -> Any:
        """The value of code that must end well."""
        return self.ends("ok", code, **fields).value

    def check_shape(self, record: Record) -> None:
        """Every field that PROTOCOL.md promises is there, with its type."""
        kinds: dict[str, Any] = {
            "status": str, "message": str, "repr": (str, type(None)), "stdout": (str, bytes), "stderr": (str, bytes),
            "error": (dict, type(None)), "exit_code": (int, type(None)), "signal": (int, type(None)), "usage": dict,
            "receipt": dict, "truncated": list,
        }
        self.assertLessEqual({"value", *kinds}, set(record))
        for field, kind in kinds.items():
            self.assertIsInstance(record[field], kind, field)
        self.assertEqual(record.status == "ok", record.message == "", dict(record))
        self.assertNotIn("\n", record.message)
        self.assertLessEqual({"wall_us", "cpu_us", "peak_memory_bytes", "queue_us"}, set(record.usage))
        self.assertLessEqual({"layers", "image", "profile", "worker"}, set(record.receipt))
        for entry in record.truncated:
            self.assertLessEqual({"what", "kept_bytes", "cut_bytes", "reason"}, set(entry))
        if record.error is not None:
            self.assertEqual({"type", "message", "traceback", "line"}, set(record.error))

    def refused(self, code: str, *, client: Client | None = None, call_id: int | None = None) -> RpcError:
        """Waits for an error answer and checks its code."""
        with self.assertRaises(RpcError) as caught:
            (client or self.client).result(call_id)
        self.assertEqual(caught.exception.code, code, caught.exception.message)
        self.assertTrue(caught.exception.message)
        return caught.exception
