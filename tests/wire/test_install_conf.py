# SPDX-License-Identifier: BSD-3-Clause
"""What conf/ has beside the configuration: for packages, shells, containers, Prometheus, Grafana."""

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess

import pytest
import yaml

from harness import ROOT, wait_until
from test_admin import Admin

pytestmark = pytest.mark.release

CONF = ROOT / "conf"
DAEMON = os.path.abspath(os.environ.get("MCLISTD", ROOT / "build/mclistd"))
RUNNER = shlex.split(os.environ.get("MCLISTD_RUNNER", ""))


def test_the_package_has_the_version_of_the_program():
    makefile = (ROOT / "Makefile").read_text()
    version = re.search(r"^VERSION := (\S+)$", makefile, re.MULTILINE)[1]
    assert (CONF / "debian/changelog").read_text().startswith(f"mclistd ({version}) ")


def completed(program, *words):
    """What bash offers in place of the last word."""
    script = (f"complete() {{ :; }}; compopt() {{ :; }}; . {CONF}/mclistd.bash-completion; "
              '_mclistd "$1" "${@: -1}" "${@: -2:1}"; printf "%s\\n" "${COMPREPLY[@]}"')
    run = subprocess.run(["bash", "-c", script, "bash", program, *words], capture_output=True, text=True,
                         check=True)
    assert run.stderr == ""
    return run.stdout.split()


@pytest.mark.thorough
@pytest.mark.skipif(bool(RUNNER), reason="the daemon needs a program in front of it")
def test_bash_completes_options_and_verbs(tmp_path):
    cli = tmp_path / "mclistd-cli"
    cli.symlink_to(ROOT / "scripts/cli")
    assert completed(DAEMON, "--pr") == ["--probe"]
    assert completed(DAEMON, "-p", "") == []
    assert completed(DAEMON, "-c", f"{CONF}/mclistd.i") == [f"{CONF}/mclistd.ini"]
    assert completed(DAEMON, "-u", "roo") == ["root"]
    assert completed(cli, "--tim") == ["--timeout"]
    assert completed(cli, "lpopt") == ["lpopto", "lpoptob"]
    assert "get" in completed(cli, "ge")


def metrics_of(admin):
    """The names of all samples, those of each server among them."""
    return set(re.findall(r"^(mclistd_\w+)", admin.text("/metrics"), re.MULTILINE))


@pytest.mark.parametrize("file", ["prometheus-alerts.yml", "grafana.json"])
def test_alerts_and_the_board_name_metrics_that_are_there(file, start_daemon, memcached):
    named = set(re.findall(r"\bmclistd_\w+", (CONF / file).read_text()))
    assert len(named) > 10
    admin = Admin(start_daemon, [memcached])
    with admin.daemon.conn() as conn:  # there are times of the kinds of requests that came
        conn.get("k")
    assert named - metrics_of(admin) == set()


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is in Debian's prometheus")
def test_prometheus_takes_the_alerts():
    subprocess.run(["promtool", "check", "rules", CONF / "prometheus-alerts.yml"], check=True,
                   capture_output=True)


def test_each_panel_of_the_board_asks_something():
    board = json.loads((CONF / "grafana.json").read_text())
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels)
    assert all(target["expr"] for panel in panels for target in panel["targets"])


def sidecar():
    """(text of the configuration, its settings, the pod, its sidecar)"""
    config, deployment = yaml.safe_load_all((CONF / "kubernetes.yaml").read_text())
    settings = configparser.ConfigParser()
    settings.read_string(config["data"]["mclistd.ini"])
    pod = deployment["spec"]["template"]
    assert pod["metadata"]["labels"] == deployment["spec"]["selector"]["matchLabels"]
    (container,) = pod["spec"]["initContainers"]
    volumes = {volume["name"]: volume["configMap"]["name"] for volume in pod["spec"]["volumes"]}
    (mount,) = container["volumeMounts"]
    assert volumes[mount["name"]] == config["metadata"]["name"]
    assert container["args"][-1] == f"{mount['mountPath']}/mclistd.ini"
    return config["data"]["mclistd.ini"], settings, pod, container


def test_the_daemon_takes_the_sidecars_configuration(tmp_path):
    text, _, _, container = sidecar()
    (tmp_path / "mclistd.ini").write_text(text)
    run = subprocess.run([*RUNNER, DAEMON, "-t", *container["args"][:-1], tmp_path / "mclistd.ini"],
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_the_sidecar_is_asked_where_it_answers(start_daemon, memcached):
    _, settings, pod, container = sidecar()
    (port,) = container["ports"]
    assert settings["admin"]["listen"] == f"0.0.0.0:{port['containerPort']}"
    assert pod["metadata"]["annotations"]["prometheus.io/port"] == str(port["containerPort"])
    admin = Admin(start_daemon, [memcached])
    for probe, path in [("startupProbe", "/live"), ("livenessProbe", "/live"), ("readinessProbe", "/ready")]:
        assert container[probe]["httpGet"] == {"path": path, "port": port["name"]}
        wait_until(f"{probe} passes", lambda asked=path: admin.status_of(asked) == 200)


def test_the_sidecar_has_time_to_answer_its_clients():
    _, settings, pod, container = sidecar()
    assert container["restartPolicy"] == "Always"
    drain_s = settings.getint("proxy", "drain_timeout_ms") / 1000
    assert pod["spec"]["terminationGracePeriodSeconds"] > drain_s + 15
    unit = (CONF / "mclistd.service").read_text()
    assert int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)[1]) > drain_s + 15


def test_the_containers_files_are_there():
    text = re.sub(r"\\\n", " ", (CONF / "Containerfile").read_text())
    sources = [word for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE)
               for word in line.split()]
    assert "src" in sources
    assert [name for name in sources if not (ROOT / name).exists()] == []
    # What `make deb` lays beside debian/ must have come in.
    copied = re.search(r"^\tcp -a (.*) \$\(DEB_TREE\)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(copied[1].split()) <= set(sources)
    assert json.loads(re.search(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)[1]) == ["/usr/bin/mclistd"]
    arguments = json.loads(re.search(r"^CMD (.*)$", text, re.MULTILINE)[1])
    assert "--require-pool" in arguments
    assert "STOPSIGNAL SIGTERM" in text


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
@pytest.mark.parametrize("user", ["DynamicUser=yes", "User=mclistd"])
def test_the_unit_shuts_the_daemon_in(user, tmp_path):
    unit = (CONF / "mclistd.service").read_text()
    assert "\nDynamicUser=yes\n" in unit
    program = tmp_path / "program"
    program.symlink_to("/bin/true")
    file = tmp_path / "mclistd.service"
    file.write_text(unit.replace("DynamicUser=yes", user).replace("/usr/local/bin/mclistd", str(program)))
    run = subprocess.run(["systemd-analyze", "verify", "--man=no", file], capture_output=True, text=True)
    assert "mclistd.service" not in run.stderr
    run = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", file],
                         capture_output=True, text=True, check=True)
    exposure = re.search(r"Overall exposure level for mclistd.service: ([0-9.]+)", run.stdout)
    assert float(exposure[1]) < 2.0, run.stdout
