# SPDX-License-Identifier: BSD-3-Clause
"""The node's side of SCRAM (RFC 5802, RFC 7677) and PLAIN."""

import base64
import functools
import hashlib
import hmac
import os

HASHES = {"SCRAM-SHA512": "sha512", "SCRAM-SHA256": "sha256", "SCRAM-SHA1": "sha1"}
CONTINUE, REFUSED = 0x21, 0x20


def _attributes(message):
    return dict(part.split("=", 1) for part in message.split(",") if "=" in part)


@functools.lru_cache(maxsize=64)
def _salted(hash_, password, salt, iterations):
    return hashlib.pbkdf2_hmac(hash_, password, salt, iterations)


class Login:
    """One login: begin() and step() give a status and what is answered."""

    def __init__(self, user, password, iterations=4096, lies=False):
        self.user, self.password = user, password
        self.iterations = iterations
        self.lies = lies  # accepts any proof, and does not know the password
        self.hash = None

    def _hmac(self, key, text):
        return hmac.new(key, text.encode(), self.hash).digest()

    def begin(self, mechanism, message):
        if mechanism == "PLAIN":
            _, user, password = message.decode().split("\0")
            return (0 if (user, password) == (self.user, self.password) else REFUSED), b""
        if mechanism not in HASHES:
            return REFUSED, b""
        self.hash = HASHES[mechanism]
        self.first = message.decode()[3:]
        said = _attributes(self.first)
        self.name = said["n"].replace("=2C", ",").replace("=3D", "=")
        self.nonce = said["r"] + base64.b64encode(os.urandom(15)).decode()
        # It is kept with the password, and all nodes have the same.
        kept_with = f"{self.hash} {self.user} {self.password}"
        self.salt = hashlib.sha256(kept_with.encode()).digest()[:16]
        salt = base64.b64encode(self.salt).decode()
        self.challenge = f"r={self.nonce},s={salt},i={self.iterations}"
        return CONTINUE, self.challenge.encode()

    def step(self, message):
        final, _, proof = message.decode().rpartition(",p=")
        password = os.urandom(8) if self.lies else self.password.encode()
        salted = _salted(self.hash, password, self.salt, self.iterations)
        said = f"{self.first},{self.challenge},{final}"
        client_key = self._hmac(salted, "Client Key")
        stored_key = hashlib.new(self.hash, client_key).digest()
        wanted = bytes(a ^ b for a, b in zip(client_key, self._hmac(stored_key, said)))
        known = self.name == self.user and _attributes(final)["r"] == self.nonce
        if not self.lies and (not known or base64.b64decode(proof) != wanted):
            return REFUSED, b""
        signature = self._hmac(self._hmac(salted, "Server Key"), said)
        return 0, b"v=" + base64.b64encode(signature)
