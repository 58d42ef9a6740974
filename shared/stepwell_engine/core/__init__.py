"""Pure rules: no I/O, clock, randomness. Time comes in as an argument (ms since the epoch)."""
