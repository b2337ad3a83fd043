"""Schedule: which logical run comes when, and what to do next for one of them.

Input: the frozen tasks, arms, repeats and seed; later, how the attempts of a logical run ended.
Output: every logical run with its position; `Attempt`, `Score` or `Halt` as the next action.
Invariants: a pure function of frozen inputs; at most three attempts; a normal answer is never tried again.
"""

from controller.schedule.rules import Action, Halt, Next, Score, allocation, next_action

__all__ = ["Action", "Halt", "Next", "Score", "allocation", "next_action"]
