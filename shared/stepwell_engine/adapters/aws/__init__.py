"""Adapters of the AWS home."""
