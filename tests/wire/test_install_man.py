# SPDX-License-Identifier: BSD-3-Clause
"""The manual pages: made without a warning, and with all that the program knows."""

import os
import re
import shlex
import shutil
import subprocess

import pytest

from harness import ROOT

DAEMON = shlex.split(os.environ.get("MCLISTD_RUNNER", "")) + \
    [os.path.abspath(os.environ.get("MCLISTD", ROOT / "build/mclistd"))]
PAGES = ["mclist.7", "mclistd-cli.1", "mclistd-convert.8", "mclistd-lists.8", "mclistd-sweep.8", "mclistd.8",
         "mclistd.ini.5"]

pytestmark = [pytest.mark.release,
              pytest.mark.skipif(not shutil.which("lowdown") or not shutil.which("groff"),
                                 reason="lowdown or groff is not installed")]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("man")
    subprocess.run([ROOT / "scripts/make-man", " ".join(DAEMON), "9.8.7", folder], check=True)
    return folder


def shown(page):
    """What groff makes of a page for a terminal; all its warnings count."""
    run = subprocess.run(["groff", "-ww", "-t", "-man", "-Tutf8", "-Kutf8", "-rLL=90n", "-P-cbou", page],
                         capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return run.stdout


def test_all_pages_are_made_without_a_warning(pages):
    assert sorted(path.name for path in pages.iterdir()) == PAGES
    for name in PAGES:
        text = shown(pages / name)
        title, number = name.rsplit(".", 1)
        assert text.startswith(f"{title}({number})") and "mclistd 9.8.7" in text
        assert re.search(rf"^NAME\n       {re.escape(title)} +- +[a-z]", text, re.MULTILINE)
        assert not re.search(r"\]\(|```|^ *\| |\.md#", text, re.MULTILINE), name


def test_each_option_of_the_daemon_has_its_place(pages):
    text = shown(pages / "mclistd.8")
    printed = subprocess.run([*DAEMON, "--help"], capture_output=True, text=True, check=True).stdout
    options = re.findall(r"(?<=[ ,])--?[a-zA-Z][a-z-]*", printed)
    assert "--probe" in options and "-V" in options
    assert [option for option in options if option not in text] == []


def test_each_setting_has_its_place(pages):
    text = shown(pages / "mclistd.ini.5")
    settings = re.findall(r"^#?([a-z_]+) =", (ROOT / "conf/mclistd.ini").read_text(), re.MULTILINE)
    assert "slot_name" in settings
    assert [name for name in settings if f"• {name}:" not in text] == []


def test_each_list_verb_has_its_place(pages):
    text = shown(pages / "mclist.7")
    verbs = re.findall(r"WORD\(\w+, (l[a-z]+),", (ROOT / "src/proto/list_verbs.h").read_text())
    assert "lpopto" in verbs
    assert [verb for verb in verbs if not re.search(rf"\b{verb}\b", text)] == []


def test_the_daemons_options_are_those_of_the_document(pages):
    """Operators read one of the two."""
    printed = subprocess.run([*DAEMON, "--help"], capture_output=True, text=True, check=True).stdout
    listed = re.findall(r"--[a-z-]+", "\n".join(line[:23] for line in printed.splitlines()))
    text = (ROOT / "docs/operations.md").read_text()
    assert sorted(listed) == sorted(set(re.findall(r"^- .*?`(--[a-z-]+)", text, re.MULTILINE)))
