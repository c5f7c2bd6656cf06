"""Runs one module of CPython's regression tests and collects what became of each test.

This text runs twice: as the program of a plain Python and as the code of a call. It uses unittest only, asks for no optional
resource (network, large files, …), and prints nothing itself.
"""

import importlib
import unittest


class Outcomes(unittest.TestResult):
    """The outcome of every test: its worst, if subtests differ."""

    ORDER = ["ok", "skipped", "expected failure", "failed", "error"]

    def __init__(self):
        super().__init__()
        self.outcomes = {}
        self.details = {}

    def note(self, test, outcome, detail=""):
        name = test.id()
        old = self.outcomes.get(name)
        if old is None or self.ORDER.index(outcome) > self.ORDER.index(old):
            self.outcomes[name] = outcome
            self.details[name] = detail

    def addSuccess(self, test):
        self.note(test, "ok")

    def addSkip(self, test, reason):
        self.note(test, "skipped", reason)

    def addExpectedFailure(self, test, err):
        self.note(test, "expected failure")

    def addUnexpectedSuccess(self, test):
        self.note(test, "failed", "unexpected success")

    def addFailure(self, test, err):
        self.note(test, "failed", self.describe(err))

    def addError(self, test, err):
        self.note(test, "error", self.describe(err))

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note(test, "failed" if issubclass(err[0], test.failureException) else "error", self.describe(err))

    def describe(self, err):
        try:
            return (err[0].__name__ + ": " + str(err[1]))[:300].encode("utf-8", "backslashreplace").decode()
        except BaseException:
            return err[0].__name__


def run_module(name):
    """{"outcomes": {test: outcome}, "details": {test: why}} or {"import": why}."""
    from test import support

    support.use_resources = []
    support.verbose = 0
    try:
        module = importlib.import_module("test." + name)
        suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    except unittest.SkipTest as skip:
        return {"import": "skipped: " + str(skip)}
    except BaseException as error:
        return {"import": type(error).__name__ + ": " + str(error)[:300]}
    result = Outcomes()
    suite.run(result)
    return {"outcomes": result.outcomes, "details": {k: v for k, v in result.details.items() if v}}
