# SPDX-License-Identifier: BSD-3-Clause
"""docs/followers-page.md, done as it says: the prompt, both pages, the clicks."""

import re
import shlex
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest

from client_support import skip_unless_there
from harness import ROOT, TIMEOUT_S, free_port, in_threads, wait_until
from test_cli_prompt import TRY
from test_cli_support import Terminal, prompt_sessions, without_toolkit

pytestmark = pytest.mark.release

NAME = "docs/followers-page.md"
TEXT = (ROOT / NAME).read_text(encoding="utf-8")
CLICKS = 200  # of the thousand of the document


def block(fence):
    (found,) = re.findall(rf"^```{fence}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    return found


def commands(program):
    return [shlex.split(line) for line in re.findall(rf"^    ({program} .*)$", TEXT, re.MULTILINE)]


class Guide:
    """The prompt, and the pages behind ports of this test."""

    def __init__(self, folder):
        self.ports = {number: str(free_port()) for number in ("11220", "8001", "8002")}
        self.folder, self.pages = folder, []
        (folder / "run").mkdir(mode=0o700)
        (folder / "followers.ini").write_text(block("ini"))
        (start,) = commands("build/mclistd")
        assert start == ["build/mclistd", "--try", "-c", "followers.ini", "-p", "11220"]
        env = {"XDG_STATE_HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "run"), "NO_COLOR": "1"}
        options = ["-c", str(folder / "followers.ini"), "-p", self.ports["11220"]]
        self.terminal = Terminal([*TRY, *options], without_toolkit(env, folder))
        self.sessions = prompt_sessions(NAME)

    def close(self):
        for page in self.pages:
            page.kill()
            page.wait()
        self.terminal.close()

    def moved(self, text):
        for number, port in self.ports.items():
            text = text.replace(number, port)
        return text

    def type_session(self):
        for part in self.sessions.pop(0).split("mclistd> ")[1:]:
            typed, _, wanted = part.partition("\n")
            self.terminal.wait_for("mclistd> ")
            self.terminal.enter(typed)
            self.terminal.wait_for(f"{typed}\n{wanted}")

    def start_page(self, fence, name, *command):
        source = block(fence)
        assert f"`{name}`:" in TEXT
        skip_unless_there(f".{name.split('.')[1]}", source)
        (self.folder / name).write_text(self.moved(source))
        log = open(self.folder / f"{name}.log", "wb")
        self.pages.append(subprocess.Popen([self.moved(word) for word in command], cwd=self.folder,
                                           stdout=log, stderr=log))

    def read(self, number):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[number]}/", timeout=TIMEOUT_S) as page:
            return re.findall("<li>(.*?)</li>", page.read().decode())

    def is_up(self, number):
        try:
            return self.read(number) is not None
        except OSError:
            return False

    def click(self, words, name=None):
        """What a line of curl sends; redirects are followed, to the page."""
        data = [word for option, word in zip(words, words[1:]) if option == "-d"]
        form = dict(part.split("=") for part in data)
        form["name"] = name or form["name"]
        body = urllib.parse.urlencode(form).encode()
        urllib.request.urlopen(self.moved(words[-1]), body, timeout=TIMEOUT_S).close()


@pytest.fixture
def guide(tmp_path):
    guide = Guide(tmp_path)
    yield guide
    guide.close()


def test_the_guide_as_it_stands(guide):
    guide.type_session()
    guide.type_session()
    guide.start_page("python", "page.py", "/usr/bin/python3", "page.py")
    wait_until("the page in Python is up", lambda: guide.is_up("8001"))
    assert guide.read("8001") == ["carol", "dave"]
    follow, leave = commands("curl")
    guide.click(follow)
    assert guide.read("8001") == ["carol", "dave", "erin"]

    guide.start_page("php", "page.php", "php", "-S", "127.0.0.1:8002", "page.php")
    wait_until("the page in PHP is up", lambda: guide.is_up("8002"))
    assert guide.read("8002") == ["carol", "dave", "erin"]
    guide.click(leave)
    assert guide.read("8001") == guide.read("8002") == ["dave", "erin"]
    guide.type_session()

    (many,) = commands("seq")
    assert many[:7] == ["seq", "1000", "|", "xargs", "-P", "20", "-I"]
    in_threads(20, lambda thread: [guide.click(many[9:], f"fan0{n}")
                                   for n in range(thread, CLICKS, 20)])
    assert sorted(guide.read("8002")) == sorted(["dave", "erin", *(f"fan0{n}" for n in range(CLICKS))])
    guide.sessions = [session.replace("1002", str(CLICKS + 2)) for session in guide.sessions]
    guide.type_session()
    assert guide.sessions == []
    for number in ("8001", "8002"):
        with pytest.raises(urllib.error.HTTPError, match="400"):
            guide.click(["-d", "follow=", "-d", "name=x", f"http://127.0.0.1:{number}/"], "a,b")
