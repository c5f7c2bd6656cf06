"""How a call ends by its own doing: normally, by exit, by an exception, by a crash; and by its client's, when it is cancelled."""

from __future__ import annotations

import signal
import unittest

from tests.support import processes
from tests.support.case import SupervisorCase, needs_filter, skip
from tests.support.supervisor import SANITIZED


class ExitTest(SupervisorCase):
    """The code ends itself."""

    def test_plain_end(self) -> None:
        record = self.ends("ok", "print('before')\nx = 1")
        self.assertEqual((record.stdout, record.stderr, record.exit_code, record.signal), ("before\n", "", None, None))

    def test_empty_code(self) -> None:
        record = self.ends("ok", "")
        self.assertEqual((record.value, record.repr, record.stdout), (None, None, ""))

    def test_exit_codes(self) -> None:
        cases = {
            "import sys; sys.exit(3)": 3, "exit(3)": 3, "quit(4)": 4, "raise SystemExit(5)": 5, "raise SystemExit": 0,
            "import sys; sys.exit()": 0, "import sys; sys.exit(None)": 0, "import sys; sys.exit(0)": 0, "exit()": 0,
            "import sys; sys.exit(True)": 1, "raise SystemExit(263)": 263, "raise SystemExit(-1)": -1,
            "import os; os._exit(0)": 0, "import os; os._exit(7)": 7,
            "try:\n    1 / 0\nfinally:\n    exit(9)": 9,
            "def f():\n    try:\n        return 1\n    finally:\n        raise SystemExit(10)\nf()": 10,
        }
        for code, expected in cases.items():
            with self.subTest(code=code):
                record = self.ends("ok", "print('before', flush=True)\n" + code)
                self.assertEqual((record.exit_code, record.stdout, record.error), (expected, "before\n", None))

    def test_unflushed_output_is_kept_at_exit(self) -> None:
        self.assertEqual(self.ends("ok", "print('before', end='')\nexit(3)").stdout, "before")

    def test_exit_with_text(self) -> None:
        record = self.ends("ok", "import sys; print('before'); sys.exit('no more money')")
        self.assertEqual((record.exit_code, record.stdout, record.stderr), (1, "before\n", "no more money\n"))

    def test_exit_in_a_thread_ends_the_thread_only(self) -> None:
        record = self.ends("ok", """
            import sys, threading
            thread = threading.Thread(target=sys.exit, args=(3,))
            thread.start()
            thread.join()
            'still here'
            """.replace("\n            ", "\n"))
        self.assertEqual((record.value, record.exit_code), ("still here", None))

    def test_threads_are_waited_for(self) -> None:
        """As at the end of any script: those that are not daemons."""
        record = self.ends("ok", "import threading, time\nprint('hi')\n"
                                 "threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()")
        self.assertEqual(record.stdout, "hi\nlate\n")

    def test_thread_pools(self) -> None:
        code = "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(2) as pool:\n    r = list(pool.map(str, range(3)))\nr"
        self.assertEqual(self.value(code), ["0", "1", "2"])
        self.assertIs(self.value("import threading\nthreading.main_thread().is_alive() and threading.current_thread() is threading.main_thread()"), True)

    def test_exit_handlers_of_the_code(self) -> None:
        """Handlers that the code registers run, as they would in a Python of its own."""
        record = self.ends("ok", "import atexit\natexit.register(print, 'bye')\nprint('hi')")
        self.assertEqual(record.stdout, "hi\nbye\n")


class ErrorTest(SupervisorCase):
    def test_exception(self) -> None:
        record = self.ends("error", "print('before')\n1 / 0")
        self.assertEqual(record.stdout, "before\n")
        self.assertEqual((record.error["type"], record.error["message"], record.error["line"]),
                         ("ZeroDivisionError", "division by zero", 2))
        self.assertIsNone(record.exit_code)

    def test_every_kind_of_exception_is_an_answer(self) -> None:
        for code, kind in {
            "raise KeyboardInterrupt": "KeyboardInterrupt",
            "raise BaseException('x')": "BaseException",
            "raise GeneratorExit": "GeneratorExit",
            "raise ExceptionGroup('many', [ValueError(1), TypeError(2)])": "ExceptionGroup",
            "class Odd(Exception):\n    def __str__(self): raise RuntimeError('no')\nraise Odd": "Odd",
            "class Odd(Exception):\n    __slots__ = ()\n    def __repr__(self): 1/0\n    __str__ = __repr__\nraise Odd": "Odd",
            "f(": "SyntaxError",
            "import nothing_of_this_name": "ModuleNotFoundError",
            "assert False, 'why'": "AssertionError",
            "None.x": "AttributeError",
            "async def f(): pass\nawait f()": "SyntaxError",
        }.items():
            with self.subTest(code=code):
                self.assertIn(kind, self.ends("error", code).error["type"])

    def test_code_that_is_not_source(self) -> None:
        for code in ("a\0b", b"\xff\xfe", b"# coding: no-such-codec\n", "\ud7ff\n\x01", " x = 1"):
            with self.subTest(code=code):
                self.assertIsNotNone(self.ends("error", code).error)

    def test_the_encoding_declaration_of_bytes_counts(self) -> None:
        self.assertEqual(self.value(b"# coding: latin-1\n'\xe9'"), "\xe9")
        self.assertEqual(self.value(b"\xef\xbb\xbf'\xc3\xa9'"), "\xe9")

    def test_recursion_error(self) -> None:
        record = self.ends("error", "def f(): return f()\nf()")
        self.assertEqual(record.error["type"], "RecursionError")
        self.assertLess(len(record.error["traceback"]), 2000)

    def test_denied(self) -> None:
        needs_filter()
        record = self.ends("denied", "import os\nprint('before')\nos.fork()")
        self.assertEqual((record.error["type"], record.error["line"], record.stdout), ("PermissionError", 3, "before\n"))

    def test_a_refusal_that_is_caught_is_no_ending(self) -> None:
        needs_filter()
        self.assertEqual(self.value("import os\ntry:\n    os.fork()\nexcept PermissionError as e:\n    r = e.errno\nr"), 1)


class CrashTest(SupervisorCase):
    """A worker that dies takes its own call with it and nothing else."""

    CONFIG = "[profile default]\nwall = 60s\ncpu = 60s\n"

    def crashes(self, code: str, expected: int) -> None:
        record = self.ends("crashed", "print('before', flush=True)\n" + code)
        self.assertEqual((record.signal, record.stdout), (expected, "before\n"))
        # The same number may have two names (SIGIO, SIGPOLL).
        names = [name for name, value in vars(signal).items() if name.startswith("SIG") and value == expected]
        self.assertTrue(any(name in record.message for name in names), record.message)
        self.assertEqual(self.value("1 + 1"), 2)

    def test_stack_overflow(self) -> None:
        if SANITIZED:
            skip("AddressSanitizer reports a stack overflow in its own way")
        record = self.ends("crashed", """
import sys
sys.setrecursionlimit(10**6)
class A:
    def __getattr__(self, name): return getattr(self, name + 'x')
def f(x): return sorted([x], key=f)
f(1)
""")
        self.assertEqual(record.signal, signal.SIGSEGV)
        self.assertIn("stack overflow", record.message)
        self.assertEqual(self.value("1 + 1"), 2)

    def test_recursion_limit_raised(self) -> None:
        """Python frames may end in a crash or in an error, by the interpreter's version; always in one answer."""
        if SANITIZED:
            skip("AddressSanitizer reports a stack overflow in its own way")
        record = self.client.run("import sys\nsys.setrecursionlimit(10**6)\ndef f(n): return f(n + 1)\nf(0)")
        self.assertIn(record.status, ("crashed", "error", "memory"))
        if record.status == "crashed":
            self.assertEqual(record.signal, signal.SIGSEGV)

    def test_abort(self) -> None:
        self.crashes("import os; os.abort()", signal.SIGABRT)

    def test_every_signal(self) -> None:
        """Each signal whose default action ends a process."""
        survivors = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGSTOP, signal.SIGTSTP,
                     signal.SIGTTIN, signal.SIGTTOU}
        # Not crashes by their meaning: Python raises KeyboardInterrupt, the kernel's word for CPU time, the sandbox's word.
        others = {signal.SIGINT, signal.SIGXCPU, signal.SIGSYS, signal.SIGPIPE, signal.SIGXFSZ}
        for number in sorted(signal.valid_signals() - survivors - others):
            if number >= signal.SIGRTMIN:
                continue
            with self.subTest(signal=number):
                self.crashes(f"import os; os.kill(os.getpid(), {int(number)})", number)

    def test_signals_that_python_ignores_or_raises(self) -> None:
        kill = "import os, signal\nos.kill(os.getpid(), signal.{})\n'survived'"
        self.assertEqual(self.value(kill.format("SIGPIPE")), "survived")
        self.assertEqual(self.value(kill.format("SIGCHLD")), "survived")
        self.assertEqual(self.ends("error", kill.format("SIGINT")).error["type"], "KeyboardInterrupt")

    def test_wild_pointer(self) -> None:
        if SANITIZED:
            skip("AddressSanitizer reports a wild pointer in its own way")
        self.crashes("import ctypes; ctypes.string_at(0)", signal.SIGSEGV)

    def test_deep_structures(self) -> None:
        """Each ends in one answer, by whatever the interpreter makes of it."""
        for code in (
            "x = []\nfor _ in range(100_000): x = [x]\nrepr(x)",
            "eval('(' * 5000 + ')' * 5000)",
            "eval('-' * 100_000 + '1')",
            "'x' + '.x' * 100_000\ncompile('x' + '.x' * 100_000, 'f', 'eval')",
            "class N:\n    def __init__(self, n): self.n = n\n    def __del__(self): pass\n"
            "x = None\nfor _ in range(1_000_000): x = N(x)\ndel x\n'freed'",
        ):
            with self.subTest(code=code):
                record = self.client.run(code)
                self.check_shape(record)
                self.assertIn(record.status, ("ok", "error", "crashed", "memory"))
                self.assertEqual(self.value("1 + 1"), 2)

    def test_deeply_nested_source(self) -> None:
        for code in ("(" * 10_000 + ")" * 10_000, "[" * 150 + "]" * 150, "-" * 200_000 + "1"):
            with self.subTest(code=code[:10]):
                record = self.client.run(code)
                self.check_shape(record)
                self.assertIn(record.status, ("ok", "error", "crashed", "memory"))

    def test_stopped_by_itself(self) -> None:
        record = self.ends("timeout", "import os, signal\nprint('before', flush=True)\nos.kill(os.getpid(), signal.SIGSTOP)",
                           limits={"wall_ms": 500})
        self.assertEqual(record.stdout, "before\n")

    def test_no_zombie_is_left(self) -> None:
        for _ in range(20):
            self.client.run("import os; os.abort()")
        pid = self.supervisor.pid
        processes.poll(lambda: not processes.zombies(pid), "no zombie is left below broodd")


class CancelTest(SupervisorCase):
    CONFIG = "[profile default]\nparked = 1\nworkers = 1\nwall = 60s\n"

    def test_running(self) -> None:
        call = self.client.running("import time; time.sleep(3600)")
        self.assertIs(self.client.call("cancel", call), True)
        record = self.client.record(call)
        self.check_shape(record)
        self.assertEqual(record.status, "cancelled")
        self.assertEqual(self.value("1 + 1"), 2)

    def test_queued(self) -> None:
        first = self.client.running("import time; time.sleep(3600)")
        second = self.client.start("print('never')")
        self.assertIs(self.client.call("cancel", second), True)
        record = self.client.record(second)
        self.assertEqual((record.status, record.stdout), ("cancelled", ""))
        self.client.notify("cancel", first)
        self.assertEqual(self.client.record(first).status, "cancelled")

    def test_unknown_and_ended(self) -> None:
        self.assertIs(self.client.call("cancel", 4_000_000_000), False)
        call = self.client.start("1")
        self.client.record(call)
        self.assertIs(self.client.call("cancel", call), False)

    def test_another_clients_call(self) -> None:
        call = self.client.running("import time; time.sleep(3600)")
        with self.connect() as other:
            self.assertIs(other.call("cancel", call), False)
        self.client.notify("cancel", call)
        self.assertEqual(self.client.record(call).status, "cancelled")


if __name__ == "__main__":
    unittest.main()
