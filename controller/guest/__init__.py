"""Code that runs inside disposable machines and containers: standard library only, Python 3.9+.

It trusts nothing it reads from the harness, and imports nothing of the controller outside this package.
"""
