"""Pods alike are scheduled alike, once: a cache of `schedule()` that is brought up to date instead of filled anew.

Pods of one workload ask the same questions about the same nodes.  A Board keeps the answers for one kind of pod:
each filter's verdict and each score plugin's raw and normalised score, per row of the table.  When the next such
pod comes, only rows that have changed since are asked about again, and the best row is picked from what is kept.

Rule: a board never changes an answer.  Whatever it cannot keep exactly — nominated pods, extenders, sampling, a
plugin that declares nothing, a pre_filter that says no — it leaves to the long way.

What a plugin declares is in framework/hooks.py (Boarded and those below it): what it reads of a pod, whether its
answer for a node hangs on the pods there, what it reads of the cluster beyond a node's own row, and, where that
changes with every pod placed, which rows a change concerns.

`boards` finds the board for a pod, `board` brings it up to date, `verdicts` and `marks` are its columns, `standing`
knows which rows are best, `history` what the columns were when an earlier Decision was made.
"""

from kubesched.core.board.board import Board, NoBoard
from kubesched.core.board.boards import Boards
from kubesched.core.board.history import BoardColumns
from kubesched.core.board.standing import WideRows

__all__ = ["Board", "BoardColumns", "Boards", "NoBoard", "WideRows"]
