"""What /proc says about processes that the tests started."""

from __future__ import annotations

import ctypes
import os
import time
import unittest
from typing import Any, Callable

# Not a pass mark: only bounds the wait for something that is broken.
WAIT_S = 60.0
PR_SET_CHILD_SUBREAPER = 36


def poll(condition: Callable[[], Any], what: str, wait_s: float = WAIT_S) -> Any:
    """Asks until the condition holds; returns what it gave."""
    deadline = time.monotonic() + wait_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {wait_s:g} s: {what}")
        time.sleep(0.005)
    return value


def adopt_orphans() -> None:
    """From now on a process whose parent died becomes our child, so that nothing a supervisor leaves behind can hide."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def stat_fields(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the name: state, ppid, …; None when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return "?"


def state(pid: int) -> str | None:
    fields = stat_fields(pid)
    return fields[0] if fields else None


def cpu_ticks(pid: int) -> int:
    fields = stat_fields(pid)
    assert fields, f"process {pid} is gone"
    return int(fields[11]) + int(fields[12])


def descendants(root: int) -> dict[int, str]:
    """Every process below `root`, zombies too: pid and name."""
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        fields = stat_fields(int(entry)) if entry.isdigit() else None
        if fields:
            parents[int(entry)] = int(fields[1])
    found: dict[int, str] = {}
    level = {root}
    while level:
        level = {pid for pid, parent in parents.items() if parent in level}
        found.update((pid, name(pid)) for pid in level)
    return found


def zombies(root: int) -> dict[int, str]:
    return {pid: text for pid, text in descendants(root).items() if state(pid) == "Z"}


def children(root: int) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        fields = stat_fields(int(entry)) if entry.isdigit() else None
        if fields and int(fields[1]) == root:
            found.append(int(entry))
    return found


def descriptors(pid: int) -> dict[int, str]:
    """The open descriptors of a process and what they are."""
    found = {}
    try:
        listed = os.listdir(f"/proc/{pid}/fd")
    except PermissionError:
        reason = "the supervisor is not dumpable, so only root can count its descriptors"
        print(f"\nSKIP: {reason}", flush=True)
        raise unittest.SkipTest(reason) from None
    for fd in listed:
        try:
            found[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError:
            pass
    return found
