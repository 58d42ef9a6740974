"""Adapters that keep everything in memory: for tests and for the simulator."""
