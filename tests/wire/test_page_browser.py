# SPDX-License-Identifier: BSD-3-Clause
"""The status page in a browser, where one is installed (scripts/install-deps --browser): it shows figures
that move, names are text, and it is right in light, in dark and on a phone."""

import re
import shutil
import struct
import subprocess
import zlib

import pytest

from harness import HOST, SLOW
from test_admin import Admin

BROWSER = shutil.which("chromium-headless-shell")
pytestmark = pytest.mark.skipif(not BROWSER, reason="no chromium-headless-shell is installed")

DARK, LIGHT = "--blink-settings=preferredColorScheme=0", "--blink-settings=preferredColorScheme=1"


def browse(folder, *args):
    """What the browser prints."""
    return subprocess.run(
        [BROWSER, "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/profile",
         *map(str, args)], capture_output=True, text=True, timeout=60 * SLOW, check=True).stdout


def first_pixel(path):
    """(red, green, blue) of the upper left corner: there no filter of PNG changes anything."""
    data, at, pixels, channels = path.read_bytes(), 8, b"", 0
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            assert body[8] == 8  # bits
            channels = {2: 3, 6: 4}[body[9]]
        elif kind == b"IDAT":
            pixels += body
        at += length + 12
    return tuple(zlib.decompress(pixels)[1:1 + min(3, channels)])


@pytest.fixture
def admin(start_daemon, memcached):
    return Admin(start_daemon, [memcached])


def test_figures_move_and_names_are_text(admin, tmp_path):
    url = f"http://{HOST}:{admin.port}/"

    def counted(dom):
        return int(re.search(r">cmd_get <b>(\d+)</b>", dom)[1]) if "cmd_get" in dom else 0

    before = counted(browse(tmp_path, "--dump-dom", url))
    with admin.daemon.conn() as conn:
        for _ in range(2000):
            conn.send(b"get <script>alert(1)</script>\r\nladd <b>bold</b> item\r\n")
            conn.line(), conn.line()
    dom = browse(tmp_path, "--dump-dom", url)
    assert counted(dom) >= before + 2000
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in dom and "<script" not in dom
    assert "&lt;b&gt;bold&lt;/b&gt;" in dom and "<b>bold</b>" not in dom


def test_light_dark_and_a_phone(admin, tmp_path):
    url, corners = f"http://{HOST}:{admin.port}/", {}
    for name, scheme, size in (("light", LIGHT, "1280,1600"), ("dark", DARK, "1280,1600"),
                               ("phone", LIGHT, "390,844")):
        picture = tmp_path / f"{name}.png"
        browse(tmp_path, scheme, f"--window-size={size}", f"--screenshot={picture}", url)
        corners[name] = first_pixel(picture)
    assert min(corners["light"]) > 200 and corners["phone"] == corners["light"]
    assert max(corners["dark"]) < 60
