# SPDX-License-Identifier: BSD-3-Clause
"""Makes a failing case smaller as long as it fails, first its requests, then its packets; and shows
what is left."""

import dataclasses
import time

from running import Packets, Run, short

SHOWN_REQUESTS_MAX = 20
BUDGET_S = 60


def smaller(items, fails, deadline):
    """A sublist that still fails, from which no single item can be left out, time permitting."""
    step = max(1, len(items) // 2)
    while True:
        at = 0
        while at < len(items):
            if time.monotonic() > deadline:
                return items
            without = items[:at] + items[at + step :]
            if fails(without):
                items = without
            else:
                at += step
        if step == 1:
            return items
        step //= 2


def _with_requests(case, kept):
    """The case with only these requests: (phase, connection, index)."""
    kept = set(kept)
    phases = []
    for phase, chunks in enumerate(case.phases):
        some = {
            number: [r for index, r in enumerate(chunk) if (phase, number, index) in kept]
            for number, chunk in chunks.items()
        }
        some = {number: chunk for number, chunk in some.items() if chunk}
        if some:
            phases.append(some)
    return dataclasses.replace(case, phases=phases)


def _places(case):
    return [
        (phase, number, index)
        for phase, chunks in enumerate(case.phases)
        for number, chunk in chunks.items()
        for index in range(len(chunk))
    ]


def _explicit(case, run):
    """The cuts as they were made: (phase, connection, position, pause)."""
    found = []
    for phase, chunks in enumerate(case.phases):
        for number, chunk in chunks.items():
            size = sum(len(request.text(lambda key: b"1")) for request in chunk)
            cuts = run.positions(phase, number, size) if size > 1 else []
            found += [(phase, number, *cut) for cut in cuts]
    return found


def _with_cuts(case, cuts):
    table = {}
    for phase, number, at, pause_s in cuts:
        table.setdefault((phase, number), []).append((at, pause_s))
    return dataclasses.replace(case, packets=Packets(case.packets.seed, cuts=table))


def minimise(sides, case, failure, timeout_s):
    """(the smallest case found, its failure); (the given case, None) if it does not fail again."""
    deadline = time.monotonic() + BUDGET_S
    best = [case, failure]

    def fails(candidate):
        found = Run(sides, candidate, timeout_s).run()
        if found:
            best[:] = candidate, found
        return found is not None

    if not fails(case):
        return case, None
    kept = smaller(_places(case), lambda kept: fails(_with_requests(case, kept)), deadline)
    case = _with_requests(case, kept)
    cuts = _explicit(case, case.packets)
    if fails(_with_cuts(case, cuts)):
        smaller(cuts, lambda cuts: fails(_with_cuts(case, cuts)), deadline)
    return tuple(best)


def _requests(chunk):
    return [f"    {short(r.line)} {r.eol!r} {short(r.body) if r.body else ''}" for r in chunk]


def describe(case, failure):
    """Lines for people: the stream, its packets, and both answers."""
    lines = [f"{failure.what} (before: {case.layout.name})"]
    count = len(_places(case))
    if count > SHOWN_REQUESTS_MAX:
        lines.append(f"  {count} requests are not shown: --seed {case.seed}")
    else:
        for phase, chunks in enumerate(case.phases):
            for number, chunk in chunks.items():
                lines.append(f"  phase {phase}, connection {number}, sends:")
                lines += _requests(chunk)
                lines.append(f"    cuts: {_shown_cuts(case, phase, number, chunk)}")
    if failure.steps is None:
        return lines
    lines.append(f"  phase {failure.phase}, connection {failure.connection}, expected:")
    steps = failure.steps[failure.connection]
    for index, step in enumerate(steps):
        if not -SHOWN_REQUESTS_MAX < index - failure.step < 5:
            continue
        answers = " or ".join(
            short(answer.text) + (" closed" if closes else "") for answer, closes in step.candidates
        )
        mark = "->" if index == failure.step else "  "
        lines.append(f"  {mark} {short(step.text)}: {answers}")
    turn = failure.turns[failure.connection]
    state = "closed" if turn.closed else "open" if turn.over else "open, without an end"
    lines.append(f"  the proxy's answer there, {state}:")
    lines.append(f"    {short(turn.answer[failure.position :])}")
    return lines


def _shown_cuts(case, phase, number, chunk):
    size = sum(len(request.text(lambda key: b"1")) for request in chunk)
    cuts = case.packets.positions(phase, number, size) if size > 1 else []
    shown = [f"{at}" + (f" ({pause_s * 1000:g} ms)" if pause_s else "") for at, pause_s in cuts]
    return ", ".join(shown[:40]) + (" ..." if len(shown) > 40 else "") or "none"
