"""Pure rules: no I/O, no clock, no randomness. Time comes in as an argument (ms since the epoch)."""
