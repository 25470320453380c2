# SPDX-License-Identifier: BSD-3-Clause
"""One line after the other: what the prompt does itself, and what it sends."""

import sys
import time

from mclistd_cli import request
from mclistd_cli.admin import NotFound
from mclistd_cli.show import DONE, FAILED, NO_CONNECTION, NOTHING, REFUSED, visible
from mclistd_cli.wire import Lost
from mclistd_cli.words import BLANKS, NotClosed, split, to_text

ENDS = (b"quit", b"exit")
OWN = {
    "\\all": "shows all of an answer that was cut, in a pager",
    "\\timing": "shows how long each answer took, or no longer",
    "\\wire": "shows the bytes that are sent and answered, or no longer",
    "help": "help, or help VERB",
    "quit": "ends the prompt; so does Ctrl-D",
}
BEGIN = """\
A list is an ordered set: it holds each item once, in the order in which the items were added.

    ladd fruit apple pear plum      adds three items
    lget fruit                      shows all
    lhas fruit pear kiwi            which of these are in it?
    ldel fruit pear                 takes one off
    ladd tags 'hello world'         quotes as in a shell; $'a\\nb' for a line end in an item
    set greeting 'good morning'     a plain item of memcached; the length is counted for you

help VERB says more. Tab completes verbs, and keys used before.
"""
# What a plain verb that found nothing is for a list, where no bridge makes it the same.
OF_LISTS = {"get": "lget", "gets": "lgets", "mg": "lget", "delete": "ldrop", "md": "ldrop",
            "touch": "ltouch", "append": "ladd"}  # fmt: skip
UNKNOWN = "the answer is lost: a change may have been done or not"


class End(Exception):
    pass


class Session:
    """private: of --try; the proxy that ends with the prompt, or None. refused: has the proxy refused
    a command of operators?"""

    def __init__(self, table, connection, output, admin, private=None):
        self.table, self.connection, self.output, self.private = table, connection, output, private
        self.admin, self.timing, self.refused = admin, False, False

    def run(self, text):
        """A line of text. Returns the exit code it would have as a command; raises End."""
        text = text.strip(BLANKS)  # other blanks of Unicode are bytes of a word
        if text == "" or text.startswith("#"):
            return DONE
        if text.startswith("\\"):
            return self._own(text)
        try:
            words = split(text)
        except NotClosed as fault:
            return self._refuse(str(fault))
        return self.run_words(words)

    def run_words(self, words):
        if words[0] in ENDS and len(words) == 1:
            raise End()
        if words[0] == b"help":
            return self._help([to_text(word) for word in words[1:]])
        if to_text(words[0]) in self.table.operators:
            return self._operate(words)
        try:
            plan = request.plan(self.table, words)
        except request.Refused as fault:
            return self._refuse(str(fault), fault.hint)
        return self._send(plan)

    def _refuse(self, text, hint=None):
        self.output.error(text)
        if hint:
            self.output.hint(hint)
        return FAILED

    # --- what is not sent ---

    def _own(self, text):
        word = text.split()[0]
        if word == "\\all" and hasattr(self.output, "show_last"):
            self.output.show_last()
        elif word == "\\timing":
            self.timing = not self.timing
            self.output.note(f"timing is {'on' if self.timing else 'off'}")
        elif word == "\\wire":
            self.connection.trace = None if self.connection.trace else self.trace
            self.output.note(f"the bytes are {'shown' if self.connection.trace else 'not shown'}")
        elif word in ("\\q", "\\quit"):
            raise End()
        elif word in ("\\h", "\\?", "\\help"):
            return self._help(text.split()[1:])
        else:
            return self._refuse(f"{word} is unknown; there are {', '.join(OWN)}")
        return DONE

    def trace(self, is_request, data):
        mark = ">" if is_request else "<"
        for line in data.split(b"\r\n")[:-1]:
            self.output.note_line(f"{mark} {visible(line)}")

    def _help(self, names):
        out = self.output.help_line
        if not names:
            for line in BEGIN.splitlines():
                out(line)
            verbs = self.table.verbs.values()
            self._help_table("lists", [verb for verb in verbs if verb.is_list])
            self._help_table("plain items and servers", [verb for verb in verbs if not verb.is_list])
            self._help_table("the proxy, for operators", self.table.operators.values())
            out("")
            for word, text in OWN.items():
                self.output.help_entry(word, text)
            return DONE
        verb = self.table.find(names[0])
        if verb is None:
            hint = self.table.suggestion(names[0])
            return self._refuse(f"{names[0]} is no verb", hint)
        out(verb.line)
        self.output.paragraph(verb.short)
        if verb.is_list and verb.wire != verb.usage:
            out(f"  sent as: {verb.name} {' '.join(verb.wire)}")
        if verb.is_list:
            self.output.paragraph(verb.text)
        return DONE

    def _help_table(self, title, verbs):
        self.output.help_line("")
        self.output.help_line(f"{title}:")
        for verb in verbs:
            if not verb.is_refused:
                self.output.help_entry(verb.line, verb.short)

    # --- commands of operators ---

    def _operate(self, words):
        verb = self.table.find(to_text(words[0]))
        try:
            request.check_count(verb, words[1:])
            request.check_clean(words[1:])
            if verb.name == "servers":
                from mclistd_servers import main as servers  # few need it

                return servers.run(self.connection.address.name, [to_text(w) for w in words[1:]])
            if verb.name == "top":
                return self._top(words[1:])
            return self._show_lines(self.admin.ask(words))
        except request.Refused as fault:
            return self._refuse(str(fault), fault.hint)
        except (NotFound, Lost) as fault:
            self.output.error(str(fault))
            return NO_CONNECTION
        except KeyboardInterrupt:
            self.output.note("ended")
            return DONE

    def _top(self, words):
        from mclistd_cli import top  # few need it

        self.connection.connect()
        if not self.connection.is_proxy:
            return self._refuse(f"{self.connection.address.name} is no mclistd")
        if words == [b"--once"]:
            for line in top.once(self.connection):
                self.output.help_line(line)
            return DONE
        if words:
            return self._refuse("usage: top [--once]")
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            return self._refuse("the live view needs a terminal; top --once prints one frame")
        return top.live(self.connection, getattr(self.output, "paint", lambda _, text: text))

    def _show_lines(self, lines):
        """OK itself is shown where nothing else is."""
        first = next(lines)
        if first.startswith(b"ERROR"):
            self.refused = True
            self.output.error(visible(first[5:].strip()))
            for line in lines:
                self.output.hint(visible(line))
            return REFUSED
        count = 0
        for count, line in enumerate(lines, 1):
            self.output.help_line(visible(line))
        if count == 0:
            self.output.word(first)
            self.output.flush()
        return DONE

    # --- what is sent ---

    def _send(self, plan):
        connection, output = self.connection, self.output
        name = connection.address.name
        was_there = connection.version is not None
        started = None
        try:
            if connection.is_gone():
                connection.connect()
                if was_there:
                    output.note(f"connected to {name} again")
            joins = plan.verb is not None and plan.verb.is_list and connection.is_proxy
            if joins:
                connection.delimiter_of(b"")  # read before the answer that needs it
            started = time.monotonic()
            output.begin(plan, connection.delimiter_of if joins else None)
            errors = []
            for data in plan.requests:
                self._ask(plan, data, errors)
        except Lost as fault:
            output.error(f"{fault}" if started is None else f"{fault}; {UNKNOWN}")
            return NO_CONNECTION
        except KeyboardInterrupt:
            connection.close()
            output.error(f"interrupted; {UNKNOWN}")
            return NO_CONNECTION
        output.finish()
        self._explain(plan, errors)
        self._explain_nothing(plan)
        if self.timing:
            output.note(f"{(time.monotonic() - started) * 1000:.1f} ms")
        return output.status

    def _ask(self, plan, data, errors):
        same = plan.requests[0] is not data
        for answer in self.connection.ask(data, barrier=plan.name != "mn"):
            if answer.is_error:
                errors.append(answer.line)
            elif same and answer.kind == "line" and self.output.status == DONE:
                continue  # of several requests for one command, one STORED is enough
            self.output.part(answer)

    def _explain(self, plan, errors):
        if plan.note:
            self.output.note(plan.note)
        for line in errors[:1]:
            hint = None
            if line == b"ERROR" and plan.verb is not None and plan.verb.is_list:
                hint = "this is a memcached, not the proxy: it has no lists"
                if self.connection.is_proxy:
                    hint = "this proxy is older than the prompt"
            elif line == b"ERROR" and plan.verb is not None:
                hint = f"usage: {plan.verb.line}"
            elif line == b"ERROR":
                hint = self.table.suggestion(plan.name) or "no verb; `help` lists them"
            if hint:
                self.output.hint(hint)

    def _explain_nothing(self, plan):
        """A plain verb found nothing under a key that is a list's: END does not say so."""
        words = plan.requests[0].split(b"\r\n", 1)[0].split(b" ")
        verb = self.table.find(OF_LISTS.get(plan.name, ""))
        of_one = len(words) == 2 if plan.name in ("get", "gets") else len(words) > 1
        if self.output.status != NOTHING or not self.output.explains or not verb or not of_one:
            return
        try:
            items = self.connection.number(b"llen " + words[1]) if self.connection.is_proxy else 0
        except (Lost, KeyboardInterrupt):
            return  # the next command says so
        if items:
            key = visible(words[1])
            line = " ".join([verb.name, key, *verb.usage[1:]])
            self.output.hint(f"{key} is a list: {line}; or bridge = yes in its [lists] section")


def read_pipe(session, stream):
    """Runs each line of a file. Returns the worst exit code; a miss is not a fault here."""
    worst = DONE
    for number, raw in enumerate(stream, 1):
        session.output.place = f"line {number}: "
        try:
            code = session.run(to_text(raw))
        except End:
            break
        if code >= FAILED or session.refused:
            worst = max(worst, code)
    return worst


