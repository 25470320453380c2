# SPDX-License-Identifier: BSD-3-Clause
"""The command line: flags, exit codes, -t with good configurations and with every kind of bad one."""

import os
import pathlib
import re
import subprocess

import pytest

from harness import HOST, ROOT, SLOW, TIMEOUT_S, Conn, free_port, wait_for_exit, wait_until

EX_USAGE = 64
EX_UNAVAILABLE = 69
EX_CONFIG = 78
SERVERS = "[pool main]\nservers = 127.0.0.1:11211\n"

PROGRAM = os.environ.get("MCLISTD", str(ROOT / "build/mclistd"))
PROGRAM = str(ROOT / PROGRAM) if "/" in PROGRAM else PROGRAM
RUNNER = os.environ.get("MCLISTD_RUNNER", "").split()


def run(*args, **options):
    """Exit code, standard output, standard error of a daemon that is to end by itself."""
    result = subprocess.run(
        [*RUNNER, PROGRAM, *map(str, args)],
        capture_output=True, text=True, timeout=30 * SLOW, stdin=subprocess.DEVNULL, **options
    )
    return result.returncode, result.stdout, result.stderr


@pytest.fixture
def start(tmp_path):
    """A function that runs the daemon with these arguments and waits until its port is open."""
    started = []

    def start(*args, port, env=None):
        with open(tmp_path / "log", "ab") as log:
            process = subprocess.Popen(
                [*RUNNER, PROGRAM, *map(str, args)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **(env or {})}
            )
        started.append(process)

        def accepts():
            assert process.poll() is None, (tmp_path / "log").read_text()
            try:
                Conn(port).close()
                return True
            except OSError:
                return False

        wait_until("it accepts", accepts)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.terminate()
        assert wait_for_exit(process, 3 * TIMEOUT_S) == 0, (tmp_path / "log").read_text()


def test_version_and_help():
    for flag in ("-V", "--version"):
        code, out, err = run(flag)
        assert (code, err) == (0, "")
        assert re.fullmatch(r"mclistd \d+\.\d+\.\d+\ncommit (unknown|[0-9a-f]{12}(-changed)?)\n"
                            r"built by (gcc|.*[cC]lang) .*\n", out)
    for flag in ("-h", "--help"):
        code, out, err = run(flag)
        assert (code, err) == (0, "")
        for option in ("--config", "--test-config", "--port", "--listen", "--servers", "--threads"):
            assert option in out
    assert run("--help-config") == (0, (ROOT / "conf/mclistd.ini").read_text(), "")


def test_control_bytes_of_paths_are_not_printed(tmp_path):
    path = tmp_path / "odd\x1b[31m.ini"
    path.write_text(
        "[proxy]\nlisten = unix:/tmp/a\x1bb\nlog_file = /tmp/c\x1bd\x07\n"
        "[pool main]\nservers = unix:/tmp/e\x1bf\n"
    )
    for args in (["-t"], ["-t", "-v"]):
        code, out, err = run(*args, "-c", path)
        assert code == 0
        assert "listens on unix:/tmp/a?b" in err and "odd?[31m.ini is good" in err
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", out + err)


@pytest.mark.parametrize("key", ["user", "socket_group"])
def test_control_bytes_of_names_are_not_printed(tmp_path, key):
    if key == "user" and os.geteuid() != 0:
        pytest.skip("only root becomes another user")
    path = tmp_path / "odd.ini"
    path.write_text(f"[proxy]\n{key} = no\x1b[31mbody\n[pool main]\nservers = 127.0.0.1\n")
    code, out, err = run("-t", "-c", path)
    assert code != 0 and "no?[31mbody" in err and "\x1b" not in out + err


@pytest.mark.parametrize(
    "args",
    [
        ["-x"],
        ["--bogus"],
        ["word"],
        ["-p"],
        ["-p", "0"],
        ["-p", "65536"],
        ["-p", "x"],
        ["-T", "0"],
        ["-T", "65"],
        ["-T", "x"],
        ["-l", ""],
        ["-l", "::1:11211"],
        ["-l", "host:port"],
        ["-s", "host:99999"],
        ["-s", "::1:11211"],
        ["-s", ""],
        ["-s", "a:1", "-s", "b:1"],
        ["-l", "127.0.0.1:1", "--listen", "127.0.0.1:2"],
    ],
    ids=" ".join,
)
def test_bad_arguments(args):
    code, out, err = run("-t", *args)
    assert code == EX_USAGE, err
    assert out == ""
    assert err and "mclistd" in err


def test_a_file_without_its_option_is_told_how_to_give_it():
    """The mistake of a first day: the file's name alone."""
    code, out, err = run("my.ini")
    assert (code, out) == (EX_USAGE, "")
    assert err == (
        "mclistd: 'my.ini' is not an option; expected -c FILE for a configuration\n"
        "Try mclistd --help.\n"
    )
    _, _, err = run("-t", "my\x1b[2J.ini")
    assert "\x1b" not in err and "'my" in err


def test_servers_in_both_places(tmp_path):
    path = tmp_path / "a.ini"
    path.write_text(SERVERS)
    code, _, err = run("-t", "-c", path, "-s", "127.0.0.1:1")
    assert code == EX_USAGE
    assert "pool" in err


GOOD = {
    "empty": "",
    "comments": "# a\n; b\n\n[proxy] # c\nthreads = 3 ; d\n" + SERVERS,
    "everything": (ROOT / "conf/mclistd.ini").read_text(),
    "several pools and prefixes": (
        "[proxy]\nlisten = 127.0.0.1:1, [::1]:1\nlisten = unix:/tmp/x\npool = b\n"
        "[pool a]\nservers = 10.0.0.1:1 3, unix:/tmp/y\nservers = host:2\n"
        "[pool b]\nservers = [::1]:2\ndistribution = modula\nhash = crc\n"
        "[lists]\npool = a\n[lists topic-]\ndelimiter = \\x3b\n[lists a\\x5d\\x2a]\n[lists topic-a]\non_missing = refuse\n"
    ),
    "a hundred servers": "[pool main]\nservers = " + ", ".join(f"h{i}:1" for i in range(100)),
    "every dialect": (
        SERVERS + "[lists]\ncache_bytes = 0\ndelimiter = \\x3b\n"
        "[lists a]\ndialect = simple\nmigrate = native\nplacement = spread\n"
        "[lists b]\ndialect = tombstone\ndeleted_delimiter = \\x0a\n"
        "[lists c]\ndialect = signed\nadd_sign = \\x00\ndelete_sign = a\ncompact_chance = 0\n"
        "[lists d]\ndialect = paired\nadd_name = \\x23%s\ndelete_name = \\xe4;%s\n"
        "[lists e]\ndialect = flip\nactive_name = %s\n"
        "[lists f]\ndialect = marker\nclosed_mark = \\x23\n"
        "[lists g]\ndialect = sublists\nsublist_limit_bytes = 64k\n"
        "[lists h]\ndialect = ring\ncapacity = 10\nslot = %v %t\ncounter_wraps = yes\n"
    ),
    "sizes": "[proxy]\nmax_value_bytes = 2m\nclient_hard_bytes = 1G\nmemory_limit_bytes = 1G\n" + SERVERS,
    "windows line ends": "[proxy]\r\nthreads = 1\r\n" + SERVERS.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_configuration(tmp_path, name):
    path = tmp_path / "good.ini"
    path.write_bytes(GOOD[name].encode())
    code, out, err = run("-t", "-c", path)
    assert (code, out) == (0, "")
    assert err.splitlines()[-1].startswith(f"mclistd: the configuration {path} is good")
    # What -v prints is a configuration that means the same.
    code, printed, _ = run("-t", "-v", "-c", path)
    assert code == 0
    again = tmp_path / "again.ini"
    again.write_text(printed)
    code, printed_again, err = run("-t", "-v", "-c", again)
    assert (code, without_marks(printed_again)) == (0, without_marks(printed)), err


def without_marks(printed):
    """What -t -v prints, without what it says of where a value comes from."""
    return re.sub(r" # (line \d+(, in \[lists\])?|an option)$", "", printed, flags=re.MULTILINE)


def test_v_marks_what_is_no_default(tmp_path):
    path = tmp_path / "some.ini"
    path.write_text(
        "[proxy]\nlisten = unix:/a\nlisten = unix:/b\nlog_level = warn\n[pool a]\nhash = crc\nservers = h\n"
        "[lists]\ndelimiter = \\x23\n[lists b]\ndialect = ring\n"
    )
    code, printed, _ = run("-t", "-v", "-T", "3", "-c", path)
    marked = [line for line in printed.splitlines()[1:] if "#" in line]
    assert (code, marked) == (
        0,
        [
            "listen = unix:/a, unix:/b # line 3",
            "threads = 3 # an option",
            "log_level = warn # line 4",
            "servers = h:11211 # line 7",
            "hash = crc # line 6",
            "delimiter = \\x23 # line 9",
            "delimiter = \\x23 # line 9, in [lists]",
            "dialect = ring # line 11",
        ],
    )
    # Values of which each is a default have no mark.
    code, printed, _ = run("-t", "-v")
    assert (code, printed) == (0, without_marks(printed))


def test_a_check_says_what_a_start_would_do(tmp_path):
    path = tmp_path / "some.ini"
    path.write_text(
        "[proxy]\nthreads = 2\nlisten = 127.0.0.1:1, unix:/tmp/x\npool = b\n"
        "[pool a]\nservers = 10.0.0.1 3, unix:/tmp/y\n[pool b]\nservers = localhost\n"
        "[lists]\npool = a\n[lists topic-*]\ndialect = ring\n[lists topic-a]\ndialect = simple\nmigrate = native\n"
    )
    code, out, err = run("-t", "-c", path)
    assert (code, out) == (0, "")
    assert err.splitlines() == [
        "listens on 127.0.0.1:1, unix:/tmp/x, 2 threads",
        "logs to standard error",
        "pool a: 10.0.0.1:11211 with weight 3, unix:/tmp/y",
        "pool b, which has the plain keys: localhost:11211",
        "lists topic-a...: dialect simple, in pool a, being moved to the native layout",
        "lists topic-...: dialect ring, in pool a",
        "lists of other keys: dialect native, in pool a",
        f"mclistd: the configuration {path} is good",
    ]


def test_a_check_looks_names_up(tmp_path):
    path = tmp_path / "some.ini"
    path.write_text("[proxy]\nresolve_timeout_ms = 300\n[pool a]\nservers = nowhere.invalid\n")
    code, _, err = run("-t", "-c", path)
    assert code == 0  # the daemon starts, too
    assert "pool a, which has the plain keys: nowhere.invalid:11211 (NO ADDRESS NOW" in err
    assert err.endswith("is good, but 1 name has no address now\n")


def test_the_default_configuration_is_good():
    assert run("-t")[0] == 0


def test_v_does_not_change_the_settings_that_it_prints():
    _, printed, _ = run("-t", "-v")
    assert "\nlog_level = info\n" in printed


# name: (text, line that is named, words that the message must have)
BAD = {
    "a key that does not exist": ("[proxy]\n\ncolour = 1\n", 3, ["colour", "expected"]),
    "a key with a wrong letter": ("[proxy]\n\nthraeds = 1\n", 3, ["thraeds", "did you mean threads?"]),
    "a star alone": ("[lists *]\n", 1, ["[lists *]", "expected [lists]"]),
    "a port to listen on, alone": ("[proxy]\nlisten = 11221\n", 2, ["listen", "expected host:11221"]),
    "a star within a prefix": ("[lists a*b]\n", 1, ["a*b", "\\x2a"]),
    "a section that does not exist": ("[bogus]\n", 1, ["[bogus]", "expected [proxy]"]),
    "a key of another section": (SERVERS + "threads = 1\n", 3, ["threads", "[proxy]"]),
    "a key before any section": ("threads = 1\n", 1, ["threads", "section"]),
    "a key given twice": ("[proxy]\nthreads = 1\nthreads = 1\n", 3, ["threads", "twice"]),
    "a section given twice": ("[proxy]\n[proxy]\n", 2, ["second", "line 1"]),
    "a pool given twice": (SERVERS + SERVERS, 3, ["[pool main]"]),
    "a prefix given twice": ("[lists a]\n[lists a]\n", 2, ["[lists a]"]),
    "a pool without a name": ("[pool]\nservers = a:1\n", 1, ["[pool]"]),
    "a section without its end": ("[proxy\n", 1, ["]"]),
    "text behind a section": ("[proxy] x\n", 1, ["]"]),
    "a line without =": ("[proxy]\nthreads\n", 2, ["="]),
    "no number": ("[proxy]\nthreads = many\n", 2, ["threads", "'many'", "1 to 64"]),
    "a number out of range": ("[proxy]\nthreads = 65\n", 2, ["threads", "65", "1 to 64"]),
    "a number below zero": ("[proxy]\nthreads = -1\n", 2, ["threads", "1 to 64"]),
    "no value": ("[proxy]\nthreads =\n", 2, ["threads", "1 to 64"]),
    "no size": ("[proxy]\nmax_value_bytes = 1x\n", 2, ["max_value_bytes", "1k to 128m"]),
    "a size out of range": ("[proxy]\nmax_value_bytes = 1g\n", 2, ["max_value_bytes", "128m"]),
    "neither yes nor no": ("[lists a]\ndialect = ring\ncounter_wraps = maybe\n", 3, ["counter_wraps", "yes or no"]),
    "no permissions": ("[proxy]\nsocket_mode = rw\n", 2, ["socket_mode", "octal"]),
    "an unknown word": (SERVERS + "distribution = x\n", 3, ["distribution", "ketama_weighted"]),
    "an unknown hash": (SERVERS + "hash = sha\n", 3, ["hash", "md5"]),
    "an unknown log level": ("[proxy]\nlog_level = loud\n", 2, ["log_level", "error, warn"]),
    "a bad delimiter": ("[lists]\ndelimiter = ab\n", 2, ["delimiter", "punctuation"]),
    "an address of a colon": ("[pool a]\nservers = host:\n", 2, ["servers", "1 to 65535"]),
    "a port out of range": ("[pool a]\nservers = host:65536\n", 2, ["servers", "65536"]),
    "IPv6 without brackets": ("[pool a]\nservers = ::1:11211\n", 2, ["servers", "[IPv6]:port"]),
    "IPv6 without brackets to listen on": ("[proxy]\nlisten = ::1:1\n", 2, ["listen", "[IPv6]:port"]),
    "a weight that is none": ("[pool a]\nservers = host:1 x\n", 2, ["servers", "weight"]),
    "a server given twice": ("[pool a]\nservers = h:1, h:1\n", 2, ["h:1"]),
    "more than 100 servers": (
        "[pool a]\nservers = " + ", ".join(f"h{i}:1" for i in range(101)), 2, ["servers", "100"]
    ),
    "a pool without servers": ("[proxy]\n[pool a]\n", 2, ["[pool a]", "servers"]),
    "a pool that is not there, for keys": ("[proxy]\npool = x\n" + SERVERS, None, ["[pool x]"]),
    "a pool that is not there, for lists": (SERVERS + "[lists]\npool = x\n", 3, ["[pool x]"]),
    "retries the wrong way round": (
        SERVERS + "retry_min_ms = 5000\n", 1, ["retry_min_ms", "retry_max_ms"]
    ),
    "a weight that has no effect": (
        "[pool a]\nservers = h:1 2\ndistribution = modula\n", 1, ["weight", "ketama_weighted"]
    ),
    "its own server": ("[proxy]\nlisten = h:1\n[pool a]\nservers = h:1\n", None, ["h:1", "own client"]),
    "limits the wrong way round": (
        "[proxy]\nclient_hard_bytes = 1m\n", None, ["client_hard_bytes", "client_output_bytes"]
    ),
    "a hard limit too near": (
        "[lists]\nlog_hard_limit_bytes = 17k\n", 1, ["log_hard_limit_bytes", "log_limit_bytes"]
    ),
    "items larger than a log": ("[lists]\nmax_item_bytes = 64k\n", 1, ["max_item_bytes"]),
    "a key of another dialect": (
        "[lists x]\ndialect = simple\n\ncapacity = 5\n", 4, ["[lists x]", "capacity", "ring"]
    ),
    "a key of native": ("[lists x]\nplacement = spread\ndialect = ring\n", 2, ["placement", "native"]),
    "an unknown dialect": ("[lists x]\ndialect = tombstones\n", 2, ["dialect", "native, simple"]),
    "nothing between stored items": (
        "[lists]\ndelimiter = none\n[lists x]\ndialect = simple\n", 3, ["[lists x]", "delimiter"]
    ),
    "bytes with two meanings": (
        "[lists x]\ndialect = signed\nadd_sign = ,\n", 3, ["delimiter", "add_sign", "','"]
    ),
    "a digit as a sign": ("[lists x]\ndialect = sublists\nadd_sign = 1\n", 3, ["add_sign", "number"]),
    "a name without the key": ("[lists x]\ndialect = flip\na_name = a\n", 3, ["a_name", "%s"]),
    "two names for one item": (
        "[lists x]\ndialect = ring\nseq_name = %s.1\n", 3, ["seq_name", "slot_name"]
    ),
    "migration from native to native": ("[lists x]\nmigrate = native\n", 2, ["migrate", "dialect"]),
    "refusal of what is missing": (
        "[lists]\non_missing = refuse\n[lists x]\ndialect = marker\n", 3, ["[lists x]", "on_missing"]
    ),
    "a prefix without room": (
        "[lists " + "x" * 100 + "]\ndialect = ring\nslot_name = " + "y" * 150 + "%s\n", 3,
        ["slot_name", "no key fits"]
    ),
    "a NUL byte": ("[proxy]\nthreads = \0 1\n", 2, ["NUL"]),
    "a line too long": ("[proxy]\n" + "#" * 70000 + "\n", 2, ["too long"]),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_configuration(tmp_path, name):
    text, line, words = BAD[name]
    path = tmp_path / "bad.ini"
    path.write_bytes(text.encode())
    for flags in (["-t"], []):
        code, out, err = run(*flags, "-c", path)
        assert code == EX_CONFIG, err
        assert out == ""
        assert err.count("\n") == 1, err
        assert err.startswith(f"mclistd: {path}:{line}: " if line else f"mclistd: {path}: "), err
        for word in words:
            assert word in err


def test_a_configuration_that_cannot_be_read(tmp_path):
    code, _, err = run("-c", tmp_path / "missing.ini")
    assert code == EX_CONFIG
    assert err == f"mclistd: {tmp_path}/missing.ini: cannot be opened: No such file or directory\n"
    assert run("-c", tmp_path)[0] == EX_CONFIG


def test_a_log_file_that_a_start_could_not_open(tmp_path):
    path = tmp_path / "log.ini"
    path.write_text(f"[proxy]\nlog_file = {tmp_path}/missing/log\n" + SERVERS)
    expected = f"mclistd: log_file {tmp_path}/missing/log cannot be opened: No such file or directory\n"
    assert run("-t", "-c", path) == (os.EX_CANTCREAT, "", expected)
    (tmp_path / "missing").mkdir()
    assert run("-t", "-c", path)[0] == 0
    assert not (tmp_path / "missing" / "log").exists()


def test_a_group_that_a_start_would_not_find(tmp_path):
    path = tmp_path / "group.ini"
    path.write_text("[proxy]\nsocket_group = no-such-group\n" + SERVERS)
    code, _, err = run("-t", "-c", path)
    assert code == os.EX_UNAVAILABLE
    assert err == "mclistd: socket_group: there is no group no-such-group\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_user_that_a_start_would_not_find(tmp_path):
    path = tmp_path / "user.ini"
    path.write_text("[proxy]\nuser = no-such-user\n" + SERVERS)
    code, _, err = run("-t", "-c", path)
    assert code == os.EX_NOUSER
    assert err == "mclistd: user: there is no user no-such-user\n"


def test_flags_alone_are_enough(start, start_memcached):
    port = free_port()
    servers = [start_memcached(), start_memcached()]
    start(
        "-l", HOST, "-p", port, "-T", 3, "-s", ",".join(server.address for server in servers), port=port
    )
    with Conn(port) as conn:
        for i in range(20):
            assert conn.set(f"key{i}", "x") == b"STORED"
        assert conn.stats()["threads"] == "3"
    for server in servers:
        with server.conn() as direct:
            assert int(direct.stats()["curr_items"]) > 0


def test_flags_go_over_the_file(start, start_memcached, tmp_path):
    in_file, port = free_port(), free_port()
    path = tmp_path / "a.ini"
    path.write_text(
        f"[proxy]\nlisten = {HOST}:{in_file}\nthreads = 1\n[pool main]\n"
        f"servers = {start_memcached().address}\n"
    )
    start("--config", path, "--port", port, "--threads", 2, port=port)
    with Conn(port) as conn:
        assert conn.stats()["threads"] == "2"
        assert conn.set("key", "x") == b"STORED"
    with pytest.raises(OSError):
        Conn(in_file).close()


def test_several_listen_addresses(start, start_memcached, tmp_path):
    ports = [free_port(), free_port()]
    path = tmp_path / "socket"
    listen = f"{HOST}:{ports[0]},localhost:{ports[1]},unix:{path}"
    start("-l", listen, "-s", start_memcached().address, port=ports[0])
    for port in ports:
        with Conn(port) as conn:
            assert conn.cmd("mn") == b"MN"
    assert pathlib.Path(path).is_socket()
