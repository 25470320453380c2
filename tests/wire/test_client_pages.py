# SPDX-License-Identifier: BSD-3-Clause
"""The programs of docs/clients, and of the READMEs of helpers, print what stands below them."""

import pathlib
import re

import pytest

from client_support import FENCES, PAGES, READMES, run, skip_unless_there
from harness import ROOT

pytestmark = pytest.mark.release

PROGRAMS = [(page, name) for page in PAGES + READMES for name in page.outputs]


# --- programs ---


def test_every_block_of_code_is_run():
    """Each has a file name, and is a program that prints."""
    for page in PAGES + READMES:
        assert page.outputs, page.language
        for block in page.blocks:
            if block["fence"] == "ini":
                continue
            assert block["name"], block["source"]
            assert block["fence"] == FENCES[pathlib.Path(block["name"]).suffix]
            assert block["output"], block["name"]


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


def test_what_is_said_of_inline_verbs(conn):
    assert conn.cmd('ladd said "hello world"') == b"STORED"
    assert conn.cmd("ladd said x noreply") == b"STORED"
    assert conn.lget("said") == [b'"hello', b'world"', b"x", b"noreply"]
    assert conn.cmd("ladd victim unhurt") == b"STORED"
    conn.send("ladd said {}\r\n".format("y\r\nldrop victim"))
    assert conn.lines(2) == [b"STORED", b"DELETED"]


FOLLOWERS = [
    (page, name)
    for page, name in PROGRAMS
    if page in PAGES and name.lower().startswith("followers.")
]


@pytest.mark.thorough
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
