"""Declared workflows: the definition, and the program that a run of one executes."""
