# SPDX-License-Identifier: BSD-3-Clause
"""scripts/cli on a terminal, and `mclistd --try`, of which nothing is left when it ends."""

import importlib.util
import os
import pathlib
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

import pytest

from harness import ROOT, TIMEOUT_S, free_port, is_alive, wait_until
from test_cli_support import (CLI, Terminal, check_prompt_session, children_of, prompt_sessions,
                              without_toolkit)  # fmt: skip

pytestmark = pytest.mark.release

sys.path.insert(0, str(ROOT / "scripts"))

from mclistd_cli import editor as editor_module, history, verbs  # noqa: E402  (the path comes first)

DAEMON = os.path.abspath(os.environ.get("MCLISTD", ROOT / "build/mclistd"))
RUNNER = shlex.split(os.environ.get("MCLISTD_RUNNER", ""))
TRY = [*RUNNER, DAEMON, "--try"]
COLOUR = re.compile(rb"\x1b\[(?:31|32|33|34)m")
HAS_TOOLKIT = importlib.util.find_spec("prompt_toolkit") is not None


@pytest.fixture
def env(tmp_path):
    """A state and a place for sockets of its own. Names of sockets have 107 bytes at most: where a
    folder's name is longer than that allows, --try takes another."""
    with tempfile.TemporaryDirectory(prefix="run-") as run:
        yield {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_RUNTIME_DIR": run}


@pytest.fixture(params=["prompt_toolkit", "readline"])
def editor(request, env, tmp_path):
    """The environment with the one line editor or the other."""
    if request.param == "readline":
        return without_toolkit(env, tmp_path)
    if not HAS_TOOLKIT:
        pytest.skip("python3-prompt-toolkit is not installed")
    return env


@pytest.fixture
def at_prompt(editor, on_terminal, daemon):
    """Starts it in a terminal; waits for the prompt."""
    def start():
        terminal = on_terminal([CLI, f"127.0.0.1:{daemon.port}"], editor)
        terminal.wait_for(">")
        return terminal

    return start


@pytest.fixture
def on_terminal():
    started = []

    def start(command, env, **options):
        started.append(Terminal(command, env, **options))
        return started[-1]

    yield start
    for terminal in started:
        terminal.close()


@pytest.fixture
def prompt(on_terminal, daemon, env):
    """A prompt at `daemon`."""
    terminal = on_terminal([CLI, f"127.0.0.1:{daemon.port}"], env)
    terminal.wait_for(f"{daemon.port}>")
    return terminal


needs_toolkit = pytest.mark.skipif(not HAS_TOOLKIT, reason="python3-prompt-toolkit is not installed")



def interrupt(terminal, env):
    """Ctrl-C on an empty line; readline needs two."""
    press_control_c(terminal, env)
    if "PYTHONPATH" in env:
        repeat_control_c(terminal, lambda: terminal.process.poll() is not None)


def press_control_c(terminal, env):
    """A line is thrown away."""
    if "PYTHONPATH" not in env:
        terminal.type("\x03")
        return
    note = "(Ctrl-C again ends the prompt)"
    repeat_control_c(terminal, lambda: note in terminal.text[terminal.seen :])
    terminal.wait_for(note)
    terminal.wait_for(">")


def repeat_control_c(terminal, has_come):
    """Python does not see a signal that comes just before readline waits: until the next one."""
    give_up = time.monotonic() + 6 * TIMEOUT_S
    while not has_come():
        assert time.monotonic() < give_up, "Ctrl-C has no effect"
        terminal.type("\x03")
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline and not has_come():
            terminal.read(0.05)


# --- the prompt ---


def test_a_session(editor, on_terminal, daemon):
    terminal = on_terminal([CLI, f"127.0.0.1:{daemon.port}"], editor)
    for line, answer in [
        ("ladd fruit apple 'hello world'", "STORED"),
        ("lget fruit", "1) apple\n  2) hello world\n(2 items)"),
        ("lget nix", "(nothing)"),
        ("get fruit", "(nothing)\n(fruit is a list: lget fruit; or bridge = yes in its [lists] section)"),
        ("delete fruit", "NOT_FOUND\n(fruit is a list: ldrop fruit; or bridge"),
        ("append fruit pear", "NOT_STORED\n(fruit is a list: ladd fruit ITEM...; or bridge"),
        ("set k $'a\\tb'", "STORED"),
        ("get k", "a\tb"),
        ("set k $'a\\x1bb'", "STORED"),
        ("get k", "$'a\\x1bb'"),
        ("gets k nix", "k cas "),
        ("lgte fruit", "did you mean lget?"),
        ("ladd 'x", "the quote ' is not closed"),
        ("lstat fruit", "head_server"),
        ("help lrevrange", "answers in the same way from the other end"),
        ("help laddb", "laddb KEY ITEM\n  adds one item of any bytes\n  sent as: laddb KEY BYTES [noreply]"),
        ("\\timing", "timing is on"),
        ("mn", " ms)"),
        ("\\wire", "the bytes are shown"),
        ("llen fruit", "> llen fruit\n< 2"),
        ("\\nix", "\\nix is unknown"),
    ]:
        terminal.wait_for(f"{daemon.port}>")
        terminal.enter(line)
        terminal.wait_for(answer)
    terminal.wait_for(">")
    terminal.type("\x04")
    assert terminal.wait_for_end() == 0
    assert COLOUR.search(terminal.raw)


def test_no_colour(on_terminal, daemon, env):
    terminal = on_terminal([CLI, f"127.0.0.1:{daemon.port}"], {**env, "NO_COLOR": "1"})
    terminal.wait_for(">")
    for line in ["ladd a b", "nix", "lget a", "lget nix", "stats"]:
        terminal.enter(line)
    terminal.wait_for("(nothing)")
    terminal.enter("quit")
    assert terminal.wait_for_end() == 0
    assert not COLOUR.search(terminal.raw)


@needs_toolkit
def test_verbs_and_keys_are_completed_while_one_types(prompt):
    prompt.enter("ladd followers:ann bob")
    prompt.wait_for("STORED")
    prompt.type("lrev")
    prompt.wait_for("the same from the other end; 0 is the newest")  # the menu
    prompt.type("ange fol")
    prompt.wait_for("followers:ann")


@pytest.mark.parametrize("typed, shown", [
    ("", "help: what there is"),
    ("nix", "help: what there is"),
    ("nix ", "nix is no verb"),
    ("lgte ", "did you mean lget?"),
    ("\\all ", "help: what there is"),
    ("lrange", "lrange KEY FROM TO    the items at positions"),
    ("lrange ", "lrange >KEY< FROM TO    the"),
    ("lrange k 1", "lrange KEY >FROM< TO    the"),
    ("lrange k 1 2 3", "lrange KEY FROM TO    the"),
    ("ladd k a b c ", "ladd KEY >ITEM...<    adds"),
    ("set k ", "set KEY >VALUE< [EXPTIME]    stores"),
])
def test_the_usage_stands_below_with_the_word_that_is_typed(typed, shown):
    parts = editor_module.usage_below(verbs.Table(), typed)
    text = "".join(f">{text}<" if "underline" in style else text for style, text in parts)
    assert text.startswith(shown)


@pytest.mark.parametrize("typed, offered", [
    ("lrev", ["lrevrange"]),
    ("help lrev", ["lrevrange"]),
    ("\\ti", ["\\timing"]),
    ("lget fol", ["followers:bob", "followers:ann"]),
    ("lget x fol", ["followers:bob", "followers:ann"]),
    ("ladd fol", ["followers:bob", "followers:ann"]),
    ("ladd x fol", []),
    ("touch fol", ["followers:bob", "followers:ann"]),
    ("gat 10 fol", ["followers:bob", "followers:ann"]),
    ("stats s", ["settings"]),
    ("mn fol", []),
    ("help lget fol", []),
])
def test_what_is_offered(typed, offered):
    lines = history.History(None)
    for line in ["ladd followers:ann x", "\\wire", "lget followers:bob followers:eve", "version", "help followers:no"]:
        lines.add(line)
    assert [word for word, _ in editor_module.candidates(verbs.Table(), lines, typed)[1]] == offered


def test_tab_completes(at_prompt, editor):
    terminal = at_prompt()
    terminal.enter("ladd followers:ann bob")
    terminal.wait_for("STORED")
    terminal.wait_for(">")
    terminal.type("llen fol")
    if "PYTHONPATH" not in editor:
        terminal.wait_for("followers:ann")  # the menu
    terminal.type("\t\r")
    terminal.wait_for("followers:ann")
    terminal.wait_for("1\n")


def test_pasted_lines_are_commands_of_their_own(at_prompt):
    terminal = at_prompt()
    terminal.type("\x1b[200~ladd pasted a\nladd pasted b\x1b[201~\r")
    terminal.wait_for("STORED")
    terminal.wait_for("STORED")
    terminal.wait_for(">")
    terminal.enter("lget pasted")
    terminal.wait_for("1) a\n  2) b\n(2 items)")


def test_a_line_ends_where_a_terminal_ends_it(at_prompt):
    """Unicode knows more line ends: what is behind one in an item is no command."""
    terminal = at_prompt()
    terminal.type("\x1b[200~ladd list 'a\u2028ladd list evil'\x1b[201~\r")
    terminal.wait_for("STORED")
    terminal.wait_for(">")
    terminal.enter("llen list")
    terminal.wait_for("\n1\n")
    terminal.enter("lget list")
    terminal.wait_for("1) $'a\\xe2\\x80\\xa8ladd list evil'\n(1 item)")


def test_a_long_answer_is_cut_and_can_be_seen(on_terminal, daemon, env):
    with daemon.conn() as conn:
        assert conn.cmd("ladd many " + " ".join(f"item-{n}" for n in range(250))) == b"STORED"
        assert conn.cmd("set large 0 0 5000", "x" * 5000) == b"STORED"
    terminal = on_terminal([CLI, f"127.0.0.1:{daemon.port}"], {**env, "PATH": "/nonexistent"})
    terminal.wait_for(">")
    terminal.enter("lget many")
    assert "item-99\n" in terminal.wait_for("... 150 more lines: \\all shows them")
    terminal.wait_for("(250 items)")
    terminal.enter("\\all")
    terminal.wait_for("250) item-249\n")
    terminal.enter("get large")
    terminal.wait_for("x ... 3,000 more")
    terminal.enter("\\all")
    terminal.wait_for("x" * 5000)


def test_it_connects_again_when_the_proxy_is_back(prompt, daemon):
    name = f"127.0.0.1:{daemon.port}"
    prompt.enter("ladd l x")
    prompt.wait_for("STORED")
    daemon.stop()
    prompt.enter("lget l")
    prompt.wait_for(f"{name} does not answer: Connection refused")
    daemon.start()
    prompt.enter("lget l")
    prompt.wait_for(f"connected to {name} again")
    prompt.wait_for("1) x")


def test_a_lost_answer_is_called_unknown(on_terminal, env):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        name = f"127.0.0.1:{listener.getsockname()[1]}"
        terminal = on_terminal([CLI, name], env)
        conn, _ = listener.accept()
        conn.recv(100)
        conn.sendall(b"VERSION 1.6.18\r\nMN\r\n")
        terminal.wait_for(">")
        terminal.enter("set k v")
        wait_until("it is sent", lambda: conn.recv(100))
        conn.close()
        terminal.wait_for("closed before the answer; the answer is lost: a change may have been done")
        terminal.enter("get k")
        conn, _ = listener.accept()
        conn.recv(100)
        conn.sendall(b"VERSION 1.6.18\r\nMN\r\n")
        wait_until("it is sent", lambda: conn.recv(100))
        terminal.type("\x03")  # while it waits
        terminal.wait_for("interrupted")
        terminal.wait_for(">")
        terminal.type("\x04")
        assert terminal.wait_for_end() == 0
        conn.close()


def test_control_c_throws_the_line_away_and_ends_on_an_empty_one(at_prompt, editor):
    terminal = at_prompt()
    terminal.enter("mn")
    terminal.wait_for("MN")
    terminal.wait_for(">")
    terminal.type("ladd half")
    terminal.wait_for("half")
    press_control_c(terminal, editor)
    terminal.enter("version")
    terminal.wait_for("VERSION 1")
    terminal.wait_for(">")
    assert terminal.process.poll() is None
    interrupt(terminal, editor)
    assert terminal.wait_for_end() == 0


@pytest.mark.thorough
def test_history(at_prompt, editor):
    path = pathlib.Path(editor["XDG_STATE_HOME"]) / "mclistd/history"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"get old-{n}\n" for n in range(5000)))
    for line in ["ladd kept x", " ladd secret y", "quit"]:
        terminal = at_prompt()
        terminal.enter(line)
        if line != "quit":
            terminal.wait_for("STORED")
            terminal.wait_for(">")
            terminal.enter("quit")
        assert terminal.wait_for_end() == 0
    lines = path.read_text().splitlines()
    assert "ladd kept x" in lines and not [line for line in lines if "secret" in line]
    assert len(lines) < 2010
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    terminal = at_prompt()
    terminal.type("\x1b[A\x1b[A")
    terminal.wait_for("ladd kept x")


def test_no_proxy(on_terminal, env):
    terminal = on_terminal([CLI, f"127.0.0.1:{free_port()}"], env)
    terminal.wait_for("Connection refused")
    terminal.wait_for("`mclistd --try` starts a private proxy")
    assert terminal.wait_for_end() == 3


# --- mclistd --try ---


def start_try(on_terminal, env, *options):
    """Returns the terminal, and its processes: the prompt, its keeper, the proxy, memcached."""
    terminal = on_terminal([*TRY, *options], env)
    terminal.wait_for("mclistd>")
    terminal.enter("ladd fruit apple")
    terminal.wait_for("STORED")
    terminal.wait_for("mclistd>")
    processes = children_of(terminal.process.pid)
    assert {"mclistd", "memcached"} <= set(processes.values())
    (memcached,) = [pid for pid, name in processes.items() if name == "memcached"]
    # Its folder is elsewhere where another user could not enter this one.
    command = pathlib.Path(f"/proc/{memcached}/cmdline").read_bytes().split(b"\0")
    terminal.folder = os.path.dirname(command[command.index(b"-s") + 1])
    return terminal, [terminal.process.pid, *processes]


def nothing_is_left(env, terminal, processes):
    wait_until("all processes have ended", lambda: not any(map(is_alive, processes)))
    wait_until("all files are gone", lambda: os.listdir(env["XDG_RUNTIME_DIR"]) == [])
    wait_until("memcached's are", lambda: not os.path.exists(terminal.folder))
    return True


def by_signal(number):
    return lambda terminal, _: terminal.process.send_signal(number)


ENDS = {
    "control-d": (lambda terminal, _: terminal.type("\x04"), 0),
    "control-c": (interrupt, 0),
    "quit": (lambda terminal, _: terminal.enter("quit"), 0),
    "SIGTERM": (by_signal(signal.SIGTERM), 128 + signal.SIGTERM),
    "SIGHUP": (by_signal(signal.SIGHUP), 128 + signal.SIGHUP),
    "SIGKILL": (by_signal(signal.SIGKILL), -signal.SIGKILL),
    "closed": (lambda terminal, _: terminal.hang_up(), None),
}


@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_left_of_a_private_proxy(editor, on_terminal, end):
    act, code = ENDS[end]
    terminal, processes = start_try(on_terminal, editor)
    assert len(os.listdir(editor["XDG_RUNTIME_DIR"])) >= 1
    act(terminal, editor)
    if code is not None:
        assert terminal.wait_for_end() == code
    assert nothing_is_left(editor, terminal, processes)


@pytest.mark.thorough
def test_a_prompt_whose_private_proxy_dies_ends(on_terminal, env):
    terminal, processes = start_try(on_terminal, env)
    (daemon,) = [pid for pid, name in children_of(terminal.process.pid).items() if name == "mclistd"]
    os.kill(daemon, signal.SIGTERM)
    wait_until("the proxy has ended", lambda: not is_alive(daemon))
    wait_until("the keeper has ended", lambda: len(children_of(terminal.process.pid)) <= 1)
    terminal.enter("lget fruit")
    terminal.wait_for("the private proxy has ended")
    assert terminal.wait_for_end() == 3
    assert nothing_is_left(env, terminal, processes)


def test_a_private_proxy_ends_with_its_keeper(on_terminal, env):
    terminal, processes = start_try(on_terminal, env)
    children = children_of(terminal.process.pid)
    (daemon,) = [pid for pid, name in children.items() if name == "mclistd"]
    keeper = int(pathlib.Path(f"/proc/{daemon}/stat").read_text().rsplit(") ", 1)[1].split()[1])
    os.kill(keeper, signal.SIGKILL)
    wait_until("the proxy has ended", lambda: not is_alive(daemon))
    terminal.type("\x04")
    terminal.wait_for_end()
    wait_until("all processes have ended", lambda: not any(map(is_alive, processes)))


@pytest.mark.thorough
def test_others_reach_a_private_proxy_by_its_port(on_terminal, env, tmp_path):
    port = free_port()
    (tmp_path / "try.ini").write_text("[lists followers:]\non_missing = refuse\n")
    terminal, processes = start_try(on_terminal, env, "-p", str(port), "-c", str(tmp_path / "try.ini"))
    (folder,) = pathlib.Path(env["XDG_RUNTIME_DIR"]).glob("mclistd-try-*")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for address in [f"127.0.0.1:{port}", f"unix:{folder}/proxy.socket", f"{folder}/proxy.socket"]:
        run = subprocess.run([CLI, address, "lget", "fruit"], capture_output=True, timeout=TIMEOUT_S)
        assert run.stdout == b"apple\n"
    terminal.enter("ladd followers:ann bob")
    terminal.wait_for("NOT_STORED")
    terminal.enter("quit")
    assert terminal.wait_for_end() == 0
    assert nothing_is_left(env, terminal, processes)


def test_try_in_a_pipe(env):
    run = subprocess.run(TRY, input=b"ladd l a b\nlget l\n", capture_output=True,
                         timeout=6 * TIMEOUT_S, env={**os.environ, **env})
    assert (run.returncode, run.stdout, run.stderr) == (0, b"STORED\na\nb\n", b"")
    assert os.listdir(env["XDG_RUNTIME_DIR"]) == []


@pytest.mark.parametrize("options, text", [
    (["-c", "/nonexistent"], "does not start: /nonexistent: cannot be opened"),
    (["-s", "a:b:c"], "has several colons"),
    (["-l", "unix:/nonexistent/x"], "/nonexistent/x"),
])
def test_a_private_proxy_that_does_not_start(env, options, text):
    run = subprocess.run([*TRY, *options], input=b"mn\n", capture_output=True, timeout=6 * TIMEOUT_S,
                         env={**os.environ, **env})
    assert (run.returncode, run.stdout) == (3, b"")
    assert text in run.stderr.decode()
    assert os.listdir(env["XDG_RUNTIME_DIR"]) == []


def test_try_without_its_prompt(tmp_path):
    copy = tmp_path / "mclistd"
    copy.write_bytes(pathlib.Path(DAEMON).read_bytes())
    copy.chmod(0o755)
    run = subprocess.run([*RUNNER, copy, "--try"], capture_output=True, timeout=6 * TIMEOUT_S, text=True)
    assert run.returncode == 69
    assert run.stderr == (f"mclistd: --try cannot start {tmp_path}/mclistd-cli: No such file or directory;"
                          " expected it beside mclistd, and /usr/bin/python3 (apt install python3)\n")


# --- documents ---

DOCUMENTS = ["README.md", "docs/cli.md", "docs/getting-started.md"]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_sessions_of_a_document(on_terminal, env, tmp_path, name):
    """Each is shown as it comes, on a terminal without colours."""
    sessions = prompt_sessions(name)
    assert sessions
    for session in sessions:
        check_prompt_session(on_terminal(TRY, without_toolkit(env, tmp_path, NO_COLOR="1")), session)
