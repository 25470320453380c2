# SPDX-License-Identifier: BSD-3-Clause
"""What documents show is so: sessions get the answers that stand there, and configurations are good.
test_client_pages.py runs the programs of docs/clients."""

import configparser
import re
import shlex
import subprocess
import time

import pytest

from harness import ROOT, wait_until
from test_config_cli import run
from tls_support import make_certificate

pytestmark = pytest.mark.release

SESSION = re.compile(
    r"^```\n((?:\$ nc [^\n]*\n)?(?:get|set|l[a-z]+) [^\n]*\n.*?)^```$", re.MULTILINE | re.DOTALL
)
VERBS_WITH_DATA = {"set", "append", "laddb", "laddtb", "ldelb", "lput"}
GUIDES = ["getting-started", "verbs", "transactions", "collections"]
LATER = re.compile(r"\((\d+) seconds? later\)")
INI = re.compile(r"^```ini\n(.*?)^```$", re.MULTILINE | re.DOTALL)


# --- sessions ---


def sessions(name):
    return SESSION.findall((ROOT / name).read_text(encoding="utf-8"))


def data_of(request, lines):
    """Takes the data block that follows the request: a line or, of ltx, as many as BYTES counts, and
    the empty line that ends them."""
    word, *args = request.split()
    if word in VERBS_WITH_DATA:
        return lines.pop(0)
    if word != "ltx":
        return None
    data = ""
    while len(data) < int(args[0]):
        data += lines.pop(0) + "\r\n"
    assert len(data) == int(args[0]) and lines.pop(0) == "", request
    return data


def answer_to(conn, request, data):
    """The lines of the answer: one, as many as there are keys, or blocks and END."""
    conn.send(request, "\r\n", "" if data is None else data + "\r\n")
    if request.startswith("llen "):
        yield from (conn.line().decode() for _ in request.split()[1:])
        return
    line = conn.line().decode()
    while line.startswith(("VALUE ", "ITEM ", "STAT ")):
        yield line
        if not line.startswith("STAT "):
            size = line.split()[3 if line.startswith("VALUE ") else 2]
            yield from conn.data(int(size)).decode().split("\n")
        line = conn.line().decode()
    yield line


def check_session(conn, text):
    """Sends what stands in front of each answer, and holds the answer against what stands there."""
    lines = [line for line in text.splitlines() if not line.startswith("$ ")]
    while lines:
        request = lines.pop(0)
        if later := LATER.fullmatch(request):
            time.sleep(int(later[1]))
            continue
        answer = list(answer_to(conn, request, data_of(request, lines)))
        assert lines[: len(answer)] == answer, request
        del lines[: len(answer)]


@pytest.mark.config(lists={}, **{"lists fans-": {"bridge": "yes"}})
@pytest.mark.parametrize("name", ["README.md", "docs/getting-started.md", "docs/verbs.md", "docs/transactions.md"])
def test_sessions_of_a_document(conn, name):
    assert sessions(name)
    for text in sessions(name):
        check_session(conn, text)


def test_sessions_of_all_guides_on_one_proxy(start_daemon, memcached):
    """A reader who goes from one to the next has what the last one has left in lists."""
    guides = ["README.md", *(f"docs/{name}.md" for name in GUIDES)]
    bridge = {"lists fans-": {"bridge": "yes"}}
    daemon = start_daemon([memcached], config={**settings("docs/collections.md"), **bridge})
    with daemon.conn() as conn:
        for text in (text for name in guides for text in sessions(name)):
            # The version that lgets answers counts the changes of the server.
            check_session(conn, re.sub(r"^lgets .*\n(?:VALUE .*\n.*\n)+END\n", "", text, flags=re.MULTILINE))


def test_document_about_couchbase_can_be_tried(start_daemon, tmp_path):
    """Its fake cluster, file and session, and what it says of a node that fails."""
    name = "docs/couchbase.md"
    text = (ROOT / name).read_text(encoding="utf-8")
    (command,) = re.findall(r"^    (tests/cluster/fake .*)$", text, re.MULTILINE)
    (sample,) = [sample for sample in INI.findall(text) if "pencil.txt" in sample]
    (tmp_path / "pencil.txt").write_text("pencil\n")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with subprocess.Popen(shlex.split(command), cwd=ROOT, **pipes) as fake:
        parser = configparser.ConfigParser(delimiters="=")
        parser.read_string(sample.replace("41065", fake.stdout.readline().split()[0]))
        parser["pool documents"]["password_file"] = str(tmp_path / "pencil.txt")
        config = {section: dict(parser[section]) for section in parser.sections()}
        daemon = start_daemon(config={"proxy": {"allow_flush_all": "no"}, **config})
        with daemon.conn() as conn:
            (session,) = sessions(name)
            check_session(conn, session)
            for told in ("stop 1", "failover 1", "add", "rebalance", "begin"):
                fake.stdin.write(told + "\n")
                assert ("error:" in fake.stdout.readline()) is (told == "begin")
            # Until the proxy has the new map, the answer is an error.
            wait_until("the list", lambda: next(answer_to(conn, "llen fruit", None)) == "3")
            check_session(conn, session[session.rindex("lget ") :])
        fake.stdin.close()


@pytest.mark.config(**{"lists topic-": {"dialect": "signed"}})
@pytest.mark.parametrize("name", ["docs/replacing-hand-made-lists.md", "docs/dialects.md"])
def test_sessions_about_hand_made_lists(start_daemon, memcached, name):
    """Nothing is folded in between, as one read in a hundred asks for."""
    config = {section: values for section, values in settings(name).items() if section != "pool main"}
    for values in config.values():
        if values.get("dialect", "ring") != "ring":
            values["compact_chance"] = "0"
    daemon = start_daemon([memcached], config=config)
    (text,) = sessions(name)
    with daemon.conn() as conn:
        check_session(conn, text)


def settings(name):
    """All configurations of a document as one."""
    parser = configparser.ConfigParser(strict=False, delimiters="=", interpolation=None)
    for sample in INI.findall((ROOT / name).read_text(encoding="utf-8")):
        parser.read_string(sample)
    return {section: dict(parser[section]) for section in parser.sections()}


def test_sessions_of_the_guide_to_collections(start_daemon, memcached):
    """They come one after the other, as a reader would type them."""
    name = "docs/collections.md"
    daemon = start_daemon([memcached], config=settings(name))
    for text in sessions(name):
        with daemon.conn() as conn:
            check_session(conn, text)


# --- configurations ---


def configurations():
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        for sample in INI.findall(text):
            yield pytest.param(sample, id=path.name)


def test_documents_show_configurations():
    assert len(list(configurations())) >= 4


@pytest.mark.parametrize("sample", configurations())
def test_configuration_of_a_document(tmp_path, sample):
    path, password, users = (tmp_path / name for name in ("sample.ini", "password", "users"))
    password.write_text("secret\n")
    users.write_text("ann:secret\n")
    sample = re.sub(r"(?<=password_file = ).*", str(password), sample)
    sample = re.sub(r"(?<=auth_file = ).*", str(users), sample)
    if "tls_" in sample:
        certificate = make_certificate(tmp_path / "pem")
        sample = re.sub(r"(?<=^tls_)(ca|cert|key|client_ca) = .*", rf"\1 = {certificate}", sample,
                        flags=re.M)
    path.write_text(sample, encoding="utf-8")
    code, _, error = run("-t", "-c", path)
    assert code == 0, error
