"""Advancing runs: claim, decide, act, settle and commit; and the tick that finds what is due."""
