"""Options and fixtures of the conformance kit."""

import json
import os
import pathlib
import tempfile

import pytest
from harness.waiting import wait_until
from kit.mutants import MUTANTS
from kit.mutation import Proxy
from kit.servers import OTHERS, BellhopServer
from kit.service import ORIGIN, Bellhop, OwnService, Signer
from kit.specification import ROOT

HERE = pathlib.Path(__file__).resolve().parent


def pytest_addoption(parser):
    group = parser.getgroup("conformance")
    group.addoption("--url", default=os.environ.get("CONFORMANCE_URL"), help="the service; by default the kit starts one")
    group.addoption("--secret", default=os.environ.get("CONFORMANCE_SECRET"), help="the secret that signs tokens")
    group.addoption("--token-command", help="a command that reads claims and prints a token")
    group.addoption("--binary", default=str(ROOT / ".build/debug/bellhop"), help="the program that the kit starts")
    group.addoption("--server", default=BellhopServer.name, help="the server of the generic cases: Bellhop, nchan or sse-starlette")
    group.addoption("--origin", help="an origin whose pages the service allows; the kit's own service has one")
    group.addoption("--mutant", help="the mutant that stands between the kit and the service")
    group.addoption("--outcomes", help="a file that receives the outcome of each case, in JSON")


def pytest_configure(config):
    config.addinivalue_line("markers", "cites(*numbers): the sentences of Docs/protocol.md that a case tests")
    config.outcomes = {}


def pytest_collection_modifyitems(config, items):
    """Selects the cases that cite the sentences of a mutant."""
    mutant = MUTANTS.get(config.getoption("--mutant") or "")
    if mutant is None or not mutant.breaks:
        return
    wanted = [item for item in items if set(mutant.breaks) & set(citations(item))]
    config.hook.pytest_deselected(items=[item for item in items if item not in wanted])
    items[:] = wanted


def citations(item):
    """Returns the numbers that a case cites."""
    return [number for mark in item.iter_markers("cites") for number in mark.args]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when == "call" or report.outcome != "passed":
        item.config.outcomes.setdefault(item.name, {"outcome": report.outcome, "cites": citations(item)})


def pytest_sessionfinish(session):
    path = session.config.getoption("--outcomes")
    if path:
        pathlib.Path(path).write_text(json.dumps(session.config.outcomes), encoding="utf-8")


def pytest_terminal_summary(terminalreporter, config):
    """Prints the number of passed cases for .ci/report."""
    if not config.getoption("--mutant") and not config.getoption("--outcomes"):
        terminalreporter.write_line(f"cases: {len(terminalreporter.stats.get('passed', []))}")


def through_mutant(config, url, secret):
    """Returns the address of the mutant in front of a service, or of the service."""
    name = config.getoption("--mutant")
    return Proxy(url, MUTANTS[name], secret).start() if name else url


@pytest.fixture(scope="session")
def service(request, tmp_path_factory):
    """The service that most cases share."""
    config = request.config
    url, secret, command = (config.getoption(name) for name in ("--url", "--secret", "--token-command"))
    if url:
        yield Bellhop(through_mutant(config, url, secret), Signer(secret, command))
        return
    own = OwnService(config.getoption("--binary"), tmp_path_factory.mktemp("service"), HERE / "tables.yaml")
    own.start()
    yield Bellhop(through_mutant(config, own.url, own.secret), Signer(own.secret))
    own.stop()


@pytest.fixture
def bellhop(service):
    """The service under test. The streams of a case end with the case."""
    yield service
    service.close()


@pytest.fixture
def process(request, tmp_path):
    """A service of this case alone, which it may restart and stop."""
    if request.config.getoption("--url") and not request.config.getoption("--mutant"):
        pytest.skip("needs a process that the kit starts")
    own = OwnService(request.config.getoption("--binary"), tmp_path, HERE / "tables.yaml")
    own.start()
    bellhop = Bellhop(through_mutant(request.config, own.url, own.secret), Signer(own.secret), own)
    yield bellhop
    bellhop.close()
    own.stop()


@pytest.fixture
def user(bellhop):
    return bellhop.user()


@pytest.fixture
def origin(request):
    """An origin that the service allows."""
    config = request.config
    if config.getoption("--url") and not config.getoption("--mutant") and not config.getoption("--origin"):
        pytest.skip("needs an allowed origin (--origin)")
    return config.getoption("--origin") or ORIGIN


@pytest.fixture
def eventually():
    """Returns the function that waits for a condition."""
    return wait_until


@pytest.fixture(scope="session")
def server_under_test(request):
    name = request.config.getoption("--server")
    if name == BellhopServer.name:
        yield BellhopServer(request.getfixturevalue("service"))
        return
    # Workers of nginx run as another user, so the folder is not below the one of pytest.
    with tempfile.TemporaryDirectory() as folder:
        other = OTHERS[name](pathlib.Path(folder))
        other.start()
        yield other
        other.stop()


@pytest.fixture
def server(server_under_test):
    """The server of the generic cases."""
    yield server_under_test
    server_under_test.close()
