"""Adapters of the embedded home: SQLite, a local PostgreSQL, processes and callables."""
