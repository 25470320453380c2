# SPDX-License-Identifier: BSD-3-Clause
"""Stock clients of memcached, which can send no list verbs, keep lists by their own calls: bridge =
yes. Many of them at once on the same list, each for itself, and what it sees when it is refused."""

import re

import pytest

from client_support import BINARY, CLIENTS, NO_APPEND, NO_PREPEND, rows_of
from harness import in_threads

pytestmark = [pytest.mark.release, pytest.mark.config(**{"lists followers:": {"bridge": True}})]
SPEAKERS = [*CLIENTS, *BINARY]
WRITERS = [client for client in SPEAKERS if client not in NO_APPEND | NO_PREPEND]
KEY = "followers:ann"


def setting_of(client):
    if client in BINARY:
        return "binary"
    return "text" if client in ("PHP Memcached", "dalli", "dalli with meta") else "default"


@pytest.fixture
def start(start_agent, daemon):
    servers = [f"127.0.0.1:{daemon.port}"]
    return lambda client: start_agent(BINARY.get(client, client), setting_of(client), servers)


@pytest.fixture
def all_agents(start):
    """Those whose clients are installed. That the others are not is said by the tests of each."""
    agents = {}
    for client in SPEAKERS:
        try:
            agents[client] = start(client)
        except pytest.skip.Exception:
            pass
    return agents


# --- many clients, one list ---


@pytest.mark.thorough
def test_each_client_sees_what_the_others_change(all_agents, conn):
    """PHP, Node, Python and the others in turns; at last by list verbs."""
    items = []

    def all_see():
        expected = f"is {','.join(items)}" if items else "miss"
        for agent in all_agents.values():
            assert agent.ask("get", KEY) == expected
        assert conn.lget(KEY) == [item.encode() for item in items]

    for client in WRITERS:
        if client in all_agents:
            assert all_agents[client].ask("append", KEY, f"of-{client}") == "yes"
            items.append(f"of-{client}")
            all_see()
    for client in reversed(WRITERS):
        if client in all_agents:
            assert all_agents[client].ask("prepend", KEY, items.pop(0)) == "yes"
            all_see()
    assert items == []


def test_all_clients_at_once_on_one_list(all_agents, daemon):
    """Each adds items and deletes every third again; none of it is lost, and the items of each stand
    in the order in which it added them."""
    names = ["list verbs", *(client for client in all_agents if client in WRITERS)]
    rounds = 42

    def requests(name):
        slug = re.sub(r"\W", "", name)
        for number in range(rounds):
            yield "append", f"{slug}-{number}"
            if number % 3 == 2:
                yield "prepend", f"{slug}-{number - 1},{slug}-none"

    def work(number):
        name = names[number]
        if name in all_agents:
            asked = [(verb, KEY, text) for verb, text in requests(name)]
            assert all_agents[name].ask_all(asked) == ["yes"] * len(asked), name
            return
        with daemon.conn() as conn:
            for verb, text in requests(name):
                if verb == "append":
                    assert conn.cmd(f"ladd {KEY} {text}") == b"STORED"
                else:
                    assert conn.cmd(f"ldel {KEY} {text.replace(',', ' ')}") == b"DELETED"

    in_threads(len(names), work)
    with daemon.conn() as conn:
        items = [item.decode() for item in conn.lget(KEY)]
    for name in names:
        own = [item for item in items if item.startswith(re.sub(r"\W", "", name) + "-")]
        kept = [number for number in range(rounds) if number % 3 != 1]
        assert [int(item.rsplit("-", 1)[1]) for item in own] == kept, name
    for client, agent in all_agents.items():
        assert agent.ask("get", KEY) == f"is {','.join(items)}", client


# --- each client by itself ---


@pytest.mark.parametrize("client", WRITERS)
def test_a_client_keeps_a_list(start, conn, client):
    agent = start(client)
    assert agent.ask("get", KEY) == "miss"
    assert agent.ask("append", KEY, "bob") == "yes"
    assert agent.ask("append", KEY, "carol smith,dave") == "yes"
    assert agent.ask("append", KEY, "bob") == "yes"
    assert agent.ask("get", KEY) == "is bob,carol smith,dave"
    assert agent.ask("prepend", KEY, "bob") == "yes"
    assert conn.lgetb(KEY) == [b"carol smith", b"dave"]
    assert agent.ask("add", KEY, "x") == "no"
    assert agent.ask("set", KEY, "x,y,") == "yes"
    assert agent.ask("get", KEY) == "is x,y"
    assert agent.ask("delete", KEY) == "yes"
    assert agent.ask("get", KEY) == "miss"
    assert agent.ask("add", KEY, "z") == "yes"
    assert conn.lget(KEY) == [b"z"]


@pytest.mark.parametrize("client", sorted(NO_APPEND))
def test_a_client_without_append_reads_and_replaces_lists(start, conn, client):
    agent = start(client)
    assert agent.ask("append", KEY, "bob") == "no such call"
    assert agent.ask("add", KEY, "bob,carol") == "yes"
    assert agent.ask("add", KEY, "dave") == "no"
    assert agent.ask("set", KEY, "dave,eve") == "yes"
    assert conn.cmd(f"ladd {KEY} frank") == b"STORED"
    assert agent.ask("get", KEY) == "is dave,eve,frank"
    assert agent.ask("delete", KEY) == "yes"


def test_memjs_adds_what_it_prepends(start, conn):
    agent = start("memjs")
    assert agent.ask("append", KEY, "bob") == "yes"
    assert agent.ask("prepend", KEY, "carol") == "yes"
    assert agent.ask("get", KEY) == "is bob,carol"
    assert agent.ask("add", KEY, "x") == "no"
    assert agent.ask("set", KEY, "x,y") == "yes"
    assert conn.lget(KEY) == [b"x", b"y"]
    assert agent.ask("delete", KEY) == "yes"


@pytest.mark.parametrize("client", SPEAKERS)
def test_a_client_writes_a_long_list(start, conn, client):
    """In one step, without compression."""
    items = [f"user-{number}" for number in range(500)]
    agent = start(client)
    assert agent.ask("set", KEY, ",".join(items)) == "yes"
    assert agent.ask("get", KEY) == f"is {','.join(items)}"
    assert conn.llen(KEY) == 500


NO_CAS = {"Cache::Memcached", "memjs"}


@pytest.mark.parametrize("client", [client for client in SPEAKERS if client not in NO_CAS])
def test_a_client_replaces_what_it_has_read(start, conn, client):
    """gets and cas: nothing that another client adds in between is lost."""
    agent = start(client)
    assert agent.ask("set", KEY, "a,b") == "yes"
    assert agent.ask("gets", KEY) == "is a,b"
    assert conn.cmd(f"ladd {KEY} c") == b"STORED"
    assert agent.ask("cas", KEY, "x") == "no"
    assert agent.ask("gets", KEY) == "is a,b,c"
    assert agent.ask("cas", KEY, "c,b,a") == "yes"
    assert conn.lget(KEY) == [b"c", b"b", b"a"]


@pytest.mark.parametrize("client", SPEAKERS)
def test_a_client_replaces_only_what_is_there(start, conn, client):
    """As of memcached itself, dalli 3.0 takes "not found" for a success, and pylibmc for an error."""
    agent = start(client)
    said = {"dalli": "yes", "pylibmc with binary=True": "error NotFound"}
    assert agent.ask("replace", KEY, "x").startswith(said.get(client, "no"))
    assert agent.ask("get", KEY) == "miss"
    assert conn.cmd(f"ladd {KEY} a") == b"STORED"
    assert agent.ask("replace", KEY, "x,y") == "yes"
    assert agent.ask("get", KEY) == "is x,y"


NO_TOUCH = {"Cache::Memcached"}


@pytest.mark.parametrize("client", [client for client in SPEAKERS if client not in NO_TOUCH])
def test_a_client_gives_a_list_a_time_to_live(start, conn, client):
    agent = start(client)
    assert agent.ask("touch", KEY, 1000) == "no"
    assert agent.ask("set", KEY, "a,b") == "yes"
    assert conn.cmd(f"lttl {KEY}") == b"-1"
    assert agent.ask("touch", KEY, 1000) == "yes"
    assert 0 < int(conn.cmd(f"lttl {KEY}")) <= 1000
    assert agent.ask("get", KEY) == "is a,b"


# --- text of users ---


@pytest.mark.parametrize("client", SPEAKERS)
def test_line_ends_in_text_stay_text(start, conn, client):
    """What Node memcached puts in front of line ends is its own."""
    agent = start(client)
    assert conn.cmd("ladd victim unhurt") == b"STORED"
    assert agent.ask("set", KEY, "x<CRLF>ldrop victim,noreply") == "yes"
    line_end = b"\\\r\\\n" if client == "Node memcached" else b"\r\n"
    assert conn.lgetb(KEY) == [b"x" + line_end + b"ldrop victim", b"noreply"]
    assert conn.lgetb("victim") == [b"unhurt"]


# --- refusals ---

# What the table says in words, as the agent shows it.
REFUSED = {
    "PHP Memcached": r"error 9: CLIENT ERROR",
    "pymemcache": r"error MemcacheClientError: .*holds an empty item",
    "pylibmc": r"error ClientError: .*holds an empty item",
    "python3-memcache": r"no",
    "Node memcached": r"error Error: value holds an empty item",
    "memjs": r"error Error: .*",
    "dalli": r"error Dalli::DalliError: Response error 4",
    "dalli with meta": r"error Dalli::DalliError: Response error: CLIENT_ERROR",
    "Cache::Memcached": r"no",
    "Cache::Memcached::Fast": r"error undef",
    "gomemcache": r'error memcache: unexpected response line from "set": "CLIENT_ERROR value holds',
    "spymemcached": r"error .*OperationException: CLIENT: CLIENT_ERROR value holds an empty item",
    "libmemcached": r"error .*holds an empty item",
}


def test_the_table_of_refusals_has_every_client():
    assert [row[0] for row in rows_of("When the proxy refuses")] == list(REFUSED)
    assert set(REFUSED) == set(CLIENTS) - {"gomemcache of 2023"}  # it has another one's row


@pytest.mark.parametrize("client", REFUSED)
def test_what_a_client_sees_when_it_is_refused(start, conn, client):
    agent = start(client)
    assert agent.ask("set", KEY, "a,b") == "yes"
    assert re.match(REFUSED[client], agent.ask("set", KEY, "a,,b"))
    assert agent.ask("get", KEY) == "is a,b"
    assert conn.lget(KEY) == [b"a", b"b"]


# In the binary protocol.
REFUSED_BINARY = {
    "PHP Memcached with OPT_BINARY_PROTOCOL": r"error 7: UNKNOWN READ FAILURE",
    "pylibmc with binary=True": r"error UnknownReadFailure: ",
    "libmemcached with BEHAVIOR_BINARY_PROTOCOL": r"error .*UNKNOWN READ FAILURE",
}


def test_every_client_in_binary_is_refused():
    assert set(REFUSED_BINARY) == set(BINARY)


@pytest.mark.parametrize("client", REFUSED_BINARY)
def test_what_a_client_sees_in_binary_when_it_is_refused(start, conn, client):
    agent = start(client)
    assert agent.ask("set", KEY, "a,b") == "yes"
    assert re.match(REFUSED_BINARY[client], agent.ask("set", KEY, "a,,b"))
    assert agent.ask("get", KEY) == "is a,b"


@pytest.mark.parametrize("client, flags", [("PHP Memcached", 80), ("spymemcached", 2), ("dalli with meta", 2)])
def test_compressed_text_is_refused(start_agent, daemon, conn, client, flags):
    """As these clients do with long text by default."""
    agent = start_agent(client, "default", [f"127.0.0.1:{daemon.port}"])
    assert agent.ask("set", KEY, "a,b") == "yes"
    assert agent.ask("set", KEY, "user-1," * 6000).startswith("error ")
    assert agent.ask("get", KEY) == "is a,b"
    refused = conn.cmd(f"set {KEY} {flags} 0 1", "x")
    assert refused.startswith(b"CLIENT_ERROR value has flags %d: switch off" % flags)


# --- dalli ---


def meta(conn, line, data=None):
    """The answer's lines, the data block of a VA among them."""
    first = conn.cmd(line, data)
    if first.startswith(b"VA "):
        return [first, conn.data(int(first.split()[1]))]
    return [first]


def test_dalli_5_keeps_a_list(conn):
    """What dalli 5.2 sends for these calls, with raw: true, and which answers it takes."""
    assert conn.cmd("version").startswith(b"VERSION ")
    assert meta(conn, f"mg {KEY} v") == [b"EN"]  # get
    assert meta(conn, f"ms {KEY} 3 MA", "bob") == [b"HD"]  # append
    assert meta(conn, f"ms {KEY} 5 MA", "carol") == [b"HD"]
    assert meta(conn, f"mg {KEY} v") == [b"VA 9", b"bob,carol"]
    assert meta(conn, f"ms {KEY} 3 MP", "bob") == [b"HD"]  # prepend
    conn.send(f"mg {KEY} v f k q s\r\n", "mg followers:none v f k q s\r\n", "mn\r\n")  # get_multi
    assert conn.line() == f"VA 5 f0 k{KEY} s5".encode()
    assert conn.data(5) == b"carol"
    assert conn.line() == b"MN"
    assert meta(conn, f"md {KEY}") == [b"HD"]  # delete
    assert conn.lget(KEY) == []
    assert meta(conn, f"ms {KEY} 3 c F0 T0 MS", "a,b") == [b"HD c0"]  # set
    assert meta(conn, f"ms {KEY} 1 c F0 T0 ME", "x") == [b"NS c0"]  # add
    head, text = meta(conn, f"mg {KEY} v f c")  # get_cas
    version = re.fullmatch(rb"VA 3 f0 c(\d+)", head).group(1).decode()
    assert text == b"a,b"
    assert meta(conn, f"ms {KEY} 1 c F0 C{version} T0 MS", "c") == [b"HD c0"]  # set_cas
    assert meta(conn, f"ms {KEY} 1 c F0 C{version} T0 MS", "d") == [b"EX c0"]
    assert meta(conn, f"mg {KEY} T100") == [b"HD"]  # touch
    assert meta(conn, f"mg {KEY} v f T100") == [b"VA 1 f0", b"c"]  # gat
