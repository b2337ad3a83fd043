"""Ask the package for suffixes and for the neighbours that share its module."""

import sys


def prepare(repository):
    sys.path.insert(0, repository)
    import inflection

    return inflection


def answer(inflection, given):
    return getattr(inflection, given["call"])(*given["with"])
