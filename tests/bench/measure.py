# SPDX-License-Identifier: BSD-3-Clause
"""Runs the load generator, in turns for two sides, and makes medians and ratios of it."""

import json
import statistics
import subprocess
import time

from sides import cpu_s

QUIET_CPU_S = 0.002  # in 50 ms: nothing that would be seen in a measurement
SETTLE_TIMEOUT_S = 60
REPLY_TIMEOUT_S = 60  # on a busy machine a million items take their time


class Failure(Exception):
    """A reply was not as it must be, or a program did not do what it was asked."""


class Load:
    """The load generator with what all measurements have in common."""

    def __init__(self, program, cores, seconds, warmup_s=0.3):
        self.program = str(program)
        self.cores = cores
        self.seconds = seconds
        self.warmup_s = warmup_s
        self.seed = 0

    def command(self, side, requests, connections, depth, options):
        self.seed += 1
        command = [self.program, "--port", str(side.port), "--seed", str(self.seed)]
        command += ["--connections", str(connections), "--depth", str(depth)]
        command += ["--timeout", str(REPLY_TIMEOUT_S)]
        for process in side.servers.values():
            command += ["--watch", str(process.pid)]
        for request, expect in requests:
            command += ["--request", request, "--expect", expect]
        for name, value in options.items():
            command += ["--" + name.replace("_", "-"), str(value)]
        return command

    def start(self, side, requests, connections, depth, **options):
        """Returns the process; finish() waits for it. Without seconds or count: the usual time."""
        if "count" not in options:
            options = {"seconds": self.seconds, "warmup": self.warmup_s, **options}
        command = self.command(side, requests, connections, depth, options)
        return self.cores.start_on(
            self.cores.load,
            lambda: subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
            ),
        )

    def finish(self, side, process):
        """Returns the load's result; `cpu_us` has CPU time per operation by server."""
        output, _ = process.communicate()
        result = json.loads(output) if output else {"error": f"exit code {process.returncode}"}
        if process.returncode != 0:
            raise Failure(f"{side.name}: {result['error']}")
        operations = max(result["operations"], 1)
        used = result.pop("cpu_s")
        result["cpu_us"] = {
            name: used[str(server.pid)] / operations * 1e6
            for name, server in side.servers.items()
        }
        # Of one core each. Where the load's is near one, it was the limit, not the server.
        result["load_share"] = result["load_cpu_s"] / result["seconds"]
        result["server_share"] = sum(used.values()) / result["seconds"]
        return result

    def run(self, side, requests, connections, depth, **options):
        return self.finish(side, self.start(side, requests, connections, depth, **options))


def settle(sides):
    """Waits until the servers have nothing to do any more: merges go on after the last reply."""
    processes = [p for side in sides for p in side.servers.values()]
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    while True:
        before = sum(cpu_s(p.pid) for p in processes)
        time.sleep(0.05)
        if sum(cpu_s(p.pid) for p in processes) - before < QUIET_CPU_S:
            return
        if time.monotonic() > deadline:
            names = ", ".join(side.name for side in sides)
            raise Failure(f"{names}: still busy {SETTLE_TIMEOUT_S} s after the last request")


def together(result):
    return sum(result["cpu_us"].values())


def front(result):
    """The proxy alone, or the server where there is no proxy: the first one."""
    return next(iter(result["cpu_us"].values()))


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def compare(ours, peers, cpu):
    """Ratios of neighbouring measurements: what slows the machine down slows both."""
    return {
        "ops": spread([a["ops_per_s"] / b["ops_per_s"] for a, b in zip(ours, peers)]),
        "cpu": spread([cpu(a) / cpu(b) for a, b in zip(ours, peers)]),
    }


def summary(results, cpu):
    """Medians of one side's measurements."""
    return {
        "ops_per_s": spread([r["ops_per_s"] for r in results]),
        "cpu_us": spread([cpu(r) for r in results]),
        "cpu_us_by_server": {
            name: statistics.median(r["cpu_us"][name] for r in results)
            for name in results[0]["cpu_us"]
        },
        "latency_us": {
            name: statistics.median(r["latency_us"][name] for r in results)
            for name in results[0]["latency_us"]
        },
        "load_share": statistics.median(r["load_share"] for r in results),
        "server_share": statistics.median(r["server_share"] for r in results),
    }
