# SPDX-License-Identifier: BSD-3-Clause
"""What documents show is so: sessions get the answers that stand there, and configurations are good.
test_client_pages.py runs the programs of docs/clients."""

import re

import pytest

from harness import ROOT
from test_config_cli import run

SESSION = re.compile(
    r"^```\n((?:\$ nc [^\n]*\n)?(?:get|set|l[a-z]+) [^\n]*\n.*?)^```$", re.MULTILINE | re.DOTALL
)
VERBS_WITH_DATA = {"set", "append", "laddb", "ldelb", "lput"}


# --- sessions ---


def sessions(name):
    return SESSION.findall((ROOT / name).read_text(encoding="utf-8"))


def answer_to(conn, request, data):
    """The lines of the answer, of which the last is END or the only one."""
    conn.send(request, "\r\n", "" if data is None else data + "\r\n")
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
        data = lines.pop(0) if request.split()[0] in VERBS_WITH_DATA else None
        answer = list(answer_to(conn, request, data))
        assert lines[: len(answer)] == answer, request
        del lines[: len(answer)]


@pytest.mark.config(**{"lists fans-": {"bridge": "yes"}})
@pytest.mark.parametrize("name", ["README.md", "docs/getting-started.md", "docs/verbs.md"])
def test_sessions_of_a_document(conn, name):
    assert sessions(name)
    for text in sessions(name):
        check_session(conn, text)


@pytest.mark.config(**{"lists topic-": {"dialect": "signed"}})
def test_session_of_the_document_about_hand_made_lists(conn):
    (text,) = sessions("docs/replacing-hand-made-lists.md")
    check_session(conn, text)


# --- configurations ---


def configurations():
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        for sample in re.findall(r"^```ini\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            yield pytest.param(sample, id=path.name)


def test_documents_show_configurations():
    assert len(list(configurations())) >= 4


@pytest.mark.parametrize("sample", configurations())
def test_configuration_of_a_document(tmp_path, sample):
    path = tmp_path / "sample.ini"
    path.write_text(sample, encoding="utf-8")
    code, _, error = run("-t", "-c", path)
    assert code == 0, error
