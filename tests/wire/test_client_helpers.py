# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of scripts/clients: all of them do what clients/cases.txt says, at the real daemon.

A case is a call, and below it
    > what the helper sends, where that is said; \\e alone: nothing
    < what is answered in the daemon's place, where the daemon would not answer that
    = what the call gives
The two marks > and < may follow each other more than once.

Texts are words; #5 is a number, [a b] several values, - nothing, ! true. A value may also be true,
false, null, {key=value}, items@version, [...], which is any list, and of what failed refused:LINE,
lost, or bad, where the helper sends nothing. \\s is a blank, <x*9> nine x; a * at the end of a line
stands for the rest. `open` makes a connection with so many milliseconds to wait, and a delimiter.

A relay before the daemon sees the requests, and cuts the answers into pieces.
"""

import functools
import random
import re
import select
import shutil
import socket
import threading

import pytest

from client_support import (
    AGENTS, HELPERS, Program, command_of, environment, skip_unless_there, write_helper,
)  # fmt: skip
from harness import HOST, ROOT, SLOW

pytestmark = pytest.mark.release

ESCAPES = {"r": b"\r", "n": b"\n", "t": b"\t", "s": b" ", "e": b"", "\\": b"\\"}
ESCAPE = re.compile(r"\\x([0-9a-f]{2})|\\(.)|<(.)\*(\d+)>|(.)", re.DOTALL)
TOKEN = re.compile(r"[][{}=@ ]|[^][{}=@ ]+")
WORDS = {"true", "false", "null", "lost", "bad", "moved"}
CLOSE = "<close>"


# --- the table ---


def bytes_of(text):
    def one(match):
        if match[1]:
            return bytes([int(match[1], 16)])
        if match[2]:
            return ESCAPES[match[2]]
        return match[3].encode() * int(match[4]) if match[3] else match[5].encode()

    return b"".join(map(one, ESCAPE.finditer(text)))


class Case:
    def __init__(self, number, call):
        self.number, self.call = number, call
        self.sends, self.answers, self.value = [], [], None

    def add(self, mark, text):
        if mark == "=":
            self.value = text
        else:
            {">": self.sends, "<": self.answers}[mark].append(text)

    def __repr__(self):
        return f"cases.txt:{self.number}: {self.call}"


def read_cases():
    cases = []
    for number, line in enumerate((AGENTS / "cases.txt").read_text("utf-8").splitlines(), 1):
        if line.startswith("    "):
            cases[-1].add(line[4], line[6:])
        elif line and not line.startswith("#"):
            cases.append(Case(number, line))
    assert all(case.value for case in cases)
    return cases


def argument(word):
    """As an agent reads it."""
    if word.startswith("["):
        return "l" + ",".join(bytes_of(item).hex() for item in word[1:-1].split())
    if word in ("-", "!"):
        return {"-": "n", "!": "t"}[word]
    return "i" + word[1:] if word.startswith("#") else "s" + bytes_of(word).hex()


def line_of(case, port):
    name, *words = re.findall(r"\[[^]]*\]|[^ ]+", case.call)
    if name == "open":
        words = [f"#{port}", f"#{int(int(words[0][1:]) * SLOW)}", words[1]]
    return " ".join([name, *map(argument, words)])


def shown_value(value):
    """A pattern of what an agent shows of it."""

    def one(token):
        if token in WORDS or re.fullmatch(r"[][{}=@ ]", token):
            return re.escape(token)
        if token.startswith("#"):
            return "i" + token[1:]
        kind, text = ("refused:", token[8:]) if token.startswith("refused:") else ("s", token)
        return kind + bytes_of(text.rstrip("*") if kind != "s" else text).hex() + (".*" if token.endswith("*") else "")

    if value == "[...]":
        return r"\[.*\]"
    return "".join(map(one, TOKEN.findall(value)))


# --- the relay ---


class Relay:
    """Passes bytes on to the daemon, and back in pieces. Where there is a script, it answers itself:
    each answer when it has so many bytes as that request has, and those before it."""

    def __init__(self, port):
        self.server = socket.create_server((HOST, 0))
        self.upstream, self.port = port, self.server.getsockname()[1]
        self.random = random.Random(1)
        self.expect([])
        threading.Thread(target=self.accept, daemon=True).start()

    def expect(self, script):
        self.received, self.script, self.at = b"", script, 0

    def accept(self):
        while True:
            try:
                client = self.server.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=[client], daemon=True).start()

    def serve(self, client):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with client, socket.create_connection((HOST, self.upstream)) as daemon:
            try:
                while self.pass_on(client, daemon):
                    pass
            except OSError:  # the helper has given up
                pass

    def pass_on(self, client, daemon):
        readable = select.select([client, daemon], [], [])[0]
        if daemon in readable:
            data = daemon.recv(65536)
            self.send(client, data)
            return data
        data = client.recv(65536)
        if not data:
            return data
        self.received += data
        if not self.script:
            daemon.sendall(data)
            return data
        sizes = [len(bytes_of(request)) for request, _ in self.script]
        if len(self.received) == sum(sizes[: self.at + 1]):
            answer = self.script[self.at][1]
            self.at += 1
            self.send(client, bytes_of(answer.replace(CLOSE, "")))
            return not answer.endswith(CLOSE)
        return data

    def send(self, client, data):
        longest = 1 if len(data) < 400 else 5000
        while data:
            size = self.random.randint(1, longest)
            client.sendall(data[:size])
            data = data[size:]

    def close(self):
        self.server.close()


# --- the tests ---


@functools.lru_cache(maxsize=None)
def agent_command(folder, language):
    """Built once for all tests that this process runs."""
    driver = HELPERS[language][0]
    skip_unless_there(driver[driver.rindex(".") :], "")
    write_helper(folder, language)
    shutil.copy(AGENTS / driver, folder)
    return command_of(folder, driver)


class Agent(Program):
    """The program that calls a language's helper; ask() gives what it shows of one call."""

    def __init__(self, folder, language):
        super().__init__(agent_command(folder, language), folder, environment())


@pytest.mark.config(**{"lists semi:": {"delimiter": "|"}})
@pytest.mark.parametrize("language", HELPERS)
def test_helper_does_what_the_table_says(daemon, agents_folder, language):
    relay = Relay(daemon.port)
    wrong = []
    with Agent(agents_folder, language) as agent:
        for case in read_cases():
            relay.expect(list(zip(case.sends, case.answers)))
            shown = agent.ask(line_of(case, relay.port))
            if not re.fullmatch(shown_value(case.value), shown):
                wrong.append((case, "gives", shown[:500]))
            if case.sends and relay.received != bytes_of("".join(case.sends)):
                wrong.append((case, "sends", relay.received[:500]))
    relay.close()
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("language", HELPERS)
def test_helper_logs_in(memcached, start_daemon, tmp_path, agents_folder, language):
    users = tmp_path / "users"
    users.write_text("ann:secret\n", "utf-8")
    port = start_daemon([memcached], config={"proxy": {"auth_file": users}}).port

    def open_as(login):
        return line_of(Case(0, f"open #{3000 * 10} ,"), port) + " s" + login.encode().hex()

    with Agent(agents_folder, language) as agent:
        agent.ask(open_as("ann secret"))
        assert agent.ask("ladd s61 s62") == "true"
        assert agent.ask("llen s61") == "i1"
        agent.ask(open_as("ann wrong"))
        for _ in range(2):
            shown = agent.ask("llen s61")
            assert re.fullmatch(shown_value("refused:CLIENT_ERROR\\sauthentication*"), shown), shown


@pytest.mark.parametrize("language", HELPERS)
def test_helper_connects_anew_where_the_proxy_has_started_anew(daemon, agents_folder, language):
    with Agent(agents_folder, language) as agent:
        agent.ask(line_of(Case(0, "open #30000 ,"), daemon.port))
        assert agent.ask("ladd s61 s62") == "true"
        daemon.stop()
        daemon.start()
        if language in ("go", "java"):
            assert agent.ask("llen s61") == "lost"
        assert agent.ask("llen s61") == "i1"


BLOCK = b"ITEM k 3\r\nabc\r\nITEM k 0\r\n\r\nVALUE k 0 5 77\r\na,,bc\r\nSTAT a b\r\nEND\r\n"


@pytest.mark.thorough
def test_helper_of_c_reads_any_answer_and_no_byte_beyond(agents_folder):
    """Built with the address sanitizer. Answers are cut, and some of their bytes are others."""
    rng = random.Random(7)
    server = socket.create_server((HOST, 0))
    verbs = ["lget", "lgets", "lgetx", "llen", "lstat", "lhas s61", "ldrop", "llease i5"]

    def answer():
        words = bytearray(rng.choice([BLOCK, BLOCK, b"STORED\r\n", b"12\r\n", b"SERVER_ERROR no\r\n"]))
        for _ in range(rng.choice([0, 1, 1, 3])):
            words[rng.randrange(len(words))] = rng.choice(b"\r\n 09-,:AE\0\xff")
        return bytes(words[rng.choice([0, 0, 0, 10, 35]) : rng.choice([None, rng.randrange(len(words) + 1)])])

    def serve():
        while True:
            try:
                client = server.accept()[0]
            except OSError:
                return
            with client:
                client.recv(65536)
                client.sendall(answer())

    threading.Thread(target=serve, daemon=True).start()
    shown = set()
    with Agent(agents_folder, "c") as agent:
        agent.ask(line_of(Case(0, "open #3000 ,"), server.getsockname()[1]))
        for _ in range(1500):
            verb, *words = rng.choice(verbs).split()
            shown.add(re.sub("[^a-z[{].*", "", agent.ask(" ".join([verb, "s6b", *words]))))
    server.close()
    assert shown >= {"lost", "refused", "true", "i", "[s", "{s"}, shown


def test_every_verb_is_in_the_table():
    """The helpers send the forms with b where an item has any bytes; the quiet forms are not needed
    where there are pipelines."""
    words = re.findall(r"WORD\([A-Z]+, (\w+),", (ROOT / "src/proto/list_verbs.h").read_text("utf-8"))
    called = {case.call.split()[0] for case in read_cases()}
    assert {word for word in words if re.sub("[bq]$", "", word) not in called} == set()
