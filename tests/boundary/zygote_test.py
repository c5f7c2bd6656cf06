"""brood-zygote against a scripted supervisor.

Usage: zygote_test.py ZYGOTE ZYGOTE_SPAWN [unittest arguments]

The test plays broodd: it bears a zygote in the namespaces of each mode, speaks the packets of PROTOCOL.md, part 4, and looks at the
processes from outside. Modes: `root` (namespaces, another uid), `user` (an ordinary user with a user namespace of its own),
`plain` (no namespaces). Run as root it tries all three, the second under an unprivileged uid; run as an ordinary user, the last two.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import textwrap
import unittest
from dataclasses import dataclass, field
from typing import Any

import msgpack

START, READY, FAILED, FORK, FORKED, FORK_FAILED, EXITED = range(1, 8)
LAYERS = [
    "user-ns", "pid-ns", "net-ns", "ipc-ns", "uts-ns", "mount-ns", "cgroup-ns",
    "root", "uid", "no-caps", "no-new-privs", "not-dumpable", "seccomp", "rlimits",
]
INNER = ["no-caps", "no-new-privs", "not-dumpable", "seccomp", "rlimits"]
PARKED = msgpack.packb([1])
WAIT_S = 60  # not a pass mark: only keeps a broken zygote from hanging the test
NOBODY = 65534
WORKER_ID = 65533

AM_ROOT = os.getuid() == 0
ZYGOTE = SPAWN = ""
# Sanitizers need system calls that the filter refuses; their builds run without it.
FILTER = not os.environ.get("BROOD_TEST_NO_FILTER")


def bit(layer: str) -> int:
    return 1 << LAYERS.index(layer)


@dataclass(frozen=True)
class Mode:
    name: str
    namespaces: str
    as_user: int | None = None  # run everything under this uid
    uid: int = 0  # START's uid and gid
    expected: tuple[str, ...] = ()

    @property
    def given(self) -> int:
        return sum(bit(f"{name}-ns") for name in self.namespaces.split(",") if name != "-")

    @property
    def own_root(self) -> bool:
        return "mount" in self.namespaces


def modes() -> list[Mode]:
    spaces = "pid,net,ipc,uts,mount,cgroup"
    layers = tuple(f"{name}-ns" for name in spaces.split(","))
    user = NOBODY if AM_ROOT else None
    found = [
        Mode("user", "user," + spaces, user, 0, ("user-ns", *layers, "root", *INNER)),
        Mode("plain", "-", user, 0, ("no-new-privs", "not-dumpable", "seccomp", "rlimits")),
    ]
    if AM_ROOT:
        found.append(Mode("root", spaces, None, WORKER_ID, (*layers, "root", "uid", *INNER)))
        found.append(Mode("plain-root", "-", None, WORKER_ID, ("uid", *INNER)))
    return found


def possible(mode: Mode) -> bool:
    """Does this machine or container grant the namespaces at all?"""
    ids: dict[str, Any] = {"user": mode.as_user, "group": mode.as_user, "extra_groups": []} if mode.as_user else {}
    with open(os.devnull, "r+b") as null:
        run = subprocess.run([SPAWN, mode.namespaces, str(null.fileno()), str(null.fileno()), shutil.which("true") or "/bin/true"],
                             pass_fds=[null.fileno()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, **ids)
    return run.returncode == 0


def limits() -> dict[str, int]:
    return {"wall_ms": 5000, "cpu_ms": 5000, "memory_bytes": 512 << 20, "output_bytes": 1 << 20, "value_bytes": 1 << 20}


@dataclass
class Worker:
    id: int
    pidfd: int
    stdout: int
    stderr: int
    request: int
    answer: int

    @property
    def host_pid(self) -> int:
        with open(f"/proc/self/fdinfo/{self.pidfd}", encoding="ascii") as info:
            for line in info:
                if line.startswith("Pid:"):
                    return int(line.split()[1])
        raise AssertionError("no pidfd")

    def kill(self, number: int = signal.SIGKILL) -> None:
        signal.pidfd_send_signal(self.pidfd, number)

    def gone(self) -> bool:
        return bool(select.select([self.pidfd], [], [], WAIT_S)[0])

    def read_frame(self) -> bytes:
        head = read_exactly(self.answer, 4)
        return read_exactly(self.answer, struct.unpack("<I", head)[0])

    def close(self) -> None:
        for fd in (self.pidfd, self.stdout, self.stderr, self.request, self.answer):
            os.close(fd)


def read_exactly(fd: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not select.select([fd], [], [], WAIT_S)[0]:
            raise AssertionError(f"only {len(data)} of {size} bytes came")
        more = os.read(fd, size - len(data))
        if not more:
            raise AssertionError(f"end of file after {len(data)} of {size} bytes")
        data += more
    return data


@dataclass
class Zygote:
    """A zygote and our ends of what it is born with."""

    mode: Mode
    control: socket.socket = field(init=False)
    log: int = field(init=False)
    spawn: subprocess.Popen[bytes] = field(init=False)
    pid: int = field(init=False)
    next_id: int = 1
    logged: bytes = b""

    def __post_init__(self) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.settimeout(WAIT_S)
        self.log, log_in = os.pipe()
        user = self.mode.as_user
        ids: dict[str, Any] = {"user": user, "group": user, "extra_groups": []} if user else {}
        self.spawn = subprocess.Popen([SPAWN, self.mode.namespaces, str(theirs.fileno()), str(log_in), ZYGOTE],
                                      pass_fds=[theirs.fileno(), log_in], stdout=subprocess.PIPE, **ids)
        theirs.close()
        os.close(log_in)
        assert self.spawn.stdout
        self.pid = int(self.spawn.stdout.readline())

    def send(self, message: Any, fds: list[int] | None = None) -> None:
        data = message if isinstance(message, bytes) else msgpack.packb(message)
        if fds:
            socket.send_fds(self.control, [data], fds)
        else:
            self.control.send(data)

    def receive(self) -> tuple[list[Any] | None, list[int]]:
        try:
            data, fds, _, _ = socket.recv_fds(self.control, 65536, 4)
        except ConnectionResetError:
            return None, []
        return (msgpack.unpackb(data) if data else None), list(fds)

    def start(self, **changes: Any) -> list[Any] | None:
        given: dict[str, Any] = {
            "profile": "tested", "python": "", "preload": ["json"], "paths": [], "env": {"NAME": "value"}, "site_packages": False,
            "filter": FILTER, "layers_given": self.mode.given, "uid": self.mode.uid, "gid": self.mode.uid, "workers_max": 4,
            "limits": limits(),
        }
        given.update(changes)
        self.send([START, given])
        return self.receive()[0]

    def fork_raw(self, fds: list[int], worker: int | None = None) -> tuple[list[Any] | None, list[int]]:
        if worker is None:
            worker = self.next_id
            self.next_id += 1
        self.send([FORK, worker, True], fds)
        return self.receive()

    def fork(self) -> Worker:
        out_r, out_w = os.pipe()
        err_r, err_w = os.pipe()
        req_r, req_w = os.pipe()
        ans_r, ans_w = os.pipe()
        answer, fds = self.fork_raw([out_w, err_w, req_r, ans_w])
        for fd in (out_w, err_w, req_r, ans_w):
            os.close(fd)
        if not answer or answer[0] != FORKED or len(fds) != 1:
            raise AssertionError(f"no FORKED but {answer} with {len(fds)} descriptors")
        return Worker(answer[1], fds[0], out_r, err_r, req_w, ans_r)

    def descriptors(self) -> list[int]:
        """Its descriptors between two packets: the refusal of a FORK comes after all that was done before."""
        answer, _ = self.fork_raw([])
        assert answer and answer[0] == FORK_FAILED
        return descriptors_of(self.pid)

    def read_log(self) -> str:
        """What was logged so far."""
        while select.select([self.log], [], [], 0)[0]:
            more = os.read(self.log, 65536)
            if not more:
                break
            self.logged += more
        return self.logged.decode(errors="replace")

    def end(self) -> int:
        """Waits for the end of the zygote: its exit status, or 128 plus a signal."""
        return self.spawn.wait(WAIT_S)

    def close(self) -> None:
        self.control.close()
        if self.spawn.poll() is None:
            try:
                self.spawn.wait(WAIT_S)
            except subprocess.TimeoutExpired:
                self.spawn.kill()
                self.spawn.wait()
        if self.spawn.stdout:
            self.spawn.stdout.close()
        os.close(self.log)


def status_of(pid: int) -> dict[str, str]:
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return {key: value.strip() for key, value in (line.split(":", 1) for line in status)}


def descriptors_of(pid: int) -> list[int]:
    return sorted(int(name) for name in os.listdir(f"/proc/{pid}/fd"))


class Case(unittest.TestCase):
    mode: Mode

    def setUp(self) -> None:
        self.before = descriptors_of(os.getpid())
        self.zygotes: list[Zygote] = []
        self.workers: list[Worker] = []
        self.directory = tempfile.mkdtemp(prefix="brood-zygote-")
        os.chmod(self.directory, 0o755)

    def tearDown(self) -> None:
        for worker in self.workers:
            worker.close()
        for zygote in self.zygotes:
            zygote.close()
        shutil.rmtree(self.directory)
        with self.assertRaises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        self.assertEqual(descriptors_of(os.getpid()), self.before, "descriptors have leaked")

    def bear(self) -> Zygote:
        zygote = Zygote(self.mode)
        self.zygotes.append(zygote)
        return zygote

    def ready(self, **changes: Any) -> Zygote:
        zygote = self.bear()
        answer = zygote.start(**changes)
        self.assertIsNotNone(answer, zygote.read_log())
        assert answer
        self.assertEqual(answer[0], READY, answer)
        self.ready_map = answer[1]
        return zygote

    def failed(self, **changes: Any) -> tuple[str, int, str]:
        zygote = self.bear()
        answer = zygote.start(**changes)
        self.assertIsNotNone(answer, zygote.read_log())
        assert answer
        self.assertEqual(answer[0], FAILED, answer)
        self.assertEqual(zygote.end(), 1)
        self.assertNotIn("\n", answer[3])
        return answer[1], answer[2], answer[3]

    def forked(self, zygote: Zygote) -> Worker:
        worker = zygote.fork()
        self.workers.append(worker)
        return worker

    def parked(self, zygote: Zygote) -> Worker:
        worker = self.forked(zygote)
        self.assertEqual(worker.read_frame(), PARKED, zygote.read_log())
        return worker

    def exited(self, zygote: Zygote) -> list[Any]:
        answer, fds = zygote.receive()
        self.assertIsNotNone(answer, zygote.read_log())
        assert answer
        self.assertEqual((answer[0], fds), (EXITED, []))
        return answer

    def module(self, name: str, code: str) -> str:
        path = os.path.join(self.directory, name + ".py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(code))
        os.chmod(path, 0o644)
        return name

    def pipes(self, count: int) -> list[int]:
        fds: list[int] = []
        while len(fds) < count:
            fds += os.pipe()
        return fds


def layer_names(layers: Any) -> set[str]:
    """READY's layers, as bits or as names."""
    if isinstance(layers, int):
        return {name for name in LAYERS if layers & bit(name)}
    return set(layers)


class Life(Case):
    """What a zygote does when all goes well."""

    def test_ready(self) -> None:
        self.ready()
        on = layer_names(self.ready_map["layers"])
        self.assertLessEqual({layer for layer in self.mode.expected if FILTER or layer != "seccomp"}, on)
        self.assertEqual("seccomp" in on, FILTER)
        if not self.mode.own_root:
            self.assertNotIn("root", on)
        self.assertRegex(self.ready_map["python"], r"^3\.\d+\.\d+.* \(/.*\)$")
        self.assertGreater(self.ready_map["base_data_bytes"], 1 << 20)
        self.assertGreater(self.ready_map["base_as_bytes"], self.ready_map["base_data_bytes"])
        self.assertGreater(self.ready_map["start_us"], 1000)

    def test_workers_park_and_end(self) -> None:
        zygote = self.ready()
        workers = [self.parked(zygote) for _ in range(3)]
        for worker, number in zip(workers, (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM)):
            worker.kill(number)
            end = self.exited(zygote)
            self.assertEqual(end[1:4], [worker.id, "signal", number])
            self.assertGreater(end[4], 0)
            self.assertGreater(end[5], 1 << 20)
            self.assertTrue(worker.gone())

    def test_worker_ends_without_a_request(self) -> None:
        zygote = self.ready()
        worker = self.parked(zygote)
        os.close(worker.request)
        worker.request = os.open(os.devnull, os.O_RDONLY)
        end = self.exited(zygote)
        self.assertEqual(end[1:3], [worker.id, "exit"])

    def test_exited_never_before_forked(self) -> None:
        zygote = self.ready()
        for _ in range(100):
            out_r, out_w = os.pipe()
            # Nobody will read the answer: the worker dies while it parks.
            answer, fds = zygote.fork_raw([out_w, out_w, out_r, out_w])
            self.assertEqual(answer and answer[0], FORKED)
            os.close(out_r)
            os.close(out_w)
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(fds[0], signal.SIGKILL)
            os.close(fds[0])
            assert answer
            self.assertEqual(self.exited(zygote)[1], answer[1])

    def test_a_storm_of_deaths_loses_none(self) -> None:
        zygote = self.ready(workers_max=64)
        workers = [self.forked(zygote) for _ in range(64)]
        for worker in workers:
            worker.kill()
        ended = {self.exited(zygote)[1] for _ in workers}
        self.assertEqual(ended, {worker.id for worker in workers})

    def test_workers_max(self) -> None:
        zygote = self.ready(workers_max=2)
        first = self.parked(zygote)
        self.parked(zygote)
        fds = self.pipes(4)
        answer, none = zygote.fork_raw(fds)
        self.assertEqual((answer, none), ([FORK_FAILED, 3, errno.EAGAIN], []))
        first.kill()
        self.exited(zygote)
        answer, got = zygote.fork_raw([fds[1], fds[3], fds[0], fds[3]])
        self.assertEqual(answer and answer[0], FORKED)
        for fd in fds + got:
            os.close(fd)

    def test_worker_id_in_use(self) -> None:
        zygote = self.ready()
        worker = self.parked(zygote)
        fds = self.pipes(4)
        self.assertEqual(zygote.fork_raw(fds, worker.id)[0], [FORK_FAILED, worker.id, errno.EEXIST])
        for fd in fds:
            os.close(fd)

    def test_zygote_leaves_with_its_supervisor(self) -> None:
        zygote = self.ready()
        workers = [self.parked(zygote) for _ in range(2)]
        zygote.control.close()
        self.assertEqual(zygote.end(), 0)
        for worker in workers:
            self.assertTrue(worker.gone())

    def test_supervisor_is_killed(self) -> None:
        zygote = self.ready()
        worker = self.parked(zygote)
        pidfd = os.pidfd_open(zygote.pid)
        # The control socket stays open, so only the parent-death signal can tell.
        zygote.spawn.kill()
        self.assertTrue(select.select([pidfd], [], [], WAIT_S)[0])
        os.close(pidfd)
        if "pid" in self.mode.namespaces:
            self.assertTrue(worker.gone())


class Bounds(Case):
    """What can be seen from outside of a zygote and its worker."""

    def test_descriptors(self) -> None:
        if not AM_ROOT:
            self.skipTest("looking at undumpable processes needs root")
        self.module("opens", """
            import os, socket
            kept = [open('/dev/null'), open('/dev/urandom', 'rb'), socket.socketpair(), os.pipe()]
            """)
        zygote = self.ready(preload=["opens"], paths=[self.directory])
        for _ in range(20):
            worker = self.parked(zygote)
            self.assertEqual(descriptors_of(worker.host_pid), [0, 1, 2, 3, 4])
            worker.kill()
            self.exited(zygote)
        self.assertEqual(zygote.descriptors(), [0, 1, 2, 3, 4])
        self.assertEqual(os.stat(f"/proc/{zygote.pid}/fd/0").st_rdev, os.stat(os.devnull).st_rdev)

    def test_wrong_number_of_descriptors(self) -> None:
        zygote = self.ready()
        fds = self.pipes(8)
        for count in (0, 1, 3, 5, 8):
            answer, none = zygote.fork_raw(fds[:count], 100 + count)
            self.assertEqual((answer, none), ([FORK_FAILED, 100 + count, errno.EBADF], []))
        for fd in fds:
            os.close(fd)
        self.parked(zygote)
        if AM_ROOT:
            self.assertEqual(zygote.descriptors(), [0, 1, 2, 3, 4])

    def test_status(self) -> None:
        zygote = self.ready()
        worker = self.parked(zygote)
        for pid, filters in ((zygote.pid, "1"), (worker.host_pid, "2")):
            status = status_of(pid)
            self.assertEqual(status["Threads"], "1")
            self.assertEqual(status["NoNewPrivs"], "1")
            if FILTER:
                self.assertEqual(status["Seccomp"], "2")
                self.assertEqual(status.get("Seccomp_filters", filters), filters)
            for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
                self.assertEqual(int(status[name], 16), 0, name)
            if "no-caps" in layer_names(self.ready_map["layers"]):
                self.assertEqual(int(status["CapBnd"], 16), 0)
            outside = self.mode.uid or self.mode.as_user or os.getuid()
            self.assertEqual(set(status["Uid"].split()), {str(outside)})
            if self.mode.uid:
                self.assertEqual(status["Groups"], "")
        self.assertEqual(int(status_of(worker.host_pid)["SigBlk"], 16), 0)

    def test_not_dumpable(self) -> None:
        if self.mode.name == "user":
            self.skipTest("the owner of a user namespace has every right over it, by definition")
        zygote = self.ready()
        worker = self.parked(zygote)
        uid = self.mode.uid or self.mode.as_user or os.getuid()
        ids: dict[str, Any] = {"user": uid, "group": uid, "extra_groups": []} if AM_ROOT else {}

        def readable(pid: int | str) -> bool:
            run = subprocess.run(["cat", f"/proc/{pid}/environ"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 check=False, **ids)
            return run.returncode == 0

        self.assertTrue(readable("self"), "the control")
        for pid in (zygote.pid, worker.host_pid):
            self.assertFalse(readable(pid), "the same uid can look into it")

    def test_no_terminal_and_own_session(self) -> None:
        zygote = self.ready()
        with open(f"/proc/{zygote.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        session, terminal = int(fields[3]), int(fields[4])
        self.assertEqual((session, terminal), (zygote.pid, 0))

    def test_root_shows_only_what_was_reviewed(self) -> None:
        if not self.mode.own_root or not AM_ROOT:
            self.skipTest("no root of its own, or no right to look into it")
        zygote = self.ready(paths=[self.directory])
        root = f"/proc/{self.parked(zygote).host_pid}/root"
        below_tmp = self.directory.split("/")[1]
        self.assertLessEqual(set(os.listdir(root)), {"dev", "lib", "lib64", "usr", below_tmp})
        self.assertEqual(set(os.listdir(f"{root}/dev")), {"null", "zero", "random", "urandom"})
        self.assertEqual(os.listdir(root + os.path.dirname(self.directory)), [os.path.basename(self.directory)])
        self.assertLessEqual(set(os.listdir(f"{root}/usr")), {"lib", "lib64", "share", "local"})
        self.assertEqual(os.listdir(f"{root}/usr/share"), ["zoneinfo"])
        with open(f"/proc/{zygote.pid}/mountinfo", encoding="utf-8") as mounts:
            for line in mounts:
                options = line.split()[5].split(",")
                self.assertIn("ro", options, line)
                self.assertIn("nosuid", options, line)
                self.assertTrue("nodev" in options or line.split()[4].startswith("/dev/"), line)
        with self.assertRaises(OSError) as caught:
            os.mkdir(f"{root}/new")
        self.assertEqual(caught.exception.errno, errno.EROFS)

    def test_ordinary_signals_of_a_terminal_do_not_reach_it(self) -> None:
        zygote = self.ready()
        self.assertNotEqual(os.getpgid(zygote.pid), os.getpgid(zygote.spawn.pid))


class Hostile(Case):
    """Packets that the protocol does not allow end the zygote and its workers, at once and by its own doing."""

    def leaves(self, packet: Any, fds: list[int] | None = None) -> None:
        zygote = self.ready()
        worker = self.parked(zygote)
        zygote.send(packet, fds)
        self.assertEqual(zygote.receive(), (None, []))
        self.assertEqual(zygote.end(), 1)
        self.assertTrue(worker.gone())
        self.assertIn("bad packet", zygote.read_log())

    def test_garbage(self) -> None:
        self.leaves(b"\xc1\xff\x00garbage")

    def test_truncated(self) -> None:
        self.leaves(msgpack.packb([FORK, 7, True])[:-1])

    def test_trailing(self) -> None:
        self.leaves(msgpack.packb([FORK, 7, True]) + b"\x00")

    def test_oversized(self) -> None:
        self.leaves(msgpack.packb([FORK, 7, True]) + bytes(65536))

    def test_oversized_with_descriptors(self) -> None:
        with open(os.devnull, "rb") as null:
            self.leaves(bytes(65537), [null.fileno()] * 4)

    def test_second_start(self) -> None:
        self.leaves([START, {"profile": "again"}])

    def test_message_of_the_other_side(self) -> None:
        self.leaves([EXITED, 1, "exit", 0, 0, 0])

    def test_unknown_type(self) -> None:
        self.leaves([99, 1])

    def test_wrong_types(self) -> None:
        self.leaves([FORK, "seven", True])

    def test_fork_before_start(self) -> None:
        zygote = self.bear()
        zygote.send([FORK, 1, True])
        answer, _ = zygote.receive()
        self.assertEqual(answer and answer[:2], [FAILED, "start"])
        self.assertEqual(zygote.end(), 1)

    def test_garbage_instead_of_start(self) -> None:
        for packet in (b"\xc1", bytes(70000), msgpack.packb([START]), msgpack.packb([START, {"profile": 1}])):
            zygote = self.bear()
            zygote.send(packet)
            answer, _ = zygote.receive()
            self.assertEqual(answer and answer[:2], [FAILED, "start"], packet[:20])
            self.assertEqual(zygote.end(), 1)

    def test_supervisor_leaves_before_start(self) -> None:
        zygote = self.bear()
        zygote.control.close()
        self.assertEqual(zygote.end(), 1)


class Preload(Case):
    """Profiles that cannot work are refused with one clear line."""

    def test_missing_module(self) -> None:
        step, _, message = self.failed(preload=["json", "no_such_module"])
        self.assertEqual(step, "import no_such_module")
        self.assertIn("profile 'tested': module 'no_such_module' cannot be imported: ModuleNotFoundError: No module named", message)
        self.assertIn("or remove it from `preload`", message)

    def test_raising_module(self) -> None:
        self.module("raises", "raise ValueError('first line\\nsecond \\udcff')")
        step, _, message = self.failed(preload=["raises"], paths=[self.directory])
        self.assertEqual(step, "import raises")
        self.assertIn("ValueError", message)

    def test_exiting_module(self) -> None:
        self.module("exits", "raise SystemExit(0)")
        self.assertIn("SystemExit", self.failed(preload=["exits"], paths=[self.directory])[2])

    def test_thread(self) -> None:
        self.module("threads", """
            import threading
            threading.Thread(target=threading.Event().wait, daemon=True).start()
            """)
        step, _, message = self.failed(preload=["json", "threads"], paths=[self.directory])
        self.assertEqual(step, "import threads")
        self.assertIn("started a thread", message)

    def test_output_of_a_module_is_logged_once(self) -> None:
        self.module("prints", """
            import sys
            print('printed-by-preload', end='')
            sys.stderr.write('also-this')
            """)
        zygote = self.ready(preload=["prints"], paths=[self.directory])
        workers = [self.parked(zygote) for _ in range(2)]
        log = zygote.read_log()
        self.assertEqual(log.count("printed-by-preload"), 1)
        self.assertEqual(log.count("also-this"), 1)
        for worker in workers:
            worker.kill()
            self.exited(zygote)
            self.assertEqual(os.read(worker.stdout, 100) + os.read(worker.stderr, 100), b"")

    def test_signal_state_of_a_module_is_undone(self) -> None:
        self.module("handles", """
            import faulthandler, signal
            signal.signal(signal.SIGUSR1, lambda *_: None)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGTERM})
            signal.setitimer(signal.ITIMER_REAL, 3600)
            faulthandler.enable(open('/dev/null', 'w'))
            """)
        zygote = self.ready(preload=["handles"], paths=[self.directory])
        status = status_of(zygote.pid)
        self.assertEqual(int(status["SigCgt"], 16), 0)
        self.assertEqual(int(status["SigIgn"], 16), 0)
        self.assertEqual(int(status["SigBlk"], 16), 1 << (signal.SIGCHLD - 1))
        worker = self.parked(zygote)
        self.assertEqual(int(status_of(worker.host_pid)["SigBlk"], 16), 0)
        worker.kill(signal.SIGTERM)
        self.assertEqual(self.exited(zygote)[2:4], ["signal", signal.SIGTERM])

    def test_missing_path(self) -> None:
        if not self.mode.own_root:
            self.skipTest("nothing is shown without a root of its own")
        step, code, message = self.failed(paths=["/no/such/directory"])
        self.assertEqual((step, code), ("root", errno.ENOENT))
        self.assertIn("/no/such/directory", message)

    def test_path_through_links(self) -> None:
        real = os.path.join(self.directory, "real")
        os.mkdir(real)
        os.chmod(real, 0o755)
        os.symlink("real", os.path.join(self.directory, "relative"))
        os.symlink(os.path.join(self.directory, "relative"), os.path.join(self.directory, "absolute"))
        self.module("real/linked", "x = 1")
        self.ready(preload=["linked"], paths=[os.path.join(self.directory, "absolute", ".", "..", "relative")])

    def test_environment(self) -> None:
        self.module("environment", """
            import os, sys
            assert os.environ.pop('OPENBLAS_NUM_THREADS') == '7'
            assert os.environ.pop('OMP_NUM_THREADS') == os.environ.pop('MKL_NUM_THREADS') == '1'
            assert dict(os.environ) == {'OPENBLAS': 'x', 'LANG': 'C', 'PYTHONPATH': '/tmp', 'PYTHONHASHSEED': '0'}, os.environ
            assert sys.flags.utf8_mode and sys.flags.isolated and sys.flags.no_site and sys.flags.hash_randomization
            assert sys.flags.dont_write_bytecode and '/tmp' not in sys.path and '' not in sys.path
            assert sys.getfilesystemencoding() == 'utf-8' and open(__file__).encoding.lower() == 'utf-8'
            exit, quit, help, copyright, credits, license
            assert not any(name in sys.modules for name in ('sitecustomize', 'usercustomize'))
            """)
        self.ready(preload=["environment"], paths=[self.directory],
                   env={"OPENBLAS": "x", "OPENBLAS_NUM_THREADS": "7", "LANG": "C", "PYTHONPATH": "/tmp", "PYTHONHASHSEED": "0"})

    def test_planted_files_have_no_effect(self) -> None:
        for name in ("sitecustomize", "usercustomize"):
            self.module(name, "raise SystemExit('planted')")
        with open(os.path.join(self.directory, "planted.pth"), "w", encoding="utf-8") as file:
            file.write("import no_such_module_planted\n")
        self.ready(paths=[self.directory])

    def test_preload_has_no_rights(self) -> None:
        """No capability while a module is imported."""
        self.module("rights", """
            import ctypes, os
            libc = ctypes.CDLL(None, use_errno=True)
            header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
            assert libc.capget(header, data) == 0 and not any(data), list(data)
            assert libc.prctl(39, 0, 0, 0, 0) == 1
            assert os.getuid() != 0, os.getuid()
            """)
        self.ready(preload=["rights"], paths=[self.directory])


class Interpreters(Case):
    """`python` of a profile."""

    def venv(self, version: str) -> str:
        path = os.path.join(self.directory, "venv")
        site = os.path.join(path, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
        os.makedirs(site)
        os.makedirs(os.path.join(path, "bin"))
        os.symlink("/usr/bin/python3", os.path.join(path, "bin", "python"))
        with open(os.path.join(path, "pyvenv.cfg"), "w", encoding="utf-8") as file:
            file.write(f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {version}\n")
        self.module(os.path.relpath(site, self.directory) + "/in_venv", f"""
            import sys
            assert sys.prefix == {path!r} and sys.executable == {path + '/bin/python'!r}, (sys.prefix, sys.executable)
            assert sys.base_prefix != sys.prefix and {site!r} in sys.path
            """)
        for base, directories, _ in os.walk(path):
            for name in directories:
                os.chmod(os.path.join(base, name), 0o755)
        os.chmod(path, 0o755)
        return path

    def test_venv(self) -> None:
        path = self.venv("%d.%d.99" % sys.version_info[:2])
        self.ready(python=path, preload=["in_venv"])
        self.ready(python=path + "/", preload=["in_venv"])
        self.ready(python=path + "/bin/python", preload=["in_venv"])

    def test_venv_of_another_version(self) -> None:
        step, _, message = self.failed(python=self.venv("3.4.1"))
        self.assertEqual(step, "interpreter")
        self.assertIn("is Python 3.4.1 but this zygote embeds", message)

    def test_missing(self) -> None:
        step, code, message = self.failed(python="/opt/no/bin/python3")
        self.assertEqual((step, code), ("interpreter", errno.ENOENT))
        self.assertIn("profile 'tested': interpreter /opt/no/bin/python3 does not exist; set `python` to", message)

    def test_another_version(self) -> None:
        os.mkdir(os.path.join(self.directory, "bin"))
        path = os.path.join(self.directory, "bin", "python3.9")
        shutil.copy("/bin/true", path)
        os.chmod(os.path.dirname(path), 0o755)
        self.assertIn("is Python 3.9 but this zygote embeds", self.failed(python=path)[2])

    def test_no_interpreter(self) -> None:
        self.assertEqual(self.failed(python="/bin/sh")[0], "interpreter")
        self.assertEqual(self.failed(python="/tmp")[0], "interpreter")
        self.assertEqual(self.failed(python="bin/python3")[0], "interpreter")

    def test_named_as_embedded(self) -> None:
        self.ready(python="/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable)


def load_tests(loader: unittest.TestLoader, *_: Any) -> unittest.TestSuite:
    """Every case in every mode that can be had here."""
    suite = unittest.TestSuite()
    for mode in modes():
        if not possible(mode):
            print(f"mode {mode.name}: this machine does not grant {mode.namespaces}; skipped", file=sys.stderr)
            continue
        for base in (Life, Bounds, Hostile, Preload, Interpreters):
            case = type(f"{base.__name__}_{mode.name.replace('-', '_')}", (base,), {"mode": mode})
            suite.addTests(loader.loadTestsFromTestCase(case))
    return suite


def main() -> int:
    global ZYGOTE, SPAWN
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    if not FILTER:
        print("the filter is off in this run (BROOD_TEST_NO_FILTER)", file=sys.stderr)
    # A copy that an unprivileged uid can reach, wherever the build tree is.
    programs = tempfile.mkdtemp(prefix="brood-zygote-bin-")
    os.chmod(programs, stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
    ZYGOTE, SPAWN = (shutil.copy(path, programs) for path in sys.argv[1:3])
    try:
        program = unittest.main(module="__main__", argv=sys.argv[:1] + sys.argv[3:], exit=False)
        return 0 if program.result.wasSuccessful() and program.result.testsRun else 1
    finally:
        shutil.rmtree(programs)


if __name__ == "__main__":
    sys.exit(main())
