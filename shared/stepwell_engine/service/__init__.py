"""Use cases over the ports: load, decide, commit, dispatch."""
