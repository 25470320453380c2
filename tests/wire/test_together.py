# SPDX-License-Identifier: BSD-3-Clause
"""docs/together.md, cell by cell: which verbs work on which lists, what goes with what in a file, and
what a list under a lease answers."""

import itertools
import re

import pytest

from couchbase_support import Cluster, documents
from harness import ROOT, wait_until, write_ini
from test_config_cli import run
from test_dialects_support import DIALECTS

# What the section of a kind of lists says.
DIALECT_KINDS = {**{name: {"dialect": name} for name in DIALECTS},
                 "migrate": {"dialect": "signed", "migrate": "native"}}
KINDS = {
    "native": {},
    "max_items": {"max_items": 9},
    "ttl_s": {"ttl_s": 1000},
    "refuse": {"on_missing": "refuse"},
    "recent": {"order": "recent"},
    "none": {"delimiter": "none"},
    "bridge": {"bridge": True},
    "spread": {"placement": "spread"},
    "bucket": {"pool": "documents"},
    "old": {"pool": "old"},
    "stale": {"max_stale_ms": 10000},
    "moves": {"pool": "growing"},
    **DIALECT_KINDS,
}
SETTINGS = {
    "max_items": {"max_items": 9},
    "ttl_s": {"ttl_s": 100},
    "ttl_renew": {"ttl_s": 100, "ttl_renew": "change"},
    "on_missing = refuse": {"on_missing": "refuse"},
    "on_damaged = miss": {"on_damaged": "miss"},
    "order = recent": {"order": "recent"},
    "max_stale_ms": {"max_stale_ms": 100},
    "delimiter = none": {"delimiter": "none"},
    "placement = spread": {"placement": "spread"},
    "bridge = yes": {"bridge": "yes"},
    "bridge = signed": {"bridge": "signed"},
    "bridge_delete": {"bridge": "yes", "bridge_delete": "purge"},
    "type = couchbase": {"pool": "documents"},
}
# The request, and how its answer begins. {k}: the list, which holds a, b and c; {m}: a missing one of
# its kind, {o}: another one of its kind, {n}: a native one. {block}: the bytes of BLOCK; likewise LINES.
VERBS = {
    "ladd": ("ladd {k} d", "STORED"),
    "ldel": ("ldel {k} a", "DELETED"),
    "lset": ("lset {k} x y", "STORED"),
    "lcreate": ("lcreate {m} x y", "STORED"),
    "laddx": ("laddx {k} c d", "1$"),
    "ldelx": ("ldelx {k} c d", "1$"),
    "lpop": ("lpopb {k} 2", "ITEM {k} 1"),
    "laddt": ("laddt {k} 100 d", "STORED"),
    "lput": ("lputb {k} {block}", "STORED"),
    "lput EXPTIME": ("lputb {k} {block} 100", "STORED"),
    "lcopy to a native list": ("lcopy {k} {n}", "3$"),
    "lcopy from a native list": ("lcopy {n} {k}", "3$"),
    "ltouch": ("ltouch {k} 100", "TOUCHED"),
    "lttl": ("lttl {k}", "(-1|1000|99.)$"),
    "llease": ("llease {m} 5", "[0-9]+$"),
    "lget": ("lget {k}", "VALUE {k} 0 5"),
    "lhas": ("lhas {k} a z", "VALUE {k} 0 1"),
    "llen": ("llen {k}", "3$"),
    "lrange": ("lrange {k} 0 1", "VALUE {k} 0 3"),
    "lrandom": ("lrandomb {k} 1", "ITEM {k} 1"),
    "lafter": ("lafter {k} a 1", "VALUE {k} 0 1"),
    "lgetx": ("lgetx {n} {k}", "VALUE"),
    "linter": ("linter {n} {k}", "VALUE {n} 0 5"),
    "linterstore": ("linterstore {k} {n} {k}", "3$"),
    "ltx": ("ltx {lines}", "STORED"),
    "lmove": ("lmove {k} {o} a", "1$"),
    "lpopto": ("lpoptob {k} {o} 1", "ITEM {o} 1"),
    "lpurge": ("lpurge {k}", "3$"),
    "lcompact": ("lcompact {k}", "OK"),
    "lstat": ("lstat {k}", "STAT"),
    "ldrop": ("ldrop {k}", "DELETED"),
    "lconvert": ("lconvert {k}", "3$"),
    "lmigrate": ("lmigrate {k}", "OK"),
}
# Verbs of the same row: the request, and how its answer begins.
NEIGHBOURS = {
    "ladd": [("laddq {k} d", "$")],
    "ldel": [("ldelq {k} a", "$")],
    "lset": [("lsetq {k} x y", "$")],
    "lget": [("lgets {k}", "VALUE {k} 0 5")],
    "lrange": [("lrevrange {k} 0 1", "VALUE {k} 0 3")],
    "lafter": [("lbefore {k} c 1", "VALUE {k} 0 1")],
    "linter": [("lunion {n} {k}", "VALUE {n} 0 5"), ("ldiff {n} {k}", "END"), ("linterlen {n} {k}", "3$"),
               ("lunionlen {n} {k}", "3$"), ("ldifflen {n} {k}", "0$")],
    "linterstore": [("lunionstore {k} {n} {k}", "3$"), ("ldiffstore {k} {n} {o}", "0$")],
}
REQUESTS = [(verb, *one) for verb, first in VERBS.items() for one in [first, *NEIGHBOURS.get(verb, [])]]
BLOCK = "ITEM {k} 1\r\nx\r\nITEM {k} 1\r\ny\r\n"
LINES = "lrequire {k} a\r\nldel {k} a\r\nladd {o} a\r\n"
DOCUMENT = (ROOT / "docs/together.md").read_text()
REFUSALS = dict(re.findall(r"^- \*\*(\w)\*\*: `\.\.\. (.*) \.\.\.`$", DOCUMENT, re.M))


def tables():
    """[({column: cell} by row, columns)] of the document."""
    found = []
    for text in re.findall(r"^\|.*\n\|-.*\n(?:\|.*\n)+", DOCUMENT, re.M):
        head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
        found.append(({row[0]: dict(zip(head[1:], row[1:])) for row in rows}, head[1:]))
    return found


NATIVE, OF_DIALECTS, IN_FILES, UNDER_LEASE, TIMES, ROUTED, OF_ROUTES, OF_MOVES = tables()


def talk(conn, request, body=None):
    """All lines of the answer."""
    conn.send(request, "\r\n", *([] if body is None else [body, "\r\n"]), "mn\r\n")
    lines = []
    while (line := conn.line().decode()) != "MN":
        lines.append(line)
    return "\n".join(lines)


def ask(conn, request, good, key, missing=None):
    """The answer, and whether it is that of a list that holds a, b and c."""
    names = {"k": key, "m": missing or key + "-missing", "o": key + "-other", "n": "native-" + key}
    bodies = {"block": BLOCK.format(**names), "lines": LINES.format(**names)}
    body = next((text for name, text in bodies.items() if f"{{{name}}}" in request), None)
    sizes = {name: len(text) for name, text in bodies.items()}
    text = talk(conn, request.format(**names, **sizes), body)
    return text, re.match(good.format(**names), text) is not None


def fill(conn, *keys):
    for key in keys:
        if key.startswith("migrate-"):  # as old code wrote it: what a proxy makes there is native
            assert talk(conn, f"set {key} 0 0 6", "+a+b+c") == "STORED"
        elif talk(conn, f"ladd {key} a b c") == "NOT_STORED":
            assert talk(conn, f"lcreate {key} a b c") == "STORED"


def key_of(kind, verb):
    return f"{kind}-{re.sub('[^a-z]', '', verb.lower())}"


def key_of_request(kind, verb, request):
    return f"{key_of(kind, verb)}-{request.split()[0]}"


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=3) as cluster:
        yield cluster


@pytest.fixture
def everything(cluster, start_memcached, start_old, start_daemon, tmp_path):
    """A daemon that has lists of all kinds."""
    config = {"proxy": {"allow_flush_all": "no"},
              "pool documents": documents(cluster, tmp_path),
              "pool old": {"servers": [f"127.0.0.1:{start_old('1.5.22').port}"]},
              "pool growing": {"servers": start_memcached().address, "next": "grown", "step": "move", "gate_s": 1},
              "pool grown": {"servers": start_memcached().address},
              **{f"lists {kind}-": settings for kind, settings in KINDS.items()}}
    return start_daemon([start_memcached() for _ in range(2)], config=config)


def test_the_tables_have_all_rows_and_columns():
    assert NATIVE[1] + OF_DIALECTS[1] == list(KINDS)
    assert list(NATIVE[0]) == list(OF_DIALECTS[0]) == list(VERBS)
    assert (list(IN_FILES[0]), IN_FILES[1]) == (list(SETTINGS), list(DIALECT_KINDS))
    assert sorted(verb for row in UNDER_LEASE[0] for verb in row.split(", ")) == sorted(
        verb for verb in VERBS if verb not in ("lgetx", "lconvert", "lmigrate"))
    used = {cell for table, _ in (NATIVE, OF_DIALECTS, IN_FILES) for row in table.values() for cell in row.values()}
    assert used - {"+"} == set(REFUSALS) - {"q", "y"}


@pytest.mark.parametrize("table", [NATIVE, OF_DIALECTS], ids=["native", "dialects"])
def test_verbs_on_lists(everything, table):
    rows, kinds = table
    with everything.conn() as conn:
        fill(conn, "moves-first")
        wait_until("lists move", lambda: talk(conn, "lmigrate moves-first") == "OK")
        for (verb, request, answer), kind in itertools.product(REQUESTS, kinds):
            key, cell = key_of_request(kind, verb, request), rows[verb][kind]
            fill(conn, key, key + "-other", "native-" + key)
            before = talk(conn, f"lgetb {key}")
            text, good = ask(conn, request, answer, key)
            where = f"{request} on {kind}: {cell}, {text}"
            if cell == "+":
                assert good, where
            else:
                assert re.match("(CLIENT|SERVER)_ERROR ", text) and REFUSALS[cell] in text, where
                assert talk(conn, f"lgetb {key}") == before, where


def refusal_of(folder, settings):
    """What the daemon says of a section with these; None: nothing."""
    (folder / "password").write_text("x\n")
    sections = {"proxy": {"listen": "127.0.0.1:11311"}, "pool main": {"servers": ["127.0.0.1:11211"]},
                "pool documents": {"type": "couchbase", "servers": ["127.0.0.1:11210"], "bucket": "b",
                                   "username": "u", "password_file": folder / "password"},
                "lists x-": settings}
    file = write_ini(folder / "mclistd.ini", sections)
    code, _, said = run("-t", "-c", file)
    return None if code == 0 else said


@pytest.mark.thorough
def test_settings_of_one_section(tmp_path):
    rows, kinds = IN_FILES
    cells = {(setting, kind): rows[setting][kind] for setting in rows for kind in kinds}
    for a, b in itertools.combinations(SETTINGS, 2):
        bridges = {a, b} & {"bridge = yes", "bridge = signed", "bridge_delete"}
        empties = {a, b} == {"bridge_delete", "on_missing = refuse"}
        cells[a, b] = "q" if bridges and "delimiter = none" in (a, b) else "y" if empties else "+"
    for (a, b), cell in cells.items():
        said = refusal_of(tmp_path, {**SETTINGS[a], **{**SETTINGS, **KINDS, "ttl_s": {"ttl_s": 100}}[b]})
        where = f"{a} with {b}: {cell}, {said}"
        assert said is None if cell == "+" else said is not None and REFUSALS[cell] in said, where


def test_a_list_under_a_lease(everything):
    answers = {verb: row["answer"].strip("`") for words, row in UNDER_LEASE[0].items() for verb in words.split(", ")}
    effects = {verb: row["and"] for words, row in UNDER_LEASE[0].items() for verb in words.split(", ")}
    with everything.conn() as conn:
        for verb, answer in answers.items():
            key = key_of("refuse-leased", verb)
            token = talk(conn, f"llease {key} 30")
            fill(conn, key + "-other", "native-" + key)
            assert ask(conn, *VERBS[verb], key, missing=key)[0] == answer, verb
            late = talk(conn, f"lput {key} 3 0 {token}", "a,x")
            assert late == ("EXISTS" if "ends the lease" in effects[verb] else "STORED"), verb
            if "behind the fill" in effects[verb]:
                assert talk(conn, f"lget {key}").splitlines()[1] == ("x" if verb == "ldel" else "a,x,d"), verb


def test_items_with_a_time(everything):
    with everything.conn() as conn:
        for words, row in TIMES[0].items():
            for verb in words.split(", "):
                key = key_of("native-timed", verb)
                fill(conn, key + "-other")
                assert talk(conn, f"laddt {key} 500 a x d") == "STORED"
                if verb == "linterstore":
                    assert talk(conn, f"linterstore {key}-made {key} {key}") == "3"
                else:
                    ask(conn, *VERBS[verb], key)
                where, item = {"lcopy to a native list": ("native-" + key, "a"), "lmove": (key + "-other", "a"),
                               "lpopto": (key + "-other", "a"), "ladd": (key, "d"), "laddt": (key, "d"),
                               "lcompact": (key, "a"), "linterstore": (key + "-made", "a")}.get(verb, (key, "x"))
                left = talk(conn, f"lttl {where} {item}")
                expected = {"anew": "(100|99)$", "ends": "-1$", "stays": "(500|49.)$"}
                kept = next(pattern for word, pattern in expected.items() if word in row["the item's time"])
                assert re.match(kept, left), (verb, left)


# In a file whose pool `main` has the keys of the route.
ROUTE_SETTINGS = {
    "failover = the route's pool": {"failover": "main"},
    "failover of another type": {"failover": "documents"},
    "shadow = the route's pool": {"shadow": "main:1%"},
    "shadow of another type": {"shadow": "documents:1%"},
    "shadow = other": {"shadow": "other"},
    "failover_ttl_s alone": {"failover_ttl_s": 5},
    "shadow_bytes alone": {"shadow_bytes": "5k"},
    "bridge under the prefix": {"pool": "main"},
}
# What is stored in the failover pool before each: k, a number.
ROUTED_REQUESTS = {
    "get": "get k", "gets": "gets k", "mg": "mg k v", "set": "set k 0 0 1", "ms": "ms k 1", "delete": "delete k",
    "md": "md k", "add": "add n 0 0 1", "replace": "replace k 0 0 1", "append": "append k 0 0 1",
    "prepend": "prepend k 0 0 1", "incr": "incr k 1", "decr": "decr k 1", "ma": "ma k", "touch": "touch k 5",
    "gat": "gat 5 k", "gats": "gats 5 k", "mg T": "mg k T5", "cas": "cas k 0 0 1 1", "ms C": "ms k 1 C1",
    "md C": "md k C1", "me": "me k", "ladd": "ladd k x", "lget": "lget k", "llen": "llen k",
}  # fmt: skip


def test_routes_of_plain_keys(start_daemon, start_memcached):
    first, second, lists = [start_memcached() for _ in range(3)]
    daemon = start_daemon(config={
        "proxy": {"pool": "a"}, "pool a": {"servers": first.address}, "pool b": {"servers": second.address},
        "pool c": {"servers": lists.address}, "lists": {"pool": "c"},
        "route": {"failover": "b", "failover_ttl_s": 50, "shadow": "c:100%"}})
    first.stop()
    assert sorted(verb for row in ROUTED[0] for verb in row.split(", ")) == sorted(ROUTED_REQUESTS)
    with daemon.conn() as conn, second.conn() as direct:
        state = f"backend:{first.address}@a:state"
        wait_until("it is seen", lambda: conn.stats("stats backends")[state] == "down")
        assert conn.cmd("ladd k a") == b"STORED"
        for row, cells in ROUTED[0].items():
            for verb in row.split(", "):
                direct.set("k", "5")
                before = int(conn.stats()["shadow_requests"])
                request = ROUTED_REQUESTS[verb]
                has_data = request.split()[0] in ("set", "add", "replace", "append", "prepend", "cas", "ms")
                answer = talk(conn, request, "7" if has_data else None)
                assert answer.startswith("SERVER_ERROR") == (cells["is answered by"] == "an error"), verb
                assert int(conn.stats()["shadow_requests"]) - before == (cells["its copy"] == "is sent"), verb


def test_files_with_a_route(tmp_path):
    (tmp_path / "password").write_text("x\n")
    assert list(OF_ROUTES[0]) == list(ROUTE_SETTINGS)
    for setting, keys in ROUTE_SETTINGS.items():
        sections = {"pool main": {"servers": ["127.0.0.1:11211"]}, "pool other": {"servers": ["127.0.0.1:11212"]},
                    "pool documents": {"type": "couchbase", "servers": ["127.0.0.1:11210"], "bucket": "b",
                                       "username": "u", "password_file": tmp_path / "password"},
                    "route x-": keys,
                    **({"lists x": {"bridge": True}} if setting.startswith("bridge") else {})}  # fmt: skip
        code, _, said = run("-t", "-c", write_ini(tmp_path / "mclistd.ini", sections))
        assert code != 0 and OF_ROUTES[0][setting]["and"].strip("`") in said, (setting, said)


THIRD = {"servers": ["127.0.0.1:11213"]}

# What is said of pool `main`, of another one, and of the lists of `main`, or of other sections.
MOVES_SETTINGS = {
    "step alone": ({"step": "learn"}, {}, {}),
    "dead alone": ({"dead": "127.0.0.1:11211"}, {}, {}),
    "dead = no server of the pool": ({"next": "other", "dead": "127.0.0.1:11219"}, {}, {}),
    "dead = one of next, too": ({"next": "other", "dead": "127.0.0.1:11211"},
                                {"servers": ["127.0.0.1:11211"]}, {}),
    "gate_s = 0": ({"next": "other", "gate_s": 0}, {}, {}),
    "next = itself": ({"next": "main"}, {}, {}),
    "next = a bucket": ({"next": "documents"}, {}, {}),
    "next of next": ({"next": "other"}, {"next": "main"}, {}),
    "lists in next": ({"next": "other"}, {}, {"lists x": {"pool": "other"}}),
    "a dialect": ({"next": "other"}, {}, {"lists x": {"dialect": "simple"}}),
    "placement = spread": ({"next": "other"}, {}, {"lists x": {"placement": "spread"}}),
    "failover of its plain keys": ({"next": "other"}, {}, {"pool third": THIRD, "route": {"failover": "third"}}),
    "shadow of its plain keys": ({"next": "other"}, {}, {"pool third": THIRD, "route": {"shadow": "third:1%"}}),
    "plain keys in next": ({"next": "other"}, {}, {"route x-": {"pool": "other"}}),
}


def test_files_with_lists_that_move(tmp_path):
    (tmp_path / "password").write_text("x\n")
    assert list(OF_MOVES[0]) == list(MOVES_SETTINGS)
    documents = {"type": "couchbase", "servers": ["127.0.0.1:11210"], "bucket": "b", "username": "u",
                 "password_file": tmp_path / "password"}  # fmt: skip
    for setting, (main, other, lists) in MOVES_SETTINGS.items():
        sections = {"pool main": {"servers": ["127.0.0.1:11211"], **main},
                    "pool other": {"servers": ["127.0.0.1:11212"], **other}, "pool documents": documents,
                    "lists": {"pool": "main"}, **lists}  # fmt: skip
        code, _, said = run("-t", "-c", write_ini(tmp_path / "mclistd.ini", sections))
        assert code != 0 and OF_MOVES[0][setting]["and"].strip("`") in said, (setting, said)
