# SPDX-License-Identifier: BSD-3-Clause
"""Heads that are full to the last bytes of what their memcached stores: whatever is asked for first,
the list can be read and changed."""

import pytest

# What a coordinator that has died has left: not decided, in its primary "a" or in "b".
INTENT = b"?43:nhmjd2vmc6qaa.1795229331 2 a b +6:a-or-b"
INTENT = b"?%d:" % (len(INTENT) - 4) + INTENT[4:]
FULL = pytest.mark.memcacheds(1, "-I", "65536", "-o", "slab_chunk_max=32768")
LONG = b",".join(b"new-%07d" % n for n in range(10000))


def filled(head, size):
    """A head of so many bytes, and its items."""
    items = []
    while len(head) + 60 < size:
        items.append(b"item-%06d" % len(items))
        head += b"+11:" + items[-1]
    rest = size - len(head) - 4
    items.append(b"y" * rest)
    return head + b"+%02d:" % rest + items[-1], items


def fill_up(server, key, start):
    """Puts the largest head that the server takes; returns its items."""
    least, most = 32768, 70000
    while most - least > 1:
        size = (least + most) // 2
        if server.set(f"{key}#", filled(start, size)[0]) == b"STORED":
            least = size
        else:
            most = size
    value, items = filled(start, least)
    assert server.set(f"{key}#", value) == b"STORED"
    return items


@FULL
@pytest.mark.parametrize("key", ["a", "b", "none"])
@pytest.mark.parametrize("first", ["llen {}", "ladd {} n", "laddx {} n", "ldelx {} item-000001",
                                   "lpop {} 1", "lmove {} other item-000002", "lcompact {}",
                                   "ltouch {} 1000", "lset {} n", "lput {} " + str(len(LONG)),
                                   "lcopy long {}", "ldrop {}"])
def test_a_full_list_is_of_use(conn, memcached, key, first):
    conn.cmd(f"lput long {len(LONG)}", LONG)
    assert conn.cmd("ladd other o") == b"STORED"
    with memcached.conn() as server:
        items = fill_up(server, key, b"^1\n" + (b"" if key == "none" else INTENT))
        body = LONG if first.startswith("lput") else None
        answer = conn.cmd(first.format(key), body)
        if first.startswith("lpop"):
            assert conn.data(int(answer.split()[3])) and conn.line() == b"END"
        assert not answer.startswith(b"SERVER_ERROR"), answer
        assert conn.cmd(f"ladd {key} last") == b"STORED"
        found = conn.lget(key)
        if not first.startswith(("lset", "lput", "lcopy", "ldrop", "lpop")):
            gone = {b"item-000001"} if "ldelx" in first else set()
            gone |= {b"item-000002"} if "lmove" in first else set()
            extra = [b"n"] if "add" in first else []
            assert found == [i for i in items if i not in gone] + extra + [b"last"]
        assert found[-1] == b"last" and b"a-or-b" not in found
        assert conn.cmd(f"lcompact {key}") == b"OK"
        assert conn.lget(key) == found
        assert len(server.get(f"{key}#")) < 2000
