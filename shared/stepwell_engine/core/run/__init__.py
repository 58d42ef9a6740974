"""A run, whatever it executes: head, inbox, journal, and what a worker is told to do."""
