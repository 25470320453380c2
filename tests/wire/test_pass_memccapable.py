# SPDX-License-Identifier: BSD-3-Clause
"""libmemcached's own test program finds through the proxy what it finds on memcached itself."""

import shutil
import subprocess

import pytest

from harness import HOST, SLOW


def verdicts(port, protocol):
    """Test name -> pass or FAIL."""
    command = ["memccapable", f"-{protocol[0]}", "-t", str(int(10 * SLOW)), "-h", HOST, "-p", str(port)]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=60 * SLOW, stdin=subprocess.DEVNULL
    )
    found = {}
    for line in (result.stdout + result.stderr).splitlines():
        if line.startswith(protocol) and "[" in line:
            name, verdict = line.rsplit("[", 1)
            found[name.strip()] = verdict.rstrip("]")
    return found


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("memccapable"), reason="needs the package libmemcached-tools")
@pytest.mark.memcacheds(3)
@pytest.mark.config(proxy={"allow_flush_all": True})
@pytest.mark.parametrize("protocol", ["ascii", "binary"])
def test_memccapable_finds_nothing_that_memcached_does_better(daemon, start_memcached, protocol):
    direct = verdicts(start_memcached().port, protocol)
    assert len(direct) >= 25
    assert verdicts(daemon.port, protocol) == direct
