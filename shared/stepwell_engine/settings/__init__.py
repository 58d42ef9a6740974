"""The only reader of the environment: one module per home."""
