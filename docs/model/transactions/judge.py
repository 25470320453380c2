# SPDX-License-Identifier: BSD-3-Clause
"""Is there an order of the operations that explains every answer, and what is stored in the end?

Each operation takes effect at one instant between its first request and its answer: strict
serializability, of all lists together, with contents as sets; and of each list alone, with contents
as sequences (all together as sequences, where the order of additions is among the conflicts).
"""

import itertools

import parties
from rules import applied


def after(rules, operation, result, items):
    """The contents behind the operation, or None when it cannot have answered that."""
    program, arguments = operation
    items = list(items)
    if program is parties.read:
        same = alike(rules, items[arguments[0]], result)
        return tuple(items) if same else None
    if program is parties.write:
        items[arguments[0]] = applied(items[arguments[0]], arguments[1])
    elif program in (parties.drop, parties.evict):
        items[arguments[0]] = ()
    elif program is parties.exact:
        number, entry = arguments
        new = applied(items[number], (entry,))
        if (set(new) != set(items[number])) != (result == 1):
            return None
        items[number] = new
    elif program is parties.transact:
        return after_transaction(rules.transactions[arguments[0]], result, items)
    return tuple(items)


def after_transaction(t, result, items):
    met = all(
        (item in items[number]) == wanted
        for number, asked in t.conditions.items()
        for item, wanted in asked
    )
    if result == "fail":
        return None if met else tuple(items)
    if not met:
        return None
    for number in t.lists:
        items[number] = applied(items[number], t.changes.get(number, ()))
    return tuple(items)


def after_in_one_list(rules, operation, result, number, items):
    """The same as seen from one list, as a sequence."""
    program, arguments = operation
    if program is parties.transact:
        t = rules.transactions[arguments[0]]
        asked = t.conditions.get(number, ())
        if result == "fail":
            return items
        if not all((item in items) == wanted for item, wanted in asked):
            return None
        return applied(items, t.changes.get(number, ()))
    if program is parties.read:
        return items if items == result else None
    others = [()] * (number + 1)
    others[number] = items
    new = after(rules, operation, result, others)
    return None if new is None else new[number]


def touches(rules, operation, number):
    program, arguments = operation
    if program is parties.transact:
        return number in rules.transactions[arguments[0]].lists
    return arguments[0] == number


def alike(rules, a, b):
    return a == b if rules.strict_order else set(a) == set(b)


def has_order(operations, before, effect, start, is_end):
    """operations: numbers. before: which ones were answered before each began, as bits. effect
    gives the state behind an operation, or None."""
    bit = {operation: 1 << at for at, operation in enumerate(operations)}
    needs = {o: sum(bit[p] for p in operations if before[o] >> p & 1) for o in operations}
    everything = (1 << len(operations)) - 1
    seen = set()

    def search(done, state):
        if done == everything:
            return is_end(state)
        if (done, state) in seen:
            return False
        seen.add((done, state))
        for operation in operations:
            if done & bit[operation] or needs[operation] & ~done:
                continue
            new = effect(operation, state)
            if new is not None and search(done | bit[operation], new):
                return True
        return False

    return search(0, start)


def is_right(rules, operations, history, start, end):
    """history: per operation None (it never began) or (what was answered before, its result); the
    result is None without an answer. What is unknown may have been done or not, 'busy' was not."""
    began = {number: entry for number, entry in enumerate(history) if entry is not None}
    before = {number: entry[0] for number, entry in began.items()}
    result = {number: entry[1] for number, entry in began.items()}
    maybe = [n for n in began if result[n] in (None, "unknown")]
    sure = [n for n in began if result[n] not in (None, "unknown", "busy")]

    def explains(chosen):
        whole = has_order(
            chosen,
            before,
            lambda n, state: after(rules, operations[n], result[n], state),
            start,
            lambda state: all(alike(rules, a, b) for a, b in zip(state, end)),
        )
        return whole and (
            rules.strict_order or all(explains_list(chosen, i) for i in range(len(start)))
        )

    def explains_list(chosen, number):
        return has_order(
            [n for n in chosen if touches(rules, operations[n], number)],
            before,
            lambda n, items: after_in_one_list(rules, operations[n], result[n], number, items),
            start[number],
            lambda items: items == end[number],
        )

    return any(
        explains(sure + list(extra))
        for count in range(len(maybe) + 1)
        for extra in itertools.combinations(maybe, count)
    )
