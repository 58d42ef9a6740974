"""Values that people write and the engine keeps: JSON, durations, signatures, excerpts."""
