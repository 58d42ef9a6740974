"""What callers ask of runs: start, control, read."""
