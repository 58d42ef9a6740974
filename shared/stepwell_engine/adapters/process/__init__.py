"""What a process itself has: clock, randomness, threads, hints in memory, counters."""
