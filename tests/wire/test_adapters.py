# SPDX-License-Identifier: BSD-3-Clause
"""The adapters of frameworks in scripts/clients: the tests of tests/wire/adapters, in the words of
each framework; that these tests see a fault; what a tag that was purged leaves; the READMEs."""

import os
import re
import shutil
import subprocess
import threading

import pytest

from client_support import Page, Program, prepared, works
from harness import HOST, ROOT, TIMEOUT_S, wait_until

pytestmark = pytest.mark.release

HERE = ROOT / "tests/wire/adapters"
CLIENTS = ROOT / "scripts/clients"
SYMFONY = "Symfony/Component/Cache/autoload.php"
DJANGO = "python/django/mclistd_django.py"
WORDPRESS = "php/wordpress/object-cache.php"


class Adapter:
    """packages: what Debian calls that which is_there looks for; tests: what runs its tests, all or
    one; agent: a program that does what the lines of its input say."""

    def __init__(self, packages, is_there, tests, only, agent, readme):
        self.packages, self.is_there, self.readme = packages, is_there, readme
        self.tests, self.only, self.agent = tests, only, agent


ADAPTERS = {
    "symfony": Adapter(
        "php-cli php-symfony-cache php-cache-integration-tests phpunit",
        lambda: works("php", "-r", f"require '{SYMFONY}'; require 'Cache/IntegrationTests/autoload.php';")
        and works("phpunit", "--version"),
        ["php", "-d", "zend.assertions=1", "/usr/bin/phpunit", "--do-not-cache-result", "SymfonyTest.php"],
        "--filter={}$",
        ["php", "symfony.php"],
        "php/symfony/README.md",
    ),
    "django": Adapter(
        "python3-django python3-pymemcache python3-pylibmc",
        lambda: works("/usr/bin/python3", "-c", "import django, pymemcache, pylibmc"),
        ["/usr/bin/python3", "django_tests.py"],
        "-k{}",
        ["/usr/bin/python3", "django_agent.py"],
        "python/django/README.md",
    ),
    "wordpress": Adapter(
        "php-cli phpunit wordpress",
        lambda: prepared("fetch-wordpress")[0] and works("phpunit", "--version"),
        ["phpunit", "--do-not-cache-result", "WordPressTest.php"],
        "--filter={}$",
        ["php", "wordpress.php"],
        "php/wordpress/README.md",
    ),
}

# A fault -> adapter, the test that sees it, file, what stands there, what stands there instead.
FAULTS = {
    "a lost list is not seen": ("symfony", "testItemsOfALostTagAreMissed", "php/tagged.php",
        "&& ($firsts[$tag] ?? null) === $generation", ""),
    "tags that the item had are not added": ("symfony",
        "testASaveAddsTheTagsThatAPurgeHasTakenOffMeanwhile", "php/symfony/TagAwareAdapter.php",
        "fn($tag) => Tagged::key($this->getId($this->tagPrefix . $tag)), array_values($names)",
        "[Tagged::class, 'key'], array_keys(array_filter($addTagData, fn($ids) => in_array($id, $ids)))"),
    "a delete that is refused is done": ("symfony", "testAMemcachedThatIsDownIsAMiss",
        "php/symfony/TagAwareAdapter.php", "if ($end instanceof Error) throw $end;", ""),
    "a proxy that hangs is asked each time": ("symfony", "testAProxyThatDoesNotAnswerIsLeftAloneForAWhile",
        "php/tagged.php", "microtime(true) < $this->downUntil", "false"),
    "tags that it has no more stay": ("symfony", "testTagsAreCleanedOnSave", "php/symfony/TagAwareAdapter.php",
        "        $this->doDeleteTagRelations($removeTagData);\n", ""),
    "keys stay in lists": ("symfony", "testKeysLeaveAListBehindTheirItems", "php/tagged.php",
        "->laddt($tag, $this->lifetime($seconds) + self::SLACK_S, $key)", "->ladd($tag, $key)"),
    "a list without a generation is left": ("symfony", "testAListWithoutAGenerationIsPurgedAndBegunAnew",
        "php/tagged.php", "elseif ($first !== null) $packet->lpurge((string) $tag);", ""),
    "keys as they are": ("symfony", "testTagsAndKeysOfAnyLetters", "php/tagged.php",
        "rawurlencode($name)", "$name"),
    "a long key loses its end": ("symfony", "testTagsAndKeysOfAnyLetters", "php/tagged.php",
        ". '~' . strtr(rtrim(base64_encode(hash('sha256', $name, true)), '='), '+/', '-_')", ""),
    "a lost list is not seen by Django": ("django", "test_an_item_of_a_lost_tag_is_missed", DJANGO,
        "elif all(first.get(at) == generation for at, generation in raw.made.items()):", "else:"),
    "an item that has ended keeps others out": ("django", "test_an_item_of_a_lost_tag_is_missed", DJANGO,
        "if not isinstance(raw, Tagged) or self._live({key: raw}):", "if True:"),
    "items stay in memory": ("django", "test_its_items_leave_the_memory", DJANGO, '"lpurge", lists', '"ldrop", lists'),
    "generations are read too late": ("django", "test_a_purge_while_a_value_is_made_is_not_missed", DJANGO,
        "        made = self._made(tags)\n        value = default() if callable(default) else default\n",
        "        value = default() if callable(default) else default\n        made = self._made(tags)\n"),
    "commas in keys": ("django", "test_tags_and_keys_of_any_letters", DJANGO, '.replace(",", "%2C")', ""),
    "keys stay in Django's lists": ("django", "test_keys_leave_a_list_behind_their_items", DJANGO,
        "pipe.laddt(at, seconds + SLACK_S, key)", "pipe.ladd(at, key)"),
    "a version without tags": ("django", "test_versions_have_the_same_tags", DJANGO,
        "self._put(super().set, key, raw.value, DEFAULT_TIMEOUT, version + delta, raw.made)",
        "self.set(key, raw.value, version=version + delta)"),
    "an exception reaches the page": ("django", "test_a_proxy_that_is_down_is_a_miss", DJANGO,
        "except self.down as error:", "except ZeroDivisionError as error:"),
    "a lost group is not seen": ("wordpress", "testItemsOfALostGroupAreMissed", "php/tagged.php",
        "&& ($firsts[$tag] ?? null) === $generation", ""),
    "no generation is remembered": ("wordpress", "testWhatWasReadBeforeAFlushIsNotFoundBehindIt", WORDPRESS,
        ", remember: self::REMEMBER_S", ""),
    "no generation is made before the value": ("wordpress", "testWhatWasReadBeforeAFlushIsNotFoundBehindIt",
        "php/tagged.php", "        if ($this->remember) $this->generations($tags);\n", ""),
    "what is counted is lost": ("wordpress", "testTwoThatCountAtOnceLoseNothing", "php/tagged.php",
        "$verb = $old ? 'cas' : 'add';", "$verb = 'set';"),
    "a count loses its time": ("wordpress", "testTimesToLive", WORDPRESS, "(int) $offset), null]", "(int) $offset), 9999]"),
    "a group stays in memory": ("wordpress", "testAGroupsItemsLeaveTheMemory", WORDPRESS, "->purge(", "->drop("),
    "groups and keys run together": ("wordpress", "testKeysAndGroupsOfAnyLetters", WORDPRESS, "rawurlencode($group)", "$group"),
    "an exception reaches WordPress": ("wordpress", "testAProxyThatIsDownLeavesACacheOfTheRequest", WORDPRESS,
        "catch (Mclistd\\Error $error)", "catch (DivisionByZeroError $error)"),
}  # fmt: skip


def skip_unless_there(adapter):
    if not adapter.is_there():
        pytest.skip(f"not installed: {adapter.packages}")


def environment(port, clients):
    wordpress = prepared("fetch-wordpress")[1]
    return {
        **os.environ, "PROXY": f"{HOST}:{port}", "CLIENTS": str(clients), "WORDPRESS": wordpress,
        "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip


def run_tests(adapter, port, only=None, clients=CLIENTS):
    command = adapter.tests + ([adapter.only.format(only)] if only else [])
    return subprocess.run(
        command, cwd=HERE, env=environment(port, clients), capture_output=True, text=True,
        timeout=20 * TIMEOUT_S, check=False,
    )  # fmt: skip


@pytest.mark.memcacheds(2)
@pytest.mark.parametrize("name", ADAPTERS)
def test_it_does_what_its_framework_expects(daemon, name):
    skip_unless_there(ADAPTERS[name])
    done = run_tests(ADAPTERS[name], daemon.port)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^OK\b", done.stdout + done.stderr, re.MULTILINE)
    assert "skipped" not in (done.stdout + done.stderr).lower()


def test_wordpress_own_cache_does_what_the_test_says_that_wordpress_expects(daemon, monkeypatch):
    skip_unless_there(ADAPTERS["wordpress"])
    monkeypatch.setenv("CORE", "1")
    done = run_tests(ADAPTERS["wordpress"], daemon.port)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen(daemon, tmp_path, fault):
    name, test, file, old, new = FAULTS[fault]
    skip_unless_there(ADAPTERS[name])
    clients = tmp_path / "clients"
    shutil.copytree(CLIENTS, clients)
    text = (clients / file).read_text("utf-8")
    assert text.count(old) == 1
    (clients / file).write_text(text.replace(old, new), "utf-8")
    done = run_tests(ADAPTERS[name], daemon.port, test, clients)
    assert done.returncode != 0
    assert re.search("fail|error", done.stdout + done.stderr, re.IGNORECASE), done.stdout
    # It is there, and passes without the fault: above, where all of them do.
    (source,) = [word for word in ADAPTERS[name].tests if word.endswith((".php", ".py"))]
    assert f" {test}(" in (HERE / source).read_text("utf-8")


# --- what a purge leaves ---


class Agent(Program):
    def __init__(self, adapter, port):
        super().__init__([*adapter.agent, f"{HOST}:{port}"], HERE, environment(port, CLIENTS))


FAST = {"timeout_ms": 1000, "connect_timeout_ms": 500, "retry_min_ms": 5, "retry_max_ms": 20}


@pytest.mark.thorough
@pytest.mark.memcacheds(3)
@pytest.mark.config(**{"pool main": FAST})
@pytest.mark.parametrize("name", ADAPTERS)
def test_a_purged_tag_leaves_no_page_though_memcacheds_were_restarted(daemon, memcacheds, name):
    """Three programs save pages, a fourth one purges, and each memcached is started anew meanwhile:
    with one tag for all, one of them has its list."""
    adapter = ADAPTERS[name]
    skip_unless_there(adapter)
    stopped, pages = threading.Event(), [f"page {number}" for number in range(60)]
    saved = [0, 0, 0]

    def write(number):
        with Agent(adapter, daemon.port) as agent:
            at = 0
            while not stopped.is_set():
                saved[number] += agent.ask("save", pages[at % len(pages)], str(at), "all", f"writer {number}") == "yes"
                at += 7

    writers = [threading.Thread(target=write, args=[number]) for number in range(3)]
    for writer in writers:
        writer.start()
    with Agent(adapter, daemon.port) as agent:
        for memcached in memcacheds:
            for _ in range(3):
                agent.ask("purge", "all")
                wait_for_more(saved)
            memcached.stop()
            memcached.start()
            wait_for_more(saved)
        stopped.set()
        for writer in writers:
            writer.join()
        assert [page for page in pages if agent.ask("get", page) != "miss"], "there is something to purge"
        assert agent.ask("purge", "all") == "yes"
        assert [page for page in pages if agent.ask("get", page) != "miss"] == []
        assert agent.ask("save", pages[0], "new", "all") == "yes"
        assert agent.ask("get", pages[0]) == "is new"


def wait_for_more(saved):
    seen = sum(saved)
    wait_until("pages are saved", lambda: sum(saved) >= seen + 20)


# --- the READMEs ---


@pytest.mark.parametrize("name", ADAPTERS)
def test_the_page_of_the_readme(daemon, tmp_path, name):
    adapter = ADAPTERS[name]
    skip_unless_there(adapter)
    page = Page(CLIENTS / adapter.readme)
    page.write(tmp_path, daemon.port)
    install(name, tmp_path)
    (program,) = page.outputs
    done = subprocess.run(
        [*adapter.agent[:1], program], cwd=tmp_path, env=environment(daemon.port, CLIENTS),
        capture_output=True, text=True, timeout=6 * TIMEOUT_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr, done.stdout) == (0, "", page.outputs[program])


def install(name, folder):
    """What composer makes of it, and pip."""
    if name == "symfony":
        (folder / "vendor").mkdir()
        files = ["mclistd.php", "tagged.php", "symfony/TagAwareAdapter.php"]
        lines = [f"require '{SYMFONY}';", *(f"require '{CLIENTS}/php/{file}';" for file in files)]
        (folder / "vendor/autoload.php").write_text("<?php\n" + "\n".join(lines) + "\n", "utf-8")
    if name == "wordpress":
        path = folder / "fragment.php"
        text = path.read_text("utf-8").replace("<?php\n", f"<?php\nrequire '{HERE}/wordpress_load.php';\n")
        path.write_text(text, "utf-8")
    if name == "django":
        for file in ("mclistd.py", "django/mclistd_django.py"):
            shutil.copy(CLIENTS / "python" / file, folder)
