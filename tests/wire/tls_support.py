# SPDX-License-Identifier: BSD-3-Clause
"""Certificates, and a memcached that speaks TLS only."""

import ssl
import subprocess

from harness import HOST, Conn, Memcached


def make_certificate(path, name="IP:127.0.0.1", subject="node", days=2, signer=None):
    """A key and a certificate, which it signs itself, or the one in the file signer does."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
               "-nodes", "-days", str(days), "-subj", f"/CN={subject}", "-addext",
               f"subjectAltName={name}", "-keyout", path, "-out", f"{path}.crt"]
    if signer:
        command += ["-CA", signer, "-CAkey", signer, "-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run(command, check=True, capture_output=True)
    with open(path, "a", encoding="ascii") as both, open(f"{path}.crt", encoding="ascii") as crt:
        both.write(crt.read())
    path.chmod(0o644)
    return path


def client_context(ca, certificate=None):
    context = ssl.create_default_context(cafile=ca)
    if certificate:
        context.load_cert_chain(certificate)
    return context


class TlsMemcached(Memcached):
    """memcached -Z. certificate: its own; ca: whom it asks its clients for."""

    def __init__(self, certificate, *args, ca=None, client=None):
        self.context = client_context(certificate, client)
        options = [f"ssl_chain_cert={certificate}", f"ssl_key={certificate}"]
        options += [f"ssl_ca_cert={ca}", "ssl_verify_mode=2"] if ca else []
        super().__init__("-Z", "-o", ",".join(options), *args)

    def conn(self, **options):
        return Conn(self.port, host=HOST, tls=self.context, **options)
