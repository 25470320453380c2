# SPDX-License-Identifier: BSD-3-Clause
"""Scripts for those who change the program: what they are given by mistake."""

import subprocess

import pytest

from harness import ROOT

pytestmark = pytest.mark.release


SCRIPTS = ["check-layers", "check-style", "fetch-memcached-new", "fetch-node-clients", "fetch-wordpress",
           "with-memcached"]
OF_TESTS = ["bench/check-load", "cluster/member", "fuzz/choose", "fuzz/run"]


@pytest.mark.parametrize(
    "script", [*(f"scripts/{name}" for name in SCRIPTS), *(f"tests/{name}" for name in OF_TESTS)]
)
def test_scripts_without_options_name_their_use(script, tmp_path):
    """And make no file of that name."""
    done = subprocess.run(
        [ROOT / script, "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and script in done.stderr + done.stdout
    assert "Traceback" not in done.stderr and list(tmp_path.iterdir()) == []


def test_with_memcached_takes_a_number():
    done = subprocess.run(
        [ROOT / "scripts/with-memcached", "-n", "x", "--", "true"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and "[-n COUNT]" in done.stdout + done.stderr
