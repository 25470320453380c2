# SPDX-License-Identifier: BSD-3-Clause
"""scripts/demo and scripts/sweep run for real; the docs name every verb and every statistic."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import threading

import pytest

from harness import ROOT, TIMEOUT_S, Conn, free_port, wait_until
from test_backend_support import FakeServer
from test_convert_support import Lister

pytestmark = pytest.mark.release

TINY = {
    "max_item_bytes": 64,
    "log_limit_bytes": 256,
    "log_hard_limit_bytes": 4096,
    "sublist_limit_bytes": 512,
}
ORPHAN = "gone#orphanorphano.0"
SUBLIST = b"^1 0000000001\n+5:apple"


PACKAGES = """\
Package: base
Version: 1

Package: tool
Depends: base (>= 1), library:any | other-library,
 late-one

Package: library
Pre-Depends: base
Depends: late-one
Description: says Depends: nothing
 Depends: this is no field

Package: tool
Depends: base, newer

Package: base-extra
Depends: base-data, base

"""


@pytest.fixture
def packages(tmp_path):
    """Package data of a small world, in which a thousand packages need libc6."""
    many = [f"Package: tool-{n}\nDepends: libc6 (>= 2.{n % 9})\n\n" for n in range(1000)]
    path = tmp_path / "packages"
    path.write_text(PACKAGES + "".join(many))
    return path


def run(script, *args):
    command = [sys.executable, str(ROOT / "scripts" / script), *map(str, args)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=20 * TIMEOUT_S, check=False
    )


def run_well(script, *args):
    done = run(script, *args)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def daemon_command():
    program = os.environ.get("MCLISTD", "build/mclistd")
    runner = shlex.split(os.environ.get("MCLISTD_RUNNER", ""))
    return shlex.join([*runner, str(ROOT / program) if "/" in program else program])


# --- demo ------------------------------------------------------------------------------------------


def test_demo_on_a_running_proxy_leaves_nothing_behind(daemon, memcached, packages):
    out = run_well("demo", "--port", daemon.port, "--data", packages)
    assert f"using the proxy on 127.0.0.1:{daemon.port}" in out
    assert f"{packages}: 1,004 packages, 1,009 dependencies on 7 names" in out
    assert "libc6: 1,000 dependants, as in the package data" in out
    assert "both libc6 and base: 0 (linter" in out
    assert "libc6 or base: 1,003 (lunion" in out
    assert "100 of 1,000 removed, 900 left" in out
    assert "everything equal" in out
    with memcached.conn() as direct:
        wait_until("no item is left", lambda: direct.stats()["curr_items"] == "0")


def test_demo_can_be_run_again_on_what_it_left(daemon, packages):
    for _ in range(2):
        out = run_well("demo", "--port", daemon.port, "--data", packages, "--keep")
        assert "everything equal" in out
    with daemon.conn() as conn:
        assert conn.lget("rdep:base") == [b"tool", b"library", b"base-extra"]
        assert conn.lget("rdep:late-one") == [b"tool", b"library"]


def test_demo_drops_no_lists_of_others(daemon, conn, packages):
    assert conn.cmd("ladd rdep:libc6 perl mine") == b"STORED"
    done = run("demo", "--port", daemon.port, "--data", packages)
    assert done.returncode == 1
    assert "rdep:libc6 holds 'mine', which is not of this package data" in done.stderr
    assert conn.lget("rdep:libc6") == [b"perl", b"mine"]


def test_demo_sends_no_line_ends_of_the_data(daemon, conn, tmp_path):
    path = tmp_path / "packages"
    names = ["Package: bad\x0b\x0bname", "Package: two words", "Package: good", "Package: better"]
    path.write_text("".join(f"{name}\nDepends: libc6, a\x00b\n\n" for name in names))
    out = run_well("demo", "--port", daemon.port, "--data", path, "--keep")
    assert "2 packages, 2 dependencies on 1 names" in out
    assert conn.lget("rdep:libc6") == [b"better"]  # every tenth is removed, from the first on


def test_demo_whose_largest_list_has_one_item(daemon, conn, tmp_path):
    path = tmp_path / "packages"
    path.write_text("Package: good\nDepends: libc6\n")
    out = run_well("demo", "--port", daemon.port, "--data", path, "--keep")
    assert "1 of 1 removed, 0 left" in out
    assert "lstat: nothing is stored" in out
    assert "everything equal" in out
    assert conn.lget("rdep:libc6") == []


@pytest.mark.config(lists={"delimiter": "none"})
def test_demo_without_a_delimiter(daemon, packages):
    out = run_well("demo", "--port", daemon.port, "--data", packages)
    assert "libc6 or base: 1,003 (lunion" in out
    assert "everything equal" in out


@pytest.mark.config(lists=TINY)
def test_demo_with_tiny_limits(daemon, packages):
    out = run_well("demo", "--port", daemon.port, "--data", packages)
    assert "everything equal" in out


@pytest.mark.slow
def test_demo_of_this_machine_starts_and_ends_a_proxy_when_nobody_listens():
    out = run_well("demo", "--port", free_port(), "--packages", 2000, "--daemon", daemon_command())
    assert "started a proxy on port" in out
    assert "everything equal" in out
    own = int(re.search(r"started a proxy on port (\d+)", out).group(1))
    with pytest.raises(ConnectionRefusedError):
        Conn(own)


@pytest.mark.config(lists={"on_missing": "refuse"})
def test_demo_fails_when_an_answer_is_not_the_expected_one(daemon, packages):
    done = run("demo", "--port", daemon.port, "--data", packages)
    assert done.returncode == 1
    assert "expected 'STORED'" in done.stderr


def test_demo_refuses_a_server_that_is_no_proxy(memcached):
    done = run("demo", "--port", memcached.port)
    assert done.returncode == 1
    assert "is no mclistd" in done.stderr


def test_demo_says_which_program_is_missing():
    done = run("demo", "--port", free_port(), "--daemon", "/nonexistent/mclistd")
    assert done.returncode == 1
    assert "/nonexistent/mclistd does not start" in done.stderr


# --- sweep -----------------------------------------------------------------------------------------


def fill(conn, key, count):
    """A list that has runs."""
    for start in range(0, count, 10):
        items = " ".join(f"item-{n:05}" for n in range(start, start + 10))
        assert conn.cmd(f"ladd {key} {items}") == b"STORED"
    wait_until("a run", lambda: conn.stats(f"lstat {key}")["sublists"] != "0")
    return [b"item-%05d" % n for n in range(count)]


def sweep(*args):
    return run_well("sweep", "--wait", 0.1, "--grace", 0, *args)


@pytest.mark.config(lists=TINY)
def test_sweep_removes_the_orphan_and_nothing_else(conn, memcached):
    items = fill(conn, "fruit", 200)
    odd = fill(conn, "with#hash#aaaaaaaaaaaaa.0", 60)
    kept = {
        "note": b"hello",
        "note#aaaaaaaaaaaaa.0": b"a plain value with a key like a sublist's",
        "note#aaaaaaaaaaaaa.1": b"^1 not a sublist",
        "fruit#toolong2345672.0": SUBLIST,  # 14 characters: no name
        "fruit#aaaaaaaaaaaa1.0": SUBLIST,   # 1 is no digit of a name
        "fruit#aaaaaaaaaaaaa.x": SUBLIST,
        "fruit#aaaaaaaaaaaaa.01": SUBLIST,
    }
    with memcached.conn() as direct:
        for key, value in {**kept, ORPHAN: SUBLIST}.items():
            assert direct.set(key, value) == b"STORED"

        out = sweep(memcached.address)
        assert f"would remove {memcached.address} {ORPHAN} {len(SUBLIST)}" in out
        assert "1 to be removed" in out
        assert direct.get(ORPHAN) == SUBLIST, "a dry run removes nothing"

        out = sweep("--delete", memcached.address)
        assert f"removed {memcached.address} {ORPHAN} {len(SUBLIST)}" in out
        assert "1 removed" in out
        assert direct.get(ORPHAN) is None
        for key, value in kept.items():
            assert direct.get(key) == value, key
    assert conn.lget("fruit") == items
    assert conn.lget("with#hash#aaaaaaaaaaaaa.0") == odd
    assert "0 removed" in sweep("--delete", memcached.address)


def test_sweep_leaves_alone_what_was_just_written(memcached):
    """A proxy that fills a missing list announces nothing (on_missing = refuse)."""
    with memcached.conn() as direct:
        assert direct.set(ORPHAN, SUBLIST) == b"STORED"
        out = run_well("sweep", "--wait", 0, "--delete", memcached.address)
        assert " 0 removed" in out and "1 younger than --grace" in out
        assert direct.get(ORPHAN) == SUBLIST
        assert "1 removed" in sweep("--delete", memcached.address)


def test_sweep_asks_the_hash_table_for_names(memcached):
    """The LRU lists leave out what is used at that moment."""
    with memcached.conn() as direct:
        assert direct.set(ORPHAN, SUBLIST) == b"STORED"
        with Lister(memcached, lambda name, _: name == ORPHAN, way=b"all") as lister:
            assert "1 removed" in sweep("--delete", lister.address)
        assert direct.get(ORPHAN) is None


def test_sweep_keeps_what_a_head_names_in_any_way(memcached):
    with memcached.conn() as direct:
        heads = {
            "run": b"^1 aaaaaaaaaaaaa.1:22:1\n",
            "garbage": b"^1 -aaaaaaaaaaaaa.1\n",
            "announced": b"^1\n+1:x~26:aaaaaaaaaaaaa.3.1700000000-1:x",
            "tricky": b"^1 bbbbbbbbbbbbb.1:22:1\n+28:~26:ccccccccccccc.1.1700000\n~26:aaaaaaaaaaaaa.1.1700000000",
            "with-times": b"^1 @1795229328 aaaaaaaaaaaaa.1:22:1\n+1:x",
            "absent": b"^1 ?77.1795229328 -bbbbbbbbbbbbb.2\n~26:aaaaaaaaaaaaa.3.1700000000",
            "timed": b"^1 %1795229328.0 aaaaaaaaaaaaa.1:22:1\n@16:1795229328:apple",
            "drops": b"^1 #30.drop -aaaaaaaaaaaaa.1\n+1:x=1:x",
            "refuses": b"^1 #10000.refuse -aaaaaaaaaaaaa.1\n+1:x",
            "newer": b"^2 something else\n",
            "unknown-op": b"^1\n$5:hello",
            "cut-short": b"^1\n+50:hello",
        }
        for key, head in heads.items():
            assert direct.set(key + "#", head) == b"STORED"
            assert direct.set(key + "#aaaaaaaaaaaaa.0", SUBLIST) == b"STORED"
        # Named by an item's bytes only.
        assert direct.set("tricky#ccccccccccccc.0", SUBLIST) == b"STORED"
        out = sweep("--delete", memcached.address)
        for key in heads:
            assert direct.get(key + "#aaaaaaaaaaaaa.0") == SUBLIST, key
        assert direct.get("tricky#ccccccccccccc.0") is None
        assert "1 removed" in out
        assert "3 heads were not understood" in out


def test_sweep_keeps_what_is_named_by_a_list_on_the_move(memcached):
    head = b"^1 aaaaaaaaaaaaa.1:22:1\n"
    with memcached.conn() as direct:
        record = b"\x01mclistd moved 1 %d 7\n" % len(head) + head + b"apple,"
        assert direct.set("moving", record) == b"STORED"
        for name in ("aaaaaaaaaaaaa", "bbbbbbbbbbbbb"):
            assert direct.set(f"moving#{name}.0", SUBLIST) == b"STORED"
        assert "1 removed" in sweep("--delete", memcached.address)
        assert direct.get("moving#aaaaaaaaaaaaa.0") == SUBLIST
        assert direct.get("moving#bbbbbbbbbbbbb.0") is None


@pytest.mark.memcacheds(2)
def test_sweep_leaves_lists_alone_that_move_to_another_server(memcacheds):
    token = b"ttttttttttttt"
    old, new = {"marked": b"^> %s\n" % token, "goes": b"^1\n"}, {"goes": b"^1 >%s\n" % token}
    for memcached, heads in zip(memcacheds, (old, new)):
        with memcached.conn() as direct:
            for key, head in heads.items():
                assert direct.set(key + "#", head) == b"STORED"
            for key in (*old, "gone"):
                assert direct.set(key + "#aaaaaaaaaaaaa.0", SUBLIST) == b"STORED"
    out = sweep("--delete", *[memcached.address for memcached in memcacheds])
    for memcached in memcacheds:
        with memcached.conn() as direct:
            assert all(direct.get(key + "#aaaaaaaaaaaaa.0") == SUBLIST for key in old)
    assert ": 2 removed" in out
    assert "2 lists move to another server, or have moved: their sublists were kept on all servers" in out


@pytest.mark.slow
@pytest.mark.config(lists=TINY)
def test_sweep_beside_a_working_proxy_removes_nothing(daemon, memcached):
    """Flips and merges go on all the time. No wait: each pass must be right by itself."""
    state = {"stop": False, "items": []}

    def work():
        with daemon.conn() as conn:
            number = 0
            while not state["stop"]:
                number += 1
                assert conn.cmd(f"ladd busy item-{number:07}") == b"STORED"
                state["items"].append(b"item-%07d" % number)
                if number > 300:
                    assert conn.cmd("ldel busy " + state["items"].pop(0).decode()) == b"DELETED"

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(8):
            assert " 0 removed" in run_well("sweep", "--wait", 0, "--grace", 0, "--delete", memcached.address)
    finally:
        state["stop"] = True
        worker.join()
    with daemon.conn() as conn:
        assert conn.lget("busy") == state["items"]
        assert int(conn.stats()["list_flips"]) > 10


@pytest.mark.config(lists=TINY)
def test_sweep_cleans_up_after_a_lost_head(conn, memcached):
    fill(conn, "fruit", 300)
    with memcached.conn() as direct:
        assert direct.cmd("delete fruit#") == b"DELETED"
        assert int(direct.stats()["curr_items"]) > 0
        sweep("--delete", memcached.address)
        assert direct.stats()["curr_items"] == "0"
    assert conn.lget("fruit") == []


@pytest.mark.memcacheds(3)
@pytest.mark.config(lists={**TINY, "placement": "spread"})
def test_sweep_of_spread_lists(conn, memcacheds):
    items = fill(conn, "fruit", 400)
    addresses = [server.address for server in memcacheds]
    for server in memcacheds:
        with server.conn() as direct:
            assert direct.set(ORPHAN, SUBLIST) == b"STORED"
    out = sweep("--delete", "--spread", *addresses)
    assert "3 removed" in out
    assert conn.lget("fruit") == items

    # A user who forgets --spread is told, and loses nothing.
    out = sweep("--delete", *addresses)
    assert "named by a head on another server: --spread?" in out
    assert conn.lget("fruit") == items


@pytest.mark.memcacheds(2)
def test_sweep_with_a_server_that_is_down(memcacheds):
    alive, dead = memcacheds
    dead.stop()
    with alive.conn() as direct:
        assert direct.set(ORPHAN, SUBLIST) == b"STORED"
        done = run("sweep", "--wait", 0, "--delete", "--spread", alive.address, dead.address)
        assert done.returncode == 1
        assert dead.address in done.stderr
        assert direct.get(ORPHAN) == SUBLIST, "a spread sweep needs all servers"
        done = run("sweep", "--wait", 0, "--grace", 0, "--delete", alive.address, dead.address)
        assert done.returncode == 1
        assert f"{dead.address}: " in done.stderr
        assert direct.get(ORPHAN) is None


def test_sweep_over_a_unix_socket(start_memcached, tmp_path):
    path = tmp_path / "memcached.sock"
    program = start_memcached().program
    command = [program, "-s", str(path), "-a", "0777", "-m", "16"]
    if os.geteuid() == 0:
        command += ["-u", "root"]
    process = subprocess.Popen(command)
    try:
        wait_until("the socket", path.exists)
        assert "0 sublists on 1 servers" in sweep(f"unix:{path}")
    finally:
        process.kill()
        process.wait()


def test_sweep_refuses_what_makes_no_sense():
    for args, text in [
        (["localhost"], "localhost: expected HOST:PORT"),
        (["localhost:99999"], "a port is a number from 1 to 65535"),
        (["--wait", "-1", "localhost:1"], "expected --grace and --wait not below 0"),
    ]:
        done = run("sweep", *args)
        assert done.returncode == 2 and text in done.stderr
    done = run("sweep", f"127.0.0.1:{free_port()}")
    assert done.returncode == 1 and ": Connection refused: left out\n" in done.stderr
    assert "Errno" not in done.stderr


def test_sweep_refuses_a_proxy(daemon):
    done = run("sweep", f"127.0.0.1:{daemon.port}")
    assert done.returncode == 1
    assert "a proxy answers there, mclistd, and no memcached: left out\n" in done.stderr


@pytest.mark.parametrize("answer", [
    b"HD",
    b"VA x f0 t-1 c5 l900",
    b"VA %s f0 t-1 c5 l900" % (b"9" * 5000),
    b"VA 22 f0 t-1 c5 lx\r\n" + SUBLIST,
    b"VA 22 f0 t-1 c l900\r\n" + SUBLIST,
    b"VA 22 f0 t-1 l900\r\n" + SUBLIST,
    b"VA 20 f0 t-1 c5 l900\r\n" + SUBLIST,
], ids=["HD", "no-size", "huge-size", "no-idle-time", "empty-cas", "no-cas", "out-of-step"])
def test_sweep_removes_nothing_where_a_memcached_answers_nonsense(answer):
    crawled = b"key=%s exp=-1 la=1 cas=5\r\nEND\r\n" % ORPHAN.replace("#", "%23").encode()

    def behave(fake, sock):
        for line, _ in fake.requests(sock):
            words = line.split()
            if words[:2] == [b"mg", ORPHAN.encode()]:
                sock.sendall(answer + b"\r\n")
            else:
                sock.sendall({b"version": b"VERSION 1.6.18\r\n", b"lru_crawler": crawled,
                              b"mg": b"EN\r\n"}.get(words[0], b"HD\r\n"))

    server = FakeServer(behave, handshake=None)
    try:
        done = run("sweep", "--wait", 0, "--delete", server.address)
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr.startswith("sweep: ") and done.stderr.count("\n") == 1
        assert b"md " not in server.all_received()
    finally:
        server.stop()


# --- the docs --------------------------------------------------------------------------------------


def test_docs_name_every_statistic():
    tables = [path.read_text(encoding="utf-8") for path in (ROOT / "src").glob("**/metrics.h")]
    names = re.findall(r"^    METRIC\((\w+), ", "\n".join(tables), re.MULTILINE)
    docs = (ROOT / "docs/statistics.md").read_text(encoding="utf-8")
    assert len(names) > 60
    assert [name for name in names if f"`{name}`" not in docs] == []


def test_docs_name_every_reason():
    docs = " ".join((ROOT / "docs/statistics.md").read_text(encoding="utf-8").split())
    table = (ROOT / "src/proxy/reasons.h").read_text(encoding="utf-8")
    rows = re.findall(r"^    REASON\((\w+), (\w+), (\w+)\)", table, re.MULTILINE)
    assert len(rows) > 35
    assert [row for row in rows if f"- `{row[0]}:{row[1]}`: `{row[2]}`" not in docs] == []


def test_docs_name_every_trouble_of_a_server():
    docs = " ".join((ROOT / "docs/statistics.md").read_text(encoding="utf-8").split())
    figures = (ROOT / "src/proxy/figures.h").read_text(encoding="utf-8")
    troubles = re.findall(r'^    TROUBLE\((\w+), "([^"]+)"\)', figures, re.MULTILINE)
    assert len(troubles) > 5
    assert [name for name, means in troubles if f"- `{name}`: {means}." not in docs] == []
    stats = (ROOT / "src/pool/link/server_stats.h").read_text(encoding="utf-8")
    reasons = re.findall(r'^    GARBLED\((\w+), "', stats, re.MULTILINE)
    assert len(reasons) > 3
    assert [name for name in reasons if f"`garbled_{name}`" not in docs] == []


def test_lines_of_the_log_name_paragraphs_that_are_there():
    docs = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    titles = texts_in(r'see \\"((?:[^"\\]|"\s+")+)\\" in operations\.md', "**/*.c")
    titles = [re.sub(r'" "', "", title) for title in titles]
    assert len(titles) > 4
    assert [title for title in titles if f"**{title}" not in docs] == []


def list_words():
    """The words of the list verbs, and what each takes: [(word, takes)]."""
    table = (ROOT / "src/proto/list_verbs.h").read_text(encoding="utf-8")
    words = re.findall(r"WORD\([A-Z]+, (\w+), ([A-Z_]+), [A-Z_]+\)", table)
    assert len(words) > 15 and len(words) == table.count(" WORD(") - 1
    return words


def test_docs_name_every_verb():
    table = (ROOT / "src/proto/client/verb.h").read_text(encoding="utf-8")
    verbs = re.findall(r'^    VERB\(\w+, "(\w+)"', table, re.MULTILINE)
    docs = (ROOT / "docs/verbs.md").read_text(encoding="utf-8")
    assert len(verbs) > 30
    verbs += [word for word, _ in list_words()]
    assert [verb for verb in verbs if not re.search(rf"`{verb}[` ]", docs)] == []


def test_docs_have_every_usage_line():
    source = (ROOT / "src/proto/client/request_parse.c").read_text(encoding="utf-8")
    takes = dict(re.findall(r'#define USAGE_(\w+) "([^"]+)"', source))
    usages = [f"{word} {takes[column]}" for word, column in list_words()]
    docs = (ROOT / "docs/verbs.md").read_text(encoding="utf-8")
    assert [usage for usage in usages if f"`{usage}`" not in docs] == []


def texts_in(pattern, files):
    """What the pattern's group matches in these files of src, with single blanks, as wrapped text."""
    literal = re.compile(pattern)
    found = set()
    for path in sorted((ROOT / "src").glob(files)):
        found |= set(literal.findall(path.read_text(encoding="utf-8").replace(r"\\", "\\")))
    return sorted(" ".join(text.split()) for text in found)


def test_docs_have_every_error_text_of_the_proxy():
    docs = " ".join((ROOT / "docs/errors.md").read_text(encoding="utf-8").split())
    texts = texts_in(r'"CLIENT_ERROR ((?!usage)[a-z][^"%]*?)(?:\\r\\n)?"', "**/*.c")
    assert len(texts) > 15
    assert [text for text in texts if text not in docs] == []


def test_docs_have_every_error_text_of_the_engine():
    docs = " ".join((ROOT / "docs/errors.md").read_text(encoding="utf-8").split())
    texts = texts_in(r'(?:fail\w*\([^;"{]*|\btext = )"([a-z][^"%]+)"', "list/**/*.c")
    texts += texts_in(r'note_text\(w, "([a-z][^"%]+)"', "dialect/**/*.c")
    texts.remove("backend has no room for this list in its last sublist, nothing done")
    assert len(texts) > 15
    assert [text for text in texts if text not in docs] == []


def test_docs_have_every_way_in_which_a_server_fails():
    docs = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    table = (ROOT / "src/pool/link/failure.h").read_text(encoding="utf-8")
    texts = re.findall(r'^    FAILURE\(\w+, \w+, "([^"]+)"\)', table, re.MULTILINE)
    # No client sees these: a stale request counts as a conflict, and one that was withdrawn was
    # answered at its deadline.
    texts = [t for t in texts if t not in (": connected anew since", ": withdrawn, not sent")]
    assert len(texts) > 5
    assert [text for text in texts if text and f"backend NAME{text}`" not in docs] == []


def test_docs_name_every_line_of_lstat():
    docs = (ROOT / "docs/verbs.md").read_text(encoding="utf-8")
    source = (ROOT / "src/proxy/lists/reply.c").read_text(encoding="utf-8")
    names = re.findall(r'\{"(\w+)", s->', source)
    assert len(names) > 5
    assert [name for name in names if f"`{name}`" not in docs] == []


def documents():
    tops = ("*.md", "docs/**/*.md", "tests/**/*.md")
    return sorted(path for top in tops for path in ROOT.glob(top))


def prose_of(path):
    """The document without its blocks of code."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors_of(path):
    """The names that links to places in a document can have: headings as GitHub names them."""
    text = prose_of(path)
    anchors = set(re.findall(r'<a id="([^"]+)">', text))
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        anchors.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return anchors


def broken_links(path):
    """Relative links of a document to files that are not there, or to places that are not in them."""
    for link in re.findall(r"\]\(([^)\s]+)\)", prose_of(path)):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        file = (path.parent / target) if target else path
        if not file.exists() or (anchor and anchor not in anchors_of(file)):
            yield f"{path.name}: {link}"


def test_links_in_the_docs_lead_somewhere():
    assert len(documents()) > 10
    assert [link for path in documents() for link in broken_links(path)] == []


def test_a_broken_link_is_noticed(tmp_path):
    (tmp_path / "other.md").write_text('# The `other` one: `x`\n<a id="here"></a>\n')
    path = tmp_path / "this.md"
    good = "[a](other.md) [b](other.md#the-other-one-x) [c](other.md#here) [d](#this) [e](http://x.y)"
    path.write_text(f"# This\n{good}\n```\n# no heading\n[no](link)\n```\n")
    assert list(broken_links(path)) == []
    path.write_text("# This\n[a](another.md) [b](other.md#there) [c](#that) [d](other.md)\n")
    assert len(list(broken_links(path))) == 3


def where_to_look():
    """The list of docs/architecture.md, one text per entry."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    section = re.search(r"^## Where to look\n(.*?)^## ", text, re.MULTILINE | re.DOTALL).group(1)
    return [" ".join(entry.split()) for entry in re.split(r"^- ", section, flags=re.MULTILINE)[1:]]


def places_of(entry):
    """The files that an entry names. A bare name is in the folder of the file before it."""
    folder = pathlib.Path("src")
    for name in re.findall(r"`([\w/]+\.[ch])`", entry):
        path = (folder if "/" not in name and name != "main.c" else pathlib.Path("src")) / name
        folder = path.parent
        yield ROOT / path


def test_architecture_says_where_to_look():
    entries = where_to_look()
    assert len(entries) > 20
    for entry in entries:
        places = list(places_of(entry))
        assert places and [path for path in places if not path.exists()] == [], entry
        sources = " ".join(path.read_text(encoding="utf-8") for path in places)
        names = re.findall(r"`(\w+)\(\)`", entry)
        assert [name for name in names if f"{name}(" not in sources] == [], entry


def test_architecture_names_files_that_exist():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`(?!tests/)((?:[\w-]+/)+[\w-]+\.[ch])`", text)
    paths = ["/" + path.relative_to(ROOT).as_posix() for path in ROOT.glob("src/**/*.[ch]")]
    assert len(named) > 50
    assert [name for name in named if not any(p.endswith("/" + name) for p in paths)] == []


def test_documents_that_sources_name_exist():
    """Comments, help and error texts send readers to documents."""
    named = {}
    for top in ("src/**/*.[ch]", "tests/**/*.[chp]*", "scripts/**/*", "conf/*", "Makefile"):
        for path in filter(pathlib.Path.is_file, ROOT.glob(top)):
            text = path.read_text(encoding="utf-8", errors="replace")
            for name in re.findall(r"\bdocs/[\w/-]+\.md\b", text):
                named.setdefault(name, path.relative_to(ROOT).as_posix())
    assert len(named) > 5
    assert {name: path for name, path in named.items() if not (ROOT / name).exists()} == {}


def test_every_document_is_in_the_index():
    index = ROOT / "docs" / "README.md"
    text = index.read_text(encoding="utf-8")
    others = [p for p in (ROOT / "docs").glob("*.md") if p != index]
    assert [p.name for p in others if f"]({p.name})" not in text] == []


LAYERS = {
    "base/ring.h": '#include "list/engine.h"\nvoid ring_init(void);\n',
    "base/ring.c": '/* void other(void); */\nvoid ring_init(void)\n{\n    if (1) {\n    }\n}\n',
    "list/engine.h": '#include "list/core/op.h"\n#include "list/read/view.h"\n',
    "list/core/op.h": (
        '#include <event2/event.h>\n#include "base/ring.h"\ntypedef void op_step(struct op *op);\n'
        "struct op {\n    op_step *step;\n};\nop_step op_first;\nextern const char op_name[];\n"
        "static inline int op_id(struct op *op)\n{\n    return 1;\n}\n"
        "void op_free(struct op *op);\nop_step *op_next(struct op *op, op_step *step);\n"
    ),
    "list/core/op.c": (
        '#include "list/read/view.h"\nRARE void\n    op_free(struct op *op)\n{\n}\n'
        "static op_step *op_next(struct op *op)\n{\n}\n"
    ),
    "list/read/view.h": '#include "list/core/op.h"\n',
    "list/read/view.c": '#include "list/engine.h"\nvoid op_first(struct op *op)\n{\n}\n',
    "list/attic/view.h": '#include "list/core/op.h"\n',
}


def test_layers_are_held(tmp_path):
    for name, text in LAYERS.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = run("check-layers", tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    # Which ranks there are is the script's.
    assert re.sub(r" \(\d+\)", "", done.stdout).splitlines() == [
        "src/base/ring.h:1: folder base includes list: a higher rank",
        "src/list/attic/view.h:1: list/attic has no rank; add it to scripts/check-layers",
        "src/list/core/op.c:1: in list, core includes read: a higher rank",
        "src/list/core/op.h:1: libevent (<event2/event.h>) is not for this folder",
        "src/list/read/view.c:1: in list, read includes the folder itself: a higher rank",
        "src/list/core/op.h:7: op_first is not defined in src/list/core",
        "src/list/core/op.h:14: op_next is not defined in src/list/core",
    ]


# Each file calls the next one; the last calls the first by a macro and an inline function.
CIRCLE_H = (
    "void step_a(void);\nvoid step_b(void);\nvoid step_c(void);\nvoid step_d(void);\n"
    "void step_e(void);\nvoid step_f(void);\n"
    "static inline void again(void)\n{\n    step_a();\n}\n#define AGAIN() again()\n"
)


@pytest.mark.parametrize("letters, is_told", [("abcd", False), ("abcdef", True)])
def test_files_that_call_each_other_are_few(tmp_path, letters, is_told):
    folder = tmp_path / "src/base"
    folder.mkdir(parents=True)
    for name, after in zip(letters, [*letters[1:], ""]):
        call = f"step_{after}()" if after else "AGAIN()"
        text = f'#include "base/circle.h"\nvoid step_{name}(void)\n{{\n    {call};\n}}\n'
        (folder / f"{name}.c").write_text(text)
    declared = [f"void step_{name}(void);\n" for name in "abcdef" if name not in letters]
    (folder / "circle.h").write_text("".join(
        line + "\n" for line in CIRCLE_H.splitlines() if line + "\n" not in declared))
    done = run("check-layers", tmp_path)
    assert done.returncode == is_told, done.stdout + done.stderr
    others = ", ".join(f"src/base/{name}.c" for name in letters[1:])
    told = f"src/base/a.c:1: {len(letters)} files call each other in a circle: with {others}"
    assert done.stdout.splitlines() == [told] * is_told


def test_a_comment_that_names_no_file_is_told(tmp_path):
    (tmp_path / "scripts").mkdir()
    script = shutil.copy(ROOT / "scripts/check-style", tmp_path / "scripts")
    path = tmp_path / "src/base/ring.c"
    path.parent.mkdir(parents=True)
    spdx = "/* SPDX-License-Identifier: BSD-3-Clause */\n"
    good = "/* As ring.c, base/ring.c, src/base/ring.c and <sysexits.h> say. */\n"
    path.write_text(f'{spdx}{good}/* As pool/ring.c says. */\nstatic const char a[] = "ring.h";\n')
    done = subprocess.run([script], capture_output=True, text=True, check=False)
    told = [line for line in done.stdout.splitlines() if "there is no file" in line]
    assert done.returncode == 1 and told == ["src/base/ring.c:3: there is no file pool/ring.c"]
