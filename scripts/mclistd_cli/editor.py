# SPDX-License-Identifier: BSD-3-Clause
"""The line that is typed. With prompt_toolkit (Debian: python3-prompt-toolkit) verbs and keys are
completed while one types, and the usage of the verb stands below; without it readline completes at
Tab."""

import signal
import socket
import threading
import time

from mclistd_cli.session import OWN
from mclistd_cli.words import LINE_END

try:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
    from prompt_toolkit.completion import Completer, Completion
    from prompt_toolkit.formatted_text import FormattedText
    from prompt_toolkit.history import History as ToolkitHistory
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.output import ColorDepth

    HAS_TOOLKIT = True
except ImportError:
    HAS_TOOLKIT = False

KEYS_SHOWN = 20
LEVELS = ("error", "warn", "info", "debug")
STATS = {
    "settings": "every setting in force",
    "backends": "the servers, each with its counters",
    "where": "on which server the proxy looks for a key",
    "reset": "sets the counters to zero",
}


class Signalled(SystemExit):
    """SIGTERM or SIGHUP: the prompt ends in order."""


def candidates(table, history, before):
    """What may stand where the text `before` ends: (length of the word so far, [(word, text)])."""
    *words, word = before.split(" ")
    found = []
    if not words or words == ["help"]:
        found = [(verb.name, verb.short) for verb in table.all.values() if not verb.is_refused]
        found += [] if words else OWN.items()
    elif words == ["stats"]:
        found = STATS.items()
    elif words == ["log"]:
        found = [(level, "") for level in LEVELS]
    elif words[0] != "help" and takes_key(table.find(words[0]), len(words) - 1):
        found = [(key, "") for key in history.keys()]
    found = [(name, text) for name, text in found if name.startswith(word) and name != word]
    return len(word), found[:KEYS_SHOWN] if words else found


def takes_key(verb, place):
    """Does a key stand there behind the verb?"""
    if verb is None:
        return place == 0
    place = min(place, len(verb.usage) - 1)
    return place >= 0 and verb.usage[place] in ("KEY", "KEY...", "SRC", "DST")


def usage_below(table, text):
    """[(style, text)] about the line that is being typed."""
    text = text.lstrip()
    words = text.split()
    verb = table.find(words[0]) if words else None
    if verb is None and " " in text and not text.startswith(("help", "\\")):
        return [("", table.suggestion(words[0]) or f"{words[0]} is no verb that is known here")]
    if verb is None:
        return [("", "help: what there is    Tab: completes    Ctrl-D: ends")]
    at = len(words) - 1 if text.endswith(" ") else len(words) - 2
    parts = [("bold", verb.name)]
    for number, word in enumerate(verb.usage):
        is_last = number == len(verb.usage) - 1 and word.rstrip("]").endswith("...")
        is_here = number == at or (is_last and at > number)
        parts += [("", " "), ("bold underline" if is_here else "", word)]
    return [*parts, ("", f"    {verb.short}")]


ENDING = (signal.SIGTERM, signal.SIGHUP)


def signals_end(handler):
    for number in ENDING:
        signal.signal(number, handler)


def repeat_until(is_taken):
    """Between its prompt and its wait for a key, readline does not look whether a signal has come:
    Python would tell of it behind the next key. It is sent again until it is taken."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

    def repeat():
        with writer:
            while not is_taken():
                number = reader.recv(1)[0]
                time.sleep(0.1)
                if number in ENDING and not is_taken():
                    signal.pthread_kill(threading.main_thread().ident, number)

    threading.Thread(target=repeat, daemon=True).start()


if HAS_TOOLKIT:

    class _History(ToolkitHistory):
        def __init__(self, history):
            self.ours = history
            super().__init__()

        def load_history_strings(self):
            yield from reversed(self.ours.lines)

        def store_string(self, string):
            for line in LINE_END.split(string):
                self.ours.add(line)

    class _Completer(Completer):
        def __init__(self, table, history):
            self.table, self.history = table, history

        def get_completions(self, document, _):
            length, found = candidates(self.table, self.history, document.text_before_cursor)
            for word, text in found:
                yield Completion(word, start_position=-length, display_meta=text)

    def _bindings():
        bindings = KeyBindings()

        @bindings.add("c-c")
        def _(event):
            """An empty line: the end. Else the line is thrown away."""
            if event.app.current_buffer.text:
                event.app.current_buffer.reset()
            else:
                event.app.exit(exception=EOFError())

        return bindings

    class ToolkitEditor:
        def __init__(self, table, history, colours):
            def below():
                return FormattedText(usage_below(table, self.session.default_buffer.text))

            self.session = PromptSession(
                history=_History(history),
                completer=_Completer(table, history),
                auto_suggest=AutoSuggestFromHistory(),
                bottom_toolbar=below,
                key_bindings=_bindings(),
                color_depth=None if colours else ColorDepth.DEPTH_1_BIT,
                reserve_space_for_menu=6,
            )
            signals_end(self._on_signal)

        def _on_signal(self, number, _):
            app = self.session.app
            if app.is_running:
                # Wakes the loop, which puts the terminal in order before it ends.
                app.loop.call_soon_threadsafe(app.exit, None, Signalled(128 + number))
            else:
                raise Signalled(128 + number)

        def read(self, prompt):
            """A line. Raises EOFError at the end, Signalled."""
            return self.session.prompt([("bold", prompt)])


class ReadlineEditor:
    """Of Python itself; without readline a plain line. Ctrl-C throws the line away; a second one ends
    the prompt, since readline does not say whether there was a line."""

    def __init__(self, table, history, colours):
        self.table, self.history, self.colours, self.found = table, history, colours, []
        self.was_interrupted = self.is_ending = False
        signals_end(self._on_signal)
        repeat_until(lambda: self.is_ending)
        try:
            import readline
        except ImportError:
            self.readline = None
            return
        self.readline = readline
        for line in history.lines:
            readline.add_history(line)
        readline.set_auto_history(False)
        readline.set_completer_delims(" ")
        readline.set_completer(self._complete)
        readline.parse_and_bind("tab: complete")

    def _on_signal(self, number, _):
        self.is_ending = True
        raise Signalled(128 + number)

    def _complete(self, _, state):
        if state == 0:
            before = self.readline.get_line_buffer()[: self.readline.get_endidx()]
            self.found = [word for word, _ in candidates(self.table, self.history, before)[1]]
        return self.found[state] + " " if state < len(self.found) else None

    def read(self, prompt):
        try:
            line = input(f"\001\x1b[1m\002{prompt}\001\x1b[0m\002" if self.colours else prompt)
        except KeyboardInterrupt:
            print()
            if self.was_interrupted:
                raise EOFError from None
            self.was_interrupted = True
            print("(Ctrl-C again ends the prompt)")
            return ""
        self.was_interrupted = False
        if self.readline is not None and line.strip() and not line.startswith(" "):
            self.readline.add_history(line)
        for part in LINE_END.split(line):
            self.history.add(part)
        return line


def make(table, history, colours):
    kind = ToolkitEditor if HAS_TOOLKIT else ReadlineEditor
    return kind(table, history, colours)

