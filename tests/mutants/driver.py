"""The pytest plugin of `make mutants`: runs the tests once for each mutant, not once in all."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Generator, Sequence
from typing import Any

import pytest
from hypothesis import Phase, settings
from rich.progress import Progress

from tests.mutants.mutant import Mutant

IN_NEW_PROCESS = "--in-new-process"
# few random examples find most mutants; all of them are for those that are left
EXAMPLES = (20, 1_000_000)
MOST_MEMORY_BYTES = 4 * 2**30


class Driver:
    """After the tests are collected: learns which of them reach which function, then tries each mutant in a child."""

    def __init__(self, mutants: Sequence[Mutant]) -> None:
        self.mutants, self.survivors = mutants, 0
        self.has_failed = False
        self.reached = set[str]()
        self.test_modules = defaultdict[str, set[str]](set)
        self.tests = defaultdict[str, list[tuple[float, pytest.Item]]](list)
        self.one_of_each = list({mutant.function: mutant for mutant in mutants}.values())
        for mutant in self.one_of_each:
            mutant.namespace["_reached"] = self.reached
            mutant.put(mutant.original, f"_reached.add({mutant.function!r})")

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        self.reached.clear()
        report = yield
        for function in self.reached:
            self.test_modules[function].add(str(collector.path))
        return report

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def _note(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        if report.failed:
            self.has_failed = True
            print(report.longreprtext)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        # a process with threads does not fork well, so none refreshes the bar
        with Progress(*Progress.get_default_columns(), "{task.completed}/{task.total}", auto_refresh=False) as progress:
            task = progress.add_task("tests", total=len(session.items))
            for item in session.items:
                self._learn(item)
                progress.update(task, advance=1, refresh=True)
            for mutant in self.one_of_each:
                mutant.put(mutant.original)
            task = progress.add_task("mutants", total=len(self.mutants))
            for mutant in () if self.has_failed else self.mutants:
                if all(self._survives(mutant, most) for most in EXAMPLES) and self._survives_import(mutant):
                    self.survivors += 1
                    print(f"\n{mutant.diff}", flush=True)
                description = f"mutants, {self.survivors} survive"
                progress.update(task, advance=1, description=description, refresh=True)
        return True

    def _learn(self, item: pytest.Item) -> None:
        _clear_caches()
        self.reached.clear()
        started = time.process_time()
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        for function in self.reached:
            self.tests[function].append((time.process_time() - started, item))

    def _survives(self, mutant: Mutant, most_examples: int) -> bool:
        child = os.fork()
        if not child:
            try:
                self._be(mutant, most_examples)
            finally:
                os._exit(3)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code != 3, f"this code could not be replaced\n{mutant.diff}"
        return code == 0

    def _be(self, mutant: Mutant, most_examples: int) -> None:
        """Run the tests in a forked child and leave it, with 1 if one failed."""
        mutant.put(mutant.changed)
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        _clear_caches()
        for seconds, item in sorted(self.tests[mutant.function], key=lambda test: test[0]):
            # the signal ends a child that loops for ever
            signal.setitimer(signal.ITIMER_PROF, 2 + 10 * seconds)
            _limit_examples(item, most_examples)
            item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
            if self.has_failed:
                os._exit(1)
        os._exit(0)

    def _survives_import(self, mutant: Mutant) -> bool:
        modules = self.test_modules[mutant.function]
        parts = [argument for argument in sys.argv[1:] if not argument.startswith("tests/")]
        command = [sys.executable, "-m", "tests.mutants", IN_NEW_PROCESS, str(self.mutants.index(mutant)), *parts]
        return not modules or subprocess.run([*command, *modules], capture_output=True, check=False).returncode == 0


def _clear_caches() -> None:
    """Forget the results of cached functions: they would hide which functions a test reaches, and a mutant too."""
    for module in [module for name, module in sys.modules.items() if name.startswith("highwater.core")]:
        for cached in vars(module).values():
            getattr(cached, "cache_clear", str)()


def _limit_examples(item: Any, most: int) -> None:
    """Let a test of Hypothesis end after so many examples, and at the first that fails: no smaller one is sought."""
    name = "_hypothesis_internal_use_settings"
    holder, name = (item.obj, name) if hasattr(item.obj, name) else (item.cls, "settings")
    given = getattr(holder, name, None)
    if isinstance(given, settings):
        most, phases = min(most, given.max_examples), [Phase.explicit, Phase.generate]
        setattr(holder, name, settings(given, max_examples=most, phases=phases, database=None))
