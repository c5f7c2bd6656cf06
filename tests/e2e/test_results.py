"""What comes back: output, errors with their lines, and nothing that depends on how broodd was started."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from tests.support.case import SupervisorCase
from tests.support.supervisor import Supervisor

HIGH, LOW = "\ud800", "\udc00"

# Programs that fail, each in another way. (Not here: the carets of an IndentationError differ between a file and a string, and
# "Did you mean" is no work of the traceback module before Python 3.12.)
FAILING = {
    "line 1": "1 / 0",
    "line 500": "x = 1\n" * 499 + "1 / 0",
    "nested function": "def f():\n    def g():\n        return [0][1]\n    return g()\n\nvalue = f()\nprint('never')",
    "syntax error on line 3": "a = 1\nb = 2\nc = = 3\nd = 4",
    "unclosed bracket": "x = [1,\n     2\n",
    "bad character": "x = 1\ny = 2 ¤ 3\n",
    "long expression": "a = b = 1\nc = (a +\n     b +\n     (a / 0))\n",
    "anchors": "x = {'a': {}}\nx['a']['b']['c'] + 1",
    "eval": "x = 1\neval('1 +\\n 0 / 0')",
    "eval of two lines": "eval('(1 +\\n 0 / 0)')",
    "exec": "exec('a = 1\\nb = a / 0')",
    "cause": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('second') from e",
    "context": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise ValueError('second')",
    "suppressed context": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise ValueError('second') from None",
    "note": "e = ValueError('x')\ne.add_note('a note\\nof two lines')\nraise e",
    "group": "raise ExceptionGroup('many', [ValueError(1), ExceptionGroup('inner', [TypeError(2)])])",
    "no message": "raise ValueError",
    "lines in the message": "raise ValueError('one\\ntwo')",
    "class of the code": "class Custom(Exception): pass\nraise Custom('x')",
    "standard library": "import json\njson.loads('{')",
    "decorator": "def deco(f):\n    raise TypeError('no')\n\n@deco\ndef f():\n    pass",
    "class body": "class A:\n    x = 1\n    y = x.z\n",
    "lambda": "f = lambda x: x / 0\nf(1)",
    "comprehension": "[1 / n for n in (1, 0)]",
    "generator": "def g():\n    yield 1\n    1 / 0\nlist(g())",
    "async": "import asyncio\nasync def f():\n    1 / 0\ncoroutine = f()\ncoroutine.send(None)",
    "assertion": "assert 1 == 2, 'not equal'",
    "unicode in the line": "é = 'ö€😀'; 1 / 0",
    "tabs": "if True:\n\tx = 1\n\t1 / 0",
    "no newline at the end, comment": "1 / 0  # why not",
    "form feed": "\f\nx = 1\n\f1 / 0",
    "carriage returns": "x = 1\r\ny = 2\r\n1 / 0\r\n",
    "last expression": "x = 0\n1 / x",
    "string key error": "{}['é']",
}


def cold_stderr(code: str, path: str) -> str:
    """What a cold Python writes about the failure of the same program."""
    Path(path).write_text(code, encoding="utf-8", newline="")
    run = subprocess.run([sys.executable, "-I", "-S", path], capture_output=True, check=False)
    assert run.returncode == 1, run
    return run.stderr.decode()


class TracebackTest(SupervisorCase):
    def test_as_cold_python_prints_it(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            for name, code in FAILING.items():
                with self.subTest(name):
                    record = self.ends("error", code, name=path)
                    self.assertEqual(record.error["traceback"], cold_stderr(code, path))

    def test_line_of_the_error(self) -> None:
        lines = {"line 1": 1, "line 500": 500, "nested function": 3, "syntax error on line 3": 3, "long expression": 4,
                 "standard library": 2, "eval": 2, "comprehension": 1, "form feed": 3, "carriage returns": 3,
                 "last expression": 2}
        for name, line in lines.items():
            with self.subTest(name):
                self.assertEqual(self.ends("error", FAILING[name]).error["line"], line)

    def test_name_of_the_code(self) -> None:
        for name in ("<brood>", "task-7", "/no/such/file.py", "päth 😀", "with\nnewline", ""):
            with self.subTest(name=name):
                record = self.ends("error", "x = 1\n1 / 0", name=name)
                self.assertIn(f'File "{name}", line 2, in <module>\n    1 / 0\n', record.error["traceback"])
        self.assertIn('File "<brood>", line 1', self.ends("error", "1 / 0").error["traceback"])

    def test_nothing_of_our_own_is_in_a_traceback(self) -> None:
        for code in ("1 / 0", "f(", "import no_such_module", "raise SystemError", "exec('1/0')"):
            text = self.ends("error", code).error["traceback"]
            self.assertNotIn("brood_worker", text)
            self.assertNotIn("<frozen", text)

    def test_lone_surrogates(self) -> None:
        record = self.ends("error", f"print('\\ud800', flush=True)\nraise ValueError('\\udc00')")
        self.assertEqual(record.stdout, "\\ud800\n")
        self.assertEqual(record.error["message"], "\\udc00")
        self.assertIn("ValueError: \\udc00", record.error["traceback"])
        record = self.ends("error", "code = compile('1 / 0', 'na\\udc00me', 'exec')\nexec(code)")
        self.assertIn('File "na\\udc00me"', record.error["traceback"])
        record = self.ends("error", "{'\\ud800': 1}['\\udfff']")
        self.assertEqual(record.error["message"], "'\\udfff'")

    def test_enormous_message(self) -> None:
        record = self.ends("error", "raise ValueError('é' * 1_000_000)")
        self.assertLessEqual(len(record.error["message"].encode()), 64 << 10)
        self.assertTrue(record.error["message"].startswith("é" * 1000))
        self.assertTrue([entry for entry in record.truncated if entry["what"] == "error"])

    def test_traceback_that_cannot_be_made(self) -> None:
        record = self.ends("error", "import traceback\ntraceback.format_exception = None\n1 / 0")
        self.assertEqual(record.error["type"], "ZeroDivisionError")


class OutputTest(SupervisorCase):
    def test_every_way_to_write(self) -> None:
        for code, expected in (
            ("print('a')", "a\n"),
            ("import sys; sys.stdout.write('b')", "b"),
            ("import sys; sys.stdout.buffer.write(b'c')", "c"),
            ("import os; os.write(1, b'd')", "d"),
            ("import ctypes; libc = ctypes.CDLL(None); libc.puts(b'e'); libc.fflush(None)", "e\n"),
            ("open(1, 'w', closefd=False).write('f')", "f"),
            ("print('g', end='')", "g"),
            ("print('h', end='', flush=True); print('i')", "hi\n"),
            ("import threading; t = threading.Thread(target=print, args=('j',)); t.start(); t.join()", "j\n"),
            ("import sys; sys.__stdout__.write('k')", "k"),
        ):
            with self.subTest(code=code):
                record = self.ends("ok", code + "\nNone")
                self.assertEqual((record.stdout, record.stderr), (expected, ""))

    def test_streams_are_apart_and_in_order(self) -> None:
        record = self.ends("ok", "import sys\nfor n in range(3):\n    print('o', n)\n    print('e', n, file=sys.stderr)")
        self.assertEqual((record.stdout, record.stderr), ("o 0\no 1\no 2\n", "e 0\ne 1\ne 2\n"))

    def test_python_and_descriptor_keep_their_order(self) -> None:
        record = self.ends("ok", "import os\nprint('1'); os.write(1, b'2\\n'); print('3')")
        self.assertEqual(record.stdout, "1\n2\n3\n")

    def test_standard_input_is_at_its_end(self) -> None:
        self.assertEqual(self.ends("error", "input()").error["type"], "EOFError")
        self.assertEqual(self.value("import sys; sys.stdin.read()"), "")
        self.assertEqual(self.value("import os; os.read(0, 10)"), b"")

    def test_warnings_go_to_standard_error(self) -> None:
        record = self.ends("ok", "import warnings\nwarnings.warn('careful')")
        self.assertIn("<brood>:2: UserWarning: careful\n  warnings.warn('careful')\n", record.stderr)

    def test_streaming(self) -> None:
        code = "import sys\nprint('one', flush=True)\nprint('two', file=sys.stderr, flush=True)\nprint('three')\n4"
        call = self.client.start(code, stream=True)
        record = self.client.record(call)
        self.assertEqual((record.stdout, record.stderr, record.value), ("", "", 4))
        self.assertEqual(self.client.outputs[call, "stdout"], b"one\nthree\n")
        self.assertEqual(self.client.outputs[call, "stderr"], b"two\n")

    def test_streaming_is_live(self) -> None:
        """The first line is here before the second is written: the code waits for what only we can do."""
        call = self.client.running("import time; time.sleep(3600)", limits={"wall_ms": 5000})
        self.client.notify("cancel", call)
        record = self.client.record(call)
        self.assertEqual(record.status, "cancelled")
        self.assertEqual(self.client.outputs[call, "stdout"], b"started\n")

    def test_streamed_characters_are_whole(self) -> None:
        call = self.client.start("import os\nfor byte in '€😀é'.encode(): os.write(1, bytes([byte]))", stream=True)
        self.client.record(call)
        for number, stream, data in self.client.output_order:
            self.assertEqual((number, stream), (call, "stdout"))
            data.decode()
        self.assertEqual(self.client.outputs[call, "stdout"], "€😀é".encode())


ENCODINGS = r"""
import sys, locale, os
print('emoji \U0001f600, CJK \u6f22\u5b57, combining e\u0301, NUL \0, BEL \a')
sys.stdout.flush()
[sys.stdout.encoding, sys.stderr.encoding, sys.getfilesystemencoding(), sys.flags.utf8_mode, open(os.devnull).encoding.lower()]
"""


class EncodingTest(unittest.TestCase):
    """UTF-8 whatever the locale that broodd was started in."""

    def test_locales(self) -> None:
        base = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG", "PYTHON"))}
        for extra in ({"LANG": "C"}, {"LC_ALL": "POSIX"}, {"LANG": "C", "PYTHONIOENCODING": "ascii"},
                      {"LC_ALL": "en_US.ISO-8859-1", "PYTHONUTF8": "0"}, {}):
            with self.subTest(extra), Supervisor(env={**base, **extra}) as supervisor, supervisor.connect() as client:
                record = client.run(ENCODINGS)
                self.assertEqual(record.status, "ok", dict(record))
                self.assertEqual(record.stdout, "emoji \U0001f600, CJK \u6f22\u5b57, combining e\u0301, NUL \0, BEL \a\n")
                self.assertEqual(record.value, ["utf-8", "utf-8", "utf-8", 1, "utf-8"])
                record = client.run("import sys; n = sys.stdout.buffer.write(bytes(range(0x80, 0x100)))")
                self.assertEqual(record.stdout, bytes(range(0x80, 0x100)))
                record = client.run("print(ascii('é'), 'é'.encode())\n'é'.upper()")
                self.assertEqual(record.value, "É")

    def test_variables_of_the_caller_have_no_say(self) -> None:
        hostile = {"PYTHONSTARTUP": "/tmp/x", "PYTHONPATH": "/tmp", "PYTHONHASHSEED": "0", "PYTHONVERBOSE": "1", "PYTHONHOME": "/tmp",
                   "SECRET_TOKEN": "canary", "LD_LIBRARY_PATH": "/tmp", "PYTHONDONTWRITEBYTECODE": ""}
        with Supervisor(env={**os.environ, **hostile}) as supervisor, supervisor.connect() as client:
            environment = client.run("import os; dict(os.environ)").value
            self.assertFalse({key for key in environment if key.startswith(("PYTHON", "LD_", "SECRET"))}, environment)
            self.assertNotIn("/tmp", client.run("import sys; sys.path").value)


class ReceiptTest(SupervisorCase):
    def test_usage_is_measured(self) -> None:
        record = self.ends("ok", "x = bytearray(50 << 20)\nimport time\nend = time.process_time() + 0.1\n"
                                 "while time.process_time() < end: pass")
        self.assertGreaterEqual(record.usage["cpu_us"], 100_000)
        self.assertGreaterEqual(record.usage["wall_us"], 100_000)
        self.assertGreaterEqual(record.usage["peak_memory_bytes"], 50 << 20)

    def test_receipt(self) -> None:
        first, second = self.ends("ok", "1"), self.ends("ok", "1")
        self.assertEqual((first.receipt["image"], first.receipt["profile"]), ("forked", "default"))
        self.assertNotEqual(first.receipt["worker"], second.receipt["worker"])
        status = self.client.status()["profiles"]["default"]
        self.assertEqual(first.receipt["layers"], status["layers"])
        for layer in ("no-new-privs", "not-dumpable", "rlimits"):
            self.assertIn(layer, first.receipt["layers"])


if __name__ == "__main__":
    unittest.main()
