# SPDX-License-Identifier: BSD-3-Clause
"""The fake cluster's map over HTTP, as servers tell it that do not over the data port: an answer
that never ends, with one map after the other, each followed by four line feeds.

    with Cluster(nodes=2) as cluster, MapServer(cluster) as server:
        server.port
        server.paths = {"bucketsStreaming"}    # what it knows
"""

import base64
import http.server
import threading
import time


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def _chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _refuse(self, status):
        self.send_response(status, self.server.told.reason)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):
        told = self.server.told
        cluster = told.cluster
        told.log.append(self.path)
        while told.hangs and told.is_up:
            time.sleep(0.01)
        login = f"{cluster.user}:{cluster.password}".encode()
        if self.headers["Authorization"] != "Basic " + base64.b64encode(login).decode():
            return self._refuse(401)
        kind, _, bucket = self.path.removeprefix("/pools/default/").partition("/")
        if kind not in told.paths or bucket != cluster.bucket or told.refuses:
            return self._refuse(404)
        if told.one_map:
            self.send_response(200)
            self.send_header("Content-Length", str(len(told.map())))
            self.end_headers()
            self.wfile.write(told.map())
            return None
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        revision = None
        try:
            while told.is_up:
                if revision is None or (told.goes_on and not told.hangs and revision != cluster.revision):
                    revision = cluster.revision
                    self._chunk(told.map())
                    self._chunk(b"\n\n\n\n")
                time.sleep(0.01)
        except OSError:
            pass
        self.close_connection = True
        return None


class MapServer:
    def __init__(self, cluster):
        self.cluster = cluster
        self.paths = {"bs", "bucketsStreaming"}
        self.goes_on = True  # tells newer maps as well
        self.one_map = False  # tells one map and ends
        self.refuses = False
        self.reason = None  # what it says of a refusal; None: the usual words
        self.hangs = False  # takes requests and says nothing
        self.garbage = b""  # in place of the map
        self.log = []
        self.is_up = True
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.server.daemon_threads = True
        self.server.told = self
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def map(self):
        with self.cluster.lock:
            return self.garbage or self.cluster.map_for(None)

    def stop(self):
        self.is_up = False
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
