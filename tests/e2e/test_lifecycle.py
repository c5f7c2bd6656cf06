"""The supervisor's own life: its socket, its signals, the death of its zygotes, its end."""

from __future__ import annotations

import os
import pwd
import re
import signal
import socket
import stat
import subprocess
import unittest

from tests.support import processes
from tests.support.case import skip
from tests.support.client import Client, Closed, RpcError
from tests.support.supervisor import Supervisor, program

SLEEP = "import time; time.sleep(3600)"


class SocketTest(unittest.TestCase):
    def test_mode(self) -> None:
        for config, mode in (("", 0o600), ("[broodd]\nsocket_mode = 0660\n", 0o660), ("[broodd]\nsocket_mode = 0666\n", 0o666)):
            with self.subTest(config=config), Supervisor(config) as supervisor:
                self.assertEqual(stat.S_IMODE(os.stat(supervisor.socket).st_mode), mode)

    def test_path_in_use(self) -> None:
        with Supervisor() as supervisor, supervisor.connect() as client:
            second = subprocess.run([program("broodd"), "--socket", supervisor.socket], capture_output=True, text=True, check=False)
            self.assertEqual(second.returncode, 1)
            self.assertIn(supervisor.socket, second.stderr)
            self.assertIn("another server answers", second.stderr)
            self.assertEqual(client.run("1").value, 1)
            with supervisor.connect() as other:
                self.assertEqual(other.run("2").value, 2)

    def test_stale_socket_is_replaced(self) -> None:
        supervisor = Supervisor()
        left_over = socket.socket(socket.AF_UNIX)
        left_over.bind(supervisor.socket)
        left_over.close()
        self.assertTrue(os.path.exists(supervisor.socket))
        with supervisor, supervisor.connect() as client:
            self.assertEqual(client.run("1").value, 1)

    def test_a_file_is_not_replaced(self) -> None:
        supervisor = Supervisor()
        self.addCleanup(supervisor.clean_up)
        with open(supervisor.socket, "w", encoding="ascii") as file:
            file.write("precious")
        run = subprocess.run([program("broodd"), "--socket", supervisor.socket], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("not a socket", run.stderr)
        with open(supervisor.socket, encoding="ascii") as file:
            self.assertEqual(file.read(), "precious")

    def test_places_that_cannot_be(self) -> None:
        for path in ("/no/such/directory/socket", "/tmp/" + "x" * 120):
            run = subprocess.run([program("broodd"), "--socket", path], capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 1)
            self.assertIn(path[:40], run.stderr)
            self.assertEqual(run.stderr.count("\n"), 1)

    def test_allowed_users(self) -> None:
        if os.getuid() != 0:
            skip("trying to connect as another user needs root")
        name = pwd.getpwuid(65534).pw_name
        for config, allowed in (("", False), ("allow_users = 0\n", False), ("allow_users = 0, 65534\n", True), (f"allow_users = root, {name}\n", True)):
            with self.subTest(config=config), Supervisor("[broodd]\nsocket_mode = 0666\n" + config) as supervisor:
                os.chmod(supervisor.dir, 0o755)
                self.assertEqual(self.connect_as(65534, supervisor.socket), allowed)

    @staticmethod
    def connect_as(uid: int, path: str) -> bool:
        """Says hello as another user, in a child: whether it was let in, or refused in the words of the protocol."""
        pid = os.fork()
        if pid == 0:
            code = 3
            try:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                client = Client.connect(path)
                try:
                    client.request("hello", {})
                except BrokenPipeError:
                    pass
                message = client.receive()
                code = 0 if message[2] is None else 1 if message[2]["code"] == "forbidden" and message[1] is None else 2
                if code == 1 and not client.at_end():
                    code = 2
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code not in (0, 1):
            raise AssertionError(f"neither let in nor told `forbidden`: {code}")
        return code == 0

    def test_own_uid_is_refused_where_it_is_not_listed(self) -> None:
        supervisor = Supervisor(f"[broodd]\nallow_users = {os.getuid() + 1}\n")
        self.addCleanup(supervisor.clean_up)
        with self.assertRaises((RpcError, Closed, BrokenPipeError, AssertionError)):
            supervisor.start()
        client = supervisor.connect()
        self.addCleanup(client.close)
        try:
            client.request("hello", {})
        except BrokenPipeError:
            pass
        with self.assertRaises(RpcError) as caught:
            client.result(None)
        self.assertEqual(caught.exception.code, "forbidden")
        supervisor.stop()


class StopTest(unittest.TestCase):
    def test_running_calls_finish_within_the_grace(self) -> None:
        with Supervisor("[broodd]\ngrace = 60s\n[profile default]\nworkers = 1\n") as supervisor, supervisor.connect() as client:
            running = client.running("import time\ntime.sleep(0.5)\n'finished'")
            waiting = client.start("'never'")
            client.hello()
            supervisor.signal(signal.SIGTERM)
            self.assertEqual(client.record(waiting).status, "lost")
            self.assertEqual(client.record(running).value, "finished")
            self.assertTrue(client.at_end())
            supervisor.check_ended()

    def test_no_new_calls_and_no_new_clients_while_it_stops(self) -> None:
        with Supervisor("[broodd]\ngrace = 60s\n") as supervisor, supervisor.connect() as client:
            running = client.running(SLEEP, limits={"wall_ms": 5000})
            supervisor.signal(signal.SIGTERM)
            processes.poll(lambda: not os.path.exists(supervisor.socket), "the socket file is gone")
            with self.assertRaises((FileNotFoundError, ConnectionRefusedError)):
                supervisor.connect()
            self.assertEqual(client.run("1").status, "lost")
            client.notify("cancel", running)
            self.assertEqual(client.record(running).status, "cancelled")
            supervisor.check_ended()

    def test_after_the_grace_calls_are_lost(self) -> None:
        with Supervisor("[broodd]\ngrace = 200ms\n[profile default]\nwall = 60s\n") as supervisor, supervisor.connect() as client:
            calls = [client.running(code) for code in (SLEEP, "while True: pass")]
            supervisor.signal(signal.SIGTERM)
            for call in calls:
                record = client.record(call)
                self.assertEqual(record.status, "lost")
                self.assertIn("shutting down", record.message)
            supervisor.check_ended()

    def test_interrupt_is_the_same(self) -> None:
        with Supervisor() as supervisor:
            supervisor.signal(signal.SIGINT)
            supervisor.check_ended()

    def test_stopped_at_once_after_its_start(self) -> None:
        for _ in range(5):
            with Supervisor() as supervisor:
                supervisor.signal(signal.SIGTERM)
                supervisor.check_ended()

    def test_a_client_that_does_not_read_cannot_hold_it_up(self) -> None:
        with Supervisor() as supervisor, supervisor.connect() as client:
            for _ in range(20):
                client.start("'x' * 1_000_000")
            with supervisor.connect() as other:
                processes.poll(lambda: other.status()["calls"]["ok"] >= 1, "a call has ended")
            supervisor.signal(signal.SIGTERM)
            supervisor.check_ended()

    def test_everything_dies_with_it(self) -> None:
        """Killed, it can clean up nothing; its zygotes and workers end all the same."""
        supervisor = Supervisor()
        self.addCleanup(supervisor.clean_up)
        supervisor.start()
        client = supervisor.connect()
        self.addCleanup(client.close)
        client.running(SLEEP)
        client.running("while True: pass")
        self.assertTrue(supervisor.leftovers())
        assert supervisor.process
        supervisor.process.kill()
        supervisor.process.wait()

        def all_gone() -> bool:
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:  # they are ours to reap now
                    pass
            except ChildProcessError:
                pass
            return not supervisor.leftovers()
        processes.poll(all_gone, "no zygote and no worker outlives broodd")


class ReloadTest(unittest.TestCase):
    CONFIG = "[profile default]\nenv.GENERATION = {}\nparked = 2\n"
    ASK = "import os; os.environ.get('GENERATION')"

    def reload_to(self, supervisor: Supervisor, client: Client, value: str) -> None:
        supervisor.configure(self.CONFIG.format(value))
        supervisor.signal(signal.SIGHUP)
        processes.poll(lambda: client.run(self.ASK).value == value, f"calls run in generation {value}")

    def test_zygotes_are_replaced(self) -> None:
        with Supervisor(self.CONFIG.format(1)) as supervisor, supervisor.connect() as client:
            supervisor.wait_parked(2)
            old = supervisor.zygotes()
            for generation in "234":
                self.reload_to(supervisor, client, generation)
            processes.poll(lambda: len(supervisor.zygotes()) == 1, "the old zygotes are gone")
            self.assertNotEqual(supervisor.zygotes(), old)

    def test_no_call_is_lost_under_load(self) -> None:
        with Supervisor(self.CONFIG.format(0)) as supervisor, supervisor.connect() as client:
            long = client.running("import time; time.sleep(1.5)\n'survived'")
            calls: list[int] = []
            for n in range(400):
                calls.append(client.start(self.ASK))
                if n % 100 == 50:
                    supervisor.configure(self.CONFIG.format(n))
                    supervisor.signal(signal.SIGHUP)
                if len(calls) > 20:
                    self.assertEqual(client.record(calls.pop(0)).status, "ok")
            for call in calls:
                self.assertEqual(client.record(call).status, "ok")
            self.assertEqual(client.record(long).value, "survived")
            processes.poll(lambda: client.run(self.ASK).value == "350", "the last configuration is in force")

    def test_bad_configuration_is_refused(self) -> None:
        with Supervisor(self.CONFIG.format(1)) as supervisor, supervisor.connect() as client:
            supervisor.wait_parked(2)
            old = supervisor.zygotes()
            supervisor.configure("[profile default]\nwal = 5s\n")
            supervisor.signal(signal.SIGHUP)
            processes.poll(lambda: "old configuration stays" in supervisor.log(), "the refusal is in the log")
            self.assertIn(f"{supervisor.config_path}:2:", supervisor.log())
            self.assertEqual(client.run(self.ASK).value, "1")
            self.assertEqual(supervisor.zygotes(), old)

    def test_profiles_come_and_go(self) -> None:
        with Supervisor(self.CONFIG.format(1)) as supervisor, supervisor.connect() as client:
            supervisor.configure(self.CONFIG.format(1) + "[profile extra]\nparked = 1\n")
            supervisor.signal(signal.SIGHUP)
            processes.poll(lambda: "extra" in client.hello()["profiles"], "the new profile is there")
            running = client.running("import time; time.sleep(1)\n'went on'", profile="extra")
            supervisor.configure(self.CONFIG.format(1))
            supervisor.signal(signal.SIGHUP)
            processes.poll(lambda: "extra" not in client.hello()["profiles"], "the profile is gone")
            with self.assertRaises(RpcError) as caught:
                client.run("1", profile="extra")
            self.assertEqual(caught.exception.code, "unknown-profile")
            self.assertEqual(client.record(running).value, "went on")
            processes.poll(lambda: len(supervisor.zygotes()) == 1, "its zygote is gone")

    def test_a_new_zygote_that_cannot_start(self) -> None:
        """The configuration is well formed, but its module is missing: the old zygotes go on."""
        with Supervisor(self.CONFIG.format(1)) as supervisor, supervisor.connect() as client:
            supervisor.wait_parked(2)
            supervisor.configure(self.CONFIG.format(2) + "preload = no_such_module\n")
            supervisor.signal(signal.SIGHUP)
            processes.poll(lambda: "no_such_module" in supervisor.log(), "the failure is in the log")
            self.assertEqual(client.run(self.ASK).value, "1")
            self.reload_to(supervisor, client, "3")


class ZygoteDeathTest(unittest.TestCase):
    def test_killed_under_load(self) -> None:
        """Running calls are lost and told so; later ones run in its successor. Time after time."""
        with Supervisor("[profile default]\nparked = 2\nwall = 60s\nzygotes = 2\n") as supervisor, supervisor.connect() as client:
            for _ in range(5):
                supervisor.wait_parked(2)
                calls = [client.running(SLEEP) for _ in range(3)]
                for pid in supervisor.zygotes():
                    os.kill(pid, signal.SIGKILL)
                for call in calls:
                    record = client.record(call)
                    self.assertEqual(record.status, "lost")
                    self.assertTrue(record.message)
                processes.poll(lambda: self.recovered(client), "calls run again")
            self.assertEqual(client.status()["calls"]["open"], 0)

    def recovered(self, client: Client) -> bool:
        """Until the death of the second zygote is noticed too, a call may still be given to one of its workers."""
        record = client.run("1 + 1")
        self.assertIn(record.status, ("ok", "lost", "crashed"))
        return record.status == "ok"

    def test_stopped_zygote(self) -> None:
        """It neither forks nor tells; calls in its workers end by their deadlines, and it is replaced or revived."""
        with Supervisor("[profile default]\nparked = 1\nwall = 60s\n") as supervisor, supervisor.connect() as client:
            supervisor.wait_parked(1)
            zygote = supervisor.zygotes()[0]
            call = client.running(SLEEP, limits={"wall_ms": 1000})
            os.kill(zygote, signal.SIGSTOP)
            self.assertEqual(client.record(call).status, "timeout")
            os.kill(zygote, signal.SIGCONT)
            self.assertEqual(client.run("1 + 1").value, 2)

    def test_killed_worker(self) -> None:
        with Supervisor("[profile default]\nparked = 2\nwall = 60s\n") as supervisor, supervisor.connect() as client:
            supervisor.wait_parked(2)
            for pid in processes.children(supervisor.zygotes()[0]):
                os.kill(pid, signal.SIGKILL)
            # A call that was given to one before its death was noticed is answered; the next ones run.
            self.assertIn(client.run("1 + 1").status, ("ok", "crashed"))
            processes.poll(lambda: client.run("1 + 1").value == 2, "calls run again")
            supervisor.wait_parked(2)


class StdioTest(unittest.TestCase):
    def test_calls(self) -> None:
        with Supervisor(stdio=True) as supervisor:
            client = supervisor.connect()
            self.assertEqual(client.hello()["pid"], supervisor.pid)
            self.assertEqual(client.run("print('x')\n6 * 7").value, 42)
            calls = [client.start(f"{n}") for n in range(50)]
            self.assertEqual([client.record(call).value for call in calls], list(range(50)))
            client.close()

    def test_ends_with_its_client(self) -> None:
        supervisor = Supervisor(stdio=True)
        self.addCleanup(supervisor.clean_up)
        supervisor.start()
        client = supervisor.connect()
        client.running(SLEEP)
        assert supervisor.process and supervisor.process.stdin and supervisor.process.stdout
        supervisor.process.stdin.close()
        supervisor.process.stdout.close()
        client.close()
        supervisor.check_ended()

    def test_input_ended_before_the_answers(self) -> None:
        """`printf … | broodd --stdio | …`: all answers come, then it ends."""
        supervisor = Supervisor(stdio=True)
        self.addCleanup(supervisor.clean_up)
        supervisor.start()
        client = supervisor.connect()
        calls = [client.start(f"import time; time.sleep(0.1); {n}") for n in range(5)]
        assert supervisor.process and supervisor.process.stdin
        supervisor.process.stdin.close()
        os.close(client.write_fd)
        client.write_fd = os.open(os.devnull, os.O_WRONLY)
        self.assertEqual([client.record(call).value for call in calls], list(range(5)))
        self.assertTrue(client.at_end())
        client.close()
        supervisor.check_ended()

    def test_from_a_file(self) -> None:
        from tests.support.client import request
        supervisor = Supervisor()
        self.addCleanup(supervisor.clean_up)
        path = os.path.join(supervisor.dir, "requests")
        with open(path, "wb") as file:
            file.write(request(1, "run", {"code": "1"}) + request(2, "run", {"code": "2"}))
        with open(path, "rb") as file:
            run = subprocess.run([program("broodd"), "--stdio"], stdin=file, capture_output=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout.count(b"\xa6status\xa2ok"), 2)


class LogTest(unittest.TestCase):
    def test_json(self) -> None:
        import json
        with Supervisor(args=["--log-format", "json", "--log-level", "debug"]) as supervisor, supervisor.connect() as client:
            client.run("print('a \"line\"\\n\\x1b[31m')")
            lines = [json.loads(line) for line in supervisor.log().splitlines()]
        self.assertGreater(len(lines), 2)
        for line in lines:
            self.assertIsInstance(line, dict)

    def test_what_the_code_writes_is_not_in_the_log(self) -> None:
        with Supervisor(args=["--log-level", "debug"]) as supervisor, supervisor.connect() as client:
            client.run("secret = 'canary-' + '1234'\nprint(secret)", inputs={"canary_input": "canary-5678"})
            self.assertIsNone(re.search("canary-(1234|5678)", supervisor.log()))


if __name__ == "__main__":
    unittest.main()
