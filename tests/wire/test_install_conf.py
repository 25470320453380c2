# SPDX-License-Identifier: BSD-3-Clause
"""What conf/ has beside the configuration: for packages, shells, containers, Prometheus, Grafana."""

import os
import re
import shlex
import subprocess

import pytest

from harness import ROOT

CONF = ROOT / "conf"
DAEMON = os.path.abspath(os.environ.get("MCLISTD", ROOT / "build/mclistd"))
RUNNER = shlex.split(os.environ.get("MCLISTD_RUNNER", ""))


def test_the_package_has_the_version_of_the_program():
    makefile = (ROOT / "Makefile").read_text()
    version = re.search(r"^VERSION := (\S+)$", makefile, re.MULTILINE)[1]
    assert (CONF / "debian/changelog").read_text().startswith(f"mclistd ({version}) ")


def completed(program, *words):
    """What bash offers in place of the last word."""
    script = (f"complete() {{ :; }}; compopt() {{ :; }}; . {CONF}/mclistd.bash-completion; "
              '_mclistd "$1" "${@: -1}" "${@: -2:1}"; printf "%s\\n" "${COMPREPLY[@]}"')
    run = subprocess.run(["bash", "-c", script, "bash", program, *words], capture_output=True, text=True,
                         check=True)
    assert run.stderr == ""
    return run.stdout.split()


@pytest.mark.skipif(bool(RUNNER), reason="the daemon needs a program in front of it")
def test_bash_completes_options_and_verbs(tmp_path):
    cli = tmp_path / "mclistd-cli"
    cli.symlink_to(ROOT / "scripts/cli")
    assert completed(DAEMON, "--pr") == ["--probe"]
    assert completed(DAEMON, "-p", "") == []
    assert completed(DAEMON, "-c", f"{CONF}/mclistd.i") == [f"{CONF}/mclistd.ini"]
    assert completed(DAEMON, "-u", "roo") == ["root"]
    assert completed(cli, "--tim") == ["--timeout"]
    assert completed(cli, "lpopt") == ["lpopto", "lpoptob"]
    assert "get" in completed(cli, "ge")
