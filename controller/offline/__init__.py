"""The stand-alone checker of a bundle: a second implementation, for strangers who install nothing.

Input: the directory of a published bundle, and the publisher's keys if the reader has them. Output: one finding per
step of docs/evidence.md, up to the first that fails.
Invariants: the standard library of Python 3.9 and nothing else; nothing of the rest of this repository is imported and
nothing was taken from it, so a mistake in one of the two checkers is not in the other; everything read is hostile; no
network, no environment, no clock; the same bundle gives the same output anywhere.

`make checker` packs this package into one file, build/fairtrial-check.pyz.
"""
