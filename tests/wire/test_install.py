# SPDX-License-Identifier: BSD-3-Clause
"""What `make install` puts where, and what of it runs there."""

import os
import shlex
import shutil
import subprocess

import pytest

from harness import ROOT

pytestmark = pytest.mark.release

DAEMON = os.path.abspath(os.environ.get("MCLISTD", ROOT / "build/mclistd"))
RUNNER = shlex.split(os.environ.get("MCLISTD_RUNNER", ""))
FILES = [
    "etc/mclistd.ini",
    "usr/lib/mclistd/convert",
    "usr/lib/mclistd/sweep",
    "usr/lib/mclistd/lists",
    "usr/lib/mclistd/cli",
    "usr/lib/mclistd/mclistd_cli/main.py",
    "usr/lib/mclistd/mclistd_cli/verbs.md",
    "usr/lib/mclistd/mclistd_convert/main.py",
    "usr/lib/mclistd/mclistd_lists/main.py",
    "usr/bin/mclistd",
    "usr/share/bash-completion/completions/mclistd",
    "usr/share/bash-completion/completions/mclistd-cli",
    "usr/lib/systemd/system/mclistd.service",
    "usr/lib/systemd/system/mclistd.socket",
]


def make(target, root, *variables):
    """The daemon is there already; `all` would build it again with other flags."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    subprocess.run(["make", "-s", "-o", "all", target, f"BIN={DAEMON}", "PREFIX=/usr",
                    "UNITDIR=/usr/lib/systemd/system", f"DESTDIR={root}", *variables],
                   cwd=ROOT, env=env, check=True, capture_output=True)


def files_below(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())


def test_installed_and_removed(tmp_path):
    make("install", tmp_path)
    assert [name for name in FILES if not (tmp_path / name).is_file()] == []
    for command in ["mclistd-convert", "mclistd-sweep", "mclistd-lists", "mclistd-cli"]:
        run = subprocess.run([tmp_path / "usr/bin" / command, "--help"], capture_output=True, text=True)
        assert (run.returncode, run.stderr) == (0, "")
        assert run.stdout.startswith(f"usage: {command} ")
    run = subprocess.run([*RUNNER, tmp_path / "usr/bin/mclistd", "--try"], capture_output=True,
                         input="ladd l a\nlget l\nhelp lget\n", text=True, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("STORED\na\nlget KEY...\n") and "the delimiter between them" in run.stdout
    (tmp_path / "etc/mclistd.ini").write_text("[proxy]\n")
    make("install", tmp_path)
    assert (tmp_path / "etc/mclistd.ini").read_text() == "[proxy]\n"
    make("uninstall", tmp_path)
    assert files_below(tmp_path) == ["etc/mclistd.ini"]


@pytest.mark.thorough
def test_the_unit_refuses_a_memcached_of_its_own(tmp_path):
    """Its lists would end with the daemon: an operator must ask for that."""
    make("install", tmp_path)
    unit = (tmp_path / "usr/lib/systemd/system/mclistd.service").read_text()
    commands = [line.split("=", 1)[1].split() for line in unit.splitlines() if line.startswith("ExecStart")]
    assert len(commands) == 2
    for command in commands:
        arguments = [str(tmp_path / part[1:]) if part.startswith("/") else part for part in command]
        run = subprocess.run(RUNNER + arguments, capture_output=True, text=True, timeout=60)
        assert run.returncode == 78
        assert run.stderr == ("mclistd: no memcached is named; expected a [pool NAME] with servers in "
                              "the configuration, or -s\n")


@pytest.mark.thorough
def test_the_units_user_may_be_named(tmp_path):
    make("install", tmp_path, "UNIT_USER=mclistd")
    unit = (tmp_path / "usr/lib/systemd/system/mclistd.service").read_text().splitlines()
    assert "User=mclistd" in unit and "DynamicUser=yes" not in unit


@pytest.mark.thorough
@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_the_daemon_says_its_commit(tmp_path):
    """Outside of a checkout none; what is compiled does not depend on the folder it lies in."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "GIT"))}

    def compiled(folder):
        subprocess.run(["make", "-s", "B=b", "LTO=", "CFLAGS=-O2", "b/obj/src/base/version.o"], cwd=folder,
                       env=env, check=True, capture_output=True)
        return (folder / "b/obj/src/base/version.o").read_bytes()

    def git(*words):
        command = ["git", "-c", "user.name=me", "-c", "user.email=me@localhost", *words]
        return subprocess.run(command, cwd=first, env=env, check=True, capture_output=True, text=True).stdout

    first, second = tmp_path / "first", tmp_path / "longer/second"
    for folder in (first, second):
        shutil.copytree(ROOT / "src/base", folder / "src/base")
        shutil.copy(ROOT / "Makefile", folder)
    assert b"\ncommit unknown\nbuilt by " in compiled(first)
    assert compiled(first) == compiled(second)
    git("init", "-q")
    git("add", "src", "Makefile")
    git("commit", "-qm", "all")
    commit = git("log", "-1", "--format=%h", "--abbrev=12").strip().encode()
    assert b"\ncommit " + commit + b"\n" in compiled(first)
    if os.geteuid() == 0:  # what it finds in another user's checkout is the same
        for path in [first, *first.rglob("*")]:
            os.chown(path, 1, 1)
    assert b"\ncommit " + commit + b"\n" in compiled(first)
    (first / "README.md").write_text("of no matter\n")
    assert b"\ncommit " + commit + b"\n" in compiled(first)
    (first / "src/base/version.c").open("a").write("/* changed */\n")
    assert b"\ncommit " + commit + b"-changed\n" in compiled(first)


def test_make_names_the_packages_that_are_missing(tmp_path):
    """A compiler that knows no headers but the system's own stands for a machine without them."""
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\nexec gcc -nostdinc \"$@\"\n")
    compiler.chmod(0o755)
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    for program, named in [(compiler, "libevent-dev libmemcached-dev libinih-dev libssl-dev libjson-c-dev"),
                           (tmp_path / "no-cc", f"{tmp_path}/no-cc (build-essential)")]:
        run = subprocess.run(["make", f"CC={program}", f"B={tmp_path}/build"], cwd=ROOT, env=env,
                             capture_output=True, text=True)
        assert run.returncode != 0
        line = f"missing: {named}; scripts/install-deps --run installs what is needed"
        assert line in run.stderr.split("\n"), run.stderr
        assert "fatal error" not in run.stderr
