# SPDX-License-Identifier: BSD-3-Clause
"""Options, exit code."""

import getopt
import os
import sys

from mclistd_cli import history, private
from mclistd_cli.admin import Admin
from mclistd_cli.session import End, Session, read_pipe
from mclistd_cli.show import DONE, FAILED, NO_CONNECTION, Pipe, Terminal, visible
from mclistd_cli.verbs import Table
from mclistd_cli.wire import Address, BadAddress, Connection, Lost
from mclistd_cli.words import LINE_END, to_bytes

USAGE = """\
usage: mclistd-cli [options] [ADDRESS]               a prompt
       mclistd-cli [options] [ADDRESS] VERB WORD...  one command
       mclistd-cli [options] [ADDRESS] < FILE        one command per line
       mclistd-cli --try [options of mclistd]        a prompt with a private proxy, which ends with it

A prompt for mclistd, the proxy that adds ordered sets ("lists") to memcached. It talks to a plain
memcached as well. ADDRESS is HOST, HOST:PORT, [IPv6]:PORT or the path of a socket; without one
127.0.0.1:11220.

      --raw          answers in a pipe are bytes as they are; else an item that is not one line of
                     text is written as $'...'
  -0, --null         the same, with a NUL byte behind each item in place of a line end
  -x, --stdin        the last word of the command is standard input
      --admin PATH   the socket for commands of operators: reload, log, clients, kill, drain, ...
  -c, --config FILE  the configuration whose [admin] names that socket. Without either of these the
                     proxy at ADDRESS is asked where it is, and /etc/mclistd.ini when none answers
      --timeout S    seconds to wait for an answer, or for more of it; 0 for ever. Default: 65, at a
                     prompt for ever
      --try          start a private proxy, with a memcached of its own unless -c or -s name others
  -c, -l, -p, -s, -T, -u, -v
                     with --try: as of mclistd. The private proxy listens on a private socket, and
                     with -p PORT or -l LIST there as well
      --daemon FILE  with --try: the program to start
  -h, --help         print this and end

exit code:
  0  done
  1  nothing found, or NOT_FOUND, NOT_STORED, EXISTS; not of commands from standard input.
     A command of operators was refused: the proxy's reason is on standard error
  2  an answer was an error, or the command was refused
  3  no connection, or no answer: a change may have been done
NO_COLOR in the environment: no colours. The prompt keeps its history in
$XDG_STATE_HOME/mclistd/history; a line that begins with a blank is not kept.
"""
# A proxy answers everything within deadline_ms and long_timeout_ms (60 s by default).
TIMEOUT_S = 65
TIMEOUT_MAX_S = 365 * 86400
OF_DAEMON = "c:p:l:s:T:u:v"
DAEMON_NAMES = {"--config": "-c", "--port": "-p", "--listen": "-l", "--servers": "-s",
                "--threads": "-T", "--user": "-u", "-v": "-v"}  # fmt: skip


class UsageError(Exception):
    pass


class Options:
    def __init__(self, arguments):
        self.raw = self.null = self.stdin = self.is_try = False
        self.timeout_s = self.daemon = self.port = self.admin = self.config = None
        self.of_daemon, self.listen, self.words = [], [], []
        long_names = ["raw", "null", "stdin", "timeout=", "try", "daemon=", "admin=", "help"]
        long_names += [name[2:] + "=" for name in DAEMON_NAMES if name.startswith("--")]
        try:
            found, self.words = getopt.getopt(arguments, "0xh" + OF_DAEMON, long_names)
        except getopt.GetoptError as error:
            raise UsageError(str(error)) from None
        self.help = any(name in ("-h", "--help") for name, _ in found)
        for name, value in found:
            self._take(name, value)
        if not self.is_try and self.of_daemon[::2] == ["-c"]:
            self.config = self.of_daemon.pop()
            self.of_daemon.pop()
        if (self.of_daemon or self.listen or self.port or self.daemon) and not self.is_try:
            raise UsageError("options of mclistd are for --try; expected an ADDRESS")
        if self.port and not self.listen:
            self.listen = [f"127.0.0.1:{self.port}"]
        if self.is_try and self.words:
            raise UsageError(f"'{self.words[0]}' is too much: with --try commands are typed or "
                             "come from standard input")

    def _take(self, name, value):
        letter = DAEMON_NAMES.get(name, name)
        if name in ("--raw", "--null", "--stdin", "-0", "-x"):
            setattr(self, {"-0": "null", "-x": "stdin"}.get(name, name[2:]), True)
        elif name == "--timeout":
            try:
                self.timeout_s = float(value)
            except ValueError:
                self.timeout_s = -1
            if not 0 <= self.timeout_s <= TIMEOUT_MAX_S:
                raise UsageError(f"--timeout {value}: expected seconds, or 0 for ever")
        elif name == "--try":
            self.is_try = True
        elif name in ("--daemon", "--admin"):
            setattr(self, name[2:], value)
        elif letter == "-l":
            self.listen = value.split(",")
        elif letter == "-v":
            self.of_daemon.append(letter)
        elif letter in DAEMON_NAMES.values():
            self.port = value if letter == "-p" else self.port
            self.of_daemon += [letter, value]

    def command(self, table):
        """(address, words): the address may be left out before a verb."""
        verbs = [table.find(word) is not None or word == "help" for word in self.words[:2]]
        if not self.words or verbs[0]:
            return None, self.words
        hint = table.suggestion(self.words[0])
        if verbs[1:] == [False] and hint:
            raise UsageError(f"{self.words[0]} is neither a verb nor an address before one ({hint})")
        return self.words[0], self.words[1:]


def is_terminal():
    return sys.stdin.isatty() and sys.stdout.isatty()


def has_colours():
    return os.environ.get("NO_COLOR", "") == "" and os.environ.get("TERM", "") != "dumb"


def make_output(options, is_prompt):
    if options.raw or options.null:
        return Pipe(True, b"\0" if options.null else b"\n")
    if is_prompt or sys.stdout.isatty():
        return Terminal(has_colours())
    return Pipe()


def one_command(session, words, stdin):
    data = [os.fsencode(word) for word in words]
    if stdin:
        data.append(sys.stdin.buffer.read())
    try:
        return session.run_words(data)
    except End:
        return DONE


def greet(session, options):
    out = session.output
    version = visible(to_bytes(session.connection.version or ""))
    if options.is_try:
        out.note_line("A private mclistd; it is gone, with all that is in it, when you leave (Ctrl-D).")
        if options.listen:
            out.note_line(f"Other programs reach it at {', '.join(options.listen)} until then.")
        out.help_line("Try:  ladd fruit apple pear     lget fruit     help")
    elif session.connection.is_proxy:
        out.note_line(f"{session.connection.address.name}: mclistd {version.rpartition('-')[2]}. "
                      "`help` says what there is.")
    elif version:
        out.note_line(f"{session.connection.address.name}: memcached {version}, without the proxy: "
                      "it has no lists.")


def prompt(session, options):
    """The prompt, until the user leaves it."""
    from mclistd_cli import editor  # the line editor takes a tenth of a second to load

    connection = session.connection
    code = DONE
    try:
        connection.connect()
    except Lost as fault:
        session.output.error(str(fault))
        session.output.hint("`mclistd --try` starts a private proxy")
        return NO_CONNECTION
    greet(session, options)
    lines = editor.make(session.table, history.History(history.default_path()), has_colours())
    name = "mclistd" if options.is_try else connection.address.name
    while True:
        try:
            for line in LINE_END.split(lines.read(f"{name}> ")):  # several, when they are pasted
                session.run(line)
        except (EOFError, End):
            return code
        except KeyboardInterrupt:
            continue
        if session.private is not None and session.private.has_ended():
            session.output.error("the private proxy has ended")
            return NO_CONNECTION


def run(options):
    table = Table()
    address, words = options.command(table)
    is_prompt = not words and is_terminal()
    output = make_output(options, is_prompt)
    own = None
    try:
        if options.is_try:
            daemon = private.find_daemon(options.daemon)
            own = private.Private(daemon, options.of_daemon, options.listen)
            address = own.path
        timeout_s = options.timeout_s
        if timeout_s is None and not is_prompt:
            timeout_s = TIMEOUT_S
        connection = Connection(Address(address or ""), timeout_s or None)
        admin = Admin(connection, address is not None, options.admin, options.config)
        session = Session(table, connection, output, admin, own)
        if words:
            return one_command(session, words, options.stdin)
        if is_prompt:
            return prompt(session, options)
        return read_pipe(session, sys.stdin.buffer)
    except private.NotStarted as fault:
        print(f"mclistd-cli: the private proxy does not start: {fault}", file=sys.stderr)
        return NO_CONNECTION
    except BadAddress as fault:
        hint = table.suggestion(options.words[0]) if options.words else None
        print(f"mclistd-cli: {fault}" + (f" ({hint})" if hint else ""), file=sys.stderr)
        return FAILED
    finally:
        if own is not None:
            own.end()


def leave_output():
    """What could not be written is not tried again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main():
    try:
        options = Options(sys.argv[1:])
        code = DONE
        if options.help:
            print(USAGE, end="")
        else:
            code = run(options)
        sys.stdout.flush()
        return code
    except UsageError as fault:
        print(f"mclistd-cli: {fault}\nTry mclistd-cli --help.", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        leave_output()
        return FAILED
    except OSError as fault:  # a full disk behind the output, a folder as input
        leave_output()
        print(f"mclistd-cli: {fault.strerror or fault}", file=sys.stderr)
        return FAILED
