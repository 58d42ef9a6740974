"""Kills the host at random moments of many runs, and checks what they left."""
