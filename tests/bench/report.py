# SPDX-License-Identifier: BSD-3-Clause
"""Tables for people: on the screen and in docs/performance.md; plots by gnuplot."""

import datetime
import pathlib
import platform
import re
import subprocess
import textwrap

from measure import Failure
from sides import version_of

# The figures stand in parts, each between marks of its own, with headings that begin so.
HEADINGS = {"figures": "", "collections": "Collections: ", "bucket": "A bucket: "}
# Above this share of its core, the load generator may have been what limited the requests.
LOAD_BUSY = 0.95


def ratio_text(ratio, digits=2):
    return f"{ratio['median']:.{digits}f} ({ratio['min']:.{digits}f}..{ratio['max']:.{digits}f})"


def count_text(number):
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}"


def ops_text(side):
    mark = "*" if side["load_share"] > LOAD_BUSY else ""
    return count_text(side["ops_per_s"]["median"]) + mark


def cpu_text(cpu_us):
    return f"{cpu_us:.2f}" if cpu_us < 100 else f"{cpu_us:,.0f}"


def target_text(result):
    parts = []
    if result.get("ops_target") is not None:
        parts.append(f"ops >= {result['ops_target']}")
    if result.get("cpu_target") is not None:
        parts.append(f"CPU <= {result['cpu_target']}")
    return ", ".join(parts)


def met_text(met):
    return {None: "", True: "yes", False: "no"}[met]


def shape_text(result):
    return f"{result['connections']} x {result['depth']}"


def line_of(result):
    """One line when a row is done."""
    head = f"{result['name']:18} {result['took_s']:5.0f} s  "
    if result["kind"] == "comparison":
        ratio = result["ratio"]
        return head + (
            f"ops {ratio_text(ratio['ops'])}  CPU {ratio_text(ratio['cpu'])}"
            f"  {target_text(result)}  {met_text(result['met'])}"
        )
    if result["kind"] == "facts":
        return head + "; ".join(f"{what}: {value}" for what, value in result["lines"])
    return head + "; ".join(
        f"{label}: " + " ".join(f"{y:.4g}" for _, y in curve)
        for label, curve in result["curves"].items()
    )


def own_cpu_text(result):
    """With its parts, where it has several: proxy + memcached."""
    text = cpu_text(result["ours"]["cpu_us"]["median"])
    parts = result["ours"]["cpu_us_by_server"].values()
    if result["cpu_of"] == "proxy":
        return text
    return f"{text} ({' + '.join(map(cpu_text, parts))})"


def comparison_cells(result):
    ours, theirs, ratio = result["ours"], result["theirs"], result["ratio"]
    return [
        result["title"],
        shape_text(result),
        result["peer"],
        ops_text(ours),
        ops_text(theirs),
        ratio_text(ratio["ops"]),
        own_cpu_text(result),
        cpu_text(theirs["cpu_us"]["median"]),
        ratio_text(ratio["cpu"]),
        target_text(result),
        met_text(result["met"]),
    ]


COMPARISON_HEAD = (
    "request (peer's),connections x depth,peer,ours ops/s,peer ops/s,ratio ops,"
    "ours CPU µs,peer CPU µs,ratio CPU,target,met"
).split(",")


def latency_cells(result):
    cells = [result["title"], shape_text(result), result["peer"]]
    for name in ("p50", "p99", "p99_9", "max"):
        ours, theirs = (result[side]["latency_us"][name] for side in ("ours", "theirs"))
        cells.append(f"{count_text(ours)} / {count_text(theirs)}")
    return cells


LATENCY_HEAD = ["request (peer's)", "connections x depth", "peer", "p50", "p99", "p99.9", "max"]


def markdown_table(head, lines):
    text = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    text += [f"| {' | '.join(cells)} |" for cells in lines]
    return "\n".join(text)


def padded_table(head, lines):
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
    text = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
        for line in [head, *lines]
    ]
    return "\n".join(text)


def of_kind(everything, kind):
    return [result for result in everything["rows"] if result["kind"] == kind]


def text_table(everything):
    parts = []
    comparisons = of_kind(everything, "comparison")
    if comparisons:
        parts.append(padded_table(COMPARISON_HEAD, [comparison_cells(r) for r in comparisons]))
        if any("*" in cell for r in comparisons for cell in comparison_cells(r)[3:5]):
            parts.append("* the load generator was busy for more than 95 % of the time")
    for result in of_kind(everything, "facts"):
        lines = [f"{result['title']}:"] + [f"  {what}: {value}" for what, value in result["lines"]]
        if result["target"]:
            lines.append(f"  target: {result['target']}: {met_text(result['met'])}")
        parts.append("\n".join(lines))
    for result in of_kind(everything, "series"):
        lines = [f"{result['title']}:"]
        for label, curve in result["curves"].items():
            lines.append(f"  {label}: " + ", ".join(f"{x:,}: {y:,.4g}" for x, y in curve))
        if result.get("target"):
            lines.append(
                f"  target: {result['target']}; {result['found']}: {met_text(result['met'])}"
            )
        parts.append("\n".join(lines))
    if everything["failed"]:
        parts.append(f"FAILED: {' '.join(everything['failed'])}")
    return "\n\n".join(parts)


# --- what it ran on ----------------------------------------------------------------------------


def processor():
    found = re.search(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return found[1] if found else platform.machine()


def environment(bench, machine):
    memory_kb = re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())[1]
    return {
        "date": datetime.date.today().isoformat(),
        "processor": processor(),
        "cores": len(bench.cores.all),
        "pinning": bench.cores.text(),
        "memory_gb": round(int(memory_kb) / 1e6),
        "kernel": platform.release(),
        "seconds": bench.args.seconds,
        "repetitions": bench.args.repetitions,
        "share_of_others": machine.share_of_others(),
        "versions": {
            "mclistd": version_of([str(bench.build / "mclistd"), "-V"]),
            "memcached": version_of(["memcached", "-V"]),
            "nutcracker": version_of(["nutcracker", "-V"]),
            "redis-server": version_of(["redis-server", "--version"]),
        },
    }


def environment_text(env):
    versions = ", ".join(f"{name} {version}" for name, version in env["versions"].items())
    return (
        f"Measured on {env['date']}: {env['processor']}, {env['cores']} cores, "
        f"{env['memory_gb']} GB, Linux {env['kernel']}; {env['pinning']}. {versions}. "
        f"{env['repetitions']} measurements of {env['seconds']:g} s for each side of a row, "
        f"in turns. "
        f"Other programs used {env['share_of_others']:.0%} of the machine meanwhile."
    )


# --- the documents -----------------------------------------------------------------------------


def peer_wins(comparisons):
    """The rows in which the peer does more per second, or takes less CPU time."""
    lines = []
    for result in comparisons:
        ops, cpu = result["ratio"]["ops"]["median"], result["ratio"]["cpu"]["median"]
        parts = []
        if ops < 1:
            parts.append(f"{1 / ops:.2f} times as many requests per second")
        if cpu > 1:
            parts.append(f"{1 / cpu:.2f} of the CPU time")
        if parts:
            name = f"{result['title']}, {shape_text(result)}"
            lines.append(f"- {name}: {result['peer']} has {' and '.join(parts)}.")
    return "\n".join(lines) or "In none of these rows."


def facts_text(result):
    text = markdown_table([result["title"], ""], [list(line) for line in result["lines"]])
    if result["target"]:
        text += f"\n\nTarget: {result['target']}. Met: {met_text(result['met'])}."
    return text


def series_text(result):
    head = [result["x"]] + list(result["curves"])
    curves = [dict(curve) for curve in result["curves"].values()]
    lines = [
        [f"{x:,}"] + [count_text(c[x]) if c[x] >= 100 else f"{c[x]:.2f}" for c in curves]
        for x in curves[0]
    ]
    text = f"![{result['title']}](performance/{result['name']}.svg)\n\n"
    title = f"{result['title'][0].upper()}{result['title'][1:]}"
    text += f"{title}; {result['y']}:\n\n" + markdown_table(head, lines)
    if result.get("target"):
        text += (
            f"\n\nTarget: {result['target']}. {result['found']}. "
            f"Met: {met_text(result['met'])}."
        )
    return text


def figures_text(everything, name):
    """One part of the figures."""
    part = {**everything, "rows": [r for r in everything["rows"] if r["part"] == name]}
    comparisons, facts, curves = (of_kind(part, k) for k in ("comparison", "facts", "series"))

    def heading(text):
        prefix = HEADINGS[name]
        return f"### {prefix}{text[0].lower() if prefix else text[0]}{text[1:]}"

    table = markdown_table(COMPARISON_HEAD, map(comparison_cells, comparisons))
    parts = [environment_text(part["environment"]), heading("Side by side"), table]
    if any("*" in cell for r in comparisons for cell in comparison_cells(r)[3:5]):
        parts.append(
            "\\* The load generator was busy for more than 95 % of the time: the server could have "
            "done more."
        )
    parts += [heading("Where a peer wins"), peer_wins(comparisons)]
    parts += [
        heading("Latency"),
        "Microseconds from sending a batch to each of its replies, ours / peer's, with the clients "
        "as fast as they can be; medians over the measurements.",
        markdown_table(LATENCY_HEAD, map(latency_cells, comparisons)),
    ]
    if facts:
        titles = {"figures": "Memory, several proxies, merges", "collections": "Beside writes"}
        parts += [heading(titles[name]), *map(facts_text, facts)]
    if curves:
        parts += [heading("Against size and number of clients"), *map(series_text, curves)]
    text = "\n\n".join(part.replace("* |", "\\* |") for part in parts)
    return "\n".join(map(wrapped, text.split("\n")))


def wrapped(line):
    """A line of a document within 100 columns, unless it is a row of a table or an image."""
    if line.startswith(("|", "![")):
        return line
    indent = "  " if line.startswith("- ") else ""
    return textwrap.fill(
        line, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def plot(result, path):
    blocks, curves = [], []
    x_all = [x for curve in result["curves"].values() for x, _ in curve]
    y_format = "%g" if "CPU" in result["y"] else "%.0s%c"
    for i, (label, curve) in enumerate(result["curves"].items()):
        points = "\n".join(f"{x} {y:.6g}" for x, y in curve)
        blocks.append(f"$data{i} << EOD\n{points}\nEOD\n")
        curves.append(f"$data{i} using 1:2 with linespoints pt 7 ps 0.6 lw 2 title '{label}'")
    script = "".join(blocks) + (
        "set terminal svg size 760,420 dynamic background rgb 'white' font 'sans-serif,13'\n"
        f"set output '{path}'\n"
        f"set title '{result['title']}'\nset xlabel '{result['x']}'\nset ylabel '{result['y']}'\n"
        f"set logscale x\nset format x '%.0s%c'\nset format y '{y_format}'\n"
        f"set xrange [{min(x_all) / 1.3}:{max(x_all) * 1.3}]\n"
        "set grid\nset key outside bottom center horizontal\n"
        f"{'set logscale y' if result.get('is_log') else 'set yrange [0:*]'}\n"
        f"plot {', '.join(curves)}\n"
    )
    done = subprocess.run(["gnuplot"], input=script, text=True, capture_output=True, check=False)
    if done.returncode != 0 or not path.exists():
        raise Failure(f"gnuplot: {done.stderr.strip()}")


def write_documents(everything, docs):
    """Replaces what stands between the marks of performance.md, and the plots beside it."""
    path = docs / "performance.md"
    text = path.read_text(encoding="utf-8")
    plots = docs / "performance"
    plots.mkdir(exist_ok=True)
    for result in of_kind(everything, "series"):
        plot(result, plots / f"{result['name']}.svg")
    for name in sorted({result["part"] for result in everything["rows"]}):
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        before, rest = text.split(begin)
        text = f"{before}{begin}\n\n{figures_text(everything, name)}\n\n{end}{rest.split(end)[1]}"
    path.write_text(text, encoding="utf-8")
    print(f"written: {path} and {plots}/*.svg")
