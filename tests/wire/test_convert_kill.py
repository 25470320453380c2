# SPDX-License-Identifier: BSD-3-Clause
"""scripts/convert and the proxies are killed at any moment, while others add items: nothing is lost."""

import random
import subprocess
import sys
import threading
import time

import pytest

from harness import ROOT
from test_convert_support import Lister, convert, names_stored, sections

pytestmark = pytest.mark.release

LISTS = [f"topic-{n}" for n in range(40)]
ITEMS_EACH = 40
KILLS = 6
LEFT_OUT = 0.2         # of the names of items, each time
PAUSE_S = 0.002        # between additions: the lists stay short enough to be converted in time


def put_lists(memcached, dialect):
    """Of several sublists, which memcached's lister names in any order, or not at all while they are
    in use. Returns {key: items}."""
    expected = {}
    with memcached.conn() as conn:
        for key in LISTS:
            items = [f"{key[6:]}.{n}" for n in range(ITEMS_EACH)]
            expected[key] = set(items)
            if dialect == "sublists":
                texts = ["+" + "+".join(items[n::4]) for n in range(4)]
                assert conn.set(key, "+0+1+2+3") == b"STORED"
                for number, text in enumerate(texts):
                    assert conn.set(f"{key}.{number}", text) == b"STORED"
            elif dialect == "flip":
                assert conn.set(f"{key}.a", "+" + "+".join(items)) == b"STORED"
            else:
                assert conn.set(key, "+" + "+".join(items)) == b"STORED"
    return expected


class Adder(threading.Thread):
    """Adds to all lists in turn, through a proxy that is not killed; what it noted was answered."""

    def __init__(self, daemon, expected):
        super().__init__()
        self.proxy, self.expected = daemon, expected
        self.stopping, self.faults = threading.Event(), []

    def run(self):
        count = 0
        try:
            with self.proxy.conn() as conn:
                while not self.stopping.is_set():
                    key, item = LISTS[count % len(LISTS)], f"new.{count}"
                    count += 1
                    answer = conn.cmd(f"ladd {key} {item}")
                    if answer == b"STORED":
                        self.expected[key].add(item)
                    elif b"busy" not in answer:
                        self.faults.append(answer)
                    time.sleep(PAUSE_S)
        except Exception as fault:  # seen by the test, not lost in the thread
            self.faults.append(repr(fault))


def start_script(daemons, lister, folder):
    proxies = [f"--proxy=127.0.0.1:{daemon.port}" for daemon in daemons]
    return subprocess.Popen(
        [sys.executable, str(ROOT / "scripts/convert"), "topic-", *proxies,
         f"--server={lister.address}", f"--state={folder / 'done.txt'}",
         f"--backup={folder / 'backup.txt'}", "--rate=100", "--allow-empty"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def kill(script, whom, daemon):
    """And starts the proxy again, when the script has ended."""
    if whom != "script":
        daemon.kill()
    if whom != "proxy":
        script.kill()
    script.communicate()
    if whom != "script":
        daemon.start()


@pytest.mark.slow
@pytest.mark.parametrize("dialect, whom", [
    ("sublists", "script"), ("sublists", "proxy"), ("sublists", "both"), ("signed", "both"), ("flip", "both"),
])  # fmt: skip
def test_nothing_is_lost_whoever_is_killed(start_daemon, memcached, tmp_path, dialect, whom):
    daemons = [start_daemon([memcached], config=sections(dialect)) for _ in range(3)]
    expected = put_lists(memcached, dialect)
    adder = Adder(daemons[0], expected)
    adder.start()
    dice = random.Random(f"{dialect} {whom}")
    try:
        with Lister(memcached, lambda name, number: dice.random() < LEFT_OUT) as lister:
            for _ in range(KILLS):
                script = start_script(daemons, lister, tmp_path)
                time.sleep(dice.uniform(0.2, 0.8))
                kill(script, whom, dice.choice(daemons[1:]))
    finally:
        adder.stopping.set()
        adder.join()
    assert adder.faults == []
    files = [f"--state={tmp_path / 'done.txt'}", f"--backup={tmp_path / 'backup.txt'}"]
    done = convert(daemons, f"--server={memcached.address}", *files)
    assert done.returncode in (0, 3), done.stdout + done.stderr
    native = start_daemon([memcached], config=sections("native"))
    with native.conn() as conn:
        for key in LISTS:
            items = [item.decode() for item in conn.lget(key)]
            assert len(items) == len(set(items))
            assert expected[key] - set(items) == set(), key
            extra = set(items) - expected[key]
            assert all(item.startswith("new.") for item in extra), key
    heads = {name[:-1] for name in names_stored(memcached) if name.endswith("#")}
    assert heads == set(LISTS), "a part became a list"
    saved = (tmp_path / "backup.txt").read_text().split("\n")
    assert {line.split()[1] for line in saved if line.startswith("list ")} == set(LISTS)
    done = convert(daemons, "--verify-only", files[1].replace("backup=", "keys="))
    assert done.returncode == 0, done.stdout + done.stderr
