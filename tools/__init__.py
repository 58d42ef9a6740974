"""Tools for the developers of the engine: bench, bill, crash."""
