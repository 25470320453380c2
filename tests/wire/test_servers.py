# SPDX-License-Identifier: BSD-3-Clause
"""mclistd-cli servers: a pool gets other servers by one word, while clients change its lists."""

import base64
import signal
import threading
import time

import pytest

from harness import in_threads, pause_process, wait_until
from test_cli_support import servers

NAMES = [f"list{n}" for n in range(60)]
UNUSED = [f"unused{n}" for n in range(40)]


@pytest.fixture
def start(start_daemon):
    """A function that starts a proxy before some servers, which has others for next."""
    def start(old, new=None, pool=None, **more):
        config = {"proxy": more, "pool main": {"gate_s": 1, **(pool or {})}, "lists": {"pool": "main", "max_item_bytes": 500}}
        if new is not None:
            config["pool main"]["next"] = "grown"
            config["pool grown"] = {"servers": ", ".join(server.address for server in new)}
        daemon = start_daemon(old, config=config)
        with daemon.conn() as conn:
            conn.cmd("version")
        return daemon
    return start


class Adders:
    """Clients that add to all lists through several proxies until they are told to end."""

    def __init__(self, names):
        self.names, self.proxies, self.ends = names, [], threading.Event()
        self.added = {name: set() for name in names}
        self.faults = []

    def run(self, proxies, what):
        """Runs what() meanwhile."""
        self.ends.clear()
        threads = [threading.Thread(target=self._add, args=(proxy, f"{id(what)}-{n}"))
                   for n, proxy in enumerate(proxies)]
        for thread in threads:
            thread.start()
        try:
            return what()
        finally:
            self.ends.set()
            for thread in threads:
                thread.join()
            assert not self.faults

    def _add(self, proxy, mine):
        count = 0
        with proxy.conn() as conn:
            while not self.ends.is_set():
                name, item = self.names[count % len(self.names)], f"{mine}-{count}"
                answer = conn.cmd(f"ladd {name} {item}")
                if answer != b"STORED":
                    self.faults.append(answer)
                    return
                self.added[name].add(item.encode())
                count += 1
                time.sleep(0.005)  # often enough; the processors are for the move

    def check(self, proxy):
        with proxy.conn() as conn:
            for name in self.names:
                items = conn.lget(name)
                assert len(items) == len(set(items))
                assert set(items) == self.added[name]


def gate_of(server):
    with server.conn() as conn:
        return conn.get("mclistd#pool.main") or b""


def marks(servers):
    count = 0
    for server in servers:
        with server.conn() as conn:
            count += sum((conn.get(f"{name}#") or b"").startswith(b"^> ") for name in NAMES + UNUSED)
    return count


def count_heads(servers, names):
    return sum(len(heads(server, names)) for server in servers)


def heads(server, names):
    with server.conn() as conn:
        return {name for name in names if (conn.get(f"{name}#") or b"").startswith(b"^1")}


@pytest.mark.memcacheds(3)
def test_a_pool_grows_by_one_word_while_clients_add(start, memcacheds):
    old, new = memcacheds[:2], memcacheds
    adders = Adders(NAMES)
    first = start(old)
    adders.run([first], lambda: time.sleep(0.5))
    with first.conn() as conn:
        for name in UNUSED:
            assert conn.cmd(f"ladd {name} a b c") == b"STORED"
    proxies = [start(old, new) for _ in range(2)]
    first.stop()
    text = servers(proxies[0], "plan")
    assert "lists: " in text and f"{new[2].address}: " in text
    text = adders.run(proxies, lambda: servers(
        proxies[0], "move", "--also", f"127.0.0.1:{proxies[1].port}"))
    assert "All lists of pool main are on their new servers" in text
    assert servers(proxies[0], "move") != "" and "step done" in servers(proxies[0], "status")
    adders.check(proxies[1])
    assert "the step is done" in servers(proxies[0], "back", code=1)
    last = [start(new) for _ in range(2)]
    adders.run(proxies + last, lambda: time.sleep(0.5))
    for proxy in proxies:
        proxy.stop()
    adders.check(last[0])
    with last[0].conn() as conn:
        assert all(conn.lget(name) == [b"a", b"b", b"c"] for name in UNUSED)
    assert heads(new[2], UNUSED) and heads(new[2], NAMES)
    assert count_heads(new, NAMES + UNUSED) == len(NAMES + UNUSED)  # none is in two places
    wait_until("no item says that lists move", lambda: b"next =" not in b"".join(map(gate_of, new)))
    assert "removed" in servers(last[0], "sweep")
    assert marks(new) == 0
    assert servers(last[0], "sweep").startswith("removed 0 marks")
    adders.check(last[0])


@pytest.mark.memcacheds(2)
def test_a_proxy_that_sleeps_through_two_steps_answers_nothing_as_done(start, memcacheds, start_relay):
    """It has the old file, and knows no marks: its append to one is stored, and means nothing."""
    relay = start_relay(memcacheds[0])
    proxy = start(memcacheds[:1], memcacheds[1:])
    sleeper = start([relay], threads=1, deadline_ms=600000, pool={"timeout_ms": 600000})
    with sleeper.conn() as slow, proxy.conn() as conn:
        assert slow.cmd("ladd list first") == b"STORED"
        relay.hold_after(0)
        slow.send("ladd list late\r\n")
        wait_until("it has sent it", lambda: any(b"late" in packet for packet in relay.packets))
        pause_process(sleeper.process.pid)
        servers(proxy, "move")
        relay.release()
        with memcacheds[0].conn() as server:
            wait_until("the mark has it", lambda: b"late" in server.get("list#"))
        sleeper.process.send_signal(signal.SIGCONT)
        assert b"unknown" in slow.line()
        assert conn.lget("list") == [b"first"]
        sleeper.wait_for_log("UNEQUAL PROXIES")
        assert slow.cmd("ladd list later").startswith(b"SERVER_ERROR proxies of pool main are unequal")


@pytest.mark.memcacheds(2)
def test_a_proxy_that_has_slept_goes_on(start, memcacheds):
    proxy = start(memcacheds)
    with proxy.conn() as conn:
        assert conn.cmd("ladd list a") == b"STORED"
        pause_process(proxy.process.pid)
        time.sleep(3)  # of gate_s = 1
        proxy.process.send_signal(signal.SIGCONT)
        wait_until("it has read the gate", lambda: conn.cmd("ladd list b") == b"STORED")
        assert conn.lget("list") == [b"a", b"b"]
    proxy.wait_for_log("the gate was not read for more than 2 s")


@pytest.mark.thorough
@pytest.mark.memcacheds(3)
def test_plain_keys_that_no_client_uses_move(start, memcacheds):
    proxy = start(memcacheds[:2], memcacheds)
    with proxy.conn() as conn:
        for name in UNUSED:
            assert conn.set(name, f"of {name}") == b"STORED"
    text = servers(proxy, "move", "--rate", "0")
    assert "plain keys left: 0" in text
    proxy.stop()
    with start(memcacheds).conn() as conn:
        assert all(conn.get(name) == f"of {name}".encode() for name in UNUSED)


@pytest.mark.thorough
@pytest.mark.memcacheds(3)
def test_a_proxy_that_starts_behind_done_makes_lists_on_their_new_servers(start, memcacheds):
    servers(start(memcacheds[:2], memcacheds), "move")
    late, last = start(memcacheds[:2], memcacheds), start(memcacheds)
    with late.conn() as one, last.conn() as other:
        for name in NAMES:
            assert one.cmd(f"ladd {name} a") == b"STORED"
        assert all(other.lget(name) == [b"a"] for name in NAMES)


@pytest.mark.memcacheds(3)
def test_steps_by_hand_and_what_is_refused(start, memcacheds):
    old, new = memcacheds[:2], memcacheds
    first = start(old)
    assert "the file comes first" in servers(first, "plan", code=1)
    assert "expected plan, status, move" in servers(first, "grow", code=2)
    assert "--rate fast: expected a number" in servers(first, "move", "--rate", "fast", code=2)
    proxy = start(old, new)
    with proxy.conn() as conn:
        for name in UNUSED:
            assert conn.cmd(f"ladd {name} a") == b"STORED"
    assert "it does not have the file yet" in servers(
        proxy, "step", "--also", f"127.0.0.1:{first.port}", code=1)
    first.stop()
    assert f"lists: {len(UNUSED)}" not in servers(proxy, "plan")  # some stay
    assert "the step is learn" in servers(proxy, "back")
    assert "step move (number 1)" in servers(proxy, "step")
    assert "lists are still on their old servers" in servers(proxy, "step", code=1)
    assert "step learn (number 2)" in servers(proxy, "back")
    wait_until("the proxy follows", lambda: b" learn 2\n" in gate_of(old[0]))
    with old[0].conn() as conn:
        conn.set("mclistd#pool.main", "anything")
    assert "holds foreign data under mclistd#pool.main" in servers(proxy, "step", code=1)
    assert "foreign" in servers(proxy, "status", code=1)
    with old[0].conn() as conn:
        assert conn.cmd("delete mclistd#pool.main") == b"DELETED"
    wait_until("the item is there again", lambda: b" learn 2\n" in gate_of(old[0]))
    old[1].stop()
    assert "a step needs all servers of the pool" in servers(proxy, "step", code=1)
    text = servers(proxy, "status", code=1)
    assert "step learn, number 2" in text and "that the file of all proxies says is dead" in text


@pytest.mark.thorough
@pytest.mark.memcacheds(2)
def test_two_commands_at_once_and_a_list_that_stays(start, memcacheds):
    proxy = start(memcacheds[:1], memcacheds[1:])
    with proxy.conn() as conn:
        for name in UNUSED:
            assert conn.cmd(f"ladd {name} a") == b"STORED"
        with memcacheds[0].conn() as direct:
            direct.set("unused0#", "^1 *of-a-later-release\n")
        results = [None, None]

        def move(number):
            results[number] = servers(proxy, "move", "--leave", "1")

        in_threads(2, move)
        assert all("1 stay: what is stored there is no list that this release can read (unused0)" in text for text in results)
        assert all("All lists of pool main are on their new servers" in text for text in results)
        assert count_heads(memcacheds[1:], UNUSED) == len(UNUSED) - 1


@pytest.mark.thorough
@pytest.mark.memcacheds(2)
def test_a_key_of_any_bytes_never_becomes_a_command(start, memcacheds):
    proxy = start(memcacheds[:1], memcacheds)
    key = base64.b64encode(b"plain\nflush_all\nget").decode()
    with memcacheds[0].conn() as server, proxy.conn() as conn:
        assert conn.set("victim", "unhurt") == b"STORED"
        assert server.cmd(f"ms {key} 1 b\r\nx") == b"HD"
        assert "plain keys: " in servers(proxy, "plan")
        servers(proxy, "move")
        assert conn.get("victim") == b"unhurt"


CRAWLED = b"key=list%23 exp=-1 la=1 cas=1 fetch=no cls=1 size=100\nEND\r\n"


def test_a_memcached_that_ends_while_it_is_read_is_told_in_one_line(start, memcached, start_fake):
    def end_at_the_head(fake, sock):
        answers = {b"version": b"VERSION 1.6.38\r\n", b"stats": b"STAT time 1\r\nEND\r\n",
                   b"lru_crawler": CRAWLED, b"mg": b"EN\r\n"}
        for line, _ in fake.requests(sock):
            if line.startswith(b"mg list# "):
                return
            sock.sendall(answers[line.split()[0]])

    fake = start_fake(end_at_the_head, handshake=None)
    text = servers(start([memcached], [fake]), "plan", code=1)
    assert text == f"mclistd-cli: servers: memcached {fake.address}: connection closed\n"


@pytest.mark.parametrize("verb, answer", [
    (b"stats", b"STAT time %s\r\nEND\r\n"), (b"stats", b"END\r\n"),
    (b"lru_crawler", CRAWLED.replace(b"100", b"%s")), (b"mg list#", b"HD s%s f0 c1\r\n"),
    (b"mg list#", b"HD s4\r\n"), (b"mg list#", b"HD\r\n"), (b"mg list#", b"VA\r\n"),
    (b"mg list#", b"VA %s\r\n"), (b"mg list#", b"VA -3 s1 f0 c1\r\n\r\n"),
    (b"mg list#", b"VA 2 s1 f0 c1\r\nabcd\r\n")])
def test_a_memcached_that_answers_no_numbers_is_told_in_one_line(start, memcached, start_fake, verb, answer):
    def lie(fake, sock):
        answers = {b"version": b"VERSION 1.6.38\r\n", b"stats": b"STAT time 1\r\nEND\r\n",
                   b"lru_crawler": CRAWLED, b"mg": b"EN\r\n"}
        for line, _ in fake.requests(sock):
            lies = line.startswith(verb)
            sock.sendall(answer.replace(b"%s", b"9" * 5000) if lies else answers[line.split()[0]])

    fake = start_fake(lie, handshake=None)
    text = servers(start([memcached], [fake]), "plan", code=1)
    assert text.startswith("mclistd-cli: servers: ") and text.count("\n") == 1 and len(text) < 300


@pytest.mark.memcacheds(3)
def test_a_server_that_is_gone_is_taken_out(start, memcacheds):
    """Its lists are missing, and made anew; then it comes back with what it held."""
    old, new = memcacheds[:2], [memcacheds[0], memcacheds[2]]
    first = start(old, new)
    with first.conn() as conn:
        for name in UNUSED:
            assert conn.cmd(f"ladd {name} a") == b"STORED"
        for name in NAMES:
            assert conn.set(name, "before") == b"STORED"
    lost = [name for name in UNUSED if count_heads(memcacheds[1:2], [name])]
    assert 0 < len(lost) < len(UNUSED)
    with memcacheds[1].conn() as server:
        missing = [name for name in NAMES if server.get(name)]
    servers(first, "step")
    memcacheds[1].pause()
    first.stop()
    gone = {"dead": memcacheds[1].address, "change": 1, "step": "move"}
    second = start(old, new, gone)
    with second.conn() as conn:
        wait_until("the others had time to see the file", lambda: conn.cmd(f"llen {lost[0]}") == b"0")
        for name in UNUSED:
            assert conn.llen(name) == (name not in lost)
        assert conn.cmd(f"ladd {lost[0]} b c") == b"STORED"
        assert conn.cmd(f"ladd {lost[0]} d") == b"STORED"
        assert conn.lget(lost[0]) == [b"b", b"c", b"d"]
        assert [name for name in NAMES if conn.get(name) is None] == missing != []
        for verb in ("add", "append", "set"):
            assert conn.cmd(f"{verb} {missing[0]} 0 0 5", "after") == b"STORED"
        assert conn.cmd(f"delete {missing[1]}") == b"NOT_FOUND"
    assert f"{memcacheds[1].address} is dead: what it held is lost" in servers(second, "plan")
    assert "All lists of pool main are on their new servers" in servers(second, "move")
    memcacheds[1].resume()
    with second.conn() as conn:
        assert conn.lget(lost[0]) == [b"b", b"c", b"d"]
        assert conn.get(missing[0]) == b"after" and conn.get(missing[1]) is None
    second.stop()
    with start(new, None, {"change": 1}).conn() as conn:
        assert conn.lget(lost[0]) == [b"b", b"c", b"d"]
        assert conn.llen(lost[1]) == 0
        assert all(conn.lget(name) == [b"a"] for name in UNUSED if name not in lost)
