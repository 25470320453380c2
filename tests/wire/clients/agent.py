#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Python's clients as agents (README.md): pymemcache, pylibmc, memcache."""

import sys


def address(server):
    host, port = server.rsplit(":", 1)
    return host, int(port)


class Agent:
    def __init__(self, client):
        self.client = client
        self.versions = {}

    def run(self, verb, key, *words):
        if verb == "get":
            return self.client.get(key)
        if verb == "gets":
            return self.gets(key)
        if verb == "cas":
            return self.cas(key, words[0])
        if verb == "touch":
            return self.client.touch(key, int(words[0]))
        return getattr(self.client, verb)(key, *words)

    def gets(self, key):
        value, self.versions[key] = self.client.gets(key)
        return value

    def cas(self, key, text):
        return self.client.cas(key, text, self.versions[key])


class Memcache(Agent):
    """It keeps the versions itself. Its delete answers 1 for NOT_FOUND as well."""

    def gets(self, key):
        return self.client.gets(key)

    def cas(self, key, text):
        return self.client.cas(key, text)


def start(name, setting, servers):
    if name == "pymemcache":
        from pymemcache.client.base import Client
        from pymemcache.client.hash import HashClient

        # Without this it does not ask for answers, and reports True whatever happens.
        told = {"default_noreply": False, "timeout": 20, "connect_timeout": 20}
        if len(servers) == 1:
            return Agent(Client(address(servers[0]), **told))
        return Agent(HashClient([address(server) for server in servers], **told))
    if name == "pylibmc":
        import pylibmc

        client = pylibmc.Client(servers, binary=setting == "binary")
        client.behaviors = {"cas": True}
        if setting not in ("default", "binary"):
            client.behaviors = {setting: True}
        return Agent(client)
    import memcache

    return Memcache(memcache.Client(servers, cache_cas=True, socket_timeout=20))


def shown(verb, result):
    if verb in ("get", "gets"):
        if result is None:
            return "miss"
        return "is " + (result.decode() if isinstance(result, bytes) else str(result))
    return "yes" if result else "no"


agent = start(sys.argv[1], sys.argv[2], sys.argv[3:])
for line in sys.stdin:
    words = line.rstrip("\n").replace("<CRLF>", "\r\n").split("\t")
    try:
        print(shown(words[0], agent.run(*words)), flush=True)
    except AttributeError:
        print("no such call", flush=True)
    except Exception as error:
        print(f"error {type(error).__name__}: {error}".replace("\n", " "), flush=True)
