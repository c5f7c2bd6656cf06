"""`brood run` as its user meets it: options, output, exit statuses; against a shared supervisor and with a private one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import unittest
from typing import Any

from tests.support import processes
from tests.support.case import SupervisorCase, needs_filter
from tests.support.supervisor import SANITIZED, program

TIMEOUT_S = 120.0


def environment(**extra: str) -> dict[str, str]:
    return {**{key: value for key, value in os.environ.items() if key != "BROOD_SOCKET"}, **extra}


def brood(*args: str, stdin: str | bytes = "", socket: str | None = None, env: dict[str, str] | None = None,
          raw: bool = False) -> subprocess.CompletedProcess[Any]:
    """Runs the command to its end."""
    settings = env if env is not None else environment(**({"BROOD_SOCKET": socket} if socket else {}))
    data = stdin.encode() if isinstance(stdin, str) else stdin
    run = subprocess.run([program("brood"), *args], input=data, capture_output=True, env=settings, timeout=TIMEOUT_S, check=False)
    if raw:
        return run
    return subprocess.CompletedProcess(run.args, run.returncode, run.stdout.decode(), run.stderr.decode())


class CliCase(SupervisorCase):
    CONFIG = "[broodd]\nqueue = 4\n[profile default]\nparked = 2\n[profile one]\nparked = 1\nworkers = 1\nwall = 60s\n" \
             "[profile small]\nmemory = 64m\nwall = 2s\noutput = 100\n"

    def brood(self, *args: str, **kwargs: Any) -> subprocess.CompletedProcess[Any]:
        return brood(*args, socket=self.supervisor.socket, **kwargs)

    def shows(self, args: tuple[str, ...], status: int, out: str, err: str = "", **kwargs: Any) -> None:
        run = self.brood("run", *args, **kwargs)
        self.assertEqual((run.returncode, run.stdout, run.stderr), (status, out, err))


class OutputTest(CliCase):
    def test_values_are_shown_as_a_repl_does(self) -> None:
        for code, shown in {"6 * 7": "42\n", "'a'": "'a'\n", "None": "", "x = 1": "", "print('x')": "x\n", "print('x'); 1": "x\n1\n",
                            "[1, 2.5, 'é']": "[1, 2.5, 'é']\n", "": "", "10 ** 30": "1" + "0" * 30 + "\n"}.items():
            with self.subTest(code=code):
                self.shows(("-c", code), 0, shown)

    def test_streams(self) -> None:
        self.shows(("-c", "import sys; print('out'); print('err', file=sys.stderr)"), 0, "out\n", "err\n")

    def test_bytes_that_are_no_text(self) -> None:
        run = self.brood("run", "-c", "import os; n = os.write(1, bytes(range(256)))", raw=True)
        self.assertEqual((run.returncode, run.stdout), (0, bytes(range(256))))

    def test_output_is_live(self) -> None:
        """The first line arrives while the code still runs."""
        with subprocess.Popen([program("brood"), "run", "--wall", "5s", "-c", "print('one', flush=True)\nimport time; time.sleep(3600)"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(BROOD_SOCKET=self.supervisor.socket)) as process:
            assert process.stdout
            self.assertEqual(process.stdout.readline(), b"one\n")
            self.assertIsNone(process.poll())
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=TIMEOUT_S)

    def test_cut_output_is_said(self) -> None:
        run = self.brood("run", "--output", "100", "-c", "print('x' * 1000)")
        self.assertEqual((run.returncode, run.stdout), (0, "x" * 100 + ""))
        self.assertIn("stdout", run.stderr)
        self.assertIn("901", run.stderr)

    def test_closed_standard_output(self) -> None:
        """Its reader went away: the command ends, quietly and not with success, and so does the call."""
        process = subprocess.Popen([program("brood"), "run", "-c", "while True: print('x' * 100)"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=environment(BROOD_SOCKET=self.supervisor.socket))
        assert process.stdout and process.stderr
        process.stdout.read(100)
        process.stdout.close()
        errors = process.stderr.read()
        self.assertNotEqual(process.wait(TIMEOUT_S), 0)
        process.stderr.close()
        self.assertNotIn(b"Traceback", errors)
        processes.poll(lambda: self.client.status()["calls"]["open"] == 0, "its call is ended")

    def test_standard_output_closed_from_the_start(self) -> None:
        for redirection in (">&-", "2>&-", "<&-", ">&- 2>&- <&-"):
            run = subprocess.run(["sh", "-c", f"exec {program('brood')} run -c 'print(1)' {redirection}"], capture_output=True,
                                 env=environment(BROOD_SOCKET=self.supervisor.socket), timeout=TIMEOUT_S, check=False)
            self.assertGreaterEqual(run.returncode, 0, redirection)
            if redirection in ("2>&-", "<&-"):
                self.assertEqual((run.returncode, run.stdout), (0, b"1\n"), redirection)


class SourceTest(CliCase):
    def test_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "prögram.py")
            with open(path, "wb") as file:
                file.write("# coding: latin-1\nx = '\xe9'\nprint(len(x))\n1 / 0\n".encode("latin-1"))
            run = self.brood("run", path)
            self.assertEqual((run.returncode, run.stdout), (1, "1\n"))
            self.assertIn(f'File "{path}", line 4, in <module>\n    1 / 0\n', run.stderr)

    def test_standard_input(self) -> None:
        self.shows(("-",), 0, "5\n", stdin="print(5)\n")
        run = self.brood("run", "-", stdin="x = 1\n1 / 0")
        self.assertEqual(run.returncode, 1)
        self.assertIn("line 2", run.stderr)

    def test_files_that_cannot_be_read(self) -> None:
        for path in ("/no/such/file.py", "/tmp"):
            run = self.brood("run", path)
            self.assertIn(run.returncode, (2, 125))
            self.assertEqual(run.stdout, "")
            self.assertIn(path, run.stderr)


class StatusTest(CliCase):
    def test_exit_statuses(self) -> None:
        for status, args in (
            (0, ("-c", "1")), (0, ("-c", "import sys; sys.exit(0)")), (1, ("-c", "import sys; sys.exit(3)")), (1, ("-c", "exit('text')")),
            (1, ("-c", "1 / 0")), (1, ("-c", "f(")), (124, ("--wall", "0.2s", "-c", "while True: pass")),
            (137, ("--cpu", "200ms", "-c", "while True: pass")), (137, ("-c", "import os; os.abort()")),
            (137, ("-c", "raise MemoryError")), (137, ("--output", "10", "-c", "while True: print('x' * 1000)")),
            (2, ("--profile", "none", "-c", "1")), (2, ("--profile", "small", "--wall", "3s", "-c", "1")),
        ):
            with self.subTest(args=args):
                run = self.brood("run", *args)
                self.assertEqual(run.returncode, status, run.stderr)
                self.assertEqual(bool(run.stderr), status != 0 and "sys.exit(3)" not in args[-1])

    def test_denied(self) -> None:
        needs_filter()
        run = self.brood("run", "-c", "import os\nos.fork()")
        self.assertEqual(run.returncode, 126)
        self.assertIn("PermissionError", run.stderr)

    def test_traceback_as_python_prints_it(self) -> None:
        self.shows(("-c", "def f(x):\n    return x / 0\n\nf(1)"), 1, "",
                   'Traceback (most recent call last):\n  File "<string>", line 4, in <module>\n    f(1)\n'
                   '  File "<string>", line 2, in f\n    return x / 0\n           ~~^~~\nZeroDivisionError: division by zero\n')

    def test_busy(self) -> None:
        calls = [self.client.running("import time; time.sleep(3600)", profile="one")]
        calls += [self.client.start("1", profile="one") for _ in range(4)]
        self.client.hello()
        run = self.brood("run", "--profile", "one", "-c", "1")
        self.assertEqual(run.returncode, 75)
        self.assertIn("queue", run.stderr)
        for call in calls:
            self.client.notify("cancel", call)
            self.client.record(call)

    def test_usage(self) -> None:
        for args in ((), ("run",), ("run", "-c"), ("run", "-c", "1", "file.py"), ("run", "a.py", "b.py"), ("run", "--nonsense", "-c", "1"),
                     ("nonsense",), ("run", "--wall", "soon", "-c", "1"), ("run", "--wall", "-1s", "-c", "1"), ("run", "--memory", "1", "-c", "1"),
                     ("run", "--input", "x", "-c", "1"), ("run", "--input", "x=", "-c", "1"), ("run", "--input", "1x=1", "-c", "1"),
                     ("run", "--input", "x={", "-c", "1"), ("run", "--input", "=1", "-c", "1"), ("run", "--output", "99g", "-c", "1")):
            with self.subTest(args=args):
                run = self.brood(*args)
                self.assertEqual((run.returncode, run.stdout), (2, ""), run.stderr)
                self.assertTrue(run.stderr)

    def test_help(self) -> None:
        for args in (("--help",), ("run", "--help")):
            run = self.brood(*args)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertIn("run", run.stdout)
        run = self.brood("run", "--help")
        for option in ("--input", "--profile", "--wall", "--cpu", "--memory", "--output", "--json", "--socket", "--config"):
            self.assertIn(option, run.stdout)

    def test_interrupt(self) -> None:
        """Ctrl-C cancels the call; what it wrote before is there."""
        with subprocess.Popen([program("brood"), "run", "-c", "print('one', flush=True)\nwhile True: pass"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=environment(BROOD_SOCKET=self.supervisor.socket)) as process:
            assert process.stdout
            self.assertEqual(process.stdout.readline(), b"one\n")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=TIMEOUT_S)
            self.assertIn(process.returncode, (125, 130, -signal.SIGINT), err)
        processes.poll(lambda: self.client.status()["calls"]["running"] == 0, "the call is cancelled")


class InputTest(CliCase):
    def test_inputs(self) -> None:
        for text, shown in {"1": "1", "-0.5": "-0.5", '"é"': "'é'", "null": "None", "true": "True", "[1, {}]": "[1, {}]", '{"a": [1]}': "{'a': [1]}",
                            '{"$int": "1267650600228229401496703205376"}': str(2**100), '{"$float": "-inf"}': "-inf", '{"$bytes": "AP8="}': "b'\\x00\\xff'",
                            '{"$tuple": [1, 2]}': "(1, 2)", '{"$set": [1]}': "{1}", '{"$frozenset": []}': "frozenset()",
                            '{"$date": "2024-02-29"}': "datetime.date(2024, 2, 29)", '{"$timedelta": [1, 2, 3]}': "datetime.timedelta(days=1, seconds=2, microseconds=3)",
                            '{"$complex": [1.0, -2.0]}': "(1-2j)", '{"$map": [[1, 2]]}': "{1: 2}", '{"$str": "\\\\ud800"}': "'\\ud800'",
                            "123456789012345678901234567890": "123456789012345678901234567890", "1e400": "inf", '"\\u0000"': "'\\x00'"}.items():
            with self.subTest(text=text):
                run = self.brood("run", "--input", f"x={text}", "-c", "repr(x) if x is None or x == x else 'nan'")
                if text in ("1e400", "123456789012345678901234567890") and run.returncode == 2:
                    continue  # refusing what JSON cannot hold is as good
                self.assertEqual((run.returncode, run.stdout), (0, repr(shown) + "\n"), run.stderr)

    def test_several(self) -> None:
        self.shows(("--input", "a=1", "--input", "b=[2]", "-c", "[a, b]"), 0, "[1, [2]]\n")

    def test_notations_that_do_not_travel_in(self) -> None:
        for text in ('{"$typed": ["decimal.Decimal", "1"]}', '{"$opaque": ["a", "b"]}', '{"$cut": ["cycle", ""]}', '{"$ext": [99, ""]}',
                     '{"$nonsense": 1}', '{"$int": "x"}', '{"$date": 5}', '{"$bytes": "*"}'):
            with self.subTest(text=text):
                run = self.brood("run", "--input", f"x={text}", "-c", "x")
                self.assertEqual(run.returncode, 2, run.stdout)

    def test_limits(self) -> None:
        if not SANITIZED:  # AddressSanitizer's allocator aborts where malloc would return NULL
            self.assertEqual(self.brood("run", "--memory", "64m", "-c", "x = bytes(100 << 20)").returncode, 137)
        self.assertEqual(self.brood("run", "--wall", "1s", "--cpu", "1s", "--memory", "100m", "--output", "1k", "-c", "1").stdout, "1\n")
        self.assertEqual(self.brood("run", "--profile", "small", "-c", "print('x' * 500)").stdout, "x" * 100)


class JsonTest(CliCase):
    def record(self, code: str, *args: str) -> dict[str, Any]:
        run = self.brood("run", "--json", *args, "-c", code)
        self.assertEqual(run.stderr, "")
        self.assertEqual(run.stdout.count("\n"), 1)
        record = json.loads(run.stdout)
        self.assertIsInstance(record, dict)
        record["returncode"] = run.returncode
        return record

    def test_the_record(self) -> None:
        record = self.record("print('out')\n{'a': [1, None]}")
        self.assertEqual((record["status"], record["value"], record["stdout"], record["repr"]), ("ok", {"a": [1, None]}, "out\n", "{'a': [1, None]}"))
        self.assertLessEqual({"status", "message", "value", "repr", "stdout", "stderr", "error", "exit_code", "signal", "usage", "receipt", "truncated"},
                             set(record))
        self.assertEqual(record["returncode"], 0)
        self.assertGreater(record["usage"]["wall_us"], 0)
        record = self.record("1 / 0")
        self.assertEqual((record["returncode"], record["status"], record["error"]["type"], record["error"]["line"]), (1, "error", "ZeroDivisionError", 1))
        self.assertEqual(self.record("while True: pass", "--wall", "200ms")["returncode"], 124)

    def test_values(self) -> None:
        values = {
            "2**60": {"$int": str(2**60)}, "2**53": 2**53, "-10**30": {"$int": str(-(10**30))}, "7**2000": {"$int": str(7**2000)},
            "float('nan')": {"$float": "nan"}, "float('-inf')": {"$float": "-inf"}, "1.5": 1.5, "b'\\x00\\xff'": {"$bytes": "AP8="},
            "'a\\ud800b\\\\'": {"$str": "a\\ud800b\\\\"}, "(1, (2,))": {"$tuple": [1, {"$tuple": [2]}]}, "{1}": {"$set": [1]},
            "frozenset()": {"$frozenset": []}, "{1: 2}": {"$map": [[1, 2]]}, "{'$a': 1}": {"$map": [["$a", 1]]}, "{'$a': 1, 'b': 2}": {"$a": 1, "b": 2},
            "__import__('datetime').date(2024, 1, 2)": {"$date": "2024-01-02"}, "__import__('datetime').timedelta(1, 2, 3)": {"$timedelta": [1, 2, 3]},
            "1+2j": {"$complex": [1.0, 2.0]}, "__import__('decimal').Decimal('1.10')": {"$typed": ["decimal.Decimal", "1.10"]},
            "...": {"$opaque": ["builtins.ellipsis", "Ellipsis"]}, "True": True, "'\\u2028\\0'": "\u2028\0", "{}": {}, "'é😀'": "é😀",
        }
        for code, expected in values.items():
            with self.subTest(code=code):
                self.assertEqual(self.record(code)["value"], expected)
        self.assertEqual(self.record("x = []\nx.append(x)\nx")["value"], [{"$cut": ["cycle", ""]}])

    def test_values_read_back(self) -> None:
        for code in ("2**70", "float('inf')", "b'x'", "(1, {2})", "{1: 'x', None: b''}", "'\\ud800\\\\'", "[1+2j]", "__import__('datetime').time(1, 2)",
                     "{'$int': 1}", "__import__('datetime').datetime(2024, 1, 1, tzinfo=__import__('datetime').timezone.utc)"):
            with self.subTest(code=code):
                value = self.record(code)["value"]
                self.assertEqual(self.record("x", "--input", "x=" + json.dumps(value))["value"], value)

    def test_output_that_is_no_text(self) -> None:
        self.assertEqual(self.record("import os; n = os.write(1, b'a\\xff\\xc3\\xa9')")["stdout"], "a\\xffé")

    def test_errors_of_the_server(self) -> None:
        run = self.brood("run", "--json", "--profile", "none", "-c", "1")
        self.assertEqual(run.returncode, 2)
        self.assertIn("none", run.stdout + run.stderr)


class PrivateTest(unittest.TestCase):
    """Without a socket, the command starts a supervisor of its own and leaves none behind."""

    def setUp(self) -> None:
        processes.adopt_orphans()
        self.before = set(processes.descendants(os.getpid()))

    def tearDown(self) -> None:
        left = {pid: name for pid, name in processes.descendants(os.getpid()).items() if pid not in self.before}
        self.assertEqual(left, {}, "brood left processes behind")

    def test_run(self) -> None:
        run = brood("run", "-c", "print('x')\n6 * 7")
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "x\n42\n", ""))
        run = brood("run", "-c", "1 / 0")
        self.assertEqual(run.returncode, 1)
        self.assertTrue(run.stderr.startswith("Traceback"), run.stderr)
        self.assertEqual(brood("run", "--wall", "200ms", "-c", "while True: pass").returncode, 124)

    def test_limits_above_the_defaults(self) -> None:
        """A private supervisor has no operator who could have set less."""
        run = brood("run", "--memory", "1g", "--wall", "20s", "-c", "len(bytes(700 << 20))")
        self.assertEqual((run.returncode, run.stdout), (0, f"{700 << 20}\n"), run.stderr)

    def test_config(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "brood.conf")
            with open(path, "w", encoding="utf-8") as file:
                file.write("[profile mine]\nenv.A = b\n")
            run = brood("run", "--config", path, "--profile", "mine", "-c", "import os; os.environ['A']")
            self.assertEqual((run.returncode, run.stdout), (0, "'b'\n"), run.stderr)
            with open(path, "w", encoding="utf-8") as file:
                file.write("[profile mine]\nnonsense = b\n")
            run = brood("run", "--config", path, "-c", "1")
            self.assertEqual((run.returncode, run.stdout), (125, ""))
            self.assertIn(f"{path}:2:", run.stderr)

    def test_socket_that_is_not_there(self) -> None:
        for kwargs in ({"socket": "/no/such/socket"}, {"env": environment(BROOD_SOCKET="/no/such/socket")}):
            run = brood("run", "-c", "1", **kwargs)  # type: ignore[arg-type]
            self.assertEqual((run.returncode, run.stdout), (125, ""))
            self.assertIn("/no/such/socket", run.stderr)
        run = brood("run", "--socket", "/no/such/socket", "-c", "1")
        self.assertEqual(run.returncode, 125)

    def test_interrupt_leaves_nothing(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with subprocess.Popen([program("brood"), "run", "-c", "print('one', flush=True)\nwhile True: pass"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env=environment()) as process:
                assert process.stdout
                self.assertEqual(process.stdout.readline(), b"one\n")
                process.send_signal(number)
                process.communicate(timeout=TIMEOUT_S)
            self.assertNotEqual(process.returncode, 0)
            processes.poll(self.all_gone, "nothing of the private supervisor is left")

    def all_gone(self) -> bool:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:  # orphans are ours to reap
                pass
        except ChildProcessError:
            pass
        return not set(processes.descendants(os.getpid())) - self.before


if __name__ == "__main__":
    unittest.main()
