"""The configuration: good ones work, wrong ones are refused with file, line and what is allowed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from tests.support import processes
from tests.support.case import SupervisorCase
from tests.support.client import RpcError
from tests.support.supervisor import Supervisor, program


def broodd(*args: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program("broodd"), *args], capture_output=True, text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL)


class RefusedTest(unittest.TestCase):
    """broodd does not start: one line that says where and why."""

    CASES = {
        "unknown key": ("[broodd]\nqueue = 5\nqueu = 5\n", 3, ["queu", "allowed", "queue"]),
        "unknown key of a profile": ("[profile default]\n\n# a comment\nwal = 5s\n", 4, ["wal", "allowed", "wall", "memory"]),
        "unknown section": ("[brood]\nqueue = 1\n", 1, ["brood", "[broodd]", "[profile NAME]"]),
        "bad profile name": ("[profile a b]\nwall = 1s\n", 1, ["a b", "allowed"]),
        "no profile name": ("[profile ]\nwall = 1s\n", 1, ["profile", "allowed"]),
        "no section": ("queue = 5\n", 1, ["section"]),
        "not a pair": ("[broodd]\nqueue\n", 2, ["KEY = VALUE"]),
        "time": ("[profile default]\nwall = soon\n", 2, ["wall", "soon", "5s"]),
        "negative time": ("[profile default]\nwall = -1s\n", 2, ["wall", "-1s"]),
        "time above the maximum": ("[profile default]\nwall = 100h\n", 2, ["wall", "100h", "3600000"]),
        "time of zero": ("[profile default]\ncpu = 0\n", 2, ["cpu"]),
        "size": ("[profile default]\nmemory = lots\n", 2, ["memory", "lots", "512m"]),
        "size above the maximum": ("[profile default]\nmemory = 65g\n", 2, ["memory", "65g"]),
        "size below the minimum": ("[profile default]\nmemory = 1k\n", 2, ["memory", "1k"]),
        "unit of another kind": ("[profile default]\noutput = 5s\n", 2, ["output", "5s"]),
        "number": ("[broodd]\nqueue = many\n", 2, ["queue", "many"]),
        "number above the maximum": ("[broodd]\nclients = 99999999\n", 2, ["clients", "65536"]),
        "mode": ("[broodd]\nsocket_mode = rw\n", 2, ["socket_mode", "0600"]),
        "user": ("[broodd]\nallow_users = no-such-user-here\n", 2, ["allow_users", "no-such-user-here"]),
        "level": ("[broodd]\nlog_level = loud\n", 2, ["log_level", "debug"]),
        "format": ("[broodd]\nlog_format = xml\n", 2, ["log_format", "json"]),
        "bool": ("[profile default]\nsite_packages = maybe\n", 2, ["site_packages", "yes or no"]),
        "module": ("[profile default]\npreload = os, not a module\n", 2, ["preload", "not a module"]),
        "relative path": ("[profile default]\npaths = lib\n", 2, ["paths", "lib", "absolute"]),
        "layer": ("[profile default]\nrequire = armour\n", 2, ["require", "armour", "seccomp"]),
        "given twice": ("[broodd]\nqueue = 1\nqueue = 2\n", 3, ["queue"]),
        "a long line": ("[broodd]\n# " + "x" * 100_000 + "\nqueue = no\n", None, []),
        "not text": ("[broodd]\nqueue = \0\x01\n", 2, []),
    }

    def test_wrong_lines(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "brood.conf")
            for name, (text, line, words) in self.CASES.items():
                with self.subTest(name):
                    Path(path).write_text(text, encoding="utf-8")
                    run = broodd("--socket", os.path.join(folder, "socket"), "--config", path)
                    self.assertEqual((run.returncode, run.stdout), (1, ""), run.stderr)
                    self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
                    if line:
                        self.assertIn(f"{path}:{line}: ", run.stderr)
                    for word in words:
                        self.assertIn(word, run.stderr)
                    self.assertFalse(os.path.exists(os.path.join(folder, "socket")))

    def test_files_that_cannot_be_read(self) -> None:
        for path in ("/no/such/file.conf", "/tmp"):
            with self.subTest(path=path):
                run = broodd("--stdio", "--config", path)
                self.assertEqual(run.returncode, 1)
                self.assertIn(path, run.stderr)
                self.assertEqual(run.stderr.count("\n"), 1)

    def test_overrides(self) -> None:
        for override in ("queue", "queue=5", "broodd:queu=5", "default:wall=never", "nobody:wall=5s", ":=", "broodd:queue"):
            with self.subTest(override=override):
                run = broodd("--stdio", "-o", override)
                self.assertEqual(run.returncode, 1, run.stderr)
                self.assertIn(f"-o {override}", run.stderr)

    def test_command_line(self) -> None:
        for args in ((), ("--socket",), ("--no-such-option",), ("--stdio", "--socket", "/tmp/x"), ("--stdio", "extra"), ("-x",)):
            with self.subTest(args=args):
                run = broodd(*args)
                self.assertEqual((run.returncode, run.stdout), (2, ""), run.stderr)
                self.assertIn("--help", run.stderr)

    def test_a_zygote_program_that_is_not_there(self) -> None:
        run = broodd("--stdio", "-o", "broodd:zygote_path=/no/such/zygote")
        self.assertEqual(run.returncode, 1)
        self.assertIn("/no/such/zygote", run.stderr)


class AcceptedTest(unittest.TestCase):
    def test_check_config(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "brood.conf")
            Path(path).write_text("; comment\n# comment\n[broodd]\nsocket = /run/x\nsocket_mode = 660\nallow_users = root, 1000\nlog_level = warning\n"
                                  "queue = 0\nopen_calls = 1\nclients = 1\nrequest = 1m\nnesting = 8\ngrace = 1.5s\n\n"
                                  "[profile one]\n wall=1500ms\ncpu = 2m\nmemory = 1g\noutput = 64KiB\nvalue = 2m\nparked = 0\nworkers = 1\n"
                                  "env.A = b = c\npaths = /usr/lib, /usr/share\npreload = json\npreload = re, math\nsite_packages = no\n", encoding="utf-8")
            run = broodd("--config", path, "--check-config")
            self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_limits_are_printed(self) -> None:
        run = broodd("--limits")
        self.assertEqual(run.returncode, 0)
        for word in ("wall_ms", "cpu_ms", "memory_bytes", "output_bytes", "value_bytes", "request", "nesting", "open_calls", "5000", str(512 << 20)):
            self.assertIn(word, run.stdout)

    def test_help_and_version(self) -> None:
        self.assertRegex(broodd("--version").stdout, r"^broodd \d+\.\d+\.\d+\n$")
        self.assertIn("--socket", broodd("--help").stdout)


class EffectTest(SupervisorCase):
    CONFIG = """
[broodd]
request = 100k
nesting = 4
open_calls = 3
[profile default]
parked = 1
[profile tight]
wall = 300ms
output = 10
value = 1k
preload =
parked = 0
[profile cpu]
cpu = 200ms
wall = 10s
"""

    def test_limits_of_a_profile(self) -> None:
        self.ends("timeout", "while True: pass", profile="tight")
        self.assertEqual(self.ends("ok", "print('x' * 100)", profile="tight").stdout, "x" * 10)
        self.assertIsNone(self.ends("ok", "'x' * 2000", profile="tight").value)
        self.ends("cpu", "while True: pass", profile="cpu")

    def test_limits_of_the_server(self) -> None:
        self.assertEqual(self.client.hello()["limits"], {"request_bytes": 100 << 10, "nesting": 4, "open_calls": 3})
        self.assertEqual(self.value("x", inputs={"x": [[[[1]]]]}), [[[[1]]]])
        with self.connect() as other:
            other.start("x", inputs={"x": [[[[[1]]]]]})
            self.refused("malformed", client=other)
        with self.connect() as other:
            other.start("#" * (101 << 10))
            self.refused("malformed", client=other)
        calls = [self.client.start("import time; time.sleep(0.2)") for _ in range(4)]
        self.assertEqual([self.client.record(call).status for call in calls], ["ok", "ok", "ok", "busy"])

    def test_overrides_win(self) -> None:
        with Supervisor("[profile default]\nwall = 5s\n", args=["-o", "default:wall=300ms"]) as supervisor, supervisor.connect() as client:
            record = client.run("while True: pass")
            self.assertEqual(record.status, "timeout")
            self.assertIn("300 ms", record.message)


class BrokenProfileTest(unittest.TestCase):
    """The server runs; calls of that profile are told why they cannot, and other profiles work."""

    def refusal(self, lines: str) -> str:
        config = f"[profile broken]\nparked = 1\n{lines}\n"
        with Supervisor(config) as supervisor, supervisor.connect() as client:
            with self.assertRaises(RpcError) as caught:
                client.run("1", profile="broken")
            self.assertEqual(caught.exception.code, "unavailable")
            self.assertIn("broken", caught.exception.message)
            self.assertNotIn("\n", caught.exception.message)
            self.assertEqual(client.run("6 * 7").value, 42)
            status = client.status()["profiles"]["broken"]
            self.assertEqual((status["state"], status["parked"]), ("failing", 0))
            self.assertEqual(status["message"], caught.exception.message)
            processes.poll(lambda: not processes.zombies(supervisor.pid), "the zygote that failed is reaped")
            return caught.exception.message

    def test_missing_interpreter(self) -> None:
        self.assertIn("/no/such/python3", self.refusal("python = /no/such/python3"))

    def test_something_that_is_no_interpreter(self) -> None:
        self.assertIn("/bin/true", self.refusal("python = /bin/true"))

    def test_missing_module(self) -> None:
        message = self.refusal("preload = json, no_such_module")
        self.assertIn("no_such_module", message)
        self.assertIn("preload", message)

    def test_missing_path(self) -> None:
        self.assertIn("/no/such/dir", self.refusal("paths = /no/such/dir"))

    def module(self, text: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            Path(folder, "bad_module.py").write_text(text, encoding="utf-8")
            return self.refusal(f"preload = bad_module\npaths = {folder}")

    def test_modules_that_fail(self) -> None:
        self.assertIn("why not", self.module("raise RuntimeError('why not')"))
        self.module("import os; os.abort()")
        self.assertIn("bad_module", self.module("import sys; sys.exit(3)"))
        self.assertIn("bad_module", self.module("x = = 1"))

    def test_a_module_that_starts_a_thread(self) -> None:
        message = self.module("import threading, time\nthreading.Thread(target=time.sleep, args=(3600,), daemon=True).start()")
        self.assertIn("bad_module", message)
        self.assertIn("thread", message)

    def test_it_is_tried_again(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            with Supervisor(f"[profile late]\npreload = comes_later\npaths = {folder}\n") as supervisor, supervisor.connect() as client:
                with self.assertRaises(RpcError):
                    client.run("1", profile="late")
                Path(folder, "comes_later.py").write_text("VALUE = 5\n", encoding="utf-8")
                processes.poll(lambda: client.status()["profiles"]["late"]["state"] == "ready", "the profile starts at last")
                self.assertEqual(client.run("import comes_later; comes_later.VALUE", profile="late").value, 5)


class InterpreterTest(unittest.TestCase):
    def test_named_interpreter(self) -> None:
        with Supervisor(f"[profile default]\npython = {os.path.realpath(sys.executable)}\n") as supervisor, supervisor.connect() as client:
            self.assertEqual(client.run("import sys; list(sys.version_info[:3])").value, list(sys.version_info[:3]))

    def test_virtual_environment(self) -> None:
        """Made by hand, as the module that makes them is a package of its own: its modules are found, those beside it are not."""
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            site = Path(folder, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
            site.mkdir(parents=True)
            (site / "of_the_environment.py").write_text("NAME = 'mine'\n", encoding="utf-8")
            Path(folder, "bin").mkdir()
            os.symlink(os.path.realpath(sys.executable), Path(folder, "bin", "python"))
            Path(folder, "pyvenv.cfg").write_text(f"home = {os.path.dirname(os.path.realpath(sys.executable))}\nversion = "
                                                  + "%d.%d.%d\n" % sys.version_info[:3], encoding="utf-8")
            for python in (folder, f"{folder}/bin/python"):
                with self.subTest(python=python), Supervisor(f"[profile default]\npython = {python}\n") as supervisor, supervisor.connect() as client:
                    record = client.run("import of_the_environment, sys\n[of_the_environment.NAME, sys.prefix]")
                    self.assertEqual(record.value, ["mine", folder], dict(record))


if __name__ == "__main__":
    unittest.main()
