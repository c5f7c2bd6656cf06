"""Workers that misbehave with all that a process can do: each spoils its own answer and nothing else.

The code writes to the answer pipe (descriptor 4) itself, as native code could. Whatever it writes, its call gets one answer, the calls that
run beside it are not disturbed, and the supervisor stays well.
"""

from __future__ import annotations

import unittest

import msgpack

from tests.support import processes
from tests.support.case import SupervisorCase, needs_filter
from tests.support.client import Record

# A frame and the parts of a good answer, for the code of the workers.
PRELUDE = """
import os, struct, time
def frame(payload): return struct.pack('<I', len(payload)) + payload
def text(s): return bytes([0xa0 + len(s)]) + s.encode()
def result(n): return frame(b'\\x92\\x03\\x86' + text('outcome') + text('ok') + text('value') + bytes([n]) + text('repr') + text(str(n))
                            + text('error') + b'\\xc0' + text('exit_code') + b'\\xc0' + text('truncated') + b'\\x90')
def hang(): time.sleep(3600)
"""
PARKED = "frame(b'\\x91\\x01')"


class HostileCase(SupervisorCase):
    CONFIG = "[profile default]\nparked = 3\nwall = 20s\ncpu = 20s\n"

    def setUp(self) -> None:
        super().setUp()
        self.bystander = self.connect()
        self.waiting = self.bystander.running("import time; time.sleep(3600)")

    def tearDown(self) -> None:
        """The call beside it ran on, new ones run well, nothing is left."""
        self.assertEqual(self.bystander.run("6 * 7").value, 42)
        self.bystander.notify("cancel", self.waiting)
        self.assertEqual(self.bystander.record(self.waiting).status, "cancelled")
        processes.poll(lambda: not processes.zombies(self.supervisor.pid), "no zombie is left")

    def hostile(self, code: str, statuses: tuple[str, ...] = ("crashed",), wall_ms: int = 20_000) -> Record:
        record = self.client.run("print('before', flush=True)\n" + PRELUDE + code, limits={"wall_ms": wall_ms})
        self.check_shape(record)
        self.assertIn(record.status, statuses, dict(record))
        self.assertIn(record.stdout[:7], ("before\n", b"before\n"))
        return record


class AnswerPipeTest(HostileCase):
    def test_garbage(self) -> None:
        for code in (
            "os.write(4, b'garbage, more than a header')", "os.write(4, bytes(64))", "os.write(4, b'\\xff' * 64)",
            "os.write(4, frame(b'\\xc1'))", "os.write(4, frame(b''))", "os.write(4, frame(b'\\x90'))", "os.write(4, frame(b'\\x91\\x02'))",
            "os.write(4, frame(b'\\x91\\x04'))", "os.write(4, frame(b'\\x92\\x03\\xc0'))", "os.write(4, frame(b'\\x92\\x03\\x80'))",
            "os.write(4, frame(b'\\x92\\x03\\x81' + text('outcome') + text('great')))",
            "os.write(4, frame(b'\\x92\\x03\\x81' + text('outcome') + b'\\x01'))",
            "os.write(4, frame(b'\\x92\\x03\\x82' + text('outcome') + text('ok') + text('outcome') + text('ok')))",
            "os.write(4, frame(b'\\x92\\x03\\x82' + text('outcome') + text('ok') + text('error') + b'\\x80'))",
            "os.write(4, frame(b'\\x92\\x03\\x82' + text('outcome') + text('ok') + text('repr') + b'\\xa1\\xff'))",
            "os.write(4, frame(b'\\x92\\x03\\x82' + text('outcome') + text('ok') + text('value') + b'\\x91' * 100 + b'\\xc0'))",
            "os.write(4, frame(b'\\x92\\x03\\x82' + text('outcome') + text('ok') + text('value') + b'\\xdd\\xff\\xff\\xff\\xff'))",
            "os.write(4, frame(b'\\x92\\x03\\x82' + text('outcome') + text('ok') + text('value') + b'\\xdb\\xff\\xff\\xff\\xff'))",
        ):
            with self.subTest(code=code):
                self.hostile(code + "\nhang()")

    def test_lengths(self) -> None:
        for length in (0, 0xFFFFFFFF, 0x7FFFFFFF, 64 << 20):
            with self.subTest(length=length):
                self.hostile(f"os.write(4, struct.pack('<I', {length}))\nhang()")

    def test_half_a_frame_then_the_real_answer(self) -> None:
        """What is written before the answer makes the answer unreadable, or longer than it is."""
        for code in ("os.write(4, b'\\x05')", "os.write(4, b'\\x05\\0\\0\\0\\x91')", "os.write(4, result(1)[:-1])"):
            with self.subTest(code=code):
                self.hostile(code, ("crashed", "timeout"), 1000)

    def test_half_a_frame_then_death(self) -> None:
        self.assertEqual(self.hostile("os.write(4, result(1)[:-1])\nos._exit(0)", ("ok", "crashed")).value, None)

    def test_half_a_frame_then_nothing(self) -> None:
        self.hostile("os.write(4, result(1)[:-1])\nhang()", ("timeout",), 1000)

    def test_parked_again(self) -> None:
        self.hostile(f"os.write(4, {PARKED})\nhang()")

    def test_a_request_of_its_own(self) -> None:
        self.hostile("os.write(4, frame(b'\\x93\\x02\\x80\\x80'))\nhang()")

    def test_two_answers_at_once(self) -> None:
        self.hostile("os.write(4, result(1) + result(2))\nhang()")

    def test_an_answer_and_garbage_at_once(self) -> None:
        self.hostile("os.write(4, result(1) + b'\\0')\nhang()")

    def test_its_own_answer(self) -> None:
        """Allowed: it spoils nobody's answer but its own. What the supervisor measures is not its to say."""
        record = self.hostile("end = time.process_time() + 0.05\nwhile time.process_time() < end: pass\nos.write(4, result(7))\nhang()", ("ok",))
        self.assertEqual((record.value, record.repr), (7, "7"))
        self.assertGreaterEqual(record.usage["cpu_us"], 50_000)
        self.assertIn("rlimits", record.receipt["layers"])

    def test_answers_one_after_the_other(self) -> None:
        for _ in range(20):
            record = self.hostile("os.write(4, result(1))\nfor n in range(2, 9): os.write(4, result(n))", ("ok", "crashed"))
            self.assertIn(record.value, (1, None))

    def test_answers_for_others(self) -> None:
        """Responses and ids of other calls mean nothing on this pipe."""
        for message in ([1, 1, None, {"status": "ok"}], [2, "output", [1, "stdout", b"x"]], [0, 1, "status", []], [6, 1, 1], [7, 1, "exit", 0, 1, 1]):
            with self.subTest(message=message):
                self.hostile(f"os.write(4, frame({msgpack.packb(message)!r}))\nhang()")

    def test_writes_after_the_answer(self) -> None:
        """A thread goes on writing to every pipe while the answer is on its way."""
        for _ in range(10):
            record = self.hostile("""
import threading
def noise():
    while True:
        os.write(1, b'o'); os.write(2, b'e')
threading.Thread(target=noise, daemon=True).start()
5
""", ("ok",))
            self.assertEqual(record.value, 5)

    def test_answer_pipe_flooded(self) -> None:
        self.hostile("while True: os.write(4, b'\\xff' * 65536)")
        self.hostile(f"while True: os.write(4, {PARKED})")

    def test_a_large_frame_that_never_ends(self) -> None:
        """As long as any answer may be, and no byte more is kept."""
        self.hostile("os.write(4, struct.pack('<I', 2 << 20))\nwhile True: os.write(4, b'\\xc0' * 65536)")

    def test_requests_are_read_by_the_code(self) -> None:
        self.hostile("os.set_blocking(3, False)\ntry: os.read(3, 100)\nexcept BlockingIOError: pass\n", ("ok",))


class DescriptorTest(HostileCase):
    def test_each_one_closed(self) -> None:
        for fd, statuses in {0: ("ok",), 1: ("ok",), 2: ("ok",), 3: ("ok",), 4: ("crashed",)}.items():
            with self.subTest(fd=fd):
                self.hostile(f"os.close({fd})\n'value'", statuses)

    def test_closed_and_running_on(self) -> None:
        """Without an answer pipe there will be no answer: the call is ended soon, not at its limit."""
        record = self.hostile("os.close(4)\nhang()", ("crashed", "timeout"))
        self.assertEqual(record.status, "crashed")
        self.hostile("os.close(1); os.close(2)\nhang()", ("timeout",), 500)
        self.hostile("os.closerange(0, 256)\nwhile True: pass")
        self.hostile("os.closerange(0, 256)")

    def test_replaced(self) -> None:
        for code in ("os.dup2(0, 4)", "os.dup2(1, 4)", "os.dup2(4, 1)\nprint('x' * 100)", "os.dup2(3, 4)", "r, w = os.pipe(); os.dup2(w, 4)"):
            with self.subTest(code=code):
                self.hostile(code, ("crashed", "timeout"), 1000)

    def test_the_answer_pipe_in_place_of_output(self) -> None:
        self.hostile("os.dup2(4, 1)\nprint('x' * 100, flush=True)\nhang()")

    def test_output_that_is_duplicated(self) -> None:
        record = self.hostile("fd = os.dup(1)\nos.write(fd, b'dup')\nos.close(1)", ("ok",))
        self.assertEqual(record.stdout, "before\ndup")

    def test_all_descriptors_used_up(self) -> None:
        record = self.hostile("""
fds = []
try:
    while True: fds.append(os.dup(0))
except OSError as e:
    n = e.errno
n
""", ("ok",))
        self.assertEqual(record.value, 24)

    def test_streams_closed(self) -> None:
        for code in ("import sys; sys.stdout.close()", "import sys; sys.stdout = None", "import sys; del sys.stdout, sys.stderr",
                     "import sys; sys.stdout = 5", "print = None", "import sys; sys.stdout.buffer.raw.close()"):
            with self.subTest(code=code):
                self.assertEqual(self.hostile(code + "\n'value'", ("ok",)).value, "value")


class InterpreterTest(HostileCase):
    """The Python side of the worker is within the code's reach; the answer still comes."""

    def test_spoilt(self) -> None:
        for code in (
            "import builtins\nfor name in list(vars(builtins)):\n    if name not in ('vars',): delattr(builtins, name)",
            "import sys; sys.modules.clear()", "import sys; sys.path.clear(); sys.meta_path.clear()",
            "import sys; sys.setrecursionlimit(60)", "import gc; gc.set_threshold(1)", "import sys; sys.setswitchinterval(1000)",
            "import sys; sys.settrace(lambda *a: 1 / 0)", "import sys; sys.setprofile(lambda *a: 1 / 0)",
            "import sys; sys.excepthook = None; 1 / 0", "import sys; sys.addaudithook(lambda *a: 1 / 0)",
            "import os; os._exit = os.write = None", "import traceback; traceback.format_exception = lambda *a: 5; 1 / 0",
            "import ctypes; ctypes.memset(id(None), 255, 8)", "import sys; sys.stdout = sys.stderr = object()",
            "import json\nfor n in vars(json): setattr(json, n, None)",
            "import atexit; atexit.register(lambda: 1 / 0)", "import threading; threading._shutdown = None",
            "import threading; threading.Thread(target=lambda: 1 / 0).start()",
            "import signal; signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001); signal.signal(signal.SIGALRM, lambda *a: 1 / 0)\nfor _ in range(10**5): pass",
            "import _brood\nfor n in dir(_brood):\n    if not n.startswith('__'): setattr(_brood, n, None)",
            "import sys\nfor m in list(sys.modules.values()):\n    if 'brood' in getattr(m, '__name__', ''): m.__dict__.clear()",
            "import sys; sys.flags = sys.version_info = sys.implementation = None", "import faulthandler; faulthandler._sigsegv()",
            "import gc\nfor f in gc.get_objects():\n    if getattr(f, '__name__', '') == 'describe_value': f.__code__ = (lambda *a: 1 / 0).__code__",
        ):
            with self.subTest(code=code):
                self.hostile("\n" + code, ("ok", "error", "crashed", "denied", "memory"))

    def test_threads_that_do_not_end(self) -> None:
        self.hostile("import threading; threading.Thread(target=hang).start()", ("timeout",), 1000)
        self.assertEqual(self.hostile("import threading; threading.Thread(target=hang, daemon=True).start()\n5", ("ok",)).value, 5)

    def test_a_thread_bomb(self) -> None:
        code = """
import threading
n = 0
try:
    while True:
        threading.Thread(target=hang, daemon=True).start(); n += 1
except (RuntimeError, MemoryError): pass
n > 3
"""
        self.assertIs(self.hostile(code, ("ok",)).value, True)

    def test_a_fork_bomb(self) -> None:
        needs_filter()
        before = len(processes.descendants(self.supervisor.pid))
        self.hostile("""
import ctypes
libc = ctypes.CDLL(None)
for _ in range(1000):
    if libc.fork() == 0: hang()
'refused'
""", ("ok", "crashed", "denied"))
        self.assertLess(len(processes.descendants(self.supervisor.pid)), before + 50)

    def test_many_at_once(self) -> None:
        """A batch of every kind, all running at the same time."""
        codes = ["os.write(4, b'\\xff' * 100); hang()", "os.close(4)", "os.abort()", "os._exit(3)", "1 / 0", "os.kill(os.getpid(), 9)", "'fine'"]
        expected = ["crashed", "crashed", "crashed", "ok", "error", "crashed", "ok"]
        calls = [(self.client.start(PRELUDE + code), status) for _ in range(10) for code, status in zip(codes, expected)]
        for call, status in calls:
            record = self.client.record(call)
            self.assertEqual(record.status, status, dict(record))


if __name__ == "__main__":
    unittest.main()
