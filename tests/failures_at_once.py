"""Each failure is printed when it happens: a run that is ended before its summary has said what failed."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # of a worker xdist's controller hears
        config.pluginmanager.register(AtOnce(config), "failures-at-once")


class AtOnce:
    """Prints a failed test's name and reason."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = crash.message.splitlines()[0][:200] if crash and crash.message else ""
            terminal.write_line(f"\n{report.when} of {report.nodeid} failed: {reason}")
