# SPDX-License-Identifier: BSD-3-Clause
"""The programs of docs/clients print what stands below them, and their helpers carry or refuse
hostile items and keys."""

import pathlib
import re
import shutil

import pytest

from client_support import AGENTS, FENCES, HELPERS, PAGES, READMES, run, skip_unless_there
from harness import ROOT

pytestmark = pytest.mark.release

PROGRAMS = [(page, name) for page in PAGES + READMES for name in page.outputs]
OLDER = [page for page in PAGES if page.language not in HELPERS]  # these have a helper to copy


# --- programs ---


def test_every_block_of_code_is_run():
    """Each has a file name, and is a program that prints or a helper that such a program uses."""
    for page in PAGES + READMES:
        assert page.outputs, page.language
        for block in page.blocks:
            if block["fence"] == "ini":
                continue
            assert block["name"], block["source"]
            assert block["fence"] == FENCES[pathlib.Path(block["name"]).suffix]
            assert block["output"] or block["name"].lower().startswith("lists."), block["name"]
        helpers = [name for name in page.sources if name.lower().startswith("lists.")]
        assert len(helpers) == (page in OLDER), page.language


def test_the_overview_names_every_page_and_holds_no_code():
    text = (ROOT / "docs/clients.md").read_text("utf-8")
    for page in PAGES:
        assert f"(clients/{page.language}.md" in text
    assert not re.search(r"^```(?!ini$|$)", text, re.MULTILINE)


@pytest.mark.config(lists={}, **{"lists followers:": {"bridge": True}})
@pytest.mark.parametrize(
    "page, name", PROGRAMS, ids=[f"{page.path.stem}-{page.language}-{name}" for page, name in PROGRAMS]
)
def test_program_prints_what_the_page_says(daemon, tmp_path, page, name):
    skip_unless_there(pathlib.Path(name).suffix, page.sources[name])
    assert page.sources[name].count("11220") == 1
    page.write(tmp_path, daemon.port)
    done = run(tmp_path, name)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", page.outputs[name])


def test_sessions_of_php_in_the_text_protocol(daemon, tmp_path):
    (page,) = [page for page in PAGES if page.language == "php"]
    skip_unless_there(".php", page.sources["session.php"])
    page.write(tmp_path, daemon.port)
    path = tmp_path / "session.php"
    setting = "ini_set('memcached.sess_binary_protocol', '0');"
    path.write_text(path.read_text("utf-8").replace("session_id", f"{setting}\nsession_id"), "utf-8")
    assert run(tmp_path, "session.php").stdout == page.outputs["session.php"]


def test_the_helper_of_python_on_a_newer_pymemcache(daemon, tmp_path):
    (page,) = [page for page in PAGES if page.language == "python"]
    newer = page.sources["online.py"] + "# of the pymemcache that has raw_command\n"
    skip_unless_there(".py", newer)
    page.write(tmp_path, daemon.port)
    path = tmp_path / "online.py"
    path.write_text(newer.replace("11220", str(daemon.port)), "utf-8")
    assert run(tmp_path, "online.py").stdout == page.outputs["online.py"]


# --- hostile text ---

ITEMS = [
    b"hello world",
    b"noreply",
    b"5 noreply",
    b"x\r\nldrop victim",
    b"\r\n",
    b"\nldrop victim\n",
    b"END",
    b"ITEM hostile 3",
    b"SERVER_ERROR no",
    b" ",
    b"\xc3\xbc\xe2\x82\xac",
    b"\x00 zero \x00",
    b"x" * 1024,
]
NO_TEXT = [b"\xff\xfe", b"\x80" * 5]
REFUSED_ITEMS = [b"", b"a,b", b"x" * 1025]
KEYS = [
    b"",
    b"a b",
    b"victim\r\nldrop victim",
    b"victim\nldrop victim\n",
    b"victim\r",
    b"hostile\n",
    b"hostile ",
    b"tab\tbed",
    b"\x7f",
    b"x" * 221,
]


def test_what_is_said_of_inline_verbs(conn):
    assert conn.cmd('ladd said "hello world"') == b"STORED"
    assert conn.cmd("ladd said x noreply") == b"STORED"
    assert conn.lget("said") == [b'"hello', b'world"', b"x", b"noreply"]
    assert conn.cmd("ladd victim unhurt") == b"STORED"
    conn.send("ladd said {}\r\n".format("y\r\nldrop victim"))
    assert conn.lines(2) == [b"STORED", b"DELETED"]


def hexed(key, item):
    return f"{key.hex()} {item.hex()}\n"


@pytest.mark.parametrize("page", OLDER, ids=[page.language for page in OLDER])
def test_hostile_text_never_becomes_a_command(daemon, conn, tmp_path, page):
    """tests/wire/clients/hostile.* adds what it is told, with the page's helper, and shows it."""
    (driver,) = [path for path in AGENTS.glob("[hH]ostile.*") if path.suffix in suffixes(page)]
    skip_unless_there(driver.suffix, "")
    page.write(tmp_path, daemon.port)
    shutil.copy(driver, tmp_path)
    assert conn.cmd("ladd victim unhurt") == b"STORED"
    items = ITEMS + NO_TEXT
    lines = [hexed(b"hostile", item) for item in items]
    lines += [hexed(b"hostile", item) for item in REFUSED_ITEMS]
    lines += [hexed(key, b"item") for key in KEYS]
    done = run(tmp_path, f"{driver.name}", "".join([f"{daemon.port}\n", *lines]))
    assert (done.returncode, done.stderr) == (0, "")
    said = done.stdout.split("\n")
    refused = len(REFUSED_ITEMS) + len(KEYS)
    assert said[: len(lines)] == ["stored"] * len(items) + ["refused"] * refused
    assert said[len(lines) :] == [item.hex() for item in items] + [""]
    assert conn.lgetb("hostile") == items
    assert conn.lgetb("victim") == [b"unhurt"]


def suffixes(page):
    return {pathlib.Path(name).suffix for name in page.outputs}


FOLLOWERS = [
    (page, name)
    for page, name in PROGRAMS
    if page in PAGES and name.lower().startswith("followers.")
]


@pytest.mark.config(**{"lists followers:": {"bridge": True}})
@pytest.mark.parametrize("page, name", FOLLOWERS, ids=[page.language for page, _ in FOLLOWERS])
def test_text_with_the_delimiter_is_refused_by_the_program(daemon, conn, tmp_path, page, name):
    """Of a bridged list, where a comma would make two items of it."""
    skip_unless_there(pathlib.Path(name).suffix, page.sources[name])
    assert page.sources[name].count("carol smith") == 1
    page.write(tmp_path, daemon.port)
    path = tmp_path / name
    path.write_text(path.read_text("utf-8").replace("carol smith", "carol,smith"), "utf-8")
    assert run(tmp_path, name).returncode != 0
    assert conn.lget("followers:ann") in ([], [b"bob"])


def test_a_page_of_each_client_that_can_append_has_a_bridged_list():
    assert {page.language for page, _ in FOLLOWERS} == {page.language for page in PAGES}
