# SPDX-License-Identifier: BSD-3-Clause
"""What the scripts that check a model in Python have in common."""

import argparse
import multiprocessing
import os
import time

from search import TooLarge, Violation


class Model:
    """broken: the rules that are left out in turn, each of which must be found. search(name) and
    search(rule): searches a world, or the one in which a rule is left out; returns the number of
    states."""

    def __init__(self, text, worlds, deep, broken, search):
        self.text, self.worlds, self.deep, self.broken = text, worlds, deep, broken
        self.search = search

    def checked(self, name):
        start = time.process_time()
        try:
            states, story = self.search(name), None
        except TooLarge as why:
            return False, f"not searched to the end: {why}", time.process_time() - start
        except Violation as found:
            story = found.args[0]
        if name in self.broken:
            good = story is not None
            text = f"found, {len(story)} lines" if good else "nothing was found"
        else:
            good = story is None
            text = f"{states:,} states" if good else "\n    ".join(["violated:", *story])
        return good, text, time.process_time() - start

    def show(self, rule):
        try:
            self.search(rule)
        except Violation as story:
            print(f"without the rule: {rule}", *story.args[0], sep="\n  ")

    def main(self):
        parser = argparse.ArgumentParser(
            description=self.text, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument("--deep", action="store_true", help="every world")
        rules = ", ".join(self.broken)
        parser.add_argument("--show", metavar="RULE", choices=self.broken, help=rules)
        cores = os.cpu_count()
        parser.add_argument("--jobs", type=int, default=cores, help="how many side by side")
        options = parser.parse_args()
        if options.show:
            self.show(options.show)
            return 0
        names = [*self.broken, *(w for w in self.worlds if options.deep or w not in self.deep)]
        count = {True: 0, False: 0}
        with multiprocessing.Pool(options.jobs, maxtasksperchild=1) as pool:
            for name, (good, text, took_s) in zip(names, pool.imap(self.checked, names)):
                shown = f"without: {name}" if name in self.broken else name
                count[good] += 1
                verdict = "ok" if good else "FAILED"
                print(f"{verdict:6} {shown:50} {took_s:5.1f} s  {text}", flush=True)
        print(f"{count[True]} passed, {count[False]} failed")
        return 1 if count[False] else 0
