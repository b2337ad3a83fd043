"""optimizer-matrix: routing policies over scenarios, with preregistered gates on completion and total cost.

Input: counts and exact costs of the frozen matrix. Output: which gates hold. Invariant: unknown cost saves nothing.
"""
