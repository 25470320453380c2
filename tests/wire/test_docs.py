# SPDX-License-Identifier: BSD-3-Clause
"""The programs of docs/clients.md print what stands below them."""

import re
import shutil
import subprocess

import pytest

from harness import ROOT, TIMEOUT_S

RUN_BY = {"python": ["/usr/bin/python3"], "php": ["php"], "js": ["node"]}
PROGRAM = re.compile(
    r"^```(python|php|js)\n(.*?)^```\n\nIt prints\n\n```\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


def programs():
    text = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
    return [pytest.param(*found, id=found[0]) for found in PROGRAM.findall(text)]


def test_each_language_has_a_program():
    assert [program.id for program in programs()] == [*RUN_BY]


@pytest.mark.parametrize("language, source, output", programs())
def test_program_of_the_docs(daemon, tmp_path, language, source, output):
    command = RUN_BY[language]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    assert source.count("11220") == 1
    path = tmp_path / f"program.{language}"
    path.write_text(source.replace("11220", str(daemon.port)), encoding="utf-8")
    done = subprocess.run(
        [*command, str(path)], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", output)
