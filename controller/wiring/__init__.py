"""The composition root: settings become adapters, adapters become a world, and the command line calls nothing else.

This file stays empty, so that a verb loads what it uses and no more.
"""
