# SPDX-License-Identifier: BSD-3-Clause
"""Where the proxy's answers may differ from memcached's: one table, with the reason of each row and
the words of docs/verbs.md or docs/errors.md that promise it. Everything else must be the same, byte
for byte.

A row is one of three:
    own      the proxy's own answer is expected; memcached is not asked
    similar  both are asked, and the answers are made comparable
    avoided  not generated, because what memcached itself does is not determined by the requests
"""

import base64
import dataclasses
import pathlib
import re

from framing import (
    KEY_BYTES_MAX,
    KEYED,
    LINE_BYTES_MAX,
    MANY_KEYS,
    META,
    PLAIN,
    SHORT_LINE_BYTES_MAX,
    STORAGE,
    announced,
    decoded,
    hides_refusals,
    meta_flags,
    says_base64,
)

# Any one of the lines that refuse a request.
REFUSAL = rb"(?:ERROR|CLIENT_ERROR [^\r\n]+)\r\n"
NOTHING = rb""


@dataclasses.dataclass
class Own:
    """The proxy's own answer: a pattern for all of it, and whether the connection is closed."""

    answer: bytes
    closes: bool = False
    may_hide: bool = False  # or there is none, because of noreply


@dataclasses.dataclass
class Row:
    name: str
    reason: str
    documented: str  # words of these; empty where the proxy does nothing of its own
    own: object = None  # a function of a Request: Own, or None when the row is not about it


def _long_line(request):
    used = request.line + request.eol[:-1]
    if len(used) <= SHORT_LINE_BYTES_MAX:
        return None
    blanks = len(used) - len(used.lstrip(b" "))
    first, separator, _ = used.lstrip(b" ").partition(b" ")
    if blanks > 100 or first not in MANY_KEYS or not separator:
        return Own(rb"CLIENT_ERROR line too long: above 2048 bytes\r\n", closes=True)
    if len(request.line) > LINE_BYTES_MAX:
        return Own(rb"CLIENT_ERROR line too long: above max_line_bytes\r\n", closes=True)
    return None


def _http(request):
    words = request.words()
    methods = b"GET POST PUT HEAD DELETE OPTIONS CONNECT TRACE PATCH".split()
    if not words or words[0] in KEYED | PLAIN | set(REFUSED_VERBS):
        return None
    asks = words[0] in methods and words[1:2] != [] and words[1].startswith(b"/")
    if asks or words[-1].startswith(b"HTTP/"):
        return Own(rb"HTTP/1\.1 400 Bad Request\r\n(?:.+\r\n)+\r\n.+\n", closes=True)
    return None


def _nul(request):
    words = request.words()
    if b"\0" not in request.line or words[0] in PLAIN:
        return None
    if words[0] not in KEYED:
        return Own(rb"ERROR\r\n")
    return Own(REFUSAL, may_hide=words[-1] == b"noreply")


REFUSED_VERBS = (
    b"slabs lru lru_crawler watch cache_memlimit shutdown refresh_certs extstore misbehave".split()
)


def _refused_verb(request):
    words = request.words()
    if words and words[0] in REFUSED_VERBS:
        return Own(
            rb"CLIENT_ERROR %s is not available through a proxy: ask each memcached itself\r\n"
            % words[0]
        )
    return None


def _verbosity(request):
    words = request.words()
    if not words or words[0] != b"verbosity" or words == [b"verbosity", b"0"]:
        return None
    if words[-1] == b"noreply":
        return Own(NOTHING)
    return Own(rb"OK\r\n" if 2 <= len(words) <= 3 else rb"ERROR\r\n")


def _version(request):
    if request.words()[:1] == [b"version"]:
        return Own(rb"VERSION 1\.6\.\d+-mclistd-[0-9.]+\r\n")
    return None


def _flush_later(request):
    words = request.words()
    if words[:1] != [b"flush_all"] or len(words) not in (2, 3):
        return None
    if len(words) == 3 and words[2] != b"noreply":
        return None
    if not re.fullmatch(rb"\+?[0-9]+", words[1]) or int(words[1]) == 0:
        return None
    text = (rb"CLIENT_ERROR flush_all with a delay is refused, since what is stored before it ends "
            rb"would vanish: use flush_all without one\r\n")
    if words[1].startswith(b"+") or int(words[1]) >= 2**63:
        text = REFUSAL
    return Own(NOTHING if len(words) == 3 else text)


def _unknown_length(request):
    if announced(request.line) != "unknown":
        return None
    return Own(NOTHING if hides_refusals(request.line) else REFUSAL, closes=True)


def _opaque(request):
    words = request.words()
    if len(words) < 3 or words[0] not in META - {b"me"} or b"\0" in request.line:
        return None
    if any(flag[:1] == b"O" and len(flag) > 32 for flag in meta_flags(words)):
        return Own(REFUSAL)
    return None


def _gat_short(request):
    words = request.words()
    if words[:1] in ([b"gat"], [b"gats"]) and len(words) < 3:
        return Own(rb"ERROR\r\n")
    return None


def _long_key(request):
    words = request.words()
    if words[:1] == [] or words[0] not in MANY_KEYS or len(request.key_words()) < 2:
        return None
    if all(len(key) <= KEY_BYTES_MAX for key in request.key_words()):
        return None
    return Own(rb"CLIENT_ERROR (?:bad command line format|invalid exptime argument)\r\n")


def numbers_of(words):
    """The words that are numbers: (word, bits, whether it has a sign)."""
    verb = words[0]
    if verb in STORAGE:
        found = [(words[2], 64, False), *((word, 32, True) for word in words[3:4])]
        return found + [(word, 64, False) for word in words[5:6] if verb == b"cas"]
    if verb in (b"touch", b"incr", b"decr"):
        return [(words[2], 32, True) if verb == b"touch" else (words[2], 64, False)]
    if verb in (b"gat", b"gats"):
        return [(words[1], 32, True)]
    kinds = {letter: (32, True) for letter in b"NTR"} | {letter: (64, False) for letter in b"CDEFJ"}
    flags = meta_flags(words) if verb in META - {b"me"} else []
    return [(flag[1:], *kinds[flag[0]]) for flag in flags if flag[0] in kinds]


def _numbers_row(is_odd):
    """A row's function: refuses a request one of whose numbers is_odd(word, bits, signed)."""

    def own(request):
        words = request.words()
        if len(words) < 3 or not any(is_odd(*number) for number in numbers_of(words)):
            return None
        hidden = words[-1] == b"noreply" and words[0] not in META | MANY_KEYS
        return Own(REFUSAL, may_hide=hidden)

    return own


def _has_wrong_minus(word, _bits, signed):
    return not signed and re.fullmatch(rb"-[0-9]+", word) is not None


def _has_blanks(word, _bits, _signed):
    return bool(set(word) & set(b"\t\v\f\r"))


def _bad_base64(request):
    words = request.words()
    if len(words) < 3 or words[0] not in META or not says_base64(words):
        return None
    key = decoded(words[1])
    return Own(REFUSAL) if key is None or b"\n" in key else None


def _flush_words(request):
    words = request.words()
    most = 3 if words[-1:] == [b"noreply"] else 2
    if words[:1] == [b"flush_all"] and len(words) > most:
        return Own(rb"ERROR\r\n", may_hide=most == 3)
    return None


TABLE = [
    # --- the proxy's own answers: the first row that is about a request counts ---
    Row(
        "long lines",
        "memcached's answer depends on the packets in which such a line comes",
        "`CLIENT_ERROR line too long: above 2048 bytes`: of a line that is none of `get`, `gets`, "
        "`gat`, `gats` and the list verbs",
        _long_line,
    ),
    Row(
        "HTTP",
        "memcached runs what follows a request without HTTP/1.1 at its end",
        "An HTTP request is answered with status 400, and closes the connection.",
        _http,
    ),
    Row(
        "verbs of one server",
        "there may be many servers",
        "is not available through a proxy",
        _refused_verb,
    ),
    Row("verbosity", "the servers' logs are not the client's", "`OK`, no effect", _verbosity),
    Row("version", "the proxy has its own", "behind it `-mclistd-`", _version),
    Row(
        "flush_all with a delay",
        "later ADDs would vanish",
        "`flush_all 0` is the same; a delay is refused",
        _flush_later,
    ),
    Row(
        "no readable length",
        "a data block of unknown length follows, which must not be run as commands",
        "When its length cannot be read, the connection is closed.",
        _unknown_length,
    ),
    Row("NUL", "memcacheds differ in it", "A line of a plain verb with a NUL byte is refused.", _nul),
    Row(
        "gat without keys",
        "memcacheds differ in what is missing there, the time or the key",
        "unknown verb, too few words",
        _gat_short,
    ),
    Row(
        "a long key among others",
        "memcached reads and touches those before it, and refuses the rest",
        "What memcached would refuse is refused here and not passed on.",
        _long_key,
    ),
    Row(
        "minus",
        "memcached takes -0, and the negative of a very large number, where a number has no sign",
        "A minus is refused where a number has no sign, before 0 as well.",
        _numbers_row(_has_wrong_minus),
    ),
    Row(
        "blanks in numbers",
        "memcached stops reading a number at any blank, and sees nothing wrong in what follows",
        "blanks in numbers and the like are refused",
        _numbers_row(_has_blanks),
    ),
    Row(
        "base64",
        "memcached skips what is no base64 digit; and a server may answer with the decoded key, so "
        "that a line feed in it would make two answers of one, the second another request's",
        "A base64 key has to be complete, with nothing but base64 digits, and without a line feed "
        "in what it decodes to.",
        _bad_base64,
    ),
    Row(
        "words behind flush_all",
        "memcached looks at the first only",
        "`flush_all` with more words than a time and `noreply` is refused.",
        _flush_words,
    ),
    Row(
        "long opaques",
        "some memcacheds run the command first and refuse it afterwards",
        "What memcached would refuse is refused here and not passed on.",
        _opaque,
    ),
    # --- both are asked ---
    Row(
        "either generation",
        "versions of memcached differ in the words of a refusal, and in what they refuse",
        "Where versions of memcached differ in their words, these are the words of one of them.",
    ),
    Row(
        "refused data",
        "some memcacheds run the data of a refused storage command: what that answers is cut out",
        "A refused storage command draws one answer, and its data block is thrown away.",
    ),
    Row(
        "CAS numbers",
        "each server counts for itself: equal numbers must stay equal, others different",
        "CAS numbers of plain items pass through.",
    ),
    Row("seconds", "the two sides are not asked at the same moment", ""),
    Row(
        "spelling of a list's key",
        "memcached remembers for each item whether its key came in base64, which a list does not",
        "`k` shows the key as the request has it, in base64 or not.",
    ),
    # --- not generated ---
    Row(
        "stats",
        "the proxy's own",
        "this proxy's: `stats`, `stats settings`, `stats backends`, `stats where`, `stats reset`",
    ),
    Row(
        "shrinking numbers",
        "memcached changes a number in place and pads it, but makes a new item while an answer "
        "with the old one waits to be sent, or a thread of its own looks at it: between two "
        "barriers no key is read and changed by incr, decr, ma, unless the number keeps its "
        "length; and the traces of use that a new item has not are not asked for",
        "",
    ),
    Row(
        "stale items and classic reads",
        "a get may be asked as mg, which takes the token of a stale item: get, gets, gat, gats are "
        "not sent for keys that are ever made stale",
        "Each key is asked for by `mg KEY k v f`",
    ),
    Row(
        "quiet ma with N",
        "memcached answers a counter that was made by ma in spite of q, which cannot be told from "
        "one that was there: ma is not sent with both",
        "A quiet `ma` is not answered when flag `N` has made the counter.",
    ),
    Row(
        "blank values, numbers from 2^63 on",
        "incr on a value of nothing but blanks reads on in whatever memcached has behind it; so it "
        "does behind a number of that size, to look for a minus",
        "",
    ),
    Row(
        "flag E beside flush_all",
        "an item with a CAS number of the client's own outlives a flush_all in the same second",
        "",
    ),
    Row("short times to live", "they would end between the two sides' turns", ""),
    Row("binary protocol", "test_binary_random.py compares it", "speaks memcached's binary protocol"),
]


def key_as_sent(request, answer):
    """memcached's answer, with the key that flag k shows in the request's spelling."""
    words = request.words()
    if words[0] not in META or b"k" not in words[2:]:
        return answer
    sent = b" k" + words[1] + (b" b" if says_base64(words) else b"")
    key = request.key
    spellings = re.escape(base64.b64encode(key)) + b" b|" + re.escape(key)
    return re.sub(b" k(?:" + spellings + rb")(?=[ \r])", lambda _: sent, answer, count=1)


def own_answer(request):
    """The proxy's own answer to a request, or None when memcached's counts."""
    for row in TABLE:
        found = row.own(request) if row.own else None
        if found is not None:
            return found
    return None


def undocumented(root):
    """Names of the rows whose words are in none of the two documents."""
    docs = [pathlib.Path(root) / "docs" / name for name in ("verbs.md", "errors.md")]
    text = " ".join(word for path in docs for word in path.read_text().split())
    return [row.name for row in TABLE if row.documented not in text]
