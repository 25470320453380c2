# SPDX-License-Identifier: BSD-3-Clause
"""Programs that use stock clients of memcached: those of docs/clients, and the agents of
tests/wire/clients. A test skips, and says which package is missing, where a client is not
installed: scripts/install-deps --clients installs all that Debian has."""

import functools
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from harness import ROOT, TIMEOUT_S, wait_for_exit

AGENTS = ROOT / "tests/wire/clients"
SPYMEMCACHED = "/usr/share/java/spymemcached.jar"
GOCODE = "/usr/share/gocode"
FENCES = {
    ".py": "python", ".php": "php", ".js": "js", ".rb": "ruby", ".pl": "perl", ".pm": "perl",
    ".go": "go", ".java": "java", ".c": "c", ".h": "c",
}  # fmt: skip


# --- what is installed ---


@functools.lru_cache(maxsize=None)
def works(*command):
    if shutil.which(command[0]) is None:
        return False
    done = subprocess.run(command, capture_output=True, timeout=10 * TIMEOUT_S, check=False)
    return done.returncode == 0


@functools.lru_cache(maxsize=None)
def prepared(name):
    """What a script has fetched: True and its path, or False and why it could not."""
    try:
        done = subprocess.run(
            [ROOT / "scripts" / name], capture_output=True, text=True, timeout=300, check=False
        )
    except subprocess.TimeoutExpired:
        return False, f"{name} takes too long"
    return done.returncode == 0, (done.stdout if done.returncode == 0 else done.stderr).strip()


def node_modules():
    return prepared("fetch-node-clients")


def debian_13():
    """What it has prepared is memcached; the clients lie beside it."""
    return prepared("fetch-memcached-new")


def python_has(code):
    return works("/usr/bin/python3", "-c", code)


# What a source mentions -> whether it is there, and what to install. The last ones are languages.
NEEDS = [
    (r"pymemcache", lambda: python_has("import pymemcache"), "python3-pymemcache"),
    (r"pylibmc", lambda: python_has("import pylibmc"), "python3-pylibmc"),
    (r"import memcache\b|^memcache$", lambda: python_has("import memcache"), "python3-memcache"),
    (r"new Memcached\(\)|session_start", lambda: works("php", "-r", "exit(class_exists('Memcached') ? 0 : 1);"),
     "php-cli php-memcached"),
    (r"require 'dalli'$", lambda: works("ruby", "-rdalli", "-e", "1"), "ruby ruby-dalli"),
    (r"Memcached::Fast", lambda: works("perl", "-MCache::Memcached::Fast", "-e", "1"),
     "libcache-memcached-fast-perl"),
    (r"Cache::Memcached", lambda: works("perl", "-MCache::Memcached", "-e", "1"),
     "libcache-memcached-perl"),
    (r"bradfitz", lambda: os.path.isdir(f"{GOCODE}/src/github.com/bradfitz/gomemcache"),
     "golang-go golang-github-bradfitz-gomemcache-dev"),
    (r"net\.spy", lambda: os.path.exists(SPYMEMCACHED), "libspymemcached-java"),
    (r"libmemcached/", lambda: os.path.exists("/usr/include/libmemcached/memcached.h"),
     "libmemcached-dev"),
]  # fmt: skip
TOOLS = {
    ".py": ("/usr/bin/python3", "python3"), ".php": ("php", "php-cli"), ".js": ("node", "nodejs"),
    ".rb": ("ruby", "ruby"), ".pl": ("perl", "perl"), ".go": ("go", "golang-go"),
    ".java": ("javac", "default-jdk-headless"), ".c": ("cc", "build-essential"),
}  # fmt: skip


def skip_unless_there(suffix, text):
    """Skips the test where what the program needs is not there."""
    tool, package = TOOLS[suffix]
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed: {package}")
    if suffix == ".js" and re.search(r"require\('mem", text) and not node_modules()[0]:
        pytest.skip(node_modules()[1])
    if needs_debian_13(text) and not debian_13()[0]:
        pytest.skip(debian_13()[1])
    for pattern, is_there, packages in NEEDS:
        if re.search(pattern, text) and not is_there():
            pytest.skip(f"not installed: {packages}")


# --- running ---


def needs_debian_13(text):
    """Clients that learned something since Debian 12."""
    return re.search(r"raw_command|protocol: :meta|of 2023", text) is not None


def environment(text=""):
    newer = {}
    if needs_debian_13(text):
        root = pathlib.Path(debian_13()[1]).parent / "root/usr"
        (dalli,) = root.glob("share/rubygems-integration/all/gems/dalli-*/lib")
        newer = {
            "RUBYLIB": str(dalli),
            "PYTHONPATH": str(root / "lib/python3/dist-packages"),
            "GOPATH": str(root / "share/gocode"),
        }
    return {
        **os.environ,
        "NODE_PATH": str(ROOT / "build/node-clients/node_modules"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "GO111MODULE": "off",
        "GOPATH": GOCODE,
        "GOCACHE": str(ROOT / "build/go-cache"),
        **newer,
    }


def build(command, folder, needs=""):
    env = environment(needs)
    env["GOPATH"] += f":{folder}"  # a helper lies there
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, env=env, capture_output=True, text=True,
        timeout=20 * TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def command_of(folder, name, needs=""):
    """How to run the program NAME, with what lies beside it; builds it if it has to."""
    path = pathlib.Path(name)
    program = f"{name}{'.new' if needs_debian_13(needs) else ''}.out"
    if path.suffix == ".go":
        build(["go", "build", "-o", program, name], folder, needs)
        return [f"./{program}"]
    if path.suffix == ".c":
        helper = [file for file in HELPERS["c"][1] if file.endswith(".c") and (folder / file).exists()]
        checked = ["-g", "-fsanitize=address,undefined", "-I."] if helper else []
        build(["cc", "-Wall", "-Werror", *checked, "-o", program, name, *helper, "-lmemcached"], folder)
        return [f"./{program}"]
    if path.suffix == ".java":
        build(["javac", "-d", ".", "-cp", f".:{SPYMEMCACHED}", "-sourcepath", ".", name], folder)
        # What the virtual machine spends on speed pays only in programs that run for long.
        return ["java", "-XX:TieredStopAtLevel=1", "-cp", f".:{SPYMEMCACHED}", path.stem]
    return [TOOLS[path.suffix][0], name]


def run(folder, name, text=""):
    return subprocess.run(
        command_of(folder, name), cwd=folder, env=environment((folder / name).read_text("utf-8")),
        input=text, capture_output=True, text=True, timeout=6 * TIMEOUT_S, check=False,
    )  # fmt: skip


class Program:
    """Answers each line of its input with one. In a `with`: it ends well behind its last line."""

    def __init__(self, command, folder, env):
        self.process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, *words):
        (answer,) = self.ask_all([words])
        return answer

    def ask_all(self, requests):
        """Few enough that the answers fit a pipe."""
        for words in requests:
            self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return [self.process.stdout.readline().rstrip("\n") for _ in requests]

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        code = wait_for_exit(self.process)
        self.process.stdout.close()
        assert code == 0


# --- the helpers of scripts/clients ---

# Language -> the agent that calls it, the files of the helper, and the folder beside a program that
# they are copied to.
HELPERS = {
    "python": ("helper.py", ["mclistd.py"], "."),
    "php": ("helper.php", ["mclistd.php"], "."),
    "node": ("helper.js", ["mclistd.js"], "."),
    "ruby": ("helper.rb", ["mclistd.rb"], "."),
    "perl": ("helper.pl", ["Mclistd.pm"], "."),
    "go": ("helper.go", ["mclistd.go"], "src/mclistd"),
    "java": ("Helper.java", ["mclistd/Lists.java"], "mclistd"),
    "c": ("helper.c", ["mclistd.c", "mclistd.h", "wire.c", "wire.h"], "."),
}


def write_helper(folder, language):
    _, names, beside = HELPERS[language]
    (folder / beside).mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copy(ROOT / "scripts/clients" / language / name, folder / beside)


# --- the pages of docs/clients, and the READMEs of the helpers ---

BLOCK = re.compile(
    r"(?:`(?P<name>[\w.]+)`:\n\n)?^```(?P<fence>\w+)\n(?P<source>.*?)^```$"
    r"(?:\n\nIt prints\n\n```\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


class Page:
    """sources: file -> text; outputs: file -> what it prints, for those that are programs."""

    def __init__(self, path):
        self.path = path
        self.language = path.parent.name if path.stem == "README" else path.stem
        self.blocks = [match.groupdict() for match in BLOCK.finditer(path.read_text("utf-8"))]
        code = [block for block in self.blocks if block["fence"] != "ini"]
        self.sources = {block["name"]: block["source"] for block in code}
        self.outputs = {block["name"]: block["output"] for block in code if block["output"]}

    def write(self, folder, port):
        for name, source in self.sources.items():
            (folder / name).write_text(source.replace("11220", str(port)), encoding="utf-8")
        if self.language in HELPERS:
            write_helper(folder, self.language)


PAGES = [Page(path) for path in sorted((ROOT / "docs/clients").glob("*.md"))]
READMES = [Page(ROOT / "scripts/clients" / language / "README.md") for language in HELPERS]


# --- agents ---

# The client, as docs/clients.md calls it -> the program, its argument, what it needs.
CLIENTS = {
    "PHP Memcached": ("agent.php", "php", "new Memcached()"),
    "pymemcache": ("agent.py", "pymemcache", "pymemcache"),
    "pylibmc": ("agent.py", "pylibmc", "pylibmc"),
    "python3-memcache": ("agent.py", "memcache", "memcache"),
    "Node memcached": ("agent.js", "memcached", "require('memcached')"),
    "memjs": ("agent.js", "memjs", "require('memjs')"),
    "dalli": ("agent.rb", "dalli", "require 'dalli'"),
    "dalli with meta": ("agent.rb", "meta", "protocol: :meta"),
    "Cache::Memcached": ("agent.pl", "Cache::Memcached", "Cache::Memcached"),
    "Cache::Memcached::Fast": ("agent.pl", "Cache::Memcached::Fast", "Memcached::Fast"),
    "gomemcache": ("agent.go", "gomemcache", "bradfitz"),
    "gomemcache of 2023": ("agent.go", "gomemcache", "bradfitz of 2023"),
    "spymemcached": ("Agent.java", "spymemcached", "net.spy"),
    "libmemcached": ("agent.c", "libmemcached", "libmemcached/"),
}
NEWER = {"dalli with meta", "gomemcache of 2023"}  # of Debian 13
# What is set in a client for the binary protocol; memjs and dalli of Debian 12 speak no other.
BINARY = {
    "PHP Memcached with OPT_BINARY_PROTOCOL": "PHP Memcached",
    "pylibmc with binary=True": "pylibmc",
    "libmemcached with BEHAVIOR_BINARY_PROTOCOL": "libmemcached",
}
NO_APPEND = {"gomemcache"}  # as Debian 12 packages it
NO_PREPEND = {"memjs"}  # its prepend sends the opcode of append


@functools.lru_cache(maxsize=None)
def agent_command(folder, name, needs):
    """Built once for all tests that this process runs."""
    shutil.copy(AGENTS / name, folder)
    return command_of(folder, name, needs)


class Agent(Program):
    """A running one; ask() sends a request and returns the line of its answer."""

    def __init__(self, folder, client, setting, servers):
        name, argument, needs = CLIENTS[client]
        skip_unless_there(pathlib.Path(name).suffix, needs)
        command = [*agent_command(folder, name, needs), argument, setting, *servers]
        super().__init__(command, folder, environment(needs))


def rows_of(heading):
    """The rows of the table below this heading of docs/clients.md, as lists of words without
    backquotes and links."""
    text = (ROOT / "docs/clients.md").read_text("utf-8")
    section = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in section.split("\n") if line.startswith("|")][2:]
    rows = [[cell.strip().replace("`", "") for cell in row.strip("|").split("|")] for row in rows]
    return [[re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", cell) for cell in row] for row in rows]
