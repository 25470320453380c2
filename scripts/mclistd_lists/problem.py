# SPDX-License-Identifier: BSD-3-Clause
"""What is stored is not of a form that this release knows."""


class NotUnderstood(Exception):
    pass


def expect(truth, what):
    if not truth:
        raise NotUnderstood(what)
