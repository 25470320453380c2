# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the wire tests; harness.py has the parts and an example."""

import functools
import signal

import pytest

from client_support import Agent
from couchbase_support import Cluster
from harness import Daemon, Memcached
from old_memcached import OldMemcached
from test_backend_support import FakeServer, answer_slowly
from test_dialects_support import Relay
from tls_support import TlsMemcached


def pytest_configure(config):
    # A shell that runs this in the background ignores SIGINT, and programs would inherit that.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "memcacheds(count, *args): servers and their options")
    config.addinivalue_line("markers", "config(**sections): settings laid over the default ones")
    config.addinivalue_line("markers", "slow: more than a second or two; not in `make check`")
    config.addinivalue_line("markers", "thorough: waits for seconds, much for what it shows, or a"
                                       " test once more, with other values or in another world;"
                                       " not in `make check`")
    config.addinivalue_line("markers", "release: little happens in the daemon, so that no sanitizer"
                                       " sees more of it, or it bounds memory, which a sanitizer's"
                                       " build does not: only with the release build")


# They wait for proxies to count rounds of whole seconds: gate_s, looks at what is hot.
WAIT_LONG = ("test_servers.py", "test_moving.py", "test_moving_plain.py", "test_failures.py")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of a test with parameters the first set of them shows most: the others are thorough. Tests
    that take long begin first, so that no worker is left with one when the others have ended;
    those that share a fixture of their file stay together."""
    seen = set()
    for item in items:
        if hasattr(item, "callspec"):
            test = (item.path, item.cls, item.originalname)
            if test in seen:
                item.add_marker(pytest.mark.thorough)
            seen.add(test)
        if any(fixtures[-1].scope == "module" for fixtures in item._fixtureinfo.name2fixturedefs.values()):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    items.sort(key=lambda item: (item.path.name not in WAIT_LONG, not item.get_closest_marker("slow")))


def starting(kind):
    """Yields a function that starts one with its arguments; stops all of them afterwards."""
    started = []

    def start(*args, **options):
        started.append(kind(*args, **options))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def start_memcached():
    """A function that starts a memcached for this test: start_memcached("-I", "2m")."""
    yield from starting(Memcached)


@pytest.fixture
def start_fake():
    """The same for a server that misbehaves: start_fake(never_answer)."""
    yield from starting(FakeServer)


@pytest.fixture
def start_tls():
    """The same for a memcached that speaks TLS: start_tls(certificate)."""
    yield from starting(TlsMemcached)


@pytest.fixture
def slow_fake(start_fake):
    return start_fake(answer_slowly)


@pytest.fixture
def start_old(start_memcached):
    """A function that starts a memcached of an earlier release: start_old("1.5.22")."""
    yield from starting(lambda version, *args: OldMemcached(start_memcached(*args), version))


@pytest.fixture
def start_relay():
    """A function that puts a relay before a server: start_relay(memcached)."""
    yield from starting(Relay)


@pytest.fixture
def memcacheds(request, start_memcached):
    """The servers; one, or as many as the mark `memcacheds` says."""
    mark = request.node.get_closest_marker("memcacheds")
    count, *args = mark.args if mark else (1,)
    return [start_memcached(*args) for _ in range(count)]


@pytest.fixture
def memcached(memcacheds):
    return memcacheds[0]


@pytest.fixture
def start_daemon(tmp_path):
    """A function that starts a daemon for this test, with the arguments of Daemon but the first.
    Each must end well after the test, unless the test has killed it."""
    started = []

    def start(*args, **options):
        started.append(Daemon(tmp_path, *args, **options))
        return started[-1]

    yield start
    faults = []
    for daemon in started:
        try:
            if daemon.must_stop:
                daemon.stop()
        except AssertionError as fault:
            faults.append(str(fault))
        print(f"--- {daemon.log_path.name}\n{daemon.log()[-5000:]}")  # seen when the test failed
    assert not faults, "\n".join(faults)


@pytest.fixture
def daemon(request, memcacheds, start_daemon):
    """The daemon before all of `memcacheds`, with what the marks `config` say; the mark nearest to
    the test wins. A section with a blank in its name is written config(**{"pool main": {...}})."""
    sections = {}
    for mark in reversed(list(request.node.iter_markers("config"))):
        for section, settings in mark.kwargs.items():
            sections.setdefault(section, {}).update(settings)
    return start_daemon(memcacheds, config=sections)


@pytest.fixture
def conn(daemon):
    with daemon.conn() as conn:
        yield conn


@pytest.fixture
def cluster():
    """A fake Couchbase cluster of three nodes."""
    with Cluster(nodes=3) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def agents_folder(tmp_path_factory):
    """Where agents are built, once."""
    return tmp_path_factory.mktemp("agents")


@pytest.fixture
def start_agent(agents_folder):
    """A function that starts a stock client: start_agent("pylibmc", "default", [address])."""
    yield from starting(functools.partial(Agent, agents_folder))
