"""The limits of a call: time, memory, output. Each is enforced from outside, exactly, and what was written before is kept."""

from __future__ import annotations

import unittest

from tests.support.case import SupervisorCase, skip
from tests.support.supervisor import SANITIZED

MIB = 1 << 20
ENDLESS = "while True: pass"


class TimeTest(SupervisorCase):
    """Wall and CPU time: the code is ended from outside, whatever it does."""

    def times_out(self, code: str, wall_ms: int = 300) -> None:
        record = self.ends("timeout", code, limits={"wall_ms": wall_ms})
        self.assertIn(f"{wall_ms} ms", record.message)
        self.assertGreaterEqual(record.usage["wall_us"], wall_ms * 1000)
        # Far beyond what a loaded machine needs; a code that was never interrupted would run for ever.
        self.assertLess(record.usage["wall_us"], 60_000_000)
        self.assertIsNone(record.exit_code)

    def test_every_way_to_hang(self) -> None:
        for code in (
            ENDLESS,
            "import time; time.sleep(3600)",
            "import re; re.match(r'(a+)+$', 'a' * 40 + '1')",
            "10 ** 10 ** 8",
            "import threading; threading.Lock().acquire(); l = threading.Lock(); l.acquire(); l.acquire()",
            "import signal; signal.pause()",
            "import os; r, w = os.pipe(); os.read(r, 1)",
            "class A:\n    def __lt__(self, other):\n        while True: pass\nsorted([A(), A()])",
            "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
            "class A:\n    def __del__(self):\n        while True: pass\na = A()\ndel a",
            "import atexit\n@atexit.register\ndef f():\n    while True: pass",
            "class A:\n    def __repr__(self):\n        while True: pass\nA()",
            "import threading\ndef f():\n    while True: pass\nthreading.Thread(target=f).start()",
            "import signal\nfor n in range(1, 32):\n    try: signal.signal(n, signal.SIG_IGN)\n    except OSError: pass\n" + ENDLESS,
        ):
            with self.subTest(code=code):
                self.times_out(code)

    def test_regular_expression_at_one_second(self) -> None:
        self.times_out("import re; re.match(r'(a+)+$', 'a' * 40 + '1')", 1000)

    def test_output_before_the_kill_is_kept(self) -> None:
        sleep = "\nimport time; time.sleep(3600)"
        for code, stream, expected in (
            ("print('one line')", "stdout", "one line\n"),
            ("import sys; print('one line', end='', flush=True)", "stdout", "one line"),
            ("import sys; sys.stdout.write('unflushed'); sys.stdout.flush()", "stdout", "unflushed"),
            ("import sys; sys.stderr.write('unflushed')", "stderr", "unflushed"),
            ("import os; os.write(1, b'raw')", "stdout", "raw"),
            ("print('x' * 70_000)", "stdout", "x" * 70_000 + "\n"),
        ):
            with self.subTest(code=code):
                record = self.ends("timeout", code + sleep, limits={"wall_ms": 500})
                self.assertEqual(record[stream], expected)

    def test_unflushed_output_before_the_kill_is_kept(self) -> None:
        """What was printed without a newline and without a flush is not lost in a buffer of the dead process."""
        record = self.ends("timeout", "print('no newline', end='')\nimport time; time.sleep(3600)", limits={"wall_ms": 500})
        self.assertEqual(record.stdout, "no newline")

    def test_cpu_time(self) -> None:
        for code in (ENDLESS, "import re; re.match(r'(a+)+$', 'a' * 40 + '1')",
                     "import threading\ndef f():\n    while True: pass\nfor _ in range(4): threading.Thread(target=f).start()"):
            with self.subTest(code=code):
                record = self.ends("cpu", "print('before', flush=True)\n" + code, limits={"cpu_ms": 200, "wall_ms": 5000})
                self.assertEqual(record.stdout, "before\n")
                self.assertIn("200 ms", record.message)
                self.assertGreaterEqual(record.usage["cpu_us"], 200_000)

    def test_sleep_costs_no_cpu_time(self) -> None:
        record = self.ends("ok", "import time; time.sleep(0.4); 'awake'", limits={"cpu_ms": 300})
        self.assertEqual(record.value, "awake")
        self.assertGreaterEqual(record.usage["wall_us"], 400_000)
        self.assertLess(record.usage["cpu_us"], 300_000)

    def test_just_below_the_limits(self) -> None:
        self.ends("ok", "import time; time.sleep(0.2)", limits={"wall_ms": 5000})
        self.ends("ok", "import time\nwhile time.process_time() < 0.2: pass", limits={"cpu_ms": 5000, "wall_ms": 5000})


class MemoryTest(SupervisorCase):
    """Memory: MemoryError where Python can raise it, the same status where it cannot."""

    CONFIG = "[profile default]\nmemory = 256m\nwall = 60s\ncpu = 60s\n"

    def setUp(self) -> None:
        if SANITIZED:
            skip("AddressSanitizer's allocator aborts where malloc would return NULL")
        super().setUp()

    def test_beyond_the_limit(self) -> None:
        for code in (
            "x = bytes((256 + 64) << 20)",
            "x = []\nwhile True: x.append(bytes(1 << 20))",
            "x = []\nwhile True: x.append(bytearray(b'x') * (1 << 20))",
            "x = 'x'\nwhile True: x += x",
            "x = []\nwhile True: x = [x, x, x]",
            "raise MemoryError",
        ):
            with self.subTest(code=code):
                limits = {"wall_ms": 60_000, "cpu_ms": 60_000}
                record = self.ends("memory", "print('before', flush=True)\n" + code, limits=limits)
                self.assertEqual(record.stdout, "before\n")

    def test_shared_memory_counts_too(self) -> None:
        """Pages of shared mappings are no "data" to the kernel's limits, but memory all the same."""
        record = self.client.run("import mmap\nx = []\nwhile True: x.append(mmap.mmap(-1, 1 << 20)); x[-1].write(b'x' * (1 << 20))")
        self.assertIn(record.status, ("memory", "error"))
        self.assertLess(record.usage["peak_memory_bytes"], 256 * MIB + 256 * MIB + 64 * MIB)

    def test_the_limit_of_the_call(self) -> None:
        self.ends("memory", "x = bytes(80 << 20)", limits={"memory_bytes": 64 * MIB})
        self.ends("ok", "x = bytes(40 << 20)", limits={"memory_bytes": 64 * MIB})

    def test_just_below_the_limit(self) -> None:
        record = self.ends("ok", "x = b'x' * (230 << 20); len(x)")
        self.assertGreaterEqual(record.usage["peak_memory_bytes"], 230 * MIB)

    def test_a_memory_error_that_is_caught_is_no_ending(self) -> None:
        record = self.ends("ok", "try:\n    x = bytes(400 << 20)\nexcept MemoryError:\n    r = 'caught'\nr")
        self.assertEqual(record.value, "caught")

    def test_threads_have_stacks(self) -> None:
        code = """
import threading
barrier = threading.Barrier(33)
threads = [threading.Thread(target=barrier.wait, daemon=True) for _ in range(32)]
for t in threads: t.start()
barrier.wait()
for t in threads: t.join()
len(threads)
"""
        self.assertEqual(self.value(code), 32)


class OutputTest(SupervisorCase):
    """The limit is exact to the byte and cuts between characters."""

    LIMIT = 1000

    def write(self, data: bytes, descriptor: int = 1) -> tuple[bytes, dict[str, int] | None]:
        """What is kept of one write, and what `truncated` says."""
        code = f"import os\nos.write({descriptor}, data)"
        record = self.ends("ok", code, inputs={"data": data}, limits={"output_bytes": self.LIMIT})
        stream = "stdout" if descriptor == 1 else "stderr"
        text = record[stream]
        return text if isinstance(text, bytes) else text.encode(), record.cut(stream)

    def test_around_the_limit(self) -> None:
        for descriptor in (1, 2):
            for extra in (-1, 0, 1, 5000):
                with self.subTest(descriptor=descriptor, extra=extra):
                    kept, cut = self.write(b"x" * (self.LIMIT + extra), descriptor)
                    self.assertEqual(len(kept), min(self.LIMIT, self.LIMIT + extra))
                    if extra <= 0:
                        self.assertIsNone(cut)
                    else:
                        assert cut
                        self.assertEqual((cut["kept_bytes"], cut["cut_bytes"]), (self.LIMIT, extra))

    def test_a_character_that_straddles_the_limit(self) -> None:
        for text in ("é", "€", "😀"):
            size = len(text.encode())
            for before in range(self.LIMIT - size, self.LIMIT + 1):
                with self.subTest(text=text, before=before):
                    kept, cut = self.write(b"x" * before + (text * 10).encode())
                    kept.decode()
                    self.assertEqual(len(kept), before + (self.LIMIT - before) // size * size)
                    assert cut
                    self.assertEqual(cut["kept_bytes"] + cut["cut_bytes"], before + 10 * size)

    def test_bytes_that_are_no_text_are_cut_exactly(self) -> None:
        kept, cut = self.write(b"\x80" * (self.LIMIT + 3))
        self.assertEqual(kept, b"\x80" * self.LIMIT)
        assert cut
        self.assertEqual(cut["cut_bytes"], 3)

    def test_both_streams_have_limits_of_their_own(self) -> None:
        code = "import os\nfor _ in range(300):\n    os.write(1, b'o' * 10); os.write(2, b'e' * 7)\n'went on'"
        record = self.ends("ok", code, limits={"output_bytes": self.LIMIT})
        self.assertEqual((record.stdout, record.stderr, record.value), ("o" * 1000, "e" * 1000, "went on"))
        out, err = record.cut("stdout"), record.cut("stderr")
        assert out and err
        self.assertEqual((out["cut_bytes"], err["cut_bytes"]), (2000, 1100))

    def test_limit_of_zero(self) -> None:
        record = self.ends("ok", "print('x')", limits={"output_bytes": 0})
        self.assertEqual(record.stdout, "")
        self.assertIsNotNone(record.cut("stdout"))

    def test_default_limit_in_one_write(self) -> None:
        for extra in (-1, 0, 1):
            with self.subTest(extra=extra):
                record = self.ends("ok", f"import sys; n = sys.stdout.buffer.write(b'x' * ({MIB} + {extra}))")
                self.assertEqual(len(record.stdout), min(MIB, MIB + extra))
                self.assertEqual(record.cut("stdout") is not None, extra > 0)

    def test_flood(self) -> None:
        record = self.ends("output", "while True: print('x' * 1000)", limits={"output_bytes": 10_000})
        self.assertEqual(record.stdout, ("x" * 1000 + "\n") * 9 + "x" * 991)
        cut = record.cut("stdout")
        assert cut
        self.assertGreater(cut["cut_bytes"], 0)

    def test_streamed_output_has_the_same_limit(self) -> None:
        call = self.client.start("print('é' * 2000)", stream=True, limits={"output_bytes": 1001})
        record = self.client.record(call)
        self.assertEqual(record.stdout, "")
        self.assertEqual(self.client.outputs[call, "stdout"], "é".encode() * 500)
        self.assertIsNotNone(record.cut("stdout"))


if __name__ == "__main__":
    unittest.main()
