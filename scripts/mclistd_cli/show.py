# SPDX-License-Identifier: BSD-3-Clause
"""Answers on a terminal, and in a pipe."""

import shutil
import subprocess
import sys
import textwrap

from mclistd_cli.words import dollar_quoted, is_printable, shown, to_bytes, to_text

# Exit codes: as grep's.
DONE, NOTHING, FAILED, NO_CONNECTION = range(4)
REFUSED = NOTHING  # a command of operators
NOTHING_WORDS = (b"NOT_FOUND", b"NOT_STORED", b"EXISTS", b"EN", b"NF", b"NS", b"EX")
GOOD_WORDS = (b"STORED", b"DELETED", b"OK", b"TOUCHED", b"HD", b"RESET", b"MN")

LINES_MAX = 100
COLUMNS_MAX = 2000
LAST_BYTES_MAX = 1 << 26

RED, GREEN, YELLOW, BLUE, DIM, BOLD = "31", "32", "33", "34", "2", "1"


def visible(data):
    """A line of an answer, without bytes that a terminal would obey."""
    text = to_text(data)
    return text if is_printable(text) else dollar_quoted(text)


def lines_of(data):
    """A value on a terminal: text in its lines, anything else in one line."""
    text = to_text(data)
    lines = text.split("\n")
    if lines[-1] == "" and len(lines) > 1:
        lines.pop()
    if data == b"" or not all(is_printable(line.replace("\t", " ")) for line in lines):
        return [dollar_quoted(text)]
    return lines


def split_items(data, delimiter):
    return [] if data == b"" else data.split(delimiter) if delimiter else [data]


class Output:
    """What both have in common: the exit code of an answer, and its lists taken apart."""

    explains = False  # does a reader want more than the answer?

    def __init__(self):
        self.status, self.place = DONE, ""  # place: in front of errors

    def begin(self, plan, delimiters):
        """delimiters: a function of the key, for a verb that joins items; else None."""
        self.plan, self.delimiters = plan, delimiters
        self.is_list = plan.verb is not None and plan.verb.is_list
        keys = plan.requests[0].split(b"\r\n", 1)[0].split(b" ")[1:]
        self.has_keys = plan.verb is not None and plan.verb.tells_keys and len(keys) > 1
        by_line = self.has_keys and plan.verb.name == "llen"
        self.line_keys = iter(keys if by_line else ())  # a line for each key, which does not name it
        self.found = self.ended = False
        self.status = DONE

    def part(self, answer):
        key = next(self.line_keys, None)
        if answer.kind == "line" and not answer.is_error and key is not None:
            self.value_of_key(key, answer.line)
        elif answer.kind == "end":
            self.ended = True
        elif answer.is_error:
            self.status = FAILED
            self.error(visible(answer.line))
        elif answer.kind == "line":
            if answer.line.split(b" ")[0] in NOTHING_WORDS:
                self.status = max(self.status, NOTHING)
            self.word(answer.line)
        elif answer.kind == "stat":
            self.found = True
            self.stat(*answer.line.split(b" ", 2)[1:])
        elif answer.kind == "value" and self.is_list:
            self.found = True
            delimiter = self.delimiters(answer.key) if self.delimiters else None
            self.heading(answer)
            for item in split_items(answer.data, delimiter):
                self.item(answer.key, item)
        elif answer.kind == "item":
            if not self.found:
                self.heading(answer)
            self.found = True
            self.item(answer.key, answer.data)
        else:
            self.found = True
            self.heading(answer)
            self.value(answer.key, answer.data)

    def finish(self):
        if self.ended and not self.found and self.status == DONE:
            self.status = NOTHING


    def paragraph(self, text, first="  ", indent=2):
        """Lines that end between words, within the terminal's width."""
        columns = min(100, shutil.get_terminal_size().columns)
        for line in textwrap.wrap(text, max(columns, indent + 20), initial_indent=first,
                                  subsequent_indent=" " * indent, break_on_hyphens=False,
                                  break_long_words=False):
            self.help_line(line)

    def help_entry(self, name, text):
        """A line of a table, for programs that look for it."""
        self.help_line(f"  {name:<34} {text}")


class Pipe(Output):
    """One item, value or word per line; errors go to standard error. Item and key stand in $'...'
    where they would not be one line. raw: bytes as they are; end: what ends each."""

    def __init__(self, raw=False, end=b"\n"):
        super().__init__()
        self.raw, self.end, self.out = raw, end, sys.stdout.buffer

    def put(self, key, data, as_it_is):
        if self.has_keys:
            self.out.write((key if self.raw else to_bytes(shown(key))) + b"\t")
        self.out.write((data if as_it_is or self.raw else to_bytes(shown(data))) + self.end)

    def heading(self, answer):
        if answer.number is not None:
            self.put(answer.key, b"%d" % answer.number, True)

    def item(self, key, data):
        self.put(key, data, False)

    def value(self, key, data):
        self.put(key, data, not self.has_keys)

    def value_of_key(self, key, line):
        self.put(key, line, True)

    def stat(self, name, value=b""):
        self.out.write(name + b" " + value + self.end)

    def word(self, line):
        self.out.write(line + self.end)

    def flush(self):
        self.out.flush()

    def error(self, text):
        self.out.flush()
        sys.stderr.buffer.write(to_bytes(f"{self.place}{text}\n"))
        sys.stderr.buffer.flush()

    def note(self, text):
        pass

    def hint(self, text):
        self.error(f"  {text}")

    def note_line(self, text):
        self.error(text)

    def help_line(self, text):
        self.out.write(to_bytes(text) + b"\n")
        self.out.flush()

    def finish(self):
        super().finish()
        self.out.flush()


class Terminal(Output):
    """Numbered, in colours. An answer is cut behind LINES_MAX lines; all of it is kept for \\all, if
    it has no more than LAST_BYTES_MAX."""

    explains = True

    def __init__(self, colours):
        super().__init__()
        self.colours = colours
        self.last, self.last_bytes = [], 0

    def paint(self, colour, text):
        return f"\x1b[{colour}m{text}\x1b[0m" if self.colours else text

    def write(self, text):
        sys.stdout.buffer.write(to_bytes(text) + b"\n")
        sys.stdout.buffer.flush()

    def begin(self, plan, delimiters):
        super().begin(plan, delimiters)
        self.last, self.last_bytes, self.lines, self.items, self.cut = [], 0, 0, 0, False
        self.key = None

    def put(self, prefix, text):
        """A line that may be cut, and counts."""
        self.lines += 1
        self.last_bytes += len(prefix) + len(text)
        if self.last_bytes <= LAST_BYTES_MAX:
            self.last.append(prefix + text)
        if self.lines > LINES_MAX:
            return
        if len(text) > COLUMNS_MAX:
            self.cut = True
            text = text[:COLUMNS_MAX] + self.paint(DIM, f" ... {len(text) - COLUMNS_MAX:,} more")
        self.write(prefix + text)

    def heading(self, answer):
        number = "" if answer.number is None else f"version {answer.number}"
        if answer.number is not None and not self.is_list:
            number = f"cas {answer.number}"
        if self.has_keys and answer.key is not None:
            self.key, self.items = answer.key, 0
            self.put("", self.paint(BOLD, shown(answer.key)) + " " + self.paint(DIM, number))
        elif number:
            self.put("", self.paint(DIM, number))
        if answer.kind == "meta":
            self.put("", self.paint(DIM, visible(answer.line)))

    def item(self, key, data):
        if self.has_keys and key != self.key:  # of lgetb: the next list
            self.key, self.items = key, 0
            self.put("", self.paint(BOLD, shown(key)))
        self.items += 1
        self.put(self.paint(DIM, f"{self.items:>3}) "), shown(data))

    def value(self, _, data):
        for line in lines_of(data):
            self.put("", line)

    def value_of_key(self, key, line):
        self.write(f"{self.paint(BOLD, shown(key))} {visible(line)}")

    def stat(self, name, value=b""):
        self.write(f"{self.paint(BLUE, visible(name).ljust(28))} {visible(value)}")

    def word(self, line):
        word = line.split(b" ")[0]
        colour = GREEN if word in GOOD_WORDS else YELLOW if word in NOTHING_WORDS else None
        text = visible(line)
        self.write(self.paint(colour, text) if colour else text)

    def flush(self):
        pass  # each line was

    def error(self, text):
        self.write(self.paint(RED, self.place + text))

    def note(self, text):
        self.note_line(f"({text})")

    hint = note

    def note_line(self, text):
        self.write(self.paint(DIM, text))

    def help_line(self, text):
        self.write(text)

    def help_entry(self, name, text):
        """A text that does not fit beside the name goes on below itself."""
        self.paragraph(text, f"  {name:<34} ", 37)

    def finish(self):
        super().finish()
        if self.lines > LINES_MAX:
            left = self.lines - LINES_MAX
            self.write(self.paint(YELLOW, f"... {left:,} more lines: \\all shows them"))
        elif self.cut:
            self.note("cut: \\all shows all of it")
        if self.status == NOTHING and self.ended:
            self.write(self.paint(YELLOW, "(nothing)"))
        elif self.items and self.is_list and not self.has_keys and self.status != FAILED:
            self.note(f"{self.items:,} item{'' if self.items == 1 else 's'}")

    def show_last(self):
        """The whole last answer, in a pager where there is one."""
        if not self.last:
            self.note("there is no answer with items or a value")
            return
        if self.last_bytes > LAST_BYTES_MAX:
            self.note(f"only the first {LAST_BYTES_MAX >> 20} MB were kept; "
                      "`mclistd-cli ADDRESS VERB ... > FILE` has no such limit")
        data = to_bytes("\n".join(self.last) + "\n")
        pager = shutil.which("less")
        if pager is None:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            return
        subprocess.run([pager, "-R", "-F", "-X"], input=data, check=False)

