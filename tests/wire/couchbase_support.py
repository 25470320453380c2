# SPDX-License-Identifier: BSD-3-Clause
"""A daemon before the fake Couchbase cluster of tests/cluster."""

import subprocess
import sys

from harness import ROOT, SLOW

sys.path.insert(0, str(ROOT / "tests/cluster"))

from cluster import Cluster  # noqa: E402
from node import vbucket_of  # noqa: E402
from relay import RelayCluster  # noqa: E402

__all__ = ["Cluster", "RelayCluster", "documents", "keys_of", "make_certificate", "sections", "vbucket_of"]


def documents(cluster, folder, seeds=None, **settings):
    """The section of a pool before these nodes, or all."""
    password = folder / "password"
    password.write_text(cluster.password + "\n")
    nodes = cluster.nodes if seeds is None else [cluster.nodes[i] for i in seeds]
    tls = settings.get("tls", False)
    return {
        "type": "couchbase",
        "servers": [f"127.0.0.1:{node.tls_port if tls else node.port}" for node in nodes],
        "connect_timeout_ms": int(2000 * SLOW),
        "bucket": cluster.bucket,
        "username": cluster.user,
        "password_file": password,
        **settings,
    }


def sections(cluster, folder, proxy=None, **settings):
    return {
        "proxy": {"allow_flush_all": "no", **(proxy or {})},
        "pool documents": documents(cluster, folder, **settings),
    }


def make_certificate(path, name="IP:127.0.0.1"):
    """A key and a certificate that it signs itself."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=node",
                    "-addext", f"subjectAltName={name}", "-keyout", path, "-out", f"{path}.crt"],
                   check=True, capture_output=True)
    with open(path, "a", encoding="ascii") as both, open(f"{path}.crt", encoding="ascii") as crt:
        both.write(crt.read())
    return path


def keys_of(cluster, index, count, prefix="key", end=""):
    """Keys that the node has now."""
    found, number = [], 0
    while len(found) < count:
        key = f"{prefix}{number}{end}"
        vbucket = vbucket_of(key.encode(), len(cluster.owners))
        if cluster.owners[vbucket] == index:
            found.append(key)
        number += 1
    return found
