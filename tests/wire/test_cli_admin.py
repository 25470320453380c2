# SPDX-License-Identifier: BSD-3-Clause
"""Commands of operators by scripts/cli: where it finds the socket, what it shows, its exit code."""

import subprocess
import sys

import pytest

from harness import ROOT, TIMEOUT_S, free_port
from test_cli_support import CLI, Terminal
from test_reload import Reloaded, ask

pytestmark = pytest.mark.release

sys.path.insert(0, str(ROOT / "scripts"))

from mclistd_cli import admin, editor, history, verbs  # noqa: E402  (the path comes first)


def run(*arguments, stdin=b""):
    """(exit code, standard output, standard error)"""
    done = subprocess.run([CLI, *map(str, arguments)], input=stdin, capture_output=True,
                          timeout=6 * TIMEOUT_S)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def operated(start_daemon, memcached, tmp_path):
    found = Reloaded(start_daemon, [memcached], tmp_path)
    found.address = f"127.0.0.1:{found.daemon.port}"
    return found


def test_commands_and_their_exit_codes(operated):
    assert run(operated.address, "reload") == (0, "OK\n", "")
    assert run(operated.address, "log", "debug") == (0, "OK\n", "")
    assert run(operated.address, "log", "loud") == (1, "", "usage: log error|warn|info|debug\n")
    assert run(operated.address, "kill", "99999") == (1, "", "no client has that ID; `clients` shows them\n")
    code, text, _ = run(operated.address, "kill")
    assert (code, text) == (2, "")
    operated.write(proxy={"threads": "none"})
    code, text, error = run(operated.address, "reload")
    assert (code, text) == (1, "") and "threads: 'none'" in error


def test_clients_are_shown_and_killed(operated):
    with operated.daemon.conn() as conn:
        assert conn.cmd("mn") == b"MN"
        code, text, _ = run("--admin", operated.socket, "clients")
        lines = text.splitlines()
        assert code == 0 and len(lines) == 1 and lines[0].startswith("id=")
        number = lines[0].split()[0].removeprefix("id=")
        assert run("--admin", operated.socket, "kill", number) == (0, "OK\n", "")
        assert conn.is_closed()


def test_commands_of_a_pipe(operated):
    script = b"reload\nladd l a\nlog loud\nlog info\nlget l\n"
    assert run(operated.address, stdin=script) == (
        1, "OK\nSTORED\nOK\na\n", "line 3: usage: log error|warn|info|debug\n")  # fmt: skip


@pytest.mark.thorough
def test_the_socket_is_found(operated, tmp_path):
    ini = operated.daemon.ini_path
    for place in (["--admin", operated.socket], ["-c", ini], ["--config", ini], [operated.address]):
        assert run(*place, "reload") == (0, "OK\n", "")
    assert run("-c", ini, f"127.0.0.1:{free_port()}", "reload") == (0, "OK\n", "")
    code, _, error = run("--admin", tmp_path / "nix", "reload")
    assert (code, error) == (3, f"{tmp_path}/nix: No such file or directory\n")
    code, _, error = run("-c", tmp_path / "nix.ini", "reload")
    assert (code, error) == (3, f"{tmp_path}/nix.ini: No such file or directory\n")


def test_another_proxy_than_the_one_that_is_meant_is_never_told(daemon, memcached):
    """It has the socket of another machine's proxy in its file, which may exist here as well."""
    code, _, error = run("10.255.255.1:11220", "reload")
    assert code == 3 and "another machine" in error
    code, _, error = run(f"127.0.0.1:{daemon.port}", "reload")
    assert code == 3 and "names no unix socket" in error
    code, _, error = run(f"127.0.0.1:{memcached.port}", "reload")
    assert code == 3 and "is no mclistd" in error
    code, _, error = run(f"127.0.0.1:{free_port()}", "reload")
    assert code == 3 and error.endswith("does not answer: Connection refused\n")


def test_servers_says_by_one_exit_code_that_it_could_not_go_on():
    for action in ("plan", "status", "move"):
        address = f"127.0.0.1:{free_port()}"
        code, text, error = run(address, "servers", action)
        assert (code, text, error) == (1, "", f"mclistd-cli: servers: {address}: Connection refused\n")


@pytest.mark.parametrize("text, path", [
    ("[admin]\nlisten = unix:/a\n", "/a"),
    ("[proxy]\nlisten = unix:/b\n[admin]\nlisten=1.2.3.4, unix:/a ; a comment\n", "/a"),
    ("[admin]\nlisten = 1.2.3.4\nlisten = unix:/a, unix:/c\n", "/a"),
    ("[admin]\n#listen = unix:/a\n", None),
    ("[admin]\nlisten = 1.2.3.4\n[pool x]\nlisten = unix:/b\n", None),
])
def test_what_a_file_says(tmp_path, text, path):
    file = tmp_path / "x.ini"
    file.write_text(text)
    if path is None:
        with pytest.raises(admin.NotFound):
            admin.path_of_file(file)
    else:
        assert admin.path_of_file(file) == path


def test_every_command_of_the_proxy_is_known(operated):
    """Those that are none of the proxy's are the prompt's own."""
    of_proxy = {line.split()[0] for line in ask(operated.socket, "help").splitlines()[1:]} - {"help"}
    assert of_proxy == set(verbs.Table().operators) - OWN


OWN = {"servers", "top"}


def test_at_a_prompt(operated, tmp_path):
    terminal = Terminal([CLI, operated.address], {"XDG_STATE_HOME": str(tmp_path), "NO_COLOR": "1"})
    try:
        terminal.wait_for(f"{operated.daemon.port}>")
        terminal.enter("log debug")
        terminal.wait_for("OK\n")
        terminal.enter("kill 99999")
        terminal.wait_for("no client has that ID")
        terminal.enter("quit")
        assert terminal.wait_for_end() == 0
    finally:
        terminal.close()


@pytest.mark.parametrize("typed, offered", [
    ("relo", ["reload"]), ("log w", ["warn"]), ("help ki", ["kill"]), ("clients ", []),
])
def test_what_is_offered(typed, offered):
    assert [word for word, _ in
            editor.candidates(verbs.Table(), history.History(None), typed)[1]] == offered
