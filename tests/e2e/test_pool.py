"""The pool under load: order, fairness, bounds, and that nothing is used up by use."""

from __future__ import annotations

import os
import unittest

from tests.support import processes
from tests.support.case import SupervisorCase
from tests.support.client import Client


class QueueTest(SupervisorCase):
    """One worker at a time, so that who comes next is decided by the queue alone."""

    CONFIG = "[broodd]\nqueue = 20\nopen_calls = 300\n[profile default]\nparked = 1\nworkers = 1\nwall = 60s\n"

    def block(self) -> tuple[Client, int]:
        """Takes the only worker."""
        client = self.connect()
        return client, client.running("import time; time.sleep(3600)")

    def test_first_come_first_served(self) -> None:
        blocker, call = self.block()
        calls = [self.client.start(f"{n}") for n in range(20)]
        self.client.hello()
        blocker.notify("cancel", call)
        order = []
        while len(order) < 20:
            self.client.take()
            order += [number for number in calls if number in self.client.answers and number not in order]
        self.assertEqual(order, calls)

    def test_busy_beyond_the_bound(self) -> None:
        blocker, call = self.block()
        calls = [self.client.start(f"{n}") for n in range(25)]
        for late in calls[20:]:
            record = self.client.record(late)
            self.check_shape(record)
            self.assertEqual((record.status, record.receipt["worker"], record.usage["cpu_us"]), ("busy", 0, 0))
        self.assertEqual(self.client.status()["calls"]["queued"], 20)
        blocker.notify("cancel", call)
        for n, number in enumerate(calls[:20]):
            self.assertEqual(self.client.record(number).value, n)
        self.assertEqual(self.client.status()["calls"]["queued"], 0)

    def test_time_in_the_queue_is_told_and_is_not_the_codes(self) -> None:
        blocker, call = self.block()
        number = self.client.start("import time; time.sleep(0.2); 1", limits={"wall_ms": 5000})
        self.client.hello()
        blocker.call("cancel", call)
        record = self.client.record(number)
        self.assertEqual(record.status, "ok")
        self.assertGreater(record.usage["queue_us"], 0)


class FairnessTest(SupervisorCase):
    CONFIG = "[profile default]\nparked = 2\nworkers = 2\nwall = 60s\n"

    def test_one_client_cannot_starve_another(self) -> None:
        """200 calls wait when another client comes; its calls do not wait for all of them."""
        greedy, modest = self.client, self.connect()
        calls = [greedy.start("import time; time.sleep(0.02)") for _ in range(200)]
        greedy.hello()
        for n in range(5):
            self.assertEqual(modest.run(f"{n}").value, n)
        waiting = modest.status()["calls"]["queued"]
        self.assertGreater(waiting, 100, "the modest client waited until most of the greedy one's calls were done")
        for call in calls:
            self.assertEqual(greedy.record(call).status, "ok")

    def test_many_clients_take_turns(self) -> None:
        clients = [self.connect() for _ in range(10)]
        calls = [[client.start("1") for _ in range(20)] for client in clients]
        for client, numbers in zip(clients, calls):
            for number in numbers:
                self.assertEqual(client.record(number).value, 1)

    def test_endless_calls_of_one_client(self) -> None:
        """They fill every worker that the client may have; another client gets its turn when one of them ends."""
        greedy = self.client
        calls = [greedy.start("while True: pass", limits={"wall_ms": 300}) for _ in range(20)]
        modest = self.connect()
        self.assertEqual(modest.run("'served'").value, "served")
        self.assertGreater(modest.status()["calls"]["queued"], 5)
        for call in calls:
            greedy.notify("cancel", call)
        for call in calls:
            self.assertIn(greedy.record(call).status, ("cancelled", "timeout"))


class ShareTest(SupervisorCase):
    CONFIG = "[profile default]\nparked = 4\nworkers = 8\nwall = 60s\n"

    def test_workers_are_left_for_others(self) -> None:
        """With two clients, one that runs all it can leaves workers for the other at once."""
        modest = self.connect()
        modest.hello()
        calls = [self.client.start("import time; time.sleep(3600)") for _ in range(20)]
        self.client.hello()
        self.assertEqual(modest.run("'at once'").value, "at once")
        for call in calls:
            self.client.notify("cancel", call)
        for call in calls:
            self.assertEqual(self.client.record(call).status, "cancelled")


class PoolTest(SupervisorCase):
    CONFIG = "[profile default]\nparked = 3\nworkers = 10\n[profile other]\nparked = 1\n"

    def test_calls_hit_the_pool(self) -> None:
        before = self.supervisor.wait_parked(3)
        for n in range(10):
            self.supervisor.wait_parked(1)
            self.assertEqual(self.client.run(f"{n}").value, n)
        after = self.supervisor.wait_parked(3)
        self.assertEqual(after["pool_hits"] - before["pool_hits"], 10)
        self.assertEqual(after["pool_misses"], before["pool_misses"])
        self.assertGreaterEqual(after["forks"], before["forks"] + 10 - 3)

    def test_profiles_have_pools_of_their_own(self) -> None:
        self.supervisor.wait_parked(3)
        self.supervisor.wait_parked(1, "other")
        self.assertEqual(self.client.run("1", profile="other").receipt["profile"], "other")
        self.assertEqual(len(self.supervisor.zygotes()), 2)

    def test_never_more_workers_than_allowed(self) -> None:
        calls = [self.client.start("import time; time.sleep(0.05)") for _ in range(100)]
        most = 0
        for call in calls:
            status = self.client.status()["profiles"]["default"]
            most = max(most, status["running"] + status["parked"] + status["starting"])
            self.client.record(call)
        self.assertLessEqual(most, 10)
        self.assertGreater(most, 3)

    def test_counts_return_to_their_start(self) -> None:
        """Descriptors, processes and memory of broodd after 500 calls of every kind and 50 clients that vanish."""
        codes = ["1", "1 / 0", "exit(3)", "import os; os._exit(1)", "import os; os.abort()", "print('x' * 10_000)", "while True: pass",
                 "import os; os.close(4)", "import os; os.write(4, b'x' * 100)", "print('x' * 100_000_000)"]
        limits = {"wall_ms": 300, "output_bytes": 1000}
        for code in codes:
            self.client.run(code, limits=limits)
        descriptors, below = self.settled()
        for n in range(500):
            self.client.run(codes[n % len(codes)] if n % 50 else "while True: pass", limits=limits)
        for n in range(50):
            client = self.connect()
            for code in codes[:3]:
                client.start(code, stream=bool(n % 2))
            client.close()
        after, now_below = self.settled()
        self.assertEqual(after, descriptors)
        self.assertEqual(now_below, below)
        self.assertEqual(processes.zombies(self.supervisor.pid), {})

    def settled(self) -> tuple[int, int]:
        """The numbers of descriptors and of processes below, once the pool is full and nobody else is connected."""
        pid = self.supervisor.pid

        def quiet() -> tuple[int, int] | None:
            status = self.client.status()
            profiles = status["profiles"].values()
            full = status["profiles"]["default"]["parked"] == 3 and status["profiles"]["other"]["parked"] == 1
            if not full or status["clients"] != 1 or status["calls"]["open"] or any(p["starting"] or p["running"] for p in profiles):
                return None
            below = processes.descendants(pid)
            # 2 zygotes and 4 workers; workers that have ended may still be on their way out.
            return (len(processes.descriptors(pid)), len(below)) if len(below) == 6 else None
        return processes.poll(quiet, f"the pool is full and quiet: {self.client.status()}")

    def test_idle_costs_nothing(self) -> None:
        self.settled()
        before = processes.cpu_ticks(self.supervisor.pid)
        # A second of idleness is the thing measured: a select on a connection that stays silent.
        with self.assertRaises(TimeoutError):
            self.client.receive(1.0)
        ticks = processes.cpu_ticks(self.supervisor.pid) - before
        self.assertLess(ticks, os.sysconf("SC_CLK_TCK") / 10)


if __name__ == "__main__":
    unittest.main()
