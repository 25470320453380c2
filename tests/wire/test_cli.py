# SPDX-License-Identifier: BSD-3-Clause
"""scripts/cli in scripts: one command, and commands from a pipe. test_cli_prompt.py has the rest."""

import re
import socket
import subprocess
import sys
import threading
import time

import pytest

from harness import ROOT, SLOW, TIMEOUT_S, free_port
from test_cli_support import CLI
from test_scripts import list_words

pytestmark = pytest.mark.release

sys.path.insert(0, str(ROOT / "scripts"))

from mclistd_cli import main, show, verbs, wire, words  # noqa: E402  (the path comes first)

HOSTILE = [
    b"hello world", b"two\r\nflush_all", b"x\nladd evil 1", b"\x00\x01\xff", b" ", b"$'", b"'\"\\",
    b"\x1b[31mred", "ünï ©".encode(), b"noreply", b"#", b"-1", b"MN", b"END\r\nMN\r\nEND",
]  # fmt: skip


def cli(*arguments, stdin=b"", code=0, env=None):
    """Returns what it prints. Lines on standard error only with an exit code that is none of a
    miss."""
    done = subprocess.run([CLI, *arguments], input=stdin, capture_output=True, timeout=6 * TIMEOUT_S,
                          env=env)
    assert done.returncode == code, done
    assert (done.stderr != b"") == (code > 1), done
    return done.stdout


def fault(*arguments, stdin=b"", code=2):
    done = subprocess.run([CLI, *arguments], input=stdin, capture_output=True, timeout=6 * TIMEOUT_S)
    assert (done.returncode, done.stdout) == (code, b""), done
    return done.stderr.decode()


@pytest.fixture
def address(daemon):
    return f"127.0.0.1:{daemon.port}"


# --- words and verbs ---


@pytest.mark.parametrize("item", [*HOSTILE, b"plain", b"a,b", b""])
def test_what_is_shown_can_be_typed(item):
    assert words.split(words.typed(item)) == [item]
    if words.shown(item).startswith("$'"):
        assert words.split(words.shown(item)) == [item]
    else:
        assert words.shown(item) == item.decode()


@pytest.mark.parametrize("line, expected", [
    ("a  b\tc ", [b"a", b"b", b"c"]),
    ("'a b' \"c d\" e\\ f", [b"a b", b"c d", b"e f"]),
    ("a'b'\"c\"", [b"abc"]),
    ("'\\n' \"\\n\" $'\\n'", [b"\\n", b"\\n", b"\n"]),
    ("$'\\x41\\xfF\\0\\'' \"\\\"\\\\\"", [b"A\xff\0'", b'"\\']),
    ("'' x", [b"", b"x"]),
    ("$x $", [b"$x", b"$"]),
])
def test_words_are_split_as_in_a_shell(line, expected):
    assert words.split(line) == expected


@pytest.mark.parametrize("line", ["'a", 'b "c', "$'d\\'"])
def test_a_quote_must_be_closed(line):
    with pytest.raises(words.NotClosed):
        words.split(line)


def test_every_verb_of_the_proxy_has_usage_and_help():
    """A verb that is added to the table and to docs/verbs.md needs nothing more."""
    table = verbs.Table()
    source = (ROOT / "src/proto/client/verb.h").read_text(encoding="utf-8")
    plain = re.findall(r'^    VERB\(\w+, "(\w+)"', source, re.MULTILINE)
    lists = [word for word, _ in list_words()]
    assert sorted(table.names()) == sorted(plain + lists)
    assert [word for word in lists if not table.find(word).is_list] == []
    assert [verb.name for verb in table.verbs.values() if not 4 <= len(verb.short) <= 160] == []
    known = {line.split(":")[0] for line in verbs.SHORT.splitlines()}
    assert known <= set(lists)
    assert set(verbs.REDIS.values()) <= set(table.names())


# --- one command ---


def test_one_command_and_its_exit_code(address):
    assert cli(address, "ladd", "fruit", "apple", "pear") == b"STORED\n"
    assert cli(address, "lget", "fruit") == b"apple\npear\n"
    assert cli(address, "llen", "fruit") == b"2\n"
    assert cli(address, "laddx", "fruit", "apple") == b"0\n"
    assert cli(address, "lrange", "fruit", "-1", "-1") == b"pear\n"
    assert cli(address, "lhas", "fruit", "kiwi", code=1) == b""
    assert cli(address, "get", "nix", code=1) == b""
    assert cli(address, "delete", "nix", code=1) == b"NOT_FOUND\n"
    assert cli(address, "lcreate", "fruit", "x", code=1) == b"NOT_STORED\n"
    assert cli(address, "mn") == b"MN\n"
    assert b"STAT" not in cli(address, "lstat", "fruit")
    assert fault(address, "lget") == "CLIENT_ERROR usage: lget KEY...\n"
    assert fault(address, "lgte", "x") == "ERROR\n  did you mean lget?\n"
    assert "here: ladd KEY ITEM..." in fault(address, "SADD", "x", "y")


def test_no_proxy_has_an_exit_code_of_its_own():
    text = fault(f"127.0.0.1:{free_port()}", "lget", "x", code=3)
    assert "does not answer: Connection refused" in text


@pytest.mark.thorough
def test_a_misspelt_verb_is_not_looked_up_as_an_address():
    for typed, hint in [(["lgte", "x"], "(did you mean lget?)"),
                        (["LGET", "x"], "(verbs are lower-case: lget)"),
                        (["SADD", "x", "y"], "here: ladd KEY ITEM...)"),
                        (["DEL", "x"], "here: ldrop KEY; of a plain item: delete KEY)"),
                        (["EXPIRE", "x", "5"], "here: ltouch KEY EXPTIME; of a plain item: touch KEY EXPTIME)"),
                        (["LPUSH", "x", "y"], "has no equal: a list grows at its end only")]:
        text = fault(*typed)
        assert f"{typed[0]} is neither a verb nor an address before one" in text
        assert hint in text


def test_a_host_may_have_a_name_like_a_verb():
    for typed in (["lgte", "lget", "x"], ["lgte", "help"], ["lgte"], ["somewhere", "lgte"]):
        assert main.Options(typed).command(verbs.Table()) == (typed[0], typed[1:])


def test_what_is_said_of_redis_names_verbs_of_the_table():
    table = verbs.Table()
    for word in [*verbs.REDIS, *verbs.NO_EQUAL]:
        assert " of Redis has no equal: " in table.suggestion(word) or " is here: " in table.suggestion(word)
    assert not set(verbs.REDIS) & set(verbs.NO_EQUAL)


def test_lines_of_help_end_between_words(monkeypatch, capfdbinary):
    monkeypatch.setenv("COLUMNS", "60")
    output = show.Terminal(False)
    text = "replaces hand-made lists by " + "others of any size " * 6
    output.help_entry("lput KEY VALUE [EXPTIME [TOKEN]] [new]", text)
    lines = capfdbinary.readouterr().out.decode().splitlines()
    assert max(map(len, lines)) <= 60
    assert " ".join(" ".join(lines).split()) == f"lput KEY VALUE [EXPTIME [TOKEN]] [new] {text.strip()}"


@pytest.mark.thorough
def test_wrong_options():
    assert "Try mclistd-cli --help" in fault("--nix")
    assert "a port is a number" in fault("127.0.0.1:99999", "get", "x")
    assert "options of mclistd are for --try" in fault("-p", "11230")
    for timeout in ("soon", "-1", "nan", "inf"):
        assert "expected seconds" in fault("--timeout", timeout, "get", "x")
    assert cli("--help").startswith(b"usage: mclistd-cli ")


def test_values(address):
    assert cli(address, "set", "k", "hello world\n") == b"STORED\n"
    assert cli(address, "append", "k", "more") == b"STORED\n"
    assert cli(address, "get", "k") == b"hello world\nmore\n"
    assert cli(address, "get", "k", "nix") == b"k\t$'hello world\\nmore'\n"
    assert cli("-x", address, "set", "k", stdin=b"a\0b\r\n") == b"STORED\n"
    assert cli("--raw", address, "get", "k") == b"a\0b\r\n\n"
    cas = cli(address, "gets", "k").split(b"\n")[0].decode()
    assert cli(address, "cas", "k", "new", cas) == b"STORED\n"
    assert cli(address, "cas", "k", "newer", cas, code=1) == b"EXISTS\n"
    assert cli(address, "ms", "k", "by meta", "T0") == b"HD\n"
    assert cli(address, "mg", "k", "v") == b"by meta\n"
    assert cli(address, "mg", "k", "v", "q") == b"by meta\n"
    assert cli(address, "mg", "nix", "v", "q") == b""
    assert cli(address, "touch", "k", "100", "noreply") == b""


def test_the_protocol_s_own_form_of_set_is_not_taken_for_words(address):
    text = fault(address, "set", "k", "0", "0", "5")
    assert text.startswith("usage: set KEY VALUE [EXPTIME]\n  the lengths are counted for you")
    assert cli(address, "get", "k", code=1) == b""


# --- items of all kinds ---


@pytest.mark.config(lists={"delimiter": "none"})
@pytest.mark.thorough
def test_hostile_items_are_items(address):
    """Each goes to the list as it is, comes back as it is, and is never a command."""
    cli(address, "set", "witness", "here")
    for item in HOSTILE:
        if b"\0" not in item:  # no word of a command line holds it
            assert cli(address, "ladd", "h", item) == b"STORED\n"
    items = [item for item in HOSTILE if b"\0" not in item]
    assert cli("-0", address, "lgetb", "h") == b"".join(item + b"\0" for item in items)
    lines = cli(address, "lgetb", "h").splitlines()
    assert lines == [words.shown(item).encode() for item in items]
    assert all(line.isascii() or b"\x1b" not in line for line in lines)
    for item in items:
        assert cli(address, "lhas", "h", item) != b""
        assert cli(address, "ldel", "h", item) == b"DELETED\n"
    assert cli(address, "llen", "h") == b"0\n"
    assert cli(address, "lgetb", "evil", code=1) == b""
    assert cli(address, "get", "witness") == b"here\n"


@pytest.mark.config(lists={"delimiter": "none"})
def test_hostile_items_of_a_pipe(address):
    line = b"ladd h " + b" ".join(words.typed(item).encode() for item in HOSTILE) + b"\n"
    assert cli(address, stdin=line + b"llen h\n") == b"STORED\n%d\n" % len(HOSTILE)
    assert cli("-0", address, "lgetb", "h") == b"".join(item + b"\0" for item in HOSTILE)


@pytest.mark.thorough
@pytest.mark.config(lists={"delimiter": "none"})
def test_a_whole_list_of_hostile_items_is_one_step(address):
    line = b" ".join(words.typed(item).encode() for item in HOSTILE)
    for verb in [b"lset", b"lputb"]:
        assert cli(address, stdin=verb + b" h old\n" + verb + b" h " + line + b"\n") == b"STORED\n" * 2
        assert cli("-0", address, "lgetb", "h") == b"".join(item + b"\0" for item in HOSTILE)
    assert cli(address, "lputb", "h") == b"STORED\n"
    assert cli(address, "llen", "h") == b"0\n"
    assert cli(address, "lgetb", "evil", code=1) == b""


@pytest.mark.thorough
@pytest.mark.config(proxy={"pool": "main"}, **{"lists f-": {"on_missing": "refuse"}})
def test_a_list_is_filled_once(address):
    token = cli(address, "llease", "f-1", "30").decode().strip()
    assert cli(address, "llease", "f-1", "30", code=1) == b"NOT_STORED\n"
    assert cli(address, "lput", "f-1", "a,b,c", "100", token) == b"STORED\n"
    assert cli(address, "lget", "f-1") == b"a\nb\nc\n"
    assert 90 <= int(cli(address, "lttl", "f-1")) <= 100
    assert cli(address, "lput", "f-1", "x", "0", token, code=1) == b"EXISTS\n"
    assert cli(address, "ltouch", "f-1", "0") == b"TOUCHED\n"


@pytest.mark.thorough
@pytest.mark.config(lists={"delimiter": "none"})
def test_changes_of_several_lists_are_typed_in_one_line(address):
    assert cli(address, "ltx", "ladd", "a", "x", ";", "ladd", "b", "two words", "y") == b"STORED\n"
    assert cli(address, "lgetb", "b") == b"two words\ny\n"
    line = b"ltx lrequire b 'two words' ; lset a 'z z' $'q\\nldrop b' ; ldel b 'two words'\n"
    assert cli(address, stdin=line) == b"STORED\n"
    assert cli("-0", address, "lgetb", "a") == b"z z\0q\nldrop b\0"
    assert cli(address, stdin=b"llen b\n" + line, code=0) == b"1\nNOT_STORED\n"
    assert cli(address, "lmove", "b", "a", "y") == b"1\n"
    assert cli(address, "lpoptob", "a", "b", "1") == b"z z\n"
    assert "a change stands on either side of a ;" in fault(address, "ltx", "ladd", "a", "x", ";")
    assert fault(address, "ltx").startswith("usage: ltx CHANGE [; CHANGE]...")
    assert "ltx: line 2: it begins" in fault(address, "ltx", "lset", "a", ";", "lget", "a")


@pytest.mark.thorough
def test_what_cannot_be_sent_is_refused(address):
    for line in [b"laddx s 'a b'", b"lget 'a b'", b"ladd 'a b' x", b"'get x' y", b"ladd s ''",
                 b"delete $'x\\r\\nflush_all'", b"set k v $'1\\r\\nladd s x'", b"ldelx s $'a\\nladd s x'",
                 b"nix $'a\\nladd s x'", b"laddb s", b"laddb s 'a b' noreply", b"get 'x"]:  # fmt: skip
        assert fault(address, stdin=line + b"\n") != ""
    assert cli(address, "llen", "s") == b"0\n"


@pytest.mark.thorough
@pytest.mark.config(**{"lists semi-": {"delimiter": "\\x3b"}, "lists space": {"delimiter": "\\x20"},
                       "lists *slash-": {"delimiter": "/"}})
def test_items_are_told_apart_by_the_delimiter_of_their_list(address):
    assert cli(address, "ladd", "semi-1", "a,b", "c") == b"STORED\n"
    assert cli(address, "lget", "semi-1") == b"a,b\nc\n"
    assert cli(address, "ladd", "space1", "a,b", "c;") == b"STORED\n"
    assert cli(address, "lrange", "space1", "0", "1") == b"a,b\nc;\n"
    assert cli(address, "ladd", "my-slash-1", "a,b", "c;") == b"STORED\n"
    assert cli(address, "lget", "my-slash-1") == b"a,b\nc;\n"
    assert cli(address, "ladd", "other", "a;b", "c") == b"STORED\n"
    assert cli(address, "lget", "other", "semi-1") == b"other\ta;b\nother\tc\nsemi-1\ta,b\nsemi-1\tc\n"


@pytest.mark.thorough
def test_a_key_stands_in_front_where_the_answer_is_for_several(address):
    cli(address, "ladd", "a", "x", "y")
    cli(address, "ladd", "b", "y", "z")
    assert cli(address, "lgetx", "a", "b") == b"a\tx\na\ty\nb\ty\nb\tz\n"
    assert cli(address, "llen", "a", "nix", "b") == b"a\t2\nnix\t0\nb\t2\n"
    assert cli(address, "llen", "a") == b"2\n"
    for verb, items in {"linter": b"y\n", "lunion": b"x\ny\nz\n", "ldiff": b"x\n"}.items():
        assert cli(address, verb, "a", "b") == items


# --- a pipe ---


def test_commands_of_a_pipe(address):
    script = b"# a comment\nladd l 1 2\n\nladdx l 3\nlget l\nget nix\nmn\nldelq l 2\nlget l\nquit\nladd l 9\n"
    assert cli(address, stdin=script) == b"STORED\n1\n1\n2\n3\nMN\n1\n3\n"
    assert cli(address, stdin=b"lget l") == b"1\n3\n"


def test_faults_of_a_pipe_name_their_line_and_do_not_stop_it(address):
    done = subprocess.run([CLI, address], input=b"ladd l 1\nlgte l\nlcreate l 'a b'\nllen l\n",
                          capture_output=True, timeout=6 * TIMEOUT_S)
    assert (done.returncode, done.stdout) == (2, b"STORED\n1\n")
    lines = done.stderr.decode().splitlines()
    assert lines[0] == "line 2: ERROR" and lines[2].startswith("line 3: a b holds a blank")


def test_help_of_a_pipe(address):
    text = cli(address, stdin=b"help\nhelp lhas\nhelp set\n").decode()
    assert "\x1b" not in text
    assert "ladd KEY ITEM..." in text and "\nlhas KEY ITEM...\n  which of these" in text
    assert "set KEY VALUE [EXPTIME]" in text


@pytest.mark.thorough
def test_a_large_list_streams(address):
    script = b"".join(b"ladd big " + b" ".join(b"item-%06d" % n for n in range(at, at + 2000)) + b"\n"
                      for at in range(0, 40000, 2000))
    assert cli(address, stdin=script) == b"STORED\n" * 20
    assert cli(address, "lget", "big") == b"".join(b"item-%06d\n" % n for n in range(40000))


def test_a_plain_memcached(start_memcached):
    address = f"127.0.0.1:{start_memcached().port}"
    assert cli(address, "set", "k", "a b") == b"STORED\n"
    assert cli(address, "get", "k") == b"a b\n"
    assert "it has no lists" in fault(address, "ladd", "x", "y")


@pytest.mark.parametrize("answer", [b"-ERR unknown command\r\n", b"HTTP/1.1 400\r\n\r\n", b""])
def test_a_server_that_is_none(answer):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            conn, _ = listener.accept()
            with conn:
                conn.recv(100)
                conn.sendall(answer)
                if answer:
                    conn.recv(100)

        thread = threading.Thread(target=serve)
        thread.start()
        text = fault(f"127.0.0.1:{listener.getsockname()[1]}", "get", "x", code=3)
        thread.join()
    assert ("neither mclistd nor a memcached" if answer else "closed before the answer") in text


@pytest.mark.parametrize("answer", [
    b"VALUE k 0 %s\r\n", b"VALUE k 0 1 %s\r\nx\r\n", b"ITEM k %s\r\n", b"VA %s\r\n"])
def test_a_number_of_thousands_of_digits_is_no_answer(answer, monkeypatch):
    """Python refuses to read it."""
    mine, theirs = socket.socketpair()
    with mine, theirs:
        theirs.sendall(b"VERSION 1.6.18\r\nMN\r\n" + answer % (b"9" * 5000) + b"MN\r\n")
        connection = wire.Connection(wire.Address("h"), TIMEOUT_S)
        monkeypatch.setattr(connection.address, "connect", lambda: mine)
        with pytest.raises(wire.Lost, match="no number of 64 bits"):
            list(connection.ask(b"get k\r\n"))
    assert wire.number_of(b"9" * 5000) == wire.number_of("²") == 0 and wire.number_of(b"12") == 12


@pytest.mark.parametrize("name, code, text", [
    ("a" * 70, 3, "no host can have that name"), ("a..b:1", 3, "no host can have that name"),
    ("h:" + "9" * 5000, 2, "a port is a number"),
    ("9" * 5000, 2, "a port is a number")])
def test_an_address_that_can_be_none(name, code, text):
    assert text in fault(name, "get", "x", code=code)
    assert wire.Address("²").port == wire.PORT


@pytest.mark.parametrize("arguments", [["get", "k"], ["help"], ["--help"]])
def test_a_full_disk_is_no_miss(address, arguments):
    arguments = arguments if arguments == ["--help"] else [address, *arguments]
    with open("/dev/full", "wb") as full:
        cli(address, "set", "k", "x")
        done = subprocess.run([CLI, *arguments], stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, b"mclistd-cli: No space left on device\n")


def test_what_only_unicode_calls_a_blank_belongs_to_its_word(address):
    cli(address, stdin="ladd list a\u00a0\nladd list b\u2028\n".encode())
    assert cli("--raw", address, "lget", "list") == "a\u00a0\nb\u2028\n".encode()


def test_a_word_of_megabytes_is_read_quickly():
    before = time.process_time()
    assert words.split("set k " + "x" * 2000000)[2] == b"x" * 2000000
    assert time.process_time() - before < 10 * SLOW
