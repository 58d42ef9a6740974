"""The only place that chooses adapters: one module per home, which loads what that home needs."""
