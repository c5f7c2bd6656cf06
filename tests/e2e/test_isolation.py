"""What code can reach: nothing of the host, nothing of other calls, nothing of the zygote but its image."""

from __future__ import annotations

import codecs
import ntpath
import os
import random
import tempfile
import unittest
from pathlib import Path

from tests.support import processes
from tests.support.case import SupervisorCase, needs_filter, skip
from tests.support.supervisor import SANITIZED, Supervisor

HAS_NUMPY = os.path.isdir("/usr/lib/python3/dist-packages/numpy")


class BoundaryTest(SupervisorCase):
    """Refused or not there. Each is tried by the code itself, through the C library where Python has no word for it."""

    def test_the_supervisor_cannot_be_read_by_its_own_user(self) -> None:
        """Of a process that is not dumpable, the kernel gives what /proc shows to root."""
        self.assertEqual(os.stat(f"/proc/{self.supervisor.pid}/environ").st_uid, 0)
        if os.geteuid() != 0:
            with self.assertRaises(PermissionError):
                open(f"/proc/{self.supervisor.pid}/mem", "rb")

    def layers(self) -> set[str]:
        return set(self.client.run("1").receipt["layers"])

    def test_rights_that_are_refused(self) -> None:
        needs_filter()
        for code in (
            "import os; os.fork()", "import os; os.posix_spawn('/bin/true', ['true'], {})", "import subprocess; subprocess.run(['true'])",
            "import os; os.execv('/bin/true', ['true'])", "import os; os.system('true') == 0 or os.fork()",
            "import socket; socket.socket()", "import socket; socket.socket(socket.AF_INET6)",
            "import socket; socket.create_connection(('127.0.0.1', 80))", "import os; os.kill(1, 9)", "import os; os.kill(-1, 9)",
            "import os; os.setuid(0)", "import os; os.chroot('/')", "import os; os.nice(-1)",
            "import os; os.pidfd_open(1)",
            "import os; os.sched_setaffinity(0, {0})", "import os; os.memfd_create('x')",
        ):
            with self.subTest(code=code):
                record = self.client.run(code)
                self.assertEqual(record.status, "denied", dict(record))

    def test_system_calls_that_are_refused(self) -> None:
        """By number, so that no wrapper stands between: 101 ptrace, 165 mount, 272 unshare, 41 socket, 57 fork, 59 execve, 425 io_uring_setup, …"""
        needs_filter()
        if os.uname().machine != "x86_64":
            skip("the numbers are those of x86_64")
        numbers = {"ptrace": 101, "mount": 165, "umount2": 166, "unshare": 272, "setns": 308, "pivot_root": 155, "chroot": 161, "socket": 41,
                   "fork": 57, "vfork": 58, "execve": 59, "execveat": 322, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
                   "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "keyctl": 250, "add_key": 248, "init_module": 175, "reboot": 169,
                   "pidfd_getfd": 438, "open_by_handle_at": 304, "seccomp": 317, "shmget": 29, "msgget": 68, "semget": 64, "mq_open": 240,
                   "setuid": 105, "capset": 126, "iopl": 172, "swapon": 167, "sethostname": 170, "clock_settime": 227, "personality": 135}
        values = self.value("import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nresults = {}\n"
                            "for name, number in numbers.items():\n    r = libc.syscall(number, 0, 0, 0, 0, 0, 0)\n"
                            "    results[name] = (r, ctypes.get_errno())\nresults", inputs={"numbers": numbers})
        for name, (result, number) in values.items():
            with self.subTest(name):
                self.assertEqual((result, number), (-1, 1))

    def test_files_of_the_host(self) -> None:
        if "root" not in self.layers():
            skip("no root of its own here: mount namespaces are not to be had")
        for path in ("/etc/passwd", "/etc/hostname", "/etc/ld.so.cache", "/proc", "/proc/self", "/sys", "/home", "/root", "/tmp", "/var", "/dev/shm", "/dev/tty", "/bin/sh", "/usr/bin",
                     "/run", self.supervisor.dir, __file__, "/old", "/new"):
            with self.subTest(path=path):
                self.assertIs(self.value("import os; os.path.lexists(p)", inputs={"p": path}), False)

    def test_the_root_is_read_only(self) -> None:
        if "root" not in self.layers():
            skip("no root of its own here: mount namespaces are not to be had")
        code = """
import os, errno
found = []
for folder, names, files in os.walk('/'):
    for name in [os.path.join(folder, 'new-file')] + [os.path.join(folder, f) for f in files[:3]]:
        if folder == '/dev': continue
        try:
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT, 0o666)); found.append(name)
        except OSError: pass
    names[:] = names[:20]
found
"""
        self.assertEqual(self.value(code), [])

    def test_what_is_in_sight(self) -> None:
        if "root" not in self.layers():
            skip("no root of its own here: mount namespaces are not to be had")
        self.assertLessEqual(set(self.value("import os; os.listdir('/')")), {"dev", "etc", "lib", "lib64", "usr"})
        # Debian's libraries (BLAS) are found through links there.
        self.assertLessEqual(set(self.value("import os; os.listdir('/etc') if os.path.exists('/etc') else []")), {"alternatives"})
        self.assertEqual(set(self.value("import os; os.listdir('/dev')")), {"null", "zero", "random", "urandom"})
        self.assertEqual(self.value("import os; os.getcwd()"), "/")

    def test_descriptors(self) -> None:
        found = self.value("""
import os, stat
found = {}
for fd in range(1024):
    try: found[fd] = stat.S_IFMT(os.fstat(fd).st_mode)
    except OSError: pass
[found, {fd: os.get_inheritable(fd) for fd in found}]
""")[0]
        self.assertEqual(found, {0: 0o020000, 1: 0o010000, 2: 0o010000, 3: 0o010000, 4: 0o010000})

    def test_identity(self) -> None:
        uid, gid, ppid, groups = self.value("import os; [os.getresuid(), os.getresgid(), os.getppid(), os.getgroups()]")
        self.assertNotIn(0, uid)
        self.assertEqual((len(set(uid)), len(set(gid))), (1, 1))
        if "pid-ns" in self.layers():
            self.assertEqual(ppid, 1)
        if "uid" in self.layers():
            self.assertEqual([group for group in groups if group not in gid], [])

    def test_what_the_kernel_says_of_a_worker(self) -> None:
        """Read from outside, from /proc."""
        with self.connect() as other:
            call = other.start("import os, time\nprint('pid', os.getpid(), flush=True)\ntime.sleep(3600)", stream=True)
            other.wait_output(call, b"\n")
            inner = other.outputs[call, "stdout"].split()[1].decode()
            # Siblings come and go meanwhile; ours is the one that has this pid in its own namespace.
            found = [status for pid in processes.descendants(self.supervisor.pid) if (status := self.status_of(pid))
                     and status["NSpid"].split()[-1] == inner]
            self.assertEqual(len(found), 1)
            status = found[0]
            self.assertEqual(status["NoNewPrivs"], "1")
            for kind in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
                self.assertEqual(int(status[kind], 16), 0, kind)
            if not SANITIZED:
                self.assertEqual(status["Seccomp"], "2")
            if os.getuid() == 0:
                self.assertNotIn("0", status["Uid"].split())
            other.notify("cancel", call)
            other.record(call)

    @staticmethod
    def status_of(pid: int) -> dict[str, str]:
        try:
            text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return {}
        return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)

    def test_zygote_and_worker_are_not_dumpable(self) -> None:
        self.assertEqual(self.value("import ctypes; ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)"), 0)

    def test_limits_of_the_kernel(self) -> None:
        limits = self.value("import resource as r; {n: r.getrlimit(getattr(r, n)) for n in dir(r) if n.startswith('RLIMIT_')}")
        self.assertEqual(limits["RLIMIT_CORE"], (0, 0))
        self.assertEqual(limits["RLIMIT_FSIZE"], (0, 0))
        self.assertGreater(limits["RLIMIT_DATA"][1], 0)
        if not SANITIZED:  # a sanitizer's own memory is counted in
            self.assertLess(limits["RLIMIT_DATA"][1], 1 << 30)
        self.assertLess(limits["RLIMIT_NOFILE"][1], 4096)

    def test_a_sandbox_does_not_name_its_host(self) -> None:
        if "uts-ns" not in self.layers():
            skip("no uts namespace here")
        self.assertEqual(self.value("import os; os.uname().nodename"), "brood")


class StateTest(SupervisorCase):
    """Nothing of one call is there in the next, nor shared between workers of one zygote."""

    CONFIG = "[profile default]\nparked = 3\n" + ("[profile numpy]\nsite_packages = yes\npreload = numpy\nparked = 2\n" if HAS_NUMPY else "")

    def test_a_thousand_calls_define_the_same_name(self) -> None:
        code = """
import builtins, sys, os, json, math
for place in (builtins, sys, os, json, math, sys.modules['__main__']):
    if hasattr(place, 'MARK'): raise RuntimeError(f'state leaked into {place}')
    place.MARK = 1
if 'MARK' in globals() and globals()['MARK'] != 1 or 'MARK' in os.environ or os.path.exists('/tmp/MARK'): raise RuntimeError('leak')
os.environ['MARK'] = '1'
sys.path.append('MARK')
sys.path.count('MARK')
"""
        calls: list[int] = []
        done = 0
        while done < 1000:
            while len(calls) < 100 and done + len(calls) < 1000:
                calls.append(self.client.start(code))
            record = self.client.record(calls.pop(0))
            self.assertEqual((record.status, record.value), ("ok", 1), dict(record))
            done += 1

    def test_each_call_has_a_process_of_its_own(self) -> None:
        workers = [self.client.run("1").receipt["worker"] for _ in range(50)]
        self.assertEqual(len(set(workers)), 50)

    def draws(self, code: str, count: int, **fields: object) -> list[object]:
        calls = [self.client.start(code, **fields) for _ in range(count)]
        return [self.client.record(call).value for call in calls]

    def test_randomness_differs(self) -> None:
        code = "import random, secrets, uuid, os, tempfile\n" \
               "[tuple(random.random() for _ in range(3)), secrets.token_hex(8), uuid.uuid4().hex, os.urandom(8), " \
               "random.SystemRandom().random(), next(tempfile._get_candidate_names())]"
        draws = self.draws(code, 200)
        for column in zip(*draws):
            self.assertEqual(len(set(column)), len(draws))

    def test_a_seed_is_reproducible(self) -> None:
        expected = random.Random(7).random()
        for value in self.draws("import random; random.seed(7); random.random()", 5):
            self.assertEqual(value, expected)

    def test_randomness_of_numpy_differs(self) -> None:
        if not HAS_NUMPY:
            skip("numpy is not installed")
        code = "import numpy as np\n[tuple(map(float, np.random.random(3))), tuple(map(float, np.random.default_rng().random(3)))]"
        draws = self.draws(code, 100, profile="numpy")
        for column in zip(*draws):
            self.assertEqual(len(set(column)), len(draws))
        seeded = self.draws("import numpy as np; np.random.seed(3); float(np.random.random())", 5, profile="numpy")
        self.assertEqual(len(set(seeded)), 1)

    def test_linear_algebra_after_the_fork(self) -> None:
        if not HAS_NUMPY:
            skip("numpy is not installed")
        code = "import numpy as np\na = np.eye(200) * 2\nfloat(np.linalg.solve(a, np.ones(200)).sum() + (a @ a)[0, 0])"
        self.assertEqual(set(self.draws(code, 50, profile="numpy")), {104.0})


class PreloadTest(unittest.TestCase):
    """What modules do when the zygote imports them stays in the zygote."""

    MODULE = """
import atexit, logging, os, sys, shutil, threading, warnings
print('P', end='')
print('E', end='', file=sys.stderr)
logging.warning('a warning of the preload')
warnings.warn('another')
FOLDER = {folder!r}
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
atexit.register(print, 'handler of the preload')
import ctypes
ctypes.CDLL(None).printf(b'C')
STATE = []
"""

    def test_prints_and_exit_handlers(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            keep = Path(folder, "keep")
            keep.mkdir()
            modules = Path(folder, "modules")
            modules.mkdir()
            Path(folder).chmod(0o755)
            (modules / "chatty.py").write_text(self.MODULE.format(folder=str(keep)))
            config = f"[profile default]\npreload = chatty\npaths = {modules}\nparked = 2\n"
            with Supervisor(config) as supervisor, supervisor.connect() as client:
                codes = ["print('W')", "print('W')\nexit(2)", "print('W')\n1 / 0", "print('W', flush=True)\nimport os; os._exit(1)",
                         "import chatty\nassert chatty.STATE == []\nchatty.STATE.append(1)\nprint('W')"]
                calls = [client.start(codes[n % len(codes)]) for n in range(100)]
                for call in calls:
                    record = client.record(call)
                    self.assertEqual((record.stdout, record.stderr), ("W\n", ""), dict(record))
                self.assertTrue(keep.is_dir())
            self.assertTrue(keep.is_dir())
            self.assertIn("a warning of the preload", supervisor.last_log)

    def test_standard_modules_know_their_files(self) -> None:
        """Those that are frozen into the interpreter as well."""
        with Supervisor() as supervisor, supervisor.connect() as client:
            record = client.run("import os, codecs, inspect, ntpath\n[os.__file__, codecs.__file__, ntpath.__file__, 'def walk' in inspect.getsource(os)]")
            self.assertEqual(record.value, [os.__file__, codecs.__file__, ntpath.__file__, True], dict(record))

    def test_modules_that_are_not_preloaded(self) -> None:
        with Supervisor("[profile default]\npreload =\n") as supervisor, supervisor.connect() as client:
            for name in ("csv", "sqlite3", "xml.etree.ElementTree", "decimal", "asyncio", "unittest", "ctypes", "zoneinfo", "ssl", "lzma", "email"):
                with self.subTest(module=name):
                    record = client.run(f"import {name}")
                    self.assertEqual(record.status, "ok", dict(record))
            self.assertIn("Berlin", client.run("import zoneinfo; str(zoneinfo.ZoneInfo('Europe/Berlin'))").value)


class EnvironmentTest(SupervisorCase):
    CONFIG = "[profile default]\nenv.GREETING = hello world\nenv.EMPTY =\n"

    def test_environment_of_the_profile(self) -> None:
        environment = self.value("import os; dict(os.environ)")
        self.assertEqual(environment["GREETING"], "hello world")
        self.assertEqual(environment["EMPTY"], "")
        self.assertNotIn("PATH", environment)
        self.assertNotIn("HOME", environment)

    def test_arguments(self) -> None:
        self.assertEqual(self.value("import sys; [sys.argv, sys.flags.isolated]"), [[""], 1])


if __name__ == "__main__":
    unittest.main()
