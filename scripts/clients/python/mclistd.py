# SPDX-License-Identifier: BSD-3-Clause
"""The list verbs of mclistd: each is a method that has its name and takes its words.

    lists = Lists("127.0.0.1:11220")
    lists.ladd("followers:ann", "bob", "carol smith")
    lists.lrevrange("followers:ann", 0, 9)         # ["carol smith", "bob"]

A verb that answers with a word gives True, or False for NOT_STORED, NOT_FOUND and EXISTS. A number
is an int, and items are a list; None stands for NOT_FOUND or NOT_STORED in their place.
"""

import re
import select
import socket
from typing import Dict, Iterator, List, Optional, Sequence, Tuple, Union

Text = Union[str, bytes]
BATCH_BYTES = 16384  # of a pipeline, sent before its answers are read: sockets take so many at once
LINE_BYTES_MAX = 65536
WORD = re.compile(rb"[^\x00-\x20\x7f]+")
SAYS = {b"STORED": True, b"DELETED": True, b"OK": True, b"TOUCHED": True,
        b"NOT_STORED": False, b"NOT_FOUND": False, b"EXISTS": False}  # fmt: skip
LINES = ("ladd", "ldel", "lset", "lrequire", "lrefuse")  # of a transaction


class Error(Exception):
    pass


class Refused(Error):
    """The proxy's line of error. The connection goes on."""


class Lost(Error):
    """No answer, or none that can be read: the request may have been done. The connection is
    closed, and the next request makes a new one."""


class Lists:
    """Over one connection, which the first request makes. For one thread at a time."""

    def __init__(self, address="127.0.0.1:11220", *, timeout: float = 3.0, delimiter: Text = ",",
                 encoding: Optional[str] = "utf-8", login: Optional[str] = None, tls=None):  # fmt: skip
        """address: HOST:PORT, the path of a unix socket, or a pymemcache Client, whose connection is
        used. timeout: seconds for each wait. encoding: of keys and items; None: answers are bytes.
        login: "USER PASSWORD". tls: an ssl.SSLContext."""
        self._address, self._timeout, self._login, self._tls = address, timeout, login, tls
        self._encoding = encoding
        self._delimiter = self._bytes(delimiter)
        self._socket, self._buffer = None, bytearray()

    # --- changes ---

    def ladd(self, key: Text, *items: Text) -> bool:
        return self._change(b"ladd", key, items, b"")

    def laddt(self, key: Text, seconds: int, *items: Text) -> bool:
        return self._change(b"laddt", key, items, b" %d" % seconds)

    def ldel(self, key: Text, *items: Text) -> bool:
        return self._change(b"ldel", key, items, b"")

    def lset(self, key: Text, *items: Text) -> bool:
        return self._ask(_done, b"lset", key, *items)

    def lcreate(self, key: Text, *items: Text) -> bool:
        return self._ask(_done, b"lcreate", key, *items)

    def laddx(self, key: Text, *items: Text) -> Optional[int]:
        return self._ask(_number, b"laddx", key, *_some(items))

    def ldelx(self, key: Text, *items: Text) -> Optional[int]:
        return self._ask(_number, b"ldelx", key, *_some(items))

    def lput(self, key: Text, items: Sequence[Text], exptime: Optional[int] = None,
             token: Optional[int] = None, new: bool = False) -> bool:  # fmt: skip
        """Items of any bytes. A token goes with an exptime."""
        block = b"".join(b"ITEM x %s" % self._data(item) for item in items)
        tail = _options(exptime, token, new)
        return self._do(_done, self._line_of(b"lputb", key) + b" %d%s\r\n%s\r\n" % (len(block), tail, block))

    def lcopy(self, src: Text, dst: Text, exptime: Optional[int] = None, new: bool = False) -> Optional[int]:
        return self._do(_number, self._line_of(b"lcopy", src, dst) + _options(exptime, None, new) + b"\r\n")

    def ltouch(self, key: Text, exptime: int) -> bool:
        return self._ask(_done, b"ltouch", key, b"%d" % exptime)

    def ldrop(self, key: Text) -> bool:
        return self._ask(_done, b"ldrop", key)

    def lpurge(self, key: Text) -> Optional[int]:
        return self._ask(_number, b"lpurge", key)

    def lcompact(self, key: Text) -> bool:
        return self._ask(_done, b"lcompact", key)

    def lconvert(self, key: Text) -> Optional[int]:
        return self._ask(_number, b"lconvert", key)

    def lmigrate(self, key: Text) -> bool:
        return self._ask(_done, b"lmigrate", key)

    def llease(self, key: Text, seconds: int) -> Optional[int]:
        """The token; 0: another client has the lease; None: the list is there."""
        return self._ask(_token, b"llease", key, b"%d" % seconds)

    # --- reads ---

    def lget(self, key: Text) -> List[Text]:
        return self._ask(self._items, b"lgetb", key)

    def lgets(self, key: Text) -> Optional[Tuple[List[Text], int]]:
        """The items and their version; None: there are none."""
        return self._ask(self._versioned, b"lgets", key)

    def lgetx(self, *keys: Text) -> Dict[Text, List[Text]]:
        """Of one instant; a list that is missing is left out."""
        return self._ask(self._each, b"lgetx", *_some(keys))

    def lhas(self, key: Text, *items: Text) -> List[Text]:
        """Those of the items that are in the list."""
        if len(items) == 1:
            return self._do(self._whole, self._line_of(b"lhasb", key) + b" " + self._data(items[0]))
        return self._ask(self._items, b"lhas", key, *_some(items))

    def llen(self, key: Text) -> int:
        return self._ask(_number, b"llen", key)

    def lttl(self, key: Text, item: Optional[Text] = None) -> Optional[int]:
        """Seconds, -1 for never."""
        if item is None:
            return self._ask(_number, b"lttl", key)
        return self._do(_number, self._line_of(b"lttlb", key) + b" " + self._data(item))

    def lrange(self, key: Text, start: int, end: int) -> List[Text]:
        return self._ask(self._items, b"lrange", key, b"%d" % start, b"%d" % end)

    def lrevrange(self, key: Text, start: int, end: int) -> List[Text]:
        return self._ask(self._items, b"lrevrange", key, b"%d" % start, b"%d" % end)

    def lafter(self, key: Text, item: Text, count: int) -> Optional[List[Text]]:
        return self._ask(self._items, b"lafter", key, item, b"%d" % count)

    def lbefore(self, key: Text, item: Text, count: int) -> Optional[List[Text]]:
        return self._ask(self._items, b"lbefore", key, item, b"%d" % count)

    def lrandom(self, key: Text, count: int) -> List[Text]:
        return self._ask(self._items, b"lrandomb", key, b"%d" % count)

    def lstat(self, key: Text) -> Dict[str, str]:
        return self._ask(_stats, b"lstat", key)

    def pages(self, key: Text, count: int = 1000, newest: bool = False) -> Iterator[List[Text]]:
        """The list in pages, from its oldest item or its newest. Each goes on behind the last item
        of the one before, or the one before that, if it has left the list meanwhile."""
        page = (self.lrevrange if newest else self.lrange)(key, 0, count - 1)
        while page:
            yield page
            page = self._next(self.lbefore if newest else self.lafter, key, page, count)

    def _next(self, ask, key, page, count):
        for at in range(len(page) - 1, -1, -1):
            if WORD.fullmatch(self._bytes(page[at])):
                behind = page[at + 1 :]
                found = ask(key, page[at], count + len(behind))
                if found is not None:
                    return [item for item in found if item not in behind][:count]
        raise Error("no item of the last page can say where the next one begins")

    # --- several lists ---

    def linter(self, *keys: Text) -> List[Text]:
        return self._ask(self._items, b"linter", *_some(keys))

    def lunion(self, *keys: Text) -> List[Text]:
        return self._ask(self._items, b"lunion", *_some(keys))

    def ldiff(self, *keys: Text) -> List[Text]:
        return self._ask(self._items, b"ldiff", *_some(keys))

    def linterlen(self, *keys: Text) -> Optional[int]:
        return self._ask(_number, b"linterlen", *_some(keys))

    def lunionlen(self, *keys: Text) -> Optional[int]:
        return self._ask(_number, b"lunionlen", *_some(keys))

    def ldifflen(self, *keys: Text) -> Optional[int]:
        return self._ask(_number, b"ldifflen", *_some(keys))

    def linterstore(self, dst: Text, *keys: Text) -> Optional[int]:
        return self._ask(_number, b"linterstore", dst, *_some(keys))

    def lunionstore(self, dst: Text, *keys: Text) -> Optional[int]:
        return self._ask(_number, b"lunionstore", dst, *_some(keys))

    def ldiffstore(self, dst: Text, *keys: Text) -> Optional[int]:
        return self._ask(_number, b"ldiffstore", dst, *_some(keys))

    def lpop(self, key: Text, count: int) -> List[Text]:
        return self._ask(self._items, b"lpopb", key, b"%d" % count)

    def lpopto(self, src: Text, dst: Text, count: int) -> Optional[List[Text]]:
        return self._ask(self._items, b"lpoptob", src, dst, b"%d" % count)

    def lmove(self, src: Text, dst: Text, *items: Text) -> Optional[int]:
        return self._ask(_number, b"lmove", src, dst, *_some(items))

    def ltx(self, *changes: Sequence[Text]) -> bool:
        """Each a line: (verb, key, item, ...), the verb ladd, ldel, lset, lrequire or lrefuse."""
        block = b""
        for verb, key, *items in changes:
            if verb not in LINES:
                raise ValueError(f"{verb!r} is no line of a transaction")
            block += self._request(verb.encode(), key, items if verb == "lset" else _some(items), b"")
        return self._do(_done, b"ltx %d\r\n%s\r\n" % (len(block), block))

    # --- requests ---

    def pipeline(self) -> "Pipeline":
        """The same verbs, sent together by its run()."""
        return Pipeline(self)

    def _bytes(self, text):
        return text if isinstance(text, bytes) else text.encode(self._encoding or "utf-8", "surrogateescape")

    def _line_of(self, verb, *words):
        words = [self._bytes(word) for word in words]
        for word in words:
            if not WORD.fullmatch(word):
                raise ValueError(f"no key, nor an item that can stand beside others: {word[:80]!r}")
        return b" ".join((verb, *words))

    def _data(self, item):
        item = self._bytes(item)
        return b"%d\r\n%s\r\n" % (len(item), item)

    def _request(self, verb, key, items, seconds):
        """One item may have any bytes."""
        if len(items) != 1 or verb == b"lset":
            return self._line_of(verb, key, *seconds.split(), *items) + b"\r\n"
        return self._line_of(verb + b"b", key) + seconds + b" " + self._data(items[0])

    def _change(self, verb, key, items, seconds):
        return self._do(_done, self._request(verb, key, _some(items), seconds))

    def _ask(self, read, verb, *words):
        return self._do(read, self._line_of(verb, *words) + b"\r\n")

    def _do(self, read, request):
        (result,) = self._run([(read, request)])
        if isinstance(result, Error):
            raise result
        return result

    def _run(self, calls):
        """The result of each call, or its error. Behind the first that is lost, all are."""
        results, sent, known = [], 0, "nothing was sent"
        try:
            self._connect()
            known = "no answer, the outcome is unknown"
            while sent < len(calls):
                end, size = sent + 1, len(calls[sent][1])
                while end < len(calls) and size + len(calls[end][1]) <= BATCH_BYTES:
                    size += len(calls[end][1])
                    end += 1
                self._socket.sendall(b"".join(request for _, request in calls[sent:end]))
                for read, _ in calls[sent:end]:
                    results.append(self._result(read))
                sent = end
        except (OSError, ValueError, LookupError) as error:
            self.close()
            results += [Lost(f"{known}: {error}")] * (len(calls) - len(results))
        except BaseException:
            self.close()  # a late answer must not be taken for the next one
            raise
        return results

    # --- the connection ---

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            if hasattr(self._address, "sock"):
                self._address.close()
        self._socket = None
        self._buffer.clear()

    def _connect(self):
        if self._socket is not None and select.select([self._socket], [], [], 0)[0]:
            self.close()  # nothing was asked: the proxy has closed it
        if hasattr(self._address, "sock"):
            if self._address.sock is None:
                self._address._connect()
            self._socket = self._address.sock
        if self._socket is not None:
            return
        if self._address.startswith("/"):
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.settimeout(self._timeout)
            self._socket.connect(self._address)
        else:
            host, port = self._address.rsplit(":", 1)
            self._socket = socket.create_connection((host.strip("[]"), int(port)), self._timeout)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls:
                self._socket = self._tls.wrap_socket(self._socket, server_hostname=host.strip("[]"))
        if self._login:
            self._socket.sendall(b"set login 0 0 " + self._data(self._login))
            if self._answer() != b"STORED":
                raise ValueError("the login was refused")

    def _more(self):
        data = self._socket.recv(65536)
        if not data:
            raise ValueError("the proxy has closed the connection")
        self._buffer += data

    def _take(self, size):
        """So many bytes, and the line end behind them, which is not returned."""
        while len(self._buffer) < size + 2:
            self._more()
        data, end = bytes(self._buffer[:size]), self._buffer[size : size + 2]
        if size < 0 or end != b"\r\n":
            raise ValueError("the answer is out of step")
        del self._buffer[: size + 2]
        return data

    def _line(self):
        while (end := self._buffer.find(b"\r\n", 0, LINE_BYTES_MAX)) < 0:
            if len(self._buffer) >= LINE_BYTES_MAX:
                raise ValueError("a line of the answer is too long")
            self._more()
        return self._take(end)

    def _answer(self):
        """A line; or the blocks before END, each the words of its line and its data."""
        blocks = []
        while True:
            line = self._line()
            words = line.split(b" ")
            if words[0] in (b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR"):
                raise Refused(line.decode("utf-8", "replace"))
            if words[0] == b"END":
                return blocks
            if words[0] in (b"VALUE", b"ITEM"):
                blocks.append((words, self._take(int(words[3 if words[0] == b"VALUE" else 2]))))
            elif words[0] == b"STAT":
                blocks.append((words, b""))
            elif not blocks:
                return line
            else:
                raise ValueError(f"{line[:80]!r} is no part of this answer")

    def _result(self, read):
        try:
            answer = self._answer()
        except Refused as error:
            return error
        try:
            return read(answer)
        except (ArithmeticError, LookupError, TypeError, AttributeError):
            raise ValueError(f"{str(answer)[:80]} is no answer to this") from None

    # --- shapes of answers ---

    def _text(self, data):
        return data.decode(self._encoding, "surrogateescape") if self._encoding else data

    def _split(self, data):
        return [self._text(item) for item in data.split(self._delimiter)] if data else []

    def _items(self, answer):
        if answer == b"NOT_FOUND":
            return None
        found = []
        for words, data in _blocks(answer):
            found += [self._text(data)] if words[0] == b"ITEM" else self._split(data)
        return found

    def _whole(self, answer):
        return [self._text(data) for _, data in _blocks(answer)]

    def _versioned(self, answer):
        return (self._split(answer[0][1]), int(answer[0][0][4])) if _blocks(answer) else None

    def _each(self, answer):
        return {self._text(words[1]): self._split(data) for words, data in _blocks(answer)}


class Pipeline(Lists):
    """Its verbs answer nothing; run() gives the result of each, or the Error in its place. Up to
    16 KB of requests are under way at a time, so that neither side waits for the other."""

    def __init__(self, lists: Lists):
        self.__dict__.update(lists.__dict__)
        self._lists, self._calls = lists, []

    def _do(self, read, request):
        self._calls.append((read, request))

    def run(self) -> list:
        calls, self._calls = self._calls, []
        return self._lists._run(calls)


def _some(words):
    if not words:
        raise ValueError("nothing is named")
    return words


def _options(exptime, token, new):
    words = [b" %d" % number for number in (exptime, token) if number is not None]
    return b"".join(words) + (b" new" if new else b"")


def _blocks(answer):
    if isinstance(answer, bytes):
        raise TypeError
    return answer


def _done(answer):
    return SAYS[answer]


def _number(answer):
    return None if answer in (b"NOT_FOUND", b"NOT_STORED") else int(answer)


def _token(answer):
    return {b"NOT_STORED": 0, b"EXISTS": None}[answer] if answer in SAYS else int(answer)


def _stats(answer):
    return {words[1].decode(): b" ".join(words[2:]).decode() for words, _ in _blocks(answer)}
