# SPDX-License-Identifier: BSD-3-Clause
"""Lists that releases have written are read and changed by this one. released/VERSION.json holds
what the memcached of such a release held, byte by byte, and what it answered. When a release is
made, `/usr/bin/python3 tests/wire/test_released.py` writes its file."""

import json
import pathlib
import re
import sys
import tempfile
import time

import pytest

from harness import ROOT, Daemon, Memcached
from model import dump

FOLDER = pathlib.Path(__file__).parent / "released"
# With logs this short, lists have runs, and most have garbage.
LISTS = {"log_limit_bytes": 256, "log_hard_limit_bytes": 65536, "sublist_limit_bytes": 512}
LISTS["max_item_bytes"] = 100
CONFIG = {
    "lists": {**LISTS, "ttl_s": 0},
    "lists capped-": {"max_items": 20},
    "lists full-": {"max_items": 20, "cap": "refuse"},
    "lists recent-": {"order": "recent"},
    "lists refuse-": {"on_missing": "refuse"},
    "lists ends-": {"ttl_s": 315_000_000},
}
FILLED = ["plain", "capped-", "full-", "recent-", "ends-", "compacted", "whole", "timed", "copied"]
QUESTIONS = ["lget KEY", "lgetb KEY", "llen KEY", "lhas KEY item-0 item-3 item-29 item-39 no",
             "lrange KEY 0 4", "lrevrange KEY 0 4", "lafter KEY item-29 2"]

# Where else the version stands: a pattern of the file, and what stands before it there.
VERSIONS = {
    "conf/debian/changelog": r"mclistd \(",
    "conf/kubernetes.yaml": "mclistd:",
    "docs/changelog.md": "## ",
    "docs/getting-started.md": "mclistd ",
    "docs/operations.md": "mclistd_",
    "scripts/clients/**/*.gemspec": "gem.version = '",
    "scripts/clients/**/*.pc.in": "Version: ",
    "scripts/clients/**/*.pm": "our \\$VERSION = '",
    "scripts/clients/**/README.md": "mclistd(?:@v|:|-)",
    "scripts/clients/**/composer.json": '"version": "',
    "scripts/clients/**/package.json": '"version": "',
    "scripts/clients/**/pom.xml": "<version>",
    "scripts/clients/**/pyproject.toml": 'version = "',
    "scripts/clients/php/wordpress/object-cache.php": "Version: ",
}


def version():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return re.search(r"^VERSION := (.*)$", makefile, re.MULTILINE)[1]


def changes():
    """What the release was asked, in order."""
    for key in FILLED:
        yield f"ladd {key} item-0", None
        for n in range(40):
            yield f"ladd {key} item-{n}", None
            if n % 3 == 1:
                yield f"ldel {key} item-{n}", None
    yield "ladd plain item-1 item-3 it\u00e9m", None
    yield "ladd recent- item-3", None
    yield "lcompact compacted", None
    yield "lset whole item-39 item-3 item-0", None
    yield "laddt timed 300000000 item-50 item-51", None
    yield "ltouch copied 310000000", None
    yield "lcopy plain copied", None
    yield "lset refuse-set item-3 item-29", None
    yield "llease refuse-leased 1000", None
    body = "ladd plain in-tx\r\nladd other in-tx\r\nldel capped- item-39\r\n"
    yield f"ltx {len(body)}", body


def answer(conn, request, body=None):
    """All lines of the answer."""
    conn.send(request.encode(), b"\r\n", b"" if body is None else body.encode() + b"\r\n", b"mn\r\n")
    return [line.decode() for line in conn.until_mn()]


def record(folder):
    """What a memcached holds after those changes, and how it is read."""
    memcached = Memcached()
    daemon = Daemon(folder, [memcached], CONFIG)
    try:
        with daemon.conn() as conn, memcached.conn() as backend:
            done = [[request, answer(conn, request, body)] for request, body in changes()]
            answers = [[request, answer(conn, request)] for request in questions()]
            items = []
            for key in dump(memcached):
                value = backend.get(key)
                left_s = int(backend.cmd(f"mg {key} t")[4:])
                until_s = 0 if left_s < 0 else int(time.time()) + left_s
                items.append([key, until_s, value.decode("latin-1")])
            return {"changes": done, "answers": answers, "items": items}
    finally:
        daemon.stop()
        memcached.stop()


def questions():
    for key in [*FILLED, "refuse-set", "refuse-leased", "other", "never"]:
        for question in QUESTIONS:
            yield question.replace("KEY", key)


def load(memcached, items):
    with memcached.conn() as conn:
        for key, until_s, text in items:
            assert conn.set(key, text.encode("latin-1"), exptime=until_s) == b"STORED", key


def released():
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]


@pytest.mark.parametrize("release", released())
def test_lists_of_a_release_are_read(start_daemon, memcached, release):
    load(memcached, release["items"])
    with start_daemon([memcached], config=CONFIG).conn() as conn:
        for request, want in release["answers"]:
            assert answer(conn, request) == want, request


@pytest.mark.parametrize("release", released())
def test_lists_of_a_release_are_changed_and_compacted(start_daemon, memcached, release):
    load(memcached, release["items"])
    with start_daemon([memcached], config=CONFIG).conn() as conn:
        for key in FILLED:
            if key != "full-":
                assert conn.cmd(f"ladd {key} new") == b"STORED"
                assert answer(conn, f"lhas {key} new")[1] == "new", key
                assert conn.cmd(f"ldel {key} new") == b"DELETED"
            assert conn.cmd(f"lcompact {key}") == b"OK"
        for request, want in release["answers"]:
            key = request.split()[1]
            if not key.startswith("capped-"):  # the new item took the place of an old one
                assert answer(conn, request) == want, request


@pytest.mark.parametrize("release", released())
def test_a_release_was_asked_what_this_one_answers(start_daemon, memcached, release):
    """The same changes get the same answers, but for tokens."""
    with start_daemon([memcached], config=CONFIG).conn() as conn:
        for (request, body), (recorded, want) in zip(changes(), release["changes"]):
            assert request == recorded
            got = answer(conn, request, body)
            assert got == want or request.startswith("llease"), request


@pytest.mark.release
def test_all_files_name_the_same_version():
    wrong, found = [], set()
    for pattern, before in VERSIONS.items():
        for path in ROOT.glob(pattern):
            named = re.search(before + r"(\d+\.\d+\.\d+)", path.read_text(encoding="utf-8"))
            if named:
                found.add(pattern)
                if named[1] != version():
                    wrong.append(f"{path.relative_to(ROOT)}: {named[1]}")
    assert not wrong and found == set(VERSIONS)


@pytest.mark.release
def test_this_release_has_its_file():
    assert (FOLDER / f"{version()}.json").exists()


def main():
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        parts = record(folder)
    lines = {name: ",\n".join(map(json.dumps, entries)) for name, entries in parts.items()}
    text = ",\n\n".join(f'"{name}": [\n{entries}]' for name, entries in lines.items())
    (FOLDER / f"{version()}.json").write_text("{" + text + "}\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
